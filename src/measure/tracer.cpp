// The entrance to tracing, the same with and without CUPTI in the build.
#include <fmt/format.h>

#include "measure/cupti/cupti_tracer.h"
#include "measure/trace.h"

namespace cudabk {

Result<std::unique_ptr<KernelTracer>> KernelTracer::create(Device& device) {
  if (device.info().emulated) {
    return unsupported("the emulated device has no activity records");
  }
  return make_cupti_tracer(device);
}

std::string timer_notice(const Error& error) { return fmt::format("kernel times from events: {}", error.message); }

}  // namespace cudabk
