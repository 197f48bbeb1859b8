#include "gate_simulation/noise.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cudabk::test {
namespace {

double normal(std::mt19937_64& random, double sigma) { return std::normal_distribution<double>(0, sigma)(random); }
double uniform(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
bool chance(std::mt19937_64& random, double p) { return uniform(random, 0, 1) < p; }

// The state that outlives a case: clock level and slow noise.
struct Machine {
  bool low = false;
  double slow = 0;
};

CaseResult measure_case(double ns, double sigma, const NoiseModel& model, Machine& machine, std::mt19937_64& random) {
  CaseResult row;
  row.status = CaseStatus::kOk;
  row.timer = "event";
  const double innovation = model.slow_sigma * std::sqrt(1 - model.slow_memory * model.slow_memory);
  for (int batch = 0; batch < model.batches; ++batch) {
    machine.low = machine.low ? !chance(random, model.to_high) : chance(random, model.to_low);
    const double clock = machine.low ? model.low_clock : model.high_clock;
    for (int i = 0; i < model.batch_samples; ++i) {
      machine.slow = model.slow_memory * machine.slow + normal(random, innovation);
      double sample = ns * model.high_clock / clock * std::exp(machine.slow + normal(random, sigma));
      if (chance(random, model.outlier_chance)) {
        sample *= 1 + std::exponential_distribution<double>(1 / model.outlier_mean)(random);
      }
      row.samples_ns.push_back(sample);
    }
    if (model.clock_known) {
      row.clocks_mhz.push_back(clock * (1 + normal(random, model.clock_error)));
      row.clock_samples.push_back(model.batch_samples);
    }
  }
  return row;
}

}  // namespace

std::string simulated_key(size_t index) {
  return "mul_mat case=" + std::to_string(index) + " launch=graph fusion=on cache=cold";
}

size_t simulated_index(const std::string& key) { return std::stoul(key.substr(key.find('=') + 1)); }

Suite make_suite(size_t cases, const NoiseModel& model, std::mt19937_64& random) {
  Suite suite;
  for (size_t i = 0; i < cases; ++i) {
    suite.true_ns.push_back(std::exp(uniform(random, std::log(2e3), std::log(2e6))));
    suite.sample_sigma.push_back(uniform(random, model.sample_low, model.sample_high));
  }
  return suite;
}

ResultSet measure(const Suite& suite, const NoiseModel& model, size_t changed, double factor,
                  const std::vector<size_t>& only, const std::string& code, std::mt19937_64& random) {
  std::vector<size_t> order = only;
  if (order.empty()) {
    order.resize(suite.true_ns.size());
    std::iota(order.begin(), order.end(), size_t{0});
  }
  Machine machine;
  machine.low = chance(random, model.to_low / (model.to_low + model.to_high));  // as long after the last run
  machine.slow = normal(random, model.slow_sigma);
  const double offset = normal(random, model.run_offset), drift = uniform(random, -model.drift, model.drift);
  ResultFile file;
  file.run.complete = true;
  file.run.environment.device.name = "simulated";
  for (size_t position = 0; position < order.size(); ++position) {
    const size_t index = order[position];
    const double progress = static_cast<double>(position) / static_cast<double>(order.size());
    const double ns = suite.true_ns[index] * (index == changed ? factor : 1) *
                      std::exp(offset + drift * progress + normal(random, model.case_offset));
    CaseResult row = measure_case(ns, suite.sample_sigma[index], model, machine, random);
    row.key = simulated_key(index);
    row.launch = "graph";
    row.cache = "cold";
    row.cold_proven = true;
    LaunchResult launch;
    launch.kernel = "k<1>";
    launch.code_hash = code;
    row.breakdown.push_back(launch);
    file.run.cases.push_back(std::move(row));
  }
  ResultSet set;
  set.files.push_back(std::move(file));
  return set;
}

}  // namespace cudabk::test
