// Statistics of recorded samples once more, with other settings; and what fewer samples would have told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/result.h"

namespace cudabk {

struct ReplayStatistics {
  double confidence = 0.95;  // of the median's interval
  double precision = 0.01;   // wanted half width of the interval, relative
  size_t min_samples = 20;   // fewer are marked, and precision is not looked at before
  size_t first = 0;          // only the first so many samples; 0: all
};

// One case, before and after.
struct ReplayedCase {
  std::string key;
  int repetition = 0;
  std::optional<Summary> recorded, replayed;
  std::optional<size_t> enough;  // samples after which the wanted precision was first reached; empty: never
};

// `run` with its summaries and the flags "few samples" and "imprecise" made again; rows without samples stay as they
// are. `cases`, where given, gets one entry per row with samples.
RunResult replay_statistics(const RunResult& run, const ReplayStatistics& options,
                            std::vector<ReplayedCase>* cases = nullptr);

// A table for people, and the same as JSON (schema cudabk-replay/1, part "statistics").
std::string statistics_text(const std::vector<ReplayedCase>& cases, const ReplayStatistics& options);
std::string statistics_json(const std::vector<ReplayedCase>& cases, const ReplayStatistics& options);

}  // namespace cudabk
