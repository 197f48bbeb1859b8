// A device made of formulas: candidates cost what a function says, with seeded noise.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "core/hash.h"
#include "tuning/tuner.h"

namespace cudabk::test {

// "vec": cheap for few columns; "tile": a higher start, a smaller slope; "any": always slow.
inline const std::vector<Family>& families() {
  const auto yes = [](const Problem&, const Config&, const DeviceInfo&) { return Support{}; };
  static const std::vector<Family> kFamilies = {
      {"vec", {{"warps", {1, 2, 4}, 4}}, yes}, {"tile", {{"size", {32, 64}, 64}}, yes}, {"any", {}, yes}};
  return kFamilies;
}

inline int64_t extent(const TuneShape& shape, std::string_view name) {
  for (const auto& [n, v] : shape) {
    if (n == name) {
      return v;
    }
  }
  return 0;
}

struct Machine {
  std::function<double(const Candidate&, const TuneShape&)> ns;
  double noise = 0.002;               // relative standard deviation of a sample
  std::map<Candidate, Error> broken;  // verify() fails with this
  Candidate deadly;                   // running it breaks the device for everyone
  bool dead = false;
  bool interrupted = false;  // samples fail, as those of the emulated device do after Ctrl-C
  std::string code = "1";    // part of every hash: a new build
  int64_t samples = 0, verified = 0, opened = 0;
  int64_t die_after = -1;  // samples until the process is gone (exception)
  std::mt19937_64 random{7};
};

struct Killed {};

class SyntheticBench final : public ShapeBench {
 public:
  SyntheticBench(Machine& machine, const Table& table, const DeviceInfo& device, std::string key, TuneShape shape)
      : machine_(machine), table_(table), device_(device), shape_(std::move(shape)) {
    problem_ = {"mul_mat", std::move(key), shape_};
    problem_.dims.emplace_back("batch", 1);
  }
  const Problem& problem() const override { return problem_; }
  Result<Candidate> default_choice() override {
    CUDABK_ASSIGN(Choice choice, choose(problem_, device_, table_, families()));
    return Candidate{choice.family, choice.config};
  }
  void preload(std::span<const Candidate>) override {}
  Result<std::string> code_hash(const Candidate& c) override {
    return "sha256:" + sha256_hex(machine_.code + c.text());
  }
  Status verify(const Candidate& c) override {
    ++machine_.verified;
    machine_.dead = machine_.dead || c == machine_.deadly;
    if (machine_.dead) {
      return internal_error("device lost");
    }
    const auto it = machine_.broken.find(c);
    return it == machine_.broken.end() ? success() : Status(it->second);
  }
  Result<SampleFn> prepare(const Candidate& c) override {
    return SampleFn([this, c]() -> Result<double> {
      if (machine_.die_after >= 0 && machine_.samples >= machine_.die_after) {
        throw Killed{};
      }
      if (machine_.interrupted) {
        return Error{ErrorKind::kInterrupted, "interrupted"};
      }
      ++machine_.samples;
      std::normal_distribution<double> noise(1, machine_.noise);
      return machine_.ns(c, shape_) * noise(machine_.random);
    });
  }

 private:
  Machine& machine_;
  const Table& table_;
  const DeviceInfo& device_;
  TuneShape shape_;
  Problem problem_;
};

class SyntheticFactory final : public ShapeBenchFactory {
 public:
  explicit SyntheticFactory(Machine& machine, std::string fallback = "any") : machine_(machine) {
    device_.name = "synthetic";
    device_.arch = "sm_90a";
    device_.cc = 90;
    device_.sm_count = 100;
    Rule rule;
    rule.use = std::move(fallback);
    base_.rules = {rule};
    profile_.tables["mul_mat"]["*"] = base_;
    profile_.constants = built_in_constants();
  }
  const DeviceInfo& device() const override { return device_; }
  std::span<const Family> families() const override { return test::families(); }
  Result<std::unique_ptr<ShapeBench>> open(const std::string& key, const TuneShape& shape) override {
    ++machine_.opened;
    return std::unique_ptr<ShapeBench>(std::make_unique<SyntheticBench>(machine_, base_, device_, key, shape));
  }
  std::string rule_code(const std::string&, const Rule& rule) override {
    return "sha256:" + sha256_hex(machine_.code + rule.use);
  }
  const Profile& profile() const { return profile_; }

 private:
  Machine& machine_;
  DeviceInfo device_;
  Table base_;
  Profile profile_;
};

// vec costs 100 + 40 n, tile 300 + 5 n (warps and size change it a little), any 1000 + 40 n: they cross at n = 5.71.
inline double crossing_ns(const Candidate& c, const TuneShape& shape) {
  const auto n = static_cast<double>(extent(shape, "n"));
  if (c.family == "vec") {
    return (100 + 40 * n) * (c.config.at("warps") == 2 ? 1.0 : 1.1);
  }
  if (c.family == "tile") {
    return (300 + 5 * n) * (c.config.at("size") == 32 ? 1.0 : 1.2);
  }
  return 1000 + 40 * n;
}

inline TuneOptions tune_options(std::vector<int64_t> n, std::vector<std::pair<int64_t, int64_t>> m_k = {{64, 256}}) {
  TuneOptions options;
  options.keys = {"q4_K"};
  options.shapes = cross_shapes(m_k, n);
  options.search.top = 2;
  options.date = "2026-01-31";
  return options;
}

}  // namespace cudabk::test
