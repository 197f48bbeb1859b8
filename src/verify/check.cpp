// Checks of results that are in host memory.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "verify/verify.h"

namespace cudabk {
namespace {

std::array<int64_t, 4> position(const Region& region, int64_t at) {
  std::array<int64_t, 4> index{};
  for (int d = 0; d < 4; ++d) {
    const auto n = static_cast<int64_t>(region.index[d].size());
    index[d] = region.index[d][static_cast<size_t>(at % n)];
    at /= n;
  }
  return index;
}

// The reference holds what the stored type can hold; only the 16-bit floats differ visibly from double.
Status round_reference(DType type, std::span<double> values) {
  return type == DType::f16 || type == DType::bf16 ? round_to_type(type, values) : success();
}

}  // namespace

Result<OutputCheck> check_output(const Tensor& t, std::span<const std::byte> memory, const Values& inputs,
                                 const VerifyOptions& options) {
  OutputCheck check;
  check.name = t.name;
  check.shape = describe(t);
  check.elements = element_count(t);
  check.comparison.bound = options.bound;
  if (is_empty(t)) {
    return check;
  }
  const Region region = sample_region(t, options.seed, options.full_threshold);
  CUDABK_ASSIGN(std::vector<double> want, evaluate_reference(t, region, inputs));
  CUDABK_TRY(round_reference(t.type, want));
  const auto read_row = [&](int64_t i1, int64_t i2, int64_t i3, std::span<double> row) {
    return read_memory_row(t, memory, i1, i2, i3, 0, row);
  };
  CUDABK_ASSIGN(const std::vector<double> got, gather_region(t.ne[0], region, read_row));
  CompareOptions compare_options;
  compare_options.bound = options.bound;
  compare_options.row_length = static_cast<int64_t>(region.index[0].size());
  compare_options.non_finite_allowed = options.non_finite_allowed;
  constexpr int64_t kFewElements = 256;  // more are not all small by chance
  if (region.count() <= kFewElements) {
    CUDABK_ASSIGN(compare_options.magnitude, reference_magnitude(t, region, inputs));
  }
  check.comparison = compare(got, want, compare_options);
  if (check.comparison.worst >= 0) {
    check.worst_index = position(region, check.comparison.worst);
  }
  return check;
}

std::string OutputCheck::text() const {
  const Comparison& c = comparison;
  std::string head = fmt::format("{} {}: {}", name, shape, c.pass() ? "ok" : c.reason);
  if (c.worst >= 0 && !c.pass()) {
    head += fmt::format(" at [{}]: got {:.9g}, want {:.9g}", fmt::join(worst_index, ","), c.got, c.want);
  }
  return head + fmt::format(" (NMSE {:.3g}, bound {:.3g}, {} of {} elements)", c.nmse, c.bound, c.count, elements);
}

bool VerifyReport::pass() const {
  return std::all_of(outputs.begin(), outputs.end(), [](const OutputCheck& o) { return o.comparison.pass(); });
}

double VerifyReport::worst_nmse() const {
  double worst = 0;
  for (const OutputCheck& o : outputs) {
    worst = std::max(worst, o.comparison.nmse);
  }
  return worst;
}

Status VerifyReport::status() const {
  std::string text;
  for (const OutputCheck& o : outputs) {
    if (!o.comparison.pass()) {
      text += (text.empty() ? "" : "; ") + o.text();
    }
  }
  return text.empty() ? success() : Status(Error{ErrorKind::kWrongOutput, text});
}

}  // namespace cudabk
