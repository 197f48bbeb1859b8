// Which kernel variants there are for an architecture, and compiling them ahead, without a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "device/cuda/compile.h"
#include "device/device.h"

namespace cudabk {

// What a GPU of this architecture looks like to planning. kInvalid, naming the known ones, for any other name.
Result<DeviceInfo> posed_device(std::string_view arch);

struct KernelVariant {
  KernelKey key;
  bool by_default = false;  // a built-in profile of the architecture takes it in one of the cases
  bool shipped = false;     // that, or a family's default configuration
  bool sampled = false;     // only drawn from a search space: in no profile, default configuration or list
};

struct VariantSelection {
  int samples = 0;     // so many further variants from the search spaces, at random
  uint64_t seed = 1;   // of the sampling
  std::string filter;  // regex over "header entry"; empty: all
};

// Every variant that the ops' test and bench cases take on `arch` under each built-in profile for it and under every
// family's default configuration, then those of the host-instance lists; each once, sorted. kInvalid for a bad filter.
Result<std::vector<KernelVariant>> kernel_variants(std::string_view arch, const VariantSelection& selection);

struct VariantJob {
  std::string arch;
  KernelVariant variant;
};

enum class VariantOutcome {
  kCompiled,
  kCached,
  kNotApplicable,  // the source says that this architecture lacks what it needs
  kFailed,
};

struct VariantResult {
  VariantJob job;
  VariantOutcome outcome = VariantOutcome::kFailed;
  KernelReport report;
  std::string message;  // of a failure: the compiler's words
  bool spills() const { return report.spill_store_bytes + report.spill_load_bytes > 0; }
  // An array that the compiler did not keep in registers, mostly for a loop that it did not unroll.
  bool keeps_array_on_stack() const { return report.local_bytes > 0 && !spills(); }
  // What no kernel that is named somewhere may do. Forgiven are spills of shapes that only tests need, and of up to
  // six registers: what is needed before and behind a loop only is best kept there.
  bool is_defect() const {
    constexpr int kKept = 24;  // bytes a thread
    return spills() ? job.variant.shipped && report.spill_store_bytes > kKept
                    : keeps_array_on_stack() && !job.variant.sampled;
  }
};

// Compiles all jobs on `threads` threads, in any order. `done` is called for each, one call at a time; when it returns
// false the rest is left out. kUnfit without NVRTC.
Status build_variants(KernelCompiler& compiler, const std::vector<VariantJob>& jobs, int threads,
                      const std::function<bool(const VariantResult&)>& done);

}  // namespace cudabk
