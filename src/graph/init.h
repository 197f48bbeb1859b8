// Deterministic random contents for tensors: the same bytes for the same seed, on any number of threads.
// Never NaN or infinite; floats are never zero. A block type gets random blocks with scale fields of a sensible size,
// which are valid blocks of the format and decode to a given standard deviation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "graph/dtype.h"

namespace cudabk {

// What the values of plain types follow; block types only follow a standard deviation.
struct Distribution {
  enum class Kind { kNormal, kUniform };
  Kind kind = Kind::kNormal;  // normal: mean 0
  double low = -1;            // uniform in [low, high]
  double high = 1;
};

// "normal" or "uniform:A,B" with finite A < B; kInvalid otherwise.
Result<Distribution> parse_distribution(std::string_view text);
std::string distribution_text(const Distribution& distribution);

struct RandomFill {
  DType type = DType::f32;
  double stddev = 1;  // of the decoded values; a uniform distribution has its own
  Distribution distribution;
  uint64_t seed = 0;
  int64_t first_block = 0;  // of `out` in its tensor: a tensor filled in pieces equals one filled at once
  int threads = 0;          // 0: all cores
};

// Fills `out`, a whole number of blocks (elements of a plain type). kInvalid when it is not, or when stddev is not a
// finite positive number. Blocks until done.
Status fill_random(const RandomFill& fill, std::span<std::byte> out);

struct IndexFill {
  DType type = DType::i32;  // i32 or i64
  int64_t limit = 1;        // values are below it, and not negative
  int64_t row_length = 1;   // entries of a row
  uint64_t seed = 0;
};

// Fills `out` with indices, rows of `row_length` entries. `limit` entries of a row that follow each other are all
// different, in no order. kInvalid for another type or a limit that is not positive or does not fit the type.
Status fill_indices(const IndexFill& fill, std::span<std::byte> out);

// A seed for the tensor number `index` of a run.
uint64_t tensor_seed(uint64_t seed, int index);

}  // namespace cudabk
