#include "ops/frag_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/frag_place.h"

namespace cudabk {
namespace {

constexpr int64_t kMaxBlocks = 1 << 20;  // of threads; they loop over the rest

int64_t slice_bytes(const Tensor& root) { return frag_bytes(frag_shape(root.type), root.ne[1], root.ne[0]); }

// Of the row factors of a slice.
int64_t slice_factor_bytes(const Tensor& root) {
  return frag_strips(root.ne[1]) * kFragRows * static_cast<int64_t>(sizeof(float));
}

KernelCall<RepackArgs> repack_call(const Tensor& root, std::string_view kernel) {
  const int64_t count = frag_strips(root.ne[1]) * frag_units(root.ne[0]) * root.ne[2] * root.ne[3];
  KernelCall<RepackArgs> call({"frag/repack.h", fmt::format("{}<DType::{}>", kernel, dtype_name(root.type))},
                              {static_cast<uint32_t>(std::min(count, kMaxBlocks))}, {kRepackThreads},
                              static_cast<uint32_t>(frag_shape(root.type).unit_bytes()));
  call.args.row_bytes = root.nb[1];
  call.args.m = static_cast<int32_t>(root.ne[1]);
  call.args.units = static_cast<int32_t>(frag_units(root.ne[0]));
  call.args.count = count;
  return call;
}

}  // namespace

Support frag_can_hold(const Tensor& root, const DeviceInfo& device) {
  if (!frag_shape(root.type).exists()) {
    return Support::no(fmt::format("{} has no such layout", dtype_name(root.type)));
  }
  if (device.cc < 80) {
    return Support::no(fmt::format("needs f16 tensor cores of sm_80, the device is {}", device.arch));
  }
  if (root.usage != Usage::kWeights || root.op != kOpNone || root.view_src != nullptr) {
    return Support::no("only tensors in weight buffers are repacked");
  }
  if (!is_contiguous(root) || is_empty(root)) {
    return Support::no("only dense tensors are repacked");
  }
  if (root.ne[1] < kFragRows) {
    return Support::no(fmt::format("{} rows are less than a strip of {}", root.ne[1], kFragRows));
  }
  if (root.ne[0] > INT32_MAX || root.ne[1] > INT32_MAX) {
    return Support::no("an extent is above 2^31");
  }
  return {};
}

int64_t frag_factors_offset(const Tensor& root) { return slice_bytes(root) * root.ne[2] * root.ne[3]; }

int64_t frag_tensor_bytes(const Tensor& root) {
  return frag_factors_offset(root) + slice_factor_bytes(root) * root.ne[2] * root.ne[3];
}

std::optional<FragView> frag_view(const Tensor& weights) {
  const Tensor& root = weights.root();
  if (root.layout != WeightLayout::kFrag || is_empty(weights) || weights.ne[0] != root.ne[0] ||
      weights.nb[0] != root.nb[0] || (weights.ne[1] != 1 && weights.nb[1] != root.nb[1])) {
    return std::nullopt;
  }
  const int64_t slice = weights.view_offset / root.nb[2], rest = weights.view_offset % root.nb[2];
  const int64_t row = rest / root.nb[1];
  if (rest % root.nb[1] != 0 || row % kFragRows != 0 || row + weights.ne[1] > root.ne[1]) {
    return std::nullopt;
  }
  FragView view;
  view.units = static_cast<int32_t>(frag_units(root.ne[0]));
  view.offset = slice * slice_bytes(root) + row / kFragRows * view.units * frag_shape(root.type).unit_bytes();
  view.factor_offset = frag_factors_offset(root) + slice * slice_factor_bytes(root) + row * 4;
  for (const int dim : {2, 3}) {
    if (weights.ne[dim] == 1) {
      continue;
    }
    if (weights.nb[dim] % root.nb[2] != 0) {
      return std::nullopt;
    }
    (dim == 2 ? view.stride2 : view.stride3) = weights.nb[dim] / root.nb[2] * slice_bytes(root);
    (dim == 2 ? view.factor_stride2 : view.factor_stride3) = weights.nb[dim] / root.nb[2] * slice_factor_bytes(root);
  }
  return view;
}

KernelCall<RepackArgs> pack_call(const Tensor& root) { return repack_call(root, "pack_frag"); }
KernelCall<RepackArgs> unpack_call(const Tensor& root) { return repack_call(root, "unpack_frag"); }

KernelCall<FragFactorsArgs> factors_call(const Tensor& root) {
  const int64_t strips = frag_strips(root.ne[1]) * root.ne[2] * root.ne[3];
  KernelCall<FragFactorsArgs> call({"frag/factors.h", fmt::format("frag_factors<DType::{}>", dtype_name(root.type))},
                                   {static_cast<uint32_t>(std::min(strips, kMaxBlocks))}, {kFactorWarps * 32},
                                   kFactorWarps * kFragRows * 4);
  call.args.units = static_cast<int32_t>(frag_units(root.ne[0]));
  call.args.strips = strips;
  return call;
}

}  // namespace cudabk
