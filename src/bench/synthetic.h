// Targets made of several ops. They are selected, built, checked and timed like one op, and are not in the op list.
#pragma once

#include "ops/op_def.h"

namespace cudabk {

class SyntheticTarget : public OpDef {
 public:
  // Every op of the graph behind `t`.
  Support supports(const Tensor& t, const DeviceInfo& device) const override;
  // Weights, inputs and the result once (what lies between may stay on the chip); all operations.
  Cost cost(const Tensor& t) const override;
  // Never part of a plan: its nodes are.
  Result<std::vector<Launch>> lower(const Tensor& t, LowerContext& ctx) const override;
  // Families and problem of its (first) matrix product: what --variant forces.
  std::span<const Family> families() const override;
  Problem problem(const Tensor& t) const override;
  double tolerance(const Tensor& t) const override;

 protected:
  // Values of the axis "type" of mul_mat.
  static std::vector<std::string> weight_types();
};

}  // namespace cudabk
