// Builds without a CUDA toolkit have no CUPTI headers.
#include "measure/cupti/cupti_tracer.h"

namespace cudabk {

Result<std::unique_ptr<KernelTracer>> make_cupti_tracer(Device&) {
  return unsupported("this build has no CUPTI (no CUDA toolkit was found when it was configured)");
}

}  // namespace cudabk
