#include "results/case_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace cudabk {
namespace {

// All rows of one key on one device.
struct Group {
  std::string device_name, device;  // `device` identifies the kind: two H200 are the same
  std::string key;
  CaseRows rows;
  bool used = false;
};

std::string device_kind(const DeviceInfo& device) {
  return fmt::format("{} ({}, {} SMs)", device.name, device.arch, device.sm_count);
}

std::vector<Group> group_rows(const ResultSet& set) {
  std::vector<Group> groups;
  std::unordered_map<std::string, size_t> index;
  for (const ResultFile& file : set.files) {
    const std::string device = device_kind(file.run.environment.device);
    for (const CaseResult& row : file.run.cases) {
      const auto [it, fresh] = index.try_emplace(device + "\n" + row.key, groups.size());
      if (fresh) {
        groups.push_back({file.run.environment.device.name, device, row.key, {}});
      }
      groups[it->second].rows.push_back(&row);
    }
  }
  return groups;
}

// The key without its launch and cache mode.
std::string modeless(const std::string& key) {
  std::string rest;
  for (size_t begin = 0; begin < key.size();) {
    const size_t end = std::min(key.find(' ', begin), key.size());
    const std::string word = key.substr(begin, end - begin);
    if (word.rfind("launch=", 0) != 0 && word.rfind("cache=", 0) != 0) {
      rest += word + " ";
    }
    begin = end + 1;
  }
  return rest;
}

// How the rows really ran, whatever their key asked for.
std::string mode_of(const CaseResult& row) {
  const std::string launch = row.fallback.empty() ? row.launch : "eager (no graph: " + row.fallback + ")";
  const std::string cache = row.cache == "cold" && !row.cold_proven ? "cold, not proven" : row.cache;
  return fmt::format("launch {}, cache {}", launch, cache);
}

const CaseResult* first_ok(const CaseRows& rows) {
  const auto it =
      std::find_if(rows.begin(), rows.end(), [](const CaseResult* row) { return row->status == CaseStatus::kOk; });
  return it == rows.end() ? nullptr : *it;
}

void find_obstacle(const Group& baseline, const Group& candidate, MatchedCase& match) {
  const CaseResult* a = first_ok(baseline.rows);
  const CaseResult* b = first_ok(candidate.rows);
  if (baseline.device != candidate.device) {
    match.obstacle = Reason::kOtherDevice;
    match.message =
        fmt::format("other device: the baseline is of {}, the candidate of {}", baseline.device, candidate.device);
    return;
  }
  const CaseResult& mode_a = a != nullptr ? *a : *baseline.rows.front();
  const CaseResult& mode_b = b != nullptr ? *b : *candidate.rows.front();
  const bool both_ok = a != nullptr && b != nullptr;
  if (baseline.key != candidate.key || (both_ok && mode_of(mode_a) != mode_of(mode_b))) {
    match.obstacle = Reason::kOtherMode;
    match.message = fmt::format("other launch or cache mode: the baseline has {}, the candidate {}", mode_of(mode_a),
                                mode_of(mode_b));
  } else if (both_ok && a->timer != b->timer) {
    match.obstacle = Reason::kOtherTimer;
    match.message = fmt::format("other timer: {} in the baseline, {} in the candidate", a->timer, b->timer);
  }
}

class Matcher {
 public:
  Matcher(const ResultSet& baseline, const ResultSet& candidate, bool force)
      : baseline_(group_rows(baseline)), candidate_(group_rows(candidate)), force_(force) {
    for (size_t i = 0; i < candidate_.size(); ++i) {
      exact_.emplace(candidate_[i].device + "\n" + candidate_[i].key, i);
      by_key_.emplace(candidate_[i].key, i);
      by_shape_.emplace(candidate_[i].device + "\n" + modeless(candidate_[i].key), i);
    }
  }

  std::vector<MatchedCase> run() {
    // Exact partners first, so that no other case takes them.
    std::vector<Group*> partner(baseline_.size(), nullptr);
    for (size_t i = 0; i < baseline_.size(); ++i) {
      partner[i] = take(exact_, baseline_[i].device + "\n" + baseline_[i].key);
    }
    std::vector<MatchedCase> matches;
    for (size_t i = 0; i < baseline_.size(); ++i) {
      if (partner[i] == nullptr) {
        partner[i] = take(by_key_, baseline_[i].key);
      }
      if (partner[i] == nullptr) {
        partner[i] = take(by_shape_, baseline_[i].device + "\n" + modeless(baseline_[i].key));
      }
      matches.push_back(join(&baseline_[i], partner[i]));
    }
    for (Group& group : candidate_) {
      if (!group.used) {
        matches.push_back(join(nullptr, &group));
      }
    }
    return matches;
  }

 private:
  using Index = std::unordered_multimap<std::string, size_t>;

  Group* take(const Index& index, const std::string& name) {
    const auto [begin, end] = index.equal_range(name);
    size_t best = candidate_.size();  // the first in the file: the order of a hash table says nothing
    for (auto it = begin; it != end; ++it) {
      if (!candidate_[it->second].used) {
        best = std::min(best, it->second);
      }
    }
    if (best == candidate_.size()) {
      return nullptr;
    }
    candidate_[best].used = true;
    return &candidate_[best];
  }

  MatchedCase join(const Group* baseline, const Group* candidate) const {
    MatchedCase match;
    match.device = (candidate != nullptr ? candidate : baseline)->device_name;
    if (baseline == nullptr) {
      match.candidate = candidate->rows;
      match.obstacle = Reason::kNoBaseline;
      match.message = "only the candidate has this case";
      return match;
    }
    match.baseline = baseline->rows;
    if (candidate == nullptr) {
      match.obstacle = Reason::kNoCandidate;
      match.message = "only the baseline has this case";
      return match;
    }
    match.candidate = candidate->rows;
    if (!force_) {
      find_obstacle(*baseline, *candidate, match);
    }
    return match;
  }

  std::vector<Group> baseline_, candidate_;
  Index exact_, by_key_, by_shape_;
  bool force_;
};

std::string status_text(const CaseResult& row) {
  return fmt::format("{}{}{}", status_name(row.status), row.message.empty() ? "" : ": ", row.message);
}

// Rows without a time: the reason, or kNone where both sides have one.
void explain_unmeasured(const MatchedCase& match, CaseComparison& row) {
  const auto wrong = std::find_if(match.candidate.begin(), match.candidate.end(),
                                  [](const CaseResult* r) { return r->status == CaseStatus::kWrong; });
  if (wrong != match.candidate.end()) {
    row.reason = Reason::kWrongOutput;
    row.message = fmt::format("the candidate is {}", status_text(**wrong));
    return;
  }
  const bool a = first_ok(match.baseline) != nullptr, b = first_ok(match.candidate) != nullptr;
  if (a && b) {
    return;
  }
  const CaseResult& culprit = a ? *match.candidate.front() : *match.baseline.front();
  row.reason = a || b ? Reason::kNotMeasured : Reason::kNeitherSide;
  row.message = fmt::format("not measured {}: {}", a ? "in the candidate" : (b ? "in the baseline" : "on either side"),
                            status_text(culprit));
  if (a && (culprit.status == CaseStatus::kThrottled || culprit.status == CaseStatus::kNoSamples)) {
    row.verdict = Verdict::kInconclusive;  // it ran, and could not be timed
    row.reason = culprit.status == CaseStatus::kThrottled ? Reason::kThrottled : Reason::kFewSamples;
  }
}

}  // namespace

std::vector<MatchedCase> match_cases(const ResultSet& baseline, const ResultSet& candidate, bool force) {
  return Matcher(baseline, candidate, force).run();
}

bool same_code(const MatchedCase& match) {
  const CaseResult* first = first_ok(match.baseline);
  if (first == nullptr || first->breakdown.empty()) {
    return false;
  }
  const auto same_launch = [](const LaunchResult& x, const LaunchResult& y) {
    return !x.code_hash.empty() && x.code_hash == y.code_hash && x.kernel == y.kernel && x.grid == y.grid &&
           x.block == y.block && x.shared_bytes == y.shared_bytes;
  };
  // Of every run: a folder may hold those of several builds.
  const auto same_row = [&](const CaseResult* row) {
    return row->status != CaseStatus::kOk || (row->fusions == first->fusions && row->copies == first->copies &&
                                              std::equal(first->breakdown.begin(), first->breakdown.end(),
                                                         row->breakdown.begin(), row->breakdown.end(), same_launch));
  };
  return std::all_of(match.baseline.begin(), match.baseline.end(), same_row) &&
         std::all_of(match.candidate.begin(), match.candidate.end(), same_row);
}

CaseComparison describe_match(const MatchedCase& match, const CompareOptions& options) {
  const CaseResult& shown = match.candidate.empty() ? *match.baseline.front() : *match.candidate.front();
  CaseComparison row;
  row.key = shown.key;
  row.target = shown.target;
  row.device = match.device;
  row.command = shown.command;
  row.threshold = options.thresholds.of(row.key);
  row.reason = match.obstacle;
  row.message = match.message;
  if (row.reason == Reason::kNone) {
    explain_unmeasured(match, row);
  }
  return row;
}

}  // namespace cudabk
