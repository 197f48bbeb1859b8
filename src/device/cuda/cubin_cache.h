// Compiled kernels on disk: one file per variant, checked when read, bounded in total, shared by processes.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "device/device.h"

namespace cudabk {

struct CompiledKernel {
  std::string cubin;         // ELF file
  std::string lowered_name;  // symbol of the kernel in it
  KernelReport report;
};

// Thread-safe. An entry is `<key>.cubin`: one line of schema and checksum, one of report, then name and code. Entries
// are written whole (write, rename); a damaged one counts as absent and is replaced.
class CubinCache {
 public:
  CubinCache(std::filesystem::path folder, int64_t limit_bytes) : folder_(std::move(folder)), limit_(limit_bytes) {}

  std::optional<CompiledKernel> find(const std::string& key) const;  // marks the entry as used
  bool contains(const std::string& key) const;                       // without reading it
  // Afterwards the least recently used entries are removed until the folder fits its limit again.
  Status insert(const std::string& key, const CompiledKernel& kernel);
  // Removes every entry; returns how many bytes they took.
  Result<int64_t> clear();

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path entry_path(const std::string& key) const { return folder_ / (key + ".cubin"); }
  Status evict(const std::string& keep);

  std::filesystem::path folder_;
  int64_t limit_;
  std::mutex mutex_;            // eviction within this process; a lock file does it between processes
  int64_t written_bytes_ = -1;  // since the folder was last measured; -1: never measured
};

}  // namespace cudabk
