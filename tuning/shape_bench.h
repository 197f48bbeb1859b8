// What the tuner needs from a device: one op at one shape, on which candidates are verified and timed. The tuner's
// logic is tested on made-up timings through this interface; device_bench.h is the real one.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/result.h"
#include "measure/sampler.h"
#include "tuning/candidate.h"

namespace cudabk {

class ShapeBench {
 public:
  virtual ~ShapeBench() = default;
  virtual const Problem& problem() const = 0;
  // What the table in force picks here.
  virtual Result<Candidate> default_choice() = 0;
  // Compiles what the candidates need, in parallel. What fails to compile fails again in verify().
  virtual void preload(std::span<const Candidate> candidates) = 0;
  // Hash over the machine code of every kernel that the candidate launches; "" for pure library calls.
  virtual Result<std::string> code_hash(const Candidate& candidate) = 0;
  // Runs once and compares with the reference. kWrongOutput when it differs, kUnsupported when it cannot run (no such
  // variant, spilled registers), anything else when the launch failed.
  virtual Status verify(const Candidate& candidate) = 0;
  // A sample is the time of one replay over the ops in it, cold. The callable owns what it needs; the bench outlives
  // it.
  virtual Result<SampleFn> prepare(const Candidate& candidate) = 0;
};

class ShapeBenchFactory {
 public:
  virtual ~ShapeBenchFactory() = default;
  virtual const DeviceInfo& device() const = 0;
  virtual std::span<const Family> families() const = 0;  // of the op that is tuned
  // kInvalid when the op cannot have this shape (k not a multiple of the block), kUnfit when memory is short.
  virtual Result<std::unique_ptr<ShapeBench>> open(const std::string& key, const TuneShape& shape) = 0;
  // Hash of the variant of `rule` as built now (see CodeHashOf in dispatch/profile.h).
  virtual std::string rule_code(const std::string& key, const Rule& rule) = 0;
};

}  // namespace cudabk
