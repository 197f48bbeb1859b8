// Damaged files of every kind are refused or read, and never crash anything; run under AddressSanitizer by the dev
// preset.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "bench/result_digest.h"
#include "dispatch/profile.h"
#include "results/gate.h"
#include "results/load.h"
#include "results/render.h"
#include "results/sample_results.h"
#include "tuning/family_set.h"

namespace cudabk {
namespace {

constexpr uint64_t kSeed = 20260101;
constexpr int kMutants = 1500;  // per kind of document

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // One to four changes of bytes: flipped, cut, doubled, moved, replaced by what JSON finds hard.
  std::string bytes(std::string text) {
    for (size_t i = 1 + below(4); i > 0 && !text.empty(); --i) {
      change(text);
    }
    return text;
  }

  // Valid JSON whose structure or values are off.
  nlohmann::ordered_json tree(nlohmann::ordered_json json) {
    for (size_t i = 1 + below(3); i > 0; --i) {
      change(json);
    }
    return json;
  }

 private:
  using Json = nlohmann::ordered_json;

  size_t below(size_t n) { return n == 0 ? 0 : std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  void change(std::string& text) {
    static const char* const kHard[] = {"1e999",
                                        "-0",
                                        "\\u0000",
                                        "\"",
                                        "[[[[[[[[",
                                        "{}",
                                        "null",
                                        "\xff\xfe",
                                        "18446744073709551616",
                                        "-9223372036854775809",
                                        "true",
                                        "\\ud800",
                                        ",",
                                        "1e-400"};
    const size_t at = below(text.size()), length = std::min(text.size() - at, 1 + below(60));
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.resize(at);
        break;
      case 4:
        text.insert(at, kHard[below(std::size(kHard))]);
        break;
      default:
        text.replace(below(text.size()), std::min<size_t>(length, 4), text.substr(at, length));
    }
  }

  Json hard_value() {
    switch (below(9)) {
      case 0:
        return nullptr;
      case 1:
        return -1;
      case 2:
        return UINT64_MAX;
      case 3:
        return 1e308;
      case 4:
        return "";
      case 5:
        return std::string(3000, 'x');
      case 6:
        return Json::array();
      case 7:
        return Json::object();
      default:
        return 0.5;
    }
  }

  // Walks down to a random place.
  void change(Json& json) {
    if (json.is_structured() && !json.empty() && below(6) != 0) {
      auto it = json.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(below(json.size())));
      change(*it);
      return;
    }
    if (json.is_array() && !json.empty() && below(2) == 0) {
      json.push_back(Json(json[below(json.size())]));
    } else if (json.is_object() && !json.empty() && below(2) == 0) {
      auto it = json.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(below(json.size())));
      json.erase(it);
    } else {
      json = hard_value();
    }
  }

  std::mt19937_64 random_;
};

std::string result_text() {
  std::vector<CaseResult> cases;
  for (int i = 0; i < 3; ++i) {
    cases.push_back(test::sample_case("type=q4_K m=" + std::to_string(i), test::noisy_samples(1000, 25, 1)));
  }
  cases[1].status = CaseStatus::kWrong;
  return result_to_json(test::sample_run(std::move(cases)));
}

// A document whose digest fits again, so that what lies behind the digest is reached too.
std::string sealed(nlohmann::ordered_json json) {
  if (json.is_object()) {
    json["digest"] = digest_of_document(json);
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Everything that is done with a result: compared with a good one both ways, exported, and shown.
void use_result(const std::string& text, const ResultFile& good, size_t& accepted) {
  const Result<ResultFile> file = parse_result(text, "mutant.json");
  if (!file.ok()) {
    EXPECT_FALSE(file.error().message.empty());
    return;
  }
  ++accepted;
  ResultSet a, b;
  a.files.push_back(*file);
  b.files.push_back(good);
  for (const auto& [baseline, candidate] : {std::pair(&a, &b), {&b, &a}, {&a, &a}}) {
    const GateVerdict verdict = decide(compare_results(*baseline, *candidate, {}), {});
    const Result<GateVerdict> again = parse_verdict(verdict_to_json(verdict), "verdict.json");
    EXPECT_TRUE(again.ok()) << again.error().message;
    EXPECT_FALSE(verdict_table(verdict, {}).empty() || verdict_markdown(verdict).empty() ||
                 verdict_junit(verdict).empty() || verdict_annotations(verdict).empty());
  }
  EXPECT_FALSE(result_to_csv(file->run).empty() || result_to_json(file->run).empty());
}

TEST(Mutation, ResultsNeverCrash) {
  Mutator mutator(kSeed);
  const std::string text = result_text();
  const auto json = nlohmann::ordered_json::parse(text);
  const Result<ResultFile> good = parse_result(text, "good.json");
  ASSERT_TRUE(good.ok());
  size_t accepted = 0;
  for (int i = 0; i < kMutants; ++i) {
    use_result(mutator.bytes(text), *good, accepted);
    use_result(sealed(mutator.tree(json)), *good, accepted);
  }
  fmt::print("seed {}: {} of {} mutants were readable\n", kSeed, accepted, 2 * kMutants);
  EXPECT_GT(accepted, 50U) << "mutants must get past the checks";
}

TEST(Mutation, VerdictsNeverCrash) {
  Mutator mutator(kSeed);
  ResultSet a, b;
  a.files.push_back(*parse_result(result_text(), "a.json"));
  b = a;
  b.files[0].run.cases.pop_back();
  GateOptions options;
  ASSERT_TRUE(options.compare.thresholds.add_rules("m=1 2%", "rules").ok());
  const std::string text = verdict_to_json(decide(compare_results(a, b, {}), options));
  const auto json = nlohmann::ordered_json::parse(text);
  size_t accepted = 0;
  for (int i = 0; i < kMutants; ++i) {
    for (const std::string& mutant : {mutator.bytes(text), sealed(mutator.tree(json))}) {
      if (const Result<GateVerdict> verdict = parse_verdict(mutant, "v.json"); verdict.ok()) {
        ++accepted;
        EXPECT_FALSE(verdict_table(*verdict, {}).empty() || verdict_markdown(*verdict).empty() ||
                     verdict_junit(*verdict).empty() || verdict_to_json(*verdict).empty() ||
                     verdict_annotations(*verdict).empty());
      }
    }
  }
  fmt::print("seed {}: {} of {} mutants were readable\n", kSeed, accepted, 2 * kMutants);
  EXPECT_GT(accepted, 50U) << "mutants must get past the checks";
}

TEST(Mutation, ProfilesNeverCrash) {
  Mutator mutator(kSeed);
  ASSERT_FALSE(embedded_profiles().empty());
  std::string_view text = embedded_profiles().front().json;
  for (const EmbeddedProfile& profile : embedded_profiles()) {
    text = profile.json.size() < text.size() ? profile.json : text;  // the smallest one: all have the same structure
  }
  const auto json = nlohmann::ordered_json::parse(text);
  const FamilySet families = family_set();
  size_t accepted = 0;
  for (int i = 0; i < kMutants; ++i) {
    for (const std::string& mutant : {mutator.bytes(std::string(text)), sealed(mutator.tree(json))}) {
      for (const ParseMode mode : {ParseMode::kStrict, ParseMode::kLenient}) {
        if (const Result<Profile> profile = parse_profile(mutant, "p.json", families, mode); profile.ok()) {
          ++accepted;
          EXPECT_FALSE(profile_to_json(*profile).empty());
        }
      }
    }
  }
  fmt::print("seed {}: {} of {} mutants were readable\n", kSeed, accepted, 4 * kMutants);
  EXPECT_GT(accepted, 50U) << "mutants must get past the checks";
  EXPECT_FALSE(parse_profile(std::string(1'000'000, '['), "p.json", families).ok());
}

}  // namespace
}  // namespace cudabk
