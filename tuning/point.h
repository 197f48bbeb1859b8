// Measures one shape: every candidate verified, screened, the finalists paired with the default. Takes from the journal
// what is already known.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "tuning/tuner.h"

namespace cudabk {

class PointMeasurer {
 public:
  PointMeasurer(ShapeBenchFactory& factory, Journal& journal, const TuneOptions& options)
      : factory_(factory), journal_(journal), options_(options) {}

  // Searches every candidate that can run and that `worth_trying` lets through, and pairs the best with the default.
  // Errors: of the shape (kInvalid, kUnfit), of the default (it must run), kInterrupted, kInconclusive when the
  // deadline passed.
  Result<PointResult> search(const std::string& key, const TuneShape& shape,
                             const std::function<bool(const Candidate&)>& worth_trying);
  // Pairs just these with the default.
  Result<PointResult> pair(const std::string& key, const TuneShape& shape, const std::vector<Candidate>& candidates);

  int64_t timings() const { return timings_; }
  int64_t reused() const { return reused_; }
  const std::vector<JournalEntry>& quarantined() const { return quarantined_; }
  // Wrong or broken at any shape of the table: it must not win at others either.
  bool is_bad(const std::string& key, const Candidate& candidate) const { return bad_.contains({key, candidate}); }
  bool out_of_time() const;
  void set_deadline(double deadline_s) { deadline_s_ = deadline_s; }
  double now_s() const;

 private:
  // The bench is opened when something has to run; a shape that is wholly in the journal costs no memory.
  struct Site {
    std::string key;
    TuneShape shape;
    std::unique_ptr<ShapeBench> bench;
    Candidate fallback;                     // the default
    std::map<Candidate, std::string> code;  // hashes
    std::set<Candidate> verified, out;      // out: wrong, broken, or cannot run
    double best_ns = 0;                     // of this shape so far
  };
  Result<Site> open_site(const std::string& key, const TuneShape& shape);
  Status load(Site& site, const std::vector<Candidate>& candidates);  // compiles, hashes, drops the quarantined
  JournalEntry entry(const Site& site, const Candidate& candidate, JournalEntry::Stage stage) const;
  // False when the candidate is out. An error only for the default.
  Result<bool> check(Site& site, const Candidate& candidate);
  Status quarantine(Site& site, const Candidate& candidate, const Error& error);
  Status failed(Site& site, const Candidate& candidate, const Error& error);  // quarantine, and is the device alive?
  Result<std::optional<double>> screen(Site& site, const Candidate& candidate, int64_t samples);
  Status confirm(Site& site, const std::vector<Candidate>& finalists, PointResult& point);
  Result<bool> from_journal(Site& site, const std::vector<Candidate>& finalists, PointResult& point);
  Status pace() const;  // kInterrupted or kInconclusive when it is time to stop

  ShapeBenchFactory& factory_;
  Journal& journal_;
  const TuneOptions& options_;
  double deadline_s_ = 0;
  int64_t timings_ = 0, reused_ = 0;
  std::vector<JournalEntry> quarantined_;
  std::set<std::pair<std::string, Candidate>> bad_;
};

}  // namespace cudabk
