// How the tuner spends its measurements among the candidates of one shape.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "tuning/candidate.h"

namespace cudabk {

enum class Strategy { kExhaustive, kHalving };
Result<Strategy> parse_strategy(std::string_view name);  // "exhaustive", "halving"
std::string_view strategy_name(Strategy strategy);

// Time of candidate `index` in ns with about `samples` samples; nullopt for a candidate that is out (wrong or broken).
// An error ends the search.
using TimeFn = std::function<Result<std::optional<double>>(size_t index, int64_t samples)>;

struct SearchOptions {
  Strategy strategy = Strategy::kHalving;
  size_t top = 4;             // finalists wanted
  int64_t first_samples = 3;  // per candidate in the first round of halving
  int64_t full_samples = 24;  // per candidate in the exhaustive search, and the cap of halving's rounds
};

struct Ranked {
  size_t index = 0;
  double ns = 0;
};

// Candidates that survived, fastest first: all that were measured in the last round. Exhaustive: every one with
// full_samples. Halving: rounds with twice the samples for the better half, until no more than `top` are left.
Result<std::vector<Ranked>> search_candidates(size_t count, const SearchOptions& options, const TimeFn& time);

}  // namespace cudabk
