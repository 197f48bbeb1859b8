#include "measure/cache_control.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/units.h"

namespace cudabk {
namespace {

constexpr int64_t kColdFloorBytes = 256'000'000;
constexpr int64_t kColdL2Multiple = 4;
constexpr double kUsableShare = 0.9;         // of free memory
constexpr int64_t kEmulatedBytes = 1 << 20;  // nothing to flush there: a few copies show the code path
constexpr int64_t kEmulatedCopies = 2;

}  // namespace

Result<CacheMode> parse_cache_mode(std::string_view text) {
  if (text == "cold") {
    return CacheMode::kCold;
  }
  if (text == "hot") {
    return CacheMode::kHot;
  }
  return invalid(fmt::format("cache mode \"{}\": expected cold or hot", text));
}

int64_t cold_bytes_required(int64_t l2_bytes) { return std::max(kColdFloorBytes, kColdL2Multiple * l2_bytes); }

Result<FootprintPlan> plan_footprint(const FootprintRequest& request) {
  const int64_t distinct = request.weight_bytes > 0 ? request.weight_bytes : request.touched_bytes;
  const int64_t per_copy = std::max({request.touched_bytes, distinct, request.memory_bytes});
  if (distinct <= 0) {
    return invalid("the op touches no memory: there is no footprint to plan");
  }
  const auto usable = static_cast<int64_t>(kUsableShare * static_cast<double>(request.free_bytes));
  const int64_t fitting = usable / per_copy;
  if (fitting < 1) {
    return unfit(fmt::format("one copy of the op needs {}, {} of device memory are free",
                             format_bytes(static_cast<double>(per_copy)),
                             format_bytes(static_cast<double>(request.free_bytes))));
  }

  FootprintPlan plan;
  const auto finish = [&](int64_t copies, std::string label) {
    plan.copies = copies;
    plan.label = std::move(label);
    plan.distinct_bytes = copies * distinct;
    plan.l2_ratio =
        request.l2_bytes > 0 ? static_cast<double>(plan.distinct_bytes) / static_cast<double>(request.l2_bytes) : 0;
    return plan;
  };
  if (request.emulated) {
    const int64_t copies =
        request.mode == CacheMode::kCold && distinct < kEmulatedBytes ? std::min(kEmulatedCopies, fitting) : 1;
    return finish(copies, "emulated");
  }
  if (request.mode == CacheMode::kHot) {
    return finish(1, "hot");
  }
  plan.required_bytes = cold_bytes_required(request.l2_bytes);
  const int64_t wanted = (plan.required_bytes + distinct - 1) / distinct;
  const int64_t copies = std::min({wanted, fitting, std::max<int64_t>(1, request.max_copies)});
  if (copies == wanted) {
    return finish(copies, "cold");
  }
  plan.reason = fmt::format("{} copies would be needed for {} of distinct data, {} {}", wanted,
                            format_bytes(static_cast<double>(plan.required_bytes)), copies,
                            copies == fitting ? fmt::format("fit into the {} of free device memory",
                                                            format_bytes(static_cast<double>(request.free_bytes)))
                                              : std::string("are the most that a replay may hold"));
  return finish(copies, "warm");
}

}  // namespace cudabk
