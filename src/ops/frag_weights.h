// Weights in the `frag` layout (kernels/formats/frag_shape.h) as lowering sees them: which tensors can have it, how
// large they are, what a view of one is, and the launches that change layouts.
#pragma once

#include <optional>

#include "dispatch/problem.h"
#include "frag/args.h"
#include "graph/tensor.h"
#include "ops/launch.h"

namespace cudabk {

// Can this root tensor have the layout on this device? Weights of a type that has it, dense, at least 16 rows.
// Correctness only; that no node writes the tensor is up to the caller.
Support frag_can_hold(const Tensor& root, const DeviceInfo& device);

// Bytes of a root tensor in the layout.
int64_t frag_tensor_bytes(const Tensor& root);

// A view of packed weights that kernels can read in place.
struct FragView {
  int64_t offset = 0;                // bytes from the root's memory
  int64_t stride2 = 0, stride3 = 0;  // bytes between slices of dims 2 and 3; 0 for an extent of 1
  int32_t units = 0;                 // of a strip
};
// Whole rows from a multiple of 16 on within each slice; nothing for other views, and for roots in the raw layout.
std::optional<FragView> frag_view(const Tensor& weights);

// All of `root`, from raw to packed memory or back. Bind args.src and args.dst.
KernelCall<RepackArgs> pack_call(const Tensor& root);
KernelCall<RepackArgs> unpack_call(const Tensor& root);

}  // namespace cudabk
