#include "verify/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

namespace cudabk {
namespace {

// Errors of a result within the bound spread around sqrt(bound) times the result's size; ten times that is no rounding.
constexpr double kElementFactor = 10;

// A row of this length is not small by chance: its own size counts, not that of larger rows beside it.
constexpr size_t kLongRow = 64;

bool infinite(double v) { return std::abs(v) >= static_cast<double>(FLT_MAX); }

// What is wrong with this pair apart from its size; nullptr when nothing is.
const char* class_fault(double got, double want, bool non_finite_allowed) {
  const bool got_odd = std::isnan(got) || infinite(got);
  const bool want_odd = std::isnan(want) || infinite(want);
  if (non_finite_allowed && want_odd) {
    return got_odd ? nullptr : "finite where the reference is not";
  }
  if (std::isnan(got)) {
    return "NaN";
  }
  if (std::isnan(want)) {
    return "the reference is NaN";
  }
  if (got_odd != want_odd) {
    return got_odd ? "infinite" : "finite where the reference is infinite";
  }
  return got_odd && std::signbit(got) != std::signbit(want) ? "infinite with the wrong sign" : nullptr;
}

// Sum of the squares of the finite values.
double square_sum(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) {
    sum += std::isnan(v) || infinite(v) ? 0 : v * v;
  }
  return sum;
}

void point_at(Comparison& c, size_t index, std::span<const double> got, std::span<const double> want) {
  c.worst = static_cast<int64_t>(index);
  c.got = got[index];
  c.want = want[index];
}

}  // namespace

Comparison compare(std::span<const double> got, std::span<const double> want, const CompareOptions& options) {
  Comparison c;
  c.count = static_cast<int64_t>(want.size());
  c.bound = options.bound;
  if (want.empty()) {
    return c;
  }
  const double all = std::max(square_sum(want), options.magnitude * options.magnitude * static_cast<double>(c.count));
  const double mean_square = all / static_cast<double>(c.count);
  const size_t row = options.row_length > 0 ? static_cast<size_t>(options.row_length) : want.size();
  double error_sum = 0;
  double largest_excess = 0;  // of an error over its row's limit
  double largest_error = -1;
  size_t excessive = 0;
  for (size_t begin = 0; begin < want.size(); begin += row) {
    const size_t end = std::min(want.size(), begin + row);
    const double row_square = square_sum(want.subspan(begin, end - begin)) / static_cast<double>(end - begin);
    const double size = end - begin >= kLongRow ? row_square : std::max(mean_square, row_square);
    const double limit = kElementFactor * std::sqrt(options.bound * size);
    for (size_t i = begin; i < end; ++i) {
      if (const char* fault = class_fault(got[i], want[i], options.non_finite_allowed)) {
        point_at(c, i, got, want);
        c.reason = fault;
        return c;
      }
      if (std::isnan(want[i]) || infinite(want[i])) {
        continue;
      }
      const double error = std::abs(got[i] - want[i]);
      error_sum += error * error;
      if (error > largest_error) {
        largest_error = error;
        point_at(c, i, got, want);
      }
      if (error - limit > largest_excess) {
        largest_excess = error - limit;
        excessive = i;
      }
    }
  }
  c.max_error = std::max(largest_error, 0.0);
  if (error_sum > 0) {
    c.nmse = all > 0 ? error_sum / all : std::numeric_limits<double>::infinity();
  }
  if (c.nmse > c.bound) {
    c.reason = fmt::format("NMSE {:.3g} is above {:.3g}", c.nmse, c.bound);
  } else if (largest_excess > 0) {
    point_at(c, excessive, got, want);
    c.reason = fmt::format("one element is off by {:.3g}", std::abs(c.got - c.want));
  }
  return c;
}

}  // namespace cudabk
