// Results for continuous-benchmark services and for Google Benchmark's tools.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/result.h"
#include "measure/statistics.h"
#include "report/report.h"

namespace cudabk {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

// Repetitions of a case joined: one benchmark in every one of these formats.
struct Joined {
  const CaseResult* first = nullptr;  // of a measured one, where there is any
  std::vector<double> samples_ns;
};

std::vector<Joined> joined_cases(const RunResult& run) {
  std::vector<Joined> list;
  std::map<std::string, size_t> index;
  for (const CaseResult& c : run.cases) {
    const auto [slot, fresh] = index.emplace(c.key, list.size());
    if (fresh) {
      list.push_back({&c, {}});
    }
    Joined& entry = list[slot->second];
    if (c.time_ns()) {
      entry.first = entry.first->time_ns() ? entry.first : &c;
      std::copy_if(c.samples_ns.begin(), c.samples_ns.end(), std::back_inserter(entry.samples_ns),
                   [](double s) { return std::isfinite(s) && s > 0; });
    }
  }
  return list;
}

Json benchmark_entry(const std::string& name, const CaseResult& c, const char* type, double ns) {
  Json entry = {{"name", name},           {"run_name", c.key}, {"run_type", type}, {"threads", 1},
                {"iterations", c.copies}, {"real_time", ns},   {"cpu_time", ns},   {"time_unit", "ns"}};
  if (ns > 0) {
    entry["bytes_per_second"] = c.cost.bytes / ns * 1e9;
    entry["operations_per_second"] = c.cost.operations / ns * 1e9;
  }
  return entry;
}

void add_samples(const Joined& joined, size_t family, Json& list) {
  const CaseResult& c = *joined.first;
  for (size_t i = 0; i < joined.samples_ns.size(); ++i) {
    Json entry = benchmark_entry(c.key, c, "iteration", joined.samples_ns[i]);
    entry["family_index"] = family;
    entry["repetitions"] = joined.samples_ns.size();
    entry["repetition_index"] = i;
    list.push_back(std::move(entry));
  }
}

void add_aggregates(const Joined& joined, size_t family, Json& list) {
  const CaseResult& c = *joined.first;
  const double average = mean(joined.samples_ns).value_or(0);
  const double deviation = standard_deviation(joined.samples_ns).value_or(0);
  const std::pair<const char*, double> aggregates[] = {{"mean", average},
                                                       {"median", median(joined.samples_ns).value_or(0)},
                                                       {"stddev", deviation},
                                                       {"cv", average > 0 ? deviation / average : 0}};
  for (const auto& [name, value] : aggregates) {
    const bool ratio = std::string_view(name) == "cv", spread = ratio || std::string_view(name) == "stddev";
    Json entry = benchmark_entry(c.key + "_" + name, c, "aggregate", value);
    entry["family_index"] = family;
    entry["repetitions"] = joined.samples_ns.size();
    entry["aggregate_name"] = name;
    entry["aggregate_unit"] = ratio ? "percentage" : "time";
    if (spread) {
      entry.erase("bytes_per_second");
      entry.erase("operations_per_second");
    }
    list.push_back(std::move(entry));
  }
}

std::string status_text(const CaseResult& c) {
  return c.message.empty() ? std::string(status_name(c.status))
                           : fmt::format("{}: {}", status_name(c.status), c.message);
}

}  // namespace

std::string result_to_google_benchmark(const RunResult& run) {
  const RunEnvironment& e = run.environment;
  Json benchmarks = Json::array();
  const std::vector<Joined> cases = joined_cases(run);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Joined& joined = cases[i];
    if (joined.samples_ns.empty()) {
      Json entry = benchmark_entry(joined.first->key, *joined.first, "iteration", 0);
      entry["family_index"] = i;
      entry["repetitions"] = 1;
      entry["repetition_index"] = 0;
      entry["error_occurred"] = true;
      entry["error_message"] = status_text(*joined.first);
      benchmarks.push_back(std::move(entry));
      continue;
    }
    add_samples(joined, i, benchmarks);
    add_aggregates(joined, i, benchmarks);
  }
  const Json context = {
      {"date", e.started},       {"host_name", e.device.name}, {"executable", "cudabk " + e.tool_version},
      {"num_cpus", 1},           {"mhz_per_cpu", 0},           {"cpu_scaling_enabled", false},
      {"caches", Json::array()}, {"load_avg", Json::array()},  {"library_build_type", "release"}};
  return dump({{"context", context}, {"benchmarks", benchmarks}});
}

std::string result_to_github_action(const RunResult& run) {
  Json list = Json::array();
  for (const Joined& joined : joined_cases(run)) {
    const std::optional<Summary> s = summarize(joined.samples_ns);
    if (!s) {
      continue;
    }
    const CaseResult& c = *joined.first;
    Json entry({{"name", c.key},
                {"unit", "ns"},
                {"value", s->median},
                {"extra", fmt::format("{}\n{} {}\n{} samples\n{}", run.environment.device.name, c.family,
                                      config_text(c.config), s->count, c.command)}});
    if (s->half_width) {
      entry["range"] = fmt::format("± {:.2f} %", 100 * *s->half_width);
    }
    list.push_back(std::move(entry));
  }
  return dump(list);
}

std::string result_to_bencher(const RunResult& run) {
  Json document = Json::object();
  for (const Joined& joined : joined_cases(run)) {
    const std::optional<Summary> s = summarize(joined.samples_ns);
    if (!s) {
      continue;
    }
    const CaseResult& c = *joined.first;
    Json& entry = document[c.key];
    entry["latency"] = {{"value", s->median}, {"lower_value", s->interval.low}, {"upper_value", s->interval.high}};
    if (c.cost.operations > 0) {
      const auto rate = [&](double ns) { return c.cost.operations / ns * 1e9; };
      entry["throughput"] = {
          {"value", rate(s->median)}, {"lower_value", rate(s->interval.high)}, {"upper_value", rate(s->interval.low)}};
    }
  }
  return dump(document);
}

}  // namespace cudabk
