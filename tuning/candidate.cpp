#include "tuning/candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace cudabk {

std::string Candidate::text() const {
  const std::string config_part = config_text(config);
  return config_part.empty() ? family : family + " " + config_part;
}

std::string shape_label(const TuneShape& shape) {
  std::string text;
  for (const auto& [name, value] : shape) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

std::vector<Candidate> search_space(const Problem& problem, const DeviceInfo& device,
                                    std::span<const Family> families) {
  std::vector<Candidate> candidates;
  for (const Family& family : families) {
    std::vector<Config> configs = {{}};
    for (const ConfigParam& param : family.params) {
      std::vector<int> values = {param.fallback};
      std::copy_if(param.values.begin(), param.values.end(), std::back_inserter(values),
                   [&](int v) { return v != param.fallback; });
      std::vector<Config> longer;
      for (const Config& config : configs) {
        for (const int value : values) {
          longer.push_back(config);
          longer.back()[param.name] = value;
        }
      }
      configs = std::move(longer);
    }
    for (Config& config : configs) {
      if (family.applicable(problem, config, device)) {
        candidates.push_back({family.name, std::move(config)});
      }
    }
  }
  return candidates;
}

std::vector<TuneShape> cross_shapes(const std::vector<std::pair<int64_t, int64_t>>& m_k,
                                    const std::vector<int64_t>& n) {
  std::vector<TuneShape> shapes;
  for (const auto& [m, k] : m_k) {
    for (const int64_t columns : n) {
      shapes.push_back({{"m", m}, {"n", columns}, {"k", k}});
    }
  }
  return shapes;
}

std::vector<TuneShape> default_tune_shapes(const DeviceInfo& device) {
  if (device.emulated) {
    return cross_shapes({{64, 256}, {128, 512}}, {1, 8, 32});
  }
  return cross_shapes({{4096, 4096}, {4096, 14336}, {14336, 4096}, {1024, 4096}},
                      {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 2048});
}

namespace {

// Values of one dimension, and for each gap the value half way on a log scale.
std::set<int64_t> with_middles(const std::set<int64_t>& values) {
  std::set<int64_t> result = values;
  for (auto it = values.begin(); it != values.end() && std::next(it) != values.end(); ++it) {
    const int64_t low = *it, high = *std::next(it);
    if (high - low > 1) {
      result.insert(low + (high - low) / 3);  // near the middle of a doubling, on either scale
    }
  }
  return result;
}

}  // namespace

std::vector<TuneShape> unseen_shapes(const std::vector<TuneShape>& seen) {
  std::set<std::pair<int64_t, int64_t>> pairs;
  std::set<int64_t> columns;
  const auto value = [](const TuneShape& s, std::string_view name) {
    const auto it = std::find_if(s.begin(), s.end(), [&](const auto& d) { return d.first == name; });
    return it == s.end() ? 0 : it->second;
  };
  for (const TuneShape& s : seen) {
    pairs.insert({value(s, "m"), value(s, "k")});
    columns.insert(value(s, "n"));
  }
  std::vector<TuneShape> result;
  if (pairs.empty()) {
    return result;
  }
  // Between the column counts on the first pair, and one pair that was not measured on every column count.
  const auto [m, k] = *pairs.begin();
  for (const int64_t n : with_middles(columns)) {
    if (!columns.contains(n)) {
      result.push_back({{"m", m}, {"n", n}, {"k", k}});
    }
  }
  const auto [last_m, last_k] = *pairs.rbegin();
  const int64_t other_m = (m + last_m) / 2 / 32 * 32;
  if (other_m > 0 && !pairs.contains({other_m, last_k})) {
    for (const int64_t n : columns) {
      result.push_back({{"m", other_m}, {"n", n}, {"k", last_k}});
    }
  }
  return result;
}

}  // namespace cudabk
