#include "ops/copy_plan.h"

#include <algorithm>

namespace cudabk {
namespace {

constexpr int kSrc = 0, kDst = 1;
constexpr size_t kMaxDims = 4;
constexpr int64_t kLeastTransposed = 16;  // shorter sides would leave most of a tile idle

// One side's elements in logical order, as runs of equal stride from the innermost; neighbours that are dense relative
// to each other are one run. Consumed piece by piece.
class Walk {
 public:
  Walk(const Shape& ne, const Strides& strides) {
    for (int i = 0; i < 4; ++i) {
      if (ne[i] == 1) {
        continue;
      }
      if (!runs_.empty() && strides[i] == runs_.back().stride * runs_.back().extent) {
        runs_.back().extent *= ne[i];
      } else {
        runs_.push_back({ne[i], strides[i]});
      }
    }
  }
  bool done() const { return at_ == runs_.size(); }
  int64_t left() const { return runs_[at_].extent; }
  int64_t stride() const { return runs_[at_].stride; }
  void take(int64_t extent) {  // divides left()
    Run& run = runs_[at_];
    run.extent /= extent;
    run.stride *= extent;
    at_ += run.extent == 1 ? 1 : 0;
  }

 private:
  struct Run {
    int64_t extent, stride;
  };
  std::vector<Run> runs_;
  size_t at_ = 0;
};

Strides element_strides(const Tensor& t) {
  return {element_stride(t, 0), element_stride(t, 1), element_stride(t, 2), element_stride(t, 3)};
}

}  // namespace

std::vector<LoopDim> common_dims(const Shape& src_ne, const Strides& src_strides, const Shape& dst_ne,
                                 const Strides& dst_strides) {
  std::vector<LoopDim> dims;
  Walk s(src_ne, src_strides), d(dst_ne, dst_strides);
  while (!s.done() && !d.done()) {
    const int64_t extent = std::min(s.left(), d.left());
    if (std::max(s.left(), d.left()) % extent != 0) {
      return {};
    }
    dims.push_back({extent, {s.stride(), d.stride(), 0}, extent});
    s.take(extent);
    d.take(extent);
  }
  if (dims.empty()) {
    dims.push_back({1, {src_strides[0], dst_strides[0], 0}, 1});
  }
  return dims;
}

CopyPlan plan_copy(const Tensor& src, const Tensor& dst) {
  CopyPlan plan;
  const bool dense = is_contiguous(src) && is_contiguous(dst);
  if (dense && src.type == dst.type) {
    plan.path = CopyPath::kBytes;
    return plan;
  }
  std::vector<LoopDim> dims = common_dims(src.ne, element_strides(src), dst.ne, element_strides(dst));
  std::stable_sort(dims.begin(), dims.end(),
                   [](const LoopDim& a, const LoopDim& b) { return a.stride[kDst] < b.stride[kDst]; });
  dims = merge_dims(dims);
  if (dims.empty() || dims.size() > kMaxDims) {
    return plan;
  }
  plan.dims = std::move(dims);
  if (plan.dims[0].stride[kDst] != 1) {
    return plan;
  }
  if (plan.dims[0].stride[kSrc] == 1) {
    plan.path = CopyPath::kRows;
    return plan;
  }
  const auto inner =
      std::find_if(plan.dims.begin() + 1, plan.dims.end(), [](const LoopDim& d) { return d.stride[kSrc] == 1; });
  if (inner != plan.dims.end() && inner->extent >= kLeastTransposed && plan.dims[0].extent >= kLeastTransposed) {
    std::rotate(plan.dims.begin() + 1, inner, inner + 1);
    plan.path = CopyPath::kTransposed;
  }
  return plan;
}

}  // namespace cudabk
