// Error metrics: a device's values against the reference.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace cudabk {

struct CompareOptions {
  double bound = 1e-7;              // of the normalised mean square error
  int64_t row_length = 0;           // consecutive values of one result row; 0: all of them
  double magnitude = 0;             // root mean square below which the result is small by cancellation only
  bool non_finite_allowed = false;  // the inputs hold infinities or NaN: where the reference is not finite, the device
                                    // must not be finite either
};

// NMSE = sum (got - want)^2 / max(sum want^2, count * magnitude^2); 0 when everything is zero.
struct Comparison {
  int64_t count = 0;
  double nmse = 0;
  double bound = 0;
  double max_error = 0;  // largest |got - want| of finite elements
  int64_t worst = -1;    // index of the element that broke a rule, else of the largest error
  double got = 0;        // at `worst`
  double want = 0;
  std::string reason;  // why it fails; empty when it passes
  bool pass() const { return reason.empty(); }
};

// Fails on: a NaN on either side; an infinity (or anything of at least FLT_MAX) that the other side does not share with
// its sign; an NMSE above the bound; one element whose error is out of proportion to the bound, which the mean of many
// elements would hide. `got` and `want` have the same length.
Comparison compare(std::span<const double> got, std::span<const double> want, const CompareOptions& options);

}  // namespace cudabk
