#include "tuning/point.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "measure/statistics.h"

namespace cudabk {
namespace {

// A candidate whose first sample is this much slower than the best so far gets no more of them.
constexpr double kHopeless = 4.0;

}  // namespace

double PointMeasurer::now_s() const {
  if (options_.sampler.now_s) {
    return options_.sampler.now_s();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool PointMeasurer::out_of_time() const { return deadline_s_ > 0 && now_s() >= deadline_s_; }

Status PointMeasurer::pace() const {
  if (options_.sampler.interrupted != nullptr && *options_.sampler.interrupted) {
    return Error{ErrorKind::kInterrupted, "interrupted"};
  }
  if (out_of_time()) {
    return Error{ErrorKind::kInconclusive, "the time budget is used up"};
  }
  return success();
}

JournalEntry PointMeasurer::entry(const Site& site, const Candidate& candidate, JournalEntry::Stage stage) const {
  const DeviceInfo& device = factory_.device();
  JournalEntry e;
  e.device = device.name;
  e.arch = device.arch;
  e.sm_count = device.sm_count;
  e.op = options_.op;
  e.key = site.key;
  e.shape = site.shape;
  e.candidate = candidate;
  const auto code = site.code.find(candidate);
  e.code = code == site.code.end() ? "" : code->second;
  e.stage = stage;
  return e;
}

Result<PointMeasurer::Site> PointMeasurer::open_site(const std::string& key, const TuneShape& shape) {
  Site site;
  site.key = key;
  site.shape = shape;
  CUDABK_ASSIGN(site.bench, factory_.open(key, shape));
  CUDABK_ASSIGN(site.fallback, site.bench->default_choice());
  return site;
}

Status PointMeasurer::load(Site& site, const std::vector<Candidate>& candidates) {
  std::vector<Candidate> all = candidates;
  all.insert(all.begin(), site.fallback);
  site.bench->preload(all);
  for (const Candidate& c : all) {
    Result<std::string> code = site.bench->code_hash(c);
    if (code.ok()) {
      site.code[c] = std::move(code).value();
    } else if (c == site.fallback) {
      return std::move(code).error().with_context(
          fmt::format("the default {} at {}", c.text(), shape_label(site.shape)));
    } else {
      CUDABK_TRY(quarantine(site, c, code.error()));
      continue;
    }
    const JournalEntry* known = journal_.find(entry(site, c, JournalEntry::Stage::kQuarantine).identity());
    if (known != nullptr && !(c == site.fallback)) {
      site.out.insert(c);
      if (bad_.insert({site.key, c}).second) {
        quarantined_.push_back(*known);
      }
    }
    if (is_bad(site.key, c) && !(c == site.fallback)) {
      site.out.insert(c);
    }
  }
  return success();
}

Status PointMeasurer::quarantine(Site& site, const Candidate& candidate, const Error& error) {
  site.out.insert(candidate);
  if (error.kind == ErrorKind::kUnsupported || error.kind == ErrorKind::kUnfit) {
    return success();  // no such variant or library here, or too little memory: nothing is wrong with it
  }
  JournalEntry e = entry(site, candidate, JournalEntry::Stage::kQuarantine);
  e.reason = error.message;
  if (options_.notice) {
    options_.notice(fmt::format("{} {} {} {}: quarantined: {}", e.op, e.key, shape_label(e.shape), candidate.text(),
                                error.message));
  }
  CUDABK_TRY(journal_.add(e));
  bad_.insert({site.key, candidate});
  quarantined_.push_back(std::move(e));
  return success();
}

Result<bool> PointMeasurer::check(Site& site, const Candidate& candidate) {
  if (site.out.contains(candidate)) {
    return false;
  }
  if (site.verified.contains(candidate)) {
    return true;
  }
  if (options_.announce) {
    CUDABK_TRY(journal_.begin(entry(site, candidate, JournalEntry::Stage::kQuarantine)));
  }
  Status ran = site.bench->verify(candidate);
  if (ran.ok()) {
    site.verified.insert(candidate);
    return true;
  }
  Error error = std::move(ran).error();
  if (error.kind == ErrorKind::kInterrupted || candidate == site.fallback) {
    return std::move(error).with_context(fmt::format("{} at {}", candidate.text(), shape_label(site.shape)));
  }
  CUDABK_TRY(failed(site, candidate, error));
  return false;
}

// After a failed launch the device may be unusable for everyone: then the run ends here, before others are blamed.
Status PointMeasurer::failed(Site& site, const Candidate& candidate, const Error& error) {
  if (error.kind == ErrorKind::kInterrupted) {
    return error;  // nothing is wrong with the candidate
  }
  CUDABK_TRY(quarantine(site, candidate, error));
  if (error.kind != ErrorKind::kInternal) {
    return success();
  }
  if (const Status alive = site.bench->verify(site.fallback); !alive.ok()) {
    return internal_error(fmt::format(
        "the device does not work any more after {} at {} ({}): {}; the journal remembers the candidate, run again",
        candidate.text(), shape_label(site.shape), error.message, alive.error().message));
  }
  return success();
}

Result<std::optional<double>> PointMeasurer::screen(Site& site, const Candidate& candidate, int64_t samples) {
  CUDABK_TRY(pace());
  JournalEntry e = entry(site, candidate, JournalEntry::Stage::kScreen);
  const bool hopeless_known = [&] {
    const JournalEntry* known = journal_.find(e.identity());
    return known != nullptr && site.best_ns > 0 && known->ns > kHopeless * site.best_ns;
  }();
  const JournalEntry* known = site.out.contains(candidate) ? nullptr : journal_.find(e.identity());
  if (known != nullptr && (known->samples >= samples || hopeless_known)) {
    reused_ += known->earlier ? 1 : 0;
    site.best_ns = site.best_ns > 0 ? std::min(site.best_ns, known->ns) : known->ns;
    return std::optional<double>(known->ns);
  }
  CUDABK_ASSIGN(const bool right, check(site, candidate));
  if (!right) {
    return std::optional<double>();
  }
  Result<SampleFn> sample = site.bench->prepare(candidate);
  Result<double> first = sample.ok() ? (*sample)() : Result<double>(sample.error());
  std::vector<double> times;
  if (first.ok()) {
    first = (*sample)();  // the first one warms up
  }
  while (first.ok()) {
    times.push_back(*first);
    const bool hopeless = site.best_ns > 0 && times[0] > kHopeless * site.best_ns;
    if (hopeless || static_cast<int64_t>(times.size()) >= samples) {
      break;
    }
    first = (*sample)();
  }
  if (!first.ok()) {
    if (candidate == site.fallback) {
      return std::move(first).error();
    }
    CUDABK_TRY(failed(site, candidate, first.error()));
    return std::optional<double>();
  }
  const auto summary = summarize(times, options_.confidence);
  e.ns = summary->median;
  e.low_ns = summary->interval.low;
  e.high_ns = summary->interval.high;
  e.samples = static_cast<int64_t>(times.size());
  ++timings_;
  site.best_ns = site.best_ns > 0 ? std::min(site.best_ns, e.ns) : e.ns;
  const double ns = e.ns;
  CUDABK_TRY(journal_.add(std::move(e)));
  return std::optional<double>(ns);
}

// True when every finalist was paired with this default before, with at least as many rounds.
Result<bool> PointMeasurer::from_journal(Site& site, const std::vector<Candidate>& finalists, PointResult& point) {
  std::vector<const JournalEntry*> known;
  for (const Candidate& c : finalists) {
    JournalEntry e = entry(site, c, JournalEntry::Stage::kConfirm);
    e.against = site.fallback.text();
    const JournalEntry* found = journal_.find(e.identity());
    if (found == nullptr || found->samples < options_.confirm_rounds) {
      return false;
    }
    known.push_back(found);
  }
  for (const JournalEntry* e : known) {
    PointResult::Entry r{e->candidate, e->ns, e->ratio, e->ratio_low, e->ratio_high, true};
    r.faster = e->ratio_high < 1 - options_.margin;
    r.slower = e->ratio_low > 1 + options_.margin;
    point.default_ns = e->ns / e->ratio;
    point.samples = e->samples;
    point.entries.push_back(std::move(r));
    reused_ += e->earlier ? 1 : 0;
  }
  return !known.empty();
}

Status PointMeasurer::confirm(Site& site, const std::vector<Candidate>& finalists, PointResult& point) {
  CUDABK_ASSIGN(const bool known, from_journal(site, finalists, point));
  if (known) {
    return success();
  }
  std::vector<Candidate> names = {site.fallback};
  std::vector<SampleFn> samples;
  CUDABK_TRY(check(site, site.fallback));
  CUDABK_ASSIGN(SampleFn base, site.bench->prepare(site.fallback));
  samples.push_back(std::move(base));
  for (const Candidate& c : finalists) {
    CUDABK_ASSIGN(const bool right, check(site, c));
    if (!right) {
      continue;
    }
    Result<SampleFn> sample = site.bench->prepare(c);
    if (!sample.ok()) {
      CUDABK_TRY(failed(site, c, sample.error()));
      continue;
    }
    names.push_back(c);
    samples.push_back(std::move(sample).value());
  }
  CUDABK_ASSIGN(const Interleaved rounds, sample_interleaved(samples, options_.confirm_rounds, options_.sampler));
  if (rounds.rounds == 0) {
    return Error{ErrorKind::kInterrupted, "interrupted"};
  }
  point.default_ns = median(rounds.samples[0]).value_or(0);
  point.samples = rounds.rounds;
  for (size_t i = 1; i < names.size(); ++i) {
    const auto paired = compare_paired(rounds.samples[i], rounds.samples[0], options_.margin, options_.confidence);
    const auto summary = summarize(rounds.samples[i], options_.confidence);
    if (!paired || !summary) {
      continue;
    }
    JournalEntry e = entry(site, names[i], JournalEntry::Stage::kConfirm);
    e.against = site.fallback.text();
    e.ns = paired->ratio * point.default_ns;
    e.low_ns = summary->interval.low;
    e.high_ns = summary->interval.high;
    e.samples = rounds.rounds;
    e.ratio = paired->ratio;
    e.ratio_low = paired->interval.low;
    e.ratio_high = paired->interval.high;
    point.entries.push_back(
        {names[i], e.ns, e.ratio, e.ratio_low, e.ratio_high, true, paired->a_faster, paired->b_faster});
    ++timings_;
    CUDABK_TRY(journal_.add(std::move(e)));
  }
  return success();
}

Result<PointResult> PointMeasurer::search(const std::string& key, const TuneShape& shape,
                                          const std::function<bool(const Candidate&)>& worth_trying) {
  CUDABK_TRY(pace());
  CUDABK_ASSIGN(Site site, open_site(key, shape));
  std::vector<Candidate> candidates = {site.fallback};
  for (Candidate& c : search_space(site.bench->problem(), factory_.device(), factory_.families())) {
    if (!(c == site.fallback) && worth_trying(c)) {
      candidates.push_back(std::move(c));
    }
  }
  CUDABK_TRY(load(site, candidates));
  std::map<Candidate, double> times;
  const TimeFn time = [&](size_t index, int64_t samples) -> Result<std::optional<double>> {
    CUDABK_ASSIGN(const std::optional<double> ns, screen(site, candidates[index], samples));
    if (ns) {
      times[candidates[index]] = *ns;
    }
    return ns;
  };
  SearchOptions search = options_.search;
  search.top += 1;  // the default may be among them
  CUDABK_ASSIGN(const std::vector<Ranked> ranked, search_candidates(candidates.size(), search, time));
  CUDABK_ASSIGN(const std::optional<double> base_ns, screen(site, site.fallback, search.first_samples));
  std::vector<Candidate> finalists;
  for (const Ranked& r : ranked) {
    if (r.index != 0 && finalists.size() < options_.search.top) {
      finalists.push_back(candidates[r.index]);
    }
  }
  PointResult point;
  point.shape = shape;
  point.default_choice = site.fallback;
  point.problem = site.bench->problem();
  point.default_ns = base_ns.value_or(0);
  if (!finalists.empty()) {
    CUDABK_TRY(confirm(site, finalists, point));
  }
  for (const auto& [candidate, ns] : times) {
    const auto same = [&, &c = candidate](const PointResult::Entry& e) { return e.candidate == c; };
    const bool known = std::any_of(point.entries.begin(), point.entries.end(), same);
    if (!known && !(candidate == site.fallback) && base_ns) {
      const double ratio = ns / *base_ns;
      point.entries.push_back({candidate, ratio * point.default_ns, ratio, ratio, ratio, false, false, false});
    }
  }
  std::stable_sort(point.entries.begin(), point.entries.end(),
                   [](const auto& a, const auto& b) { return a.ns < b.ns; });
  return point;
}

Result<PointResult> PointMeasurer::pair(const std::string& key, const TuneShape& shape,
                                        const std::vector<Candidate>& candidates) {
  CUDABK_TRY(pace());
  CUDABK_ASSIGN(Site site, open_site(key, shape));
  CUDABK_TRY(load(site, candidates));
  std::vector<Candidate> others = candidates;
  std::erase(others, site.fallback);
  PointResult point;
  point.shape = shape;
  point.default_choice = site.fallback;
  point.problem = site.bench->problem();
  if (others.empty()) {
    CUDABK_ASSIGN(const std::optional<double> ns, screen(site, site.fallback, options_.search.first_samples));
    point.default_ns = ns.value_or(0);
    return point;
  }
  CUDABK_TRY(confirm(site, others, point));
  return point;
}

}  // namespace cudabk
