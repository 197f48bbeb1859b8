// Files, written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "core/result.h"

namespace cudabk {

// Whole content; kInvalid with the path and the system's reason when it cannot be read.
Result<std::string> read_file(const std::filesystem::path& path);

// Writes to a temporary file in the same folder, syncs, renames over `path`. A reader sees the old or the new
// content, never a part; a killed writer leaves `path` as it was. Creates missing parent folders. A link stays a link;
// a device or a pipe (/dev/null, /dev/stdout) is written to, never replaced.
Status write_file_atomic(const std::filesystem::path& path, std::string_view content);

// Whether `path` could be written as things are now, without touching it: found out before long work, not after. Its
// folder must exist: a folder that nobody made is a misspelt one.
Status check_writable(const std::filesystem::path& path);

// Exclusive advisory lock on `path` (created if missing) for the object's lifetime. Blocks until it is free.
class FileLock {
 public:
  static Result<FileLock> acquire(const std::filesystem::path& path);
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  FileLock(const FileLock&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace cudabk
