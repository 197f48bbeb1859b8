// A tuner's journal as the truth about one device: what each candidate took at each shape.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "tuning/tuner.h"

namespace cudabk {

struct RecordedTiming {
  double ns = 0;         // best known time of one op: paired, else screened
  double screen_ns = 0;  // screened; 0: only paired
  double sigma = 0;      // relative standard deviation of one sample, estimated from the interval
  int64_t samples = 0;   // that ns rests on
  std::string code;      // hash of the machine code
  bool paired = false;   // interleaved with the default: `ratio` is set
  double ratio = 1, ratio_low = 1, ratio_high = 1;
};

struct RecordedShape {
  Problem problem;
  Candidate fallback;      // the default that the run paired with, else what `base` picks
  double fallback_ns = 0;  // its time in those rounds; 0: it was only screened
  std::map<Candidate, RecordedTiming> timings;
  bool searched = false;  // screened, not only checked after the fit
};

struct TuneJournal {
  DeviceInfo device;
  std::string op;
  Profile base;  // defaults of the device, without tuned rules
  std::map<std::string, std::map<TuneShape, RecordedShape>> keys;
  std::map<std::string, std::vector<Candidate>> quarantined;  // by key
  size_t entries = 0;
  size_t other_default = 0;          // shapes where `base` picks another default than the run had
  size_t skipped_lines = 0;          // no timing: cut short, damaged
  std::vector<std::string> skipped;  // shapes of no use, with the reason
};

// Whether a document is a journal and not a result: its first line is one of a journal.
bool is_tune_journal(std::string_view text);

// `profile` names the base profile; empty: the built-in one of the device. Of entries for the same candidate and shape
// the last one holds. Errors: kInvalid when there is no timing at all, when several devices or ops are mixed, or the
// architecture or op is not known; kNothing when no shape has a default.
Result<TuneJournal> read_tune_journal(std::string_view text, std::string_view name, const std::string& profile);

// What the default of a shape took.
double default_ns(const RecordedShape& shape);
// The points of one key as the tuner would see them: times relative to the default of the same shape.
std::vector<PointResult> recorded_points(const std::map<TuneShape, RecordedShape>& shapes, double margin);

}  // namespace cudabk
