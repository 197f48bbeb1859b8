// Candidates on a real device: cold replays of many copies of the op, checked against the reference.
#pragma once

#include <map>

#include "backend/backend.h"
#include "dispatch/profile.h"
#include "measure/clock.h"
#include "ops/op_def.h"
#include "tuning/shape_bench.h"

namespace cudabk {

// The op's case for a table key and a shape: {{"type", key}, {"m", ...}, ...}.
CaseParams tune_case(const std::string& key, const TuneShape& shape);

// Hash over the machine code of all kernels that `candidate` launches for this case; "" when it launches none (pure
// library calls). kUnsupported when the variant cannot run here.
Result<std::string> candidate_code(Device& device, const OpDef& op, const Profile& profile, const CaseParams& params,
                                   const Candidate& candidate);

// The same for the variant of a rule, at the upper corner of its intervals; "" when it cannot be told. Compiles. Used
// when a rule is written and when it is checked for being stale.
std::string rule_code(Device& device, const OpDef& op, const Profile& profile, const std::string& key,
                      const Rule& rule);

class DeviceBenchFactory final : public ShapeBenchFactory {
 public:
  // All references outlive the factory. `profile` holds the tables whose choices are the defaults; hand it through
  // without_tuned_rules() first.
  static Result<std::unique_ptr<DeviceBenchFactory>> create(Device& device, const OpDef& op, const Profile& profile,
                                                            uint64_t seed);

  const DeviceInfo& device() const override { return device_.info(); }
  std::span<const Family> families() const override { return op_.families(); }
  Result<std::unique_ptr<ShapeBench>> open(const std::string& key, const TuneShape& shape) override;
  std::string rule_code(const std::string& key, const Rule& rule) override {
    return cudabk::rule_code(device_, op_, profile_, key, rule);
  }

 private:
  DeviceBenchFactory(Device& device, const OpDef& op, const Profile& profile, uint64_t seed)
      : device_(device), op_(op), profile_(profile), seed_(seed) {}

  Device& device_;
  const OpDef& op_;
  const Profile& profile_;
  uint64_t seed_;
  std::unique_ptr<SpinKernel> spin_;  // covers the launch latency of replays; nullptr on the emulated device
};

}  // namespace cudabk
