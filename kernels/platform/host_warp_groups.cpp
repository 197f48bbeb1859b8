#include "platform/host_warp_groups.h"

#include <bit>
#include <cstring>

#include "platform/host_runner.h"

namespace cudabk {

namespace {

// What a SharedBarrier's 8 bytes hold.
struct BarrierState {
  uint16_t count, pending;  // arrivals of a phase, and those still missing
  int32_t bytes : 31;       // expected and not come; below 0 where they came first
  uint32_t parity : 1;      // of the current phase
};
static_assert(sizeof(BarrierState) == sizeof(SharedBarrier));

// Applies `change`; a phase that is complete then ends, and threads that wait for it go on.
template <class Change>
void update(SharedBarrier* b, Change change) {
  host::check_aligned<8>(b, "misaligned barrier");
  auto state = std::bit_cast<BarrierState>(*b);
  change(state);
  const bool ends = state.pending == 0 && state.bytes == 0;
  if (ends) {
    state.pending = state.count;
    state.parity ^= 1;
  }
  *b = std::bit_cast<SharedBarrier>(state);
  if (ends) {
    host::current->block->runner->wake(b);
  }
}

void arrive(BarrierState& state) {
  if (state.pending == 0) {
    host::fail("more arrivals at a barrier than it counts");
  }
  --state.pending;
}

}  // namespace

void barrier_init(SharedBarrier* b, int count) {
  host::check_aligned<8>(b, "misaligned barrier");
  const auto arrivals = static_cast<uint16_t>(count);
  *b = std::bit_cast<SharedBarrier>(BarrierState{arrivals, arrivals, 0, 0});
}
void barrier_arrive(SharedBarrier* b) { update(b, arrive); }
void barrier_expect(SharedBarrier* b, int bytes) {
  update(b, [bytes](BarrierState& state) {
    state.bytes += bytes;
    arrive(state);
  });
}
void barrier_wait(SharedBarrier* b, int parity) {
  host::Thread& thread = *host::current;
  while (std::bit_cast<BarrierState>(*b).parity == static_cast<uint32_t>(parity)) {
    thread.block->runner->wait(thread, b);
  }
}
void bulk_copy(void* shared, const void* global, int bytes, SharedBarrier* b) {
  host::check_aligned<16>(shared, "misaligned destination of a bulk copy");
  host::check_aligned<16>(global, "misaligned source of a bulk copy");
  if (bytes <= 0 || bytes % 16 != 0) {
    host::fail("a bulk copy of no multiple of 16 bytes");
  }
  std::memcpy(shared, global, static_cast<size_t>(bytes));
  update(b, [bytes](BarrierState& state) { state.bytes -= bytes; });
}
void barrier_arrive_after_copies(SharedBarrier* b) {
  host::commit_copies();
  host::complete_copies(0);
  barrier_arrive(b);
}

template <class Number>
void host::multiply_group(float* d, int sums, const uint32_t (&a)[4], uint64_t b) {
  Exchange& exchange = open_exchange();
  std::memcpy(exchange.in[current->lane], a, sizeof(a));
  arrive_warp(Collective::kWgmma);
  const auto field = [b](int shift) { return static_cast<size_t>(b >> shift & 0x3fff) << 4; };
  const std::byte* columns = current->block->shared + field(0);
  const size_t k_stride = field(16), n_stride = field(32);
  const int g = current->lane / 4, t = current->lane % 4;
  float rows[2][16];  // g and g + 8
  for (int r = 0; r < 2; ++r) {
    for (int k = 0; k < 16; ++k) {
      const uint32_t word = exchange.in[4 * g + k % 8 / 2][2 * (k / 8) + r];
      rows[r][k] = to_float(Number{static_cast<uint16_t>(k % 2 == 0 ? word : word >> 16)});
    }
  }
  for (int i = 0; i < sums / 2; ++i) {  // columns 2t and 2t + 1 of every tile
    const std::byte* column = columns + i / 2 * n_stride + (2 * t + i % 2) * 16;
    float* sum = d + i / 2 * 4 + i % 2;
    for (int k = 0; k < 16; ++k) {
      Number element;
      std::memcpy(&element, column + k / 8 * k_stride + k % 8 * 2, sizeof(element));
      const float value = to_float(element);
      sum[0] += rows[0][k] * value;
      sum[2] += rows[1][k] * value;
    }
  }
}
template void host::multiply_group<f16>(float*, int, const uint32_t (&)[4], uint64_t);
template void host::multiply_group<bf16>(float*, int, const uint32_t (&)[4], uint64_t);

}  // namespace cudabk
