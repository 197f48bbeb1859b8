// Tensors: shape, strides, the op that produces them. Semantics: four dimensions, innermost first, byte strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/result.h"
#include "graph/dtype.h"

namespace cudabk {

using Shape = std::array<int64_t, 4>;    // ne: extents, innermost first
using Strides = std::array<int64_t, 4>;  // nb: byte strides

// 64 bytes of op parameters. The op's own file defines the struct; equality and hash see every byte.
class OpParams {
 public:
  static constexpr size_t kCapacity = 64;

  OpParams() = default;
  template <class T>
  static OpParams of(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kCapacity);
    OpParams p;
    std::memcpy(p.bytes_.data(), &value, sizeof(T));
    p.size_ = sizeof(T);
    return p;
  }
  // Precondition: the params were made from a T (the builder of the op did).
  template <class T>
  T as() const {
    T value{};
    std::memcpy(&value, bytes_.data(), sizeof(T));
    return value;
  }
  bool operator==(const OpParams&) const = default;
  const std::array<std::byte, kCapacity>& bytes() const { return bytes_; }
  size_t size() const { return size_; }

 private:
  std::array<std::byte, kCapacity> bytes_{};
  size_t size_ = 0;
};

// What a buffer is for. Weights are constant during a plan; compute memory is overwritten by it.
enum class Usage { kWeights, kCompute };

// How a root tensor's bytes lie in memory. kFrag: repacked for tensor cores (kernels/formats/frag_shape.h); extents,
// strides and view offsets keep their raw meaning, only memory and the kernels that ask for it know.
enum class WeightLayout : uint8_t { kRaw, kFrag };
// What a leaf's layout shall be; kAuto leaves it to the profile (backend/layouts.h).
enum class LayoutWish : uint8_t { kAuto, kRaw, kFrag };

// Names of the ops that only reinterpret memory; they cost nothing at execution. "" is a leaf.
inline constexpr std::string_view kOpNone = "";
inline constexpr std::string_view kOpView = "view";
inline constexpr std::string_view kOpReshape = "reshape";
inline constexpr std::string_view kOpPermute = "permute";
inline constexpr std::string_view kOpTranspose = "transpose";

// Owned by a Graph; addresses are stable. `op` is a name from the op list (src/ops) or one of the above.
struct Tensor {
  std::string name;
  DType type = DType::f32;
  Shape ne{1, 1, 1, 1};
  Strides nb{};
  std::string_view op = kOpNone;
  OpParams params;
  std::vector<Tensor*> src;    // sources in op order; views have one
  Tensor* view_src = nullptr;  // root owner of the memory, never itself a view
  int64_t view_offset = 0;     // bytes from the root's start
  bool is_output = false;      // must stay materialised (fusion may not swallow it)
  Usage usage = Usage::kCompute;
  WeightLayout layout = WeightLayout::kRaw;  // of a root's memory; views: see root()
  LayoutWish layout_wish = LayoutWish::kAuto;
  float init_scale = 1;     // leaves: factor on random initial values (cases with extreme activations)
  int64_t index_limit = 0;  // leaves of an integer type that are indices: initial values lie below it; 0: all are 0
  int id = -1;              // index in the graph, also for leaves

  const Tensor& root() const { return view_src != nullptr ? *view_src : *this; }
  Tensor& root() { return view_src != nullptr ? *view_src : *this; }
};

int64_t element_count(const Tensor& t);
int64_t row_count(const Tensor& t);  // ne1 * ne2 * ne3
int64_t byte_size(const Tensor& t);  // spec: 0 if empty, else last byte + 1 of the strided extent
bool is_empty(const Tensor& t);
bool is_view_op(const Tensor& t);  // view, reshape, permute, transpose, leaf: no work

Strides dense_strides(DType type, const Shape& ne);

// Dims above `n` are dense relative to dim n (contiguous_n of the tensor conventions); n = 0 is fully dense.
bool is_contiguous(const Tensor& t, int n = 0);
bool has_contiguous_rows(const Tensor& t);
bool is_contiguously_allocated(const Tensor& t);
bool is_transposed(const Tensor& t);
bool is_permuted(const Tensor& t);
bool same_shape(const Tensor& a, const Tensor& b);
bool same_layout(const Tensor& a, const Tensor& b);
bool can_repeat(const Tensor& x, const Tensor& y);  // y's extents are multiples of x's
bool can_repeat_rows(const Tensor& x, const Tensor& y);

std::string describe(const Tensor& t);    // "q4_K[14336,4096]" (+ strides where not dense)
std::string shape_text(const Shape& ne);  // "[4096,16,1,1]" without trailing ones

}  // namespace cudabk
