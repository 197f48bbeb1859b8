#include "results/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

#include "core/file.h"
#include "core/parallel.h"

namespace cudabk {
namespace fs = std::filesystem;
namespace {

void set_fault(LoadFault* fault, LoadFault value) {
  if (fault != nullptr) {
    *fault = value;
  }
}

Result<std::vector<fs::path>> json_files(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    if (it->path().extension() == ".json" && !it->is_directory(ec)) {
      paths.push_back(it->path());
    }
  }
  if (ec) {
    return invalid(fmt::format("cannot read folder {}: {}", folder.string(), ec.message()));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool in_time_order(const ResultFile& a, const ResultFile& b) {
  return std::tie(a.run.environment.started, a.path) < std::tie(b.run.environment.started, b.path);
}

// Files in time order, each result once: a copy is no second measurement.
void order_and_drop_copies(ResultSet& set) {
  std::sort(set.files.begin(), set.files.end(), in_time_order);
  std::map<std::string, fs::path> seen;  // by digest
  std::vector<ResultFile> files;
  for (ResultFile& file : set.files) {
    const auto [first, fresh] = seen.emplace(file.digest, file.path);
    if (fresh) {
      files.push_back(std::move(file));
    } else {
      set.skipped.push_back(fmt::format("{}: the same result as {}", file.path.string(), first->second.string()));
    }
  }
  set.files = std::move(files);
}

struct Slot {
  std::optional<Result<ResultFile>> result;
  LoadFault fault = LoadFault::kNone;
};

std::vector<Slot> load_all(const std::vector<fs::path>& paths) {
  std::vector<Slot> slots(paths.size());
  const Status done = in_parallel(static_cast<int64_t>(paths.size()), 1, 0, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      slots[i].result = load_result(paths[i], &slots[i].fault);
    }
    return success();
  });
  (void)done;  // the work always succeeds; each slot has its own outcome
  return slots;
}

Result<ResultSet> load_folder(const fs::path& folder, LoadFault* fault) {
  set_fault(fault, LoadFault::kUnreadable);
  CUDABK_ASSIGN(const std::vector<fs::path> paths, json_files(folder));
  ResultSet set;
  for (Slot& slot : load_all(paths)) {
    if (slot.fault == LoadFault::kOtherDocument) {
      set.skipped.push_back(slot.result->error().message);
    } else if (!slot.result->ok()) {
      set_fault(fault, slot.fault);
      return std::move(*slot.result).error();
    } else {
      set.files.push_back(std::move(*slot.result).value());
    }
  }
  if (set.files.empty()) {
    set_fault(fault, LoadFault::kNoRows);
    return Error{ErrorKind::kNothing, fmt::format("{}: the folder has no results ({} other JSON files)",
                                                  folder.string(), set.skipped.size())};
  }
  order_and_drop_copies(set);
  set_fault(fault, LoadFault::kNone);
  return set;
}

}  // namespace

std::string_view load_fault_name(LoadFault fault) {
  switch (fault) {
    case LoadFault::kNone:
      return "none";
    case LoadFault::kUnreadable:
      return "unreadable";
    case LoadFault::kNotJson:
      return "not-json";
    case LoadFault::kOtherDocument:
      return "other-document";
    case LoadFault::kNewerSchema:
      return "newer-schema";
    case LoadFault::kOlderSchema:
      return "older-schema";
    case LoadFault::kMalformed:
      return "malformed";
    case LoadFault::kEdited:
      return "edited";
    case LoadFault::kDuplicates:
      return "duplicates";
    case LoadFault::kNoRows:
      return "no-rows";
  }
  return "none";
}

Result<ResultFile> load_result(const fs::path& path, LoadFault* fault) {
  set_fault(fault, LoadFault::kUnreadable);
  CUDABK_ASSIGN(const std::string text, read_file(path));
  return parse_result(text, path, fault);
}

Result<ResultSet> load_results(const fs::path& path, LoadFault* fault) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) {
    return load_folder(path, fault);
  }
  CUDABK_ASSIGN(ResultFile file, load_result(path, fault));
  ResultSet set;
  set.files.push_back(std::move(file));
  return set;
}

Result<ResultSet> load_history(const std::vector<fs::path>& paths, LoadFault* fault) {
  ResultSet history;
  for (const fs::path& path : paths) {
    CUDABK_ASSIGN(ResultSet set, load_results(path, fault));
    std::move(set.files.begin(), set.files.end(), std::back_inserter(history.files));
    std::move(set.skipped.begin(), set.skipped.end(), std::back_inserter(history.skipped));
  }
  order_and_drop_copies(history);
  return history;
}

}  // namespace cudabk
