// Every timing of the tuner, winners and losers, one JSON object per line. A run that was killed goes on where it was.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/result.h"
#include "tuning/candidate.h"

namespace cudabk {

struct JournalEntry {
  // Identity: a timing is used again only where all of these agree.
  std::string device, arch;  // name and architecture
  int sm_count = 0;
  std::string op, key;  // "mul_mat", "q4_K"
  TuneShape shape;
  Candidate candidate;
  std::string code;  // hash of the machine code that ran
  enum class Stage { kScreen, kConfirm, kQuarantine } stage = Stage::kScreen;
  std::string against;  // kConfirm: text of the candidate it was interleaved with
  // What was found.
  double ns = 0;                   // median time of one op
  double low_ns = 0, high_ns = 0;  // its confidence interval
  int64_t samples = 0;
  double ratio = 1, ratio_low = 1, ratio_high = 1;  // kConfirm: time / time of `against`, paired
  std::string reason;                               // kQuarantine: what went wrong
  bool earlier = false;                             // read from a file, not measured in this run; not part of the line

  std::string identity() const;  // all fields of the identity as one text
};

std::string journal_line(const JournalEntry& entry);  // without the newline
Result<JournalEntry> parse_journal_line(std::string_view line);

class Journal {
 public:
  // Keeps entries in memory only.
  Journal() = default;
  // Reads `path` when it exists (lines that do not parse, such as one cut short by a kill, are counted and skipped) and
  // appends to it from then on. With `fresh` the earlier content is set aside as PATH.old. kInvalid for a file that
  // holds something else than timings.
  static Result<Journal> open(const std::filesystem::path& path, bool fresh);
  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&& other) noexcept;
  Journal(const Journal&) = delete;
  ~Journal();

  // The latest entry with this identity, or nullptr.
  const JournalEntry* find(const std::string& identity) const;
  // Remembers and appends; the line is handed to the system in one write before this returns.
  Status add(JournalEntry entry);
  // Before a candidate runs: should the process die, this line says what it was doing. See quarantine_last().
  Status begin(const JournalEntry& entry);

  size_t size() const { return entries_.size(); }
  size_t skipped_lines() const { return skipped_; }

 private:
  Status append(const std::string& line);

  std::map<std::string, JournalEntry> entries_;
  size_t skipped_ = 0;
  int fd_ = -1;
};

// For a supervisor whose child died or hung: when the last line of the journal says that a candidate was begun,
// appends its quarantine and returns it; kNothing when the child died elsewhere.
Result<JournalEntry> quarantine_last(const std::filesystem::path& path, const std::string& reason);

}  // namespace cudabk
