// Results read back from disk: what `bench --json` wrote, checked before anything is concluded from it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bench/result.h"
#include "core/result.h"

namespace cudabk {

// Why a file is no usable result; each has its own message.
enum class LoadFault {
  kNone,
  kUnreadable,     // missing, a folder, no permission
  kNotJson,        // empty, truncated, not JSON
  kOtherDocument,  // JSON, but no result: a profile, JSON lines, someone else's file
  kNewerSchema,    // cudabk-result/N with a larger N than this program knows
  kOlderSchema,    // ... with a smaller one
  kMalformed,      // a member is missing or has another type; the message has its JSON path
  kEdited,         // the digest is missing or does not match
  kDuplicates,     // two rows with the same key and repetition
  kNoRows,         // no case at all
};
std::string_view load_fault_name(LoadFault fault);  // "newer-schema", ...: stable, for machines

struct ResultFile {
  std::filesystem::path path;
  RunResult run;
  std::string digest;  // "sha256:...": identifies the content
};

// One result. Errors: kInvalid for everything but kNoRows, which is kNothing. `fault`, where given, says which of the
// situations it was (kNone on success).
Result<ResultFile> load_result(const std::filesystem::path& path, LoadFault* fault = nullptr);

// The same from text; `path` only names it in messages and in the returned value.
Result<ResultFile> parse_result(std::string_view text, const std::filesystem::path& path, LoadFault* fault = nullptr);

// A result, or a folder's results: a baseline of several runs, or a history.
struct ResultSet {
  std::vector<ResultFile> files;     // ascending start time, then name; never empty
  std::vector<std::string> skipped;  // documents that are no results, and copies of results: "FILE: why"
};

// `path` is a file, or a folder whose *.json files are taken (not those of folders below). In a folder, documents of
// another kind, JSON that is no result and copies are skipped and listed; a broken result is an error. A folder without
// results is kNothing (kNoRows). Files are read in parallel.
Result<ResultSet> load_results(const std::filesystem::path& path, LoadFault* fault = nullptr);

// The union of several such sets in time order, for histories given as several arguments. `paths` must not be empty.
Result<ResultSet> load_history(const std::vector<std::filesystem::path>& paths, LoadFault* fault = nullptr);

}  // namespace cudabk
