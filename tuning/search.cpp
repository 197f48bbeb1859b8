#include "tuning/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace cudabk {

Result<Strategy> parse_strategy(std::string_view name) {
  for (const Strategy strategy : {Strategy::kExhaustive, Strategy::kHalving}) {
    if (name == strategy_name(strategy)) {
      return strategy;
    }
  }
  return invalid(fmt::format("unknown strategy '{}'; valid: exhaustive, halving", name));
}

std::string_view strategy_name(Strategy strategy) {
  return strategy == Strategy::kExhaustive ? "exhaustive" : "halving";
}

Result<std::vector<Ranked>> search_candidates(size_t count, const SearchOptions& options, const TimeFn& time) {
  std::vector<size_t> alive(count);
  std::iota(alive.begin(), alive.end(), size_t{0});
  const bool halving = options.strategy == Strategy::kHalving;
  int64_t samples = halving ? options.first_samples : options.full_samples;
  std::vector<Ranked> ranked;
  while (!alive.empty()) {
    ranked.clear();
    for (const size_t index : alive) {
      CUDABK_ASSIGN(const std::optional<double> ns, time(index, samples));
      if (ns) {
        ranked.push_back({index, *ns});
      }
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) { return a.ns < b.ns; });
    const size_t keep = std::max(options.top, (ranked.size() + 1) / 2);
    if (!halving || ranked.size() <= options.top || samples >= options.full_samples) {
      break;
    }
    alive.clear();
    for (size_t i = 0; i < std::min(keep, ranked.size()); ++i) {
      alive.push_back(ranked[i].index);
    }
    samples = std::min(samples * 2, options.full_samples);
  }
  return ranked;
}

}  // namespace cudabk
