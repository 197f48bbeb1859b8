// WarpCopies (platform.h) by bulk copies (sm_90).
#pragma once

namespace cudabk {

// One lane asks for whole slots; each has a barrier, whose phases are its fills.
template <int Stages>
class WarpCopies {
 public:
  explicit WarpCopies(void* barriers) : barriers_(static_cast<SharedBarrier*>(barriers)) {
    if (lane() < Stages) {
      barrier_init(barriers_ + lane(), 1);
      barrier_init_done();
    }
    warp_sync();
  }

  bool asks() const { return lane() == 0; }
  void expect(int slot, int bytes) { barrier_expect(barriers_ + slot, bytes); }
  void copy(int slot, void* shared, const void* global, int bytes) {
    bulk_copy(shared, global, bytes, barriers_ + slot);
  }
  void close() {}
  void wait(int slot, int parity) { barrier_wait(barriers_ + slot, parity); }

 private:
  SharedBarrier* barriers_;
};

}  // namespace cudabk
