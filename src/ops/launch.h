// What lowering produces: launches as data. A launch stores relocations (offset in its arguments, tensor or scratch,
// addend), never addresses, so a plan can be bound to memory again by a mechanical patch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "device/device.h"
#include "graph/tensor.h"

namespace cudabk {

// Memory by name: a tensor's first byte or a scratch block, plus a byte offset.
struct BufferRef {
  enum class Kind : uint8_t { kTensor, kScratch };
  Kind kind = Kind::kTensor;
  int index = -1;      // Tensor::id, or the id that LowerContext::scratch returned
  int64_t addend = 0;  // bytes
  BufferRef operator+(int64_t bytes) const { return {kind, index, addend + bytes}; }
};

struct Relocation {
  uint32_t offset = 0;  // of a pointer-sized field in the argument struct
  BufferRef target;
};

struct KernelWork {
  KernelKey key;
  Dim3 grid, block;
  uint32_t shared_bytes = 0;
  bool programmatic = false;
  std::vector<std::byte> args;
  std::vector<Relocation> relocations;
};

struct GemmWork {
  GemmCall call;  // pointers empty
  BufferRef a, b, c;
};

struct FillWork {
  BufferRef dst;
  uint8_t value = 0;
  int64_t bytes = 0;
};

struct Launch {
  std::string label;  // for people: "mmvq q4_K", "quantize_q8"
  std::variant<KernelWork, GemmWork, FillWork> work;
};

// Fills a kernel launch from a typed argument struct whose pointers are bound by name:
//   KernelCall<RmsNormArgs> call({"rms_norm/rms_norm.h", "rms_norm<256, 4, false>"}, grid, block);
//   call.args.cols = 4096;  call.bind(call.args.x, ctx.data(x));  launches.push_back(call.launch("rms_norm"));
template <class Args>
class KernelCall {
  static_assert(std::is_trivially_copyable_v<Args>);

 public:
  KernelCall(KernelKey key, Dim3 grid, Dim3 block, uint32_t shared_bytes = 0) {
    work_.key = std::move(key);
    work_.key.args_bytes = sizeof(Args);
    work_.grid = grid;
    work_.block = block;
    work_.shared_bytes = shared_bytes;
  }
  Args args{};

  template <class T>
  void bind(T*& field, BufferRef target) {  // field: a pointer member of this->args
    const auto offset = reinterpret_cast<const std::byte*>(&field) - reinterpret_cast<const std::byte*>(&args);
    work_.relocations.push_back({static_cast<uint32_t>(offset), target});
  }
  KernelWork& work() { return work_; }
  Launch launch(std::string label) {
    work_.args.resize(sizeof(Args));
    std::memcpy(work_.args.data(), &args, sizeof(Args));
    return {std::move(label), std::move(work_)};
  }

 private:
  KernelWork work_;
};

}  // namespace cudabk
