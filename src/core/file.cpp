#include "core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace cudabk {
namespace fs = std::filesystem;
namespace {

Error system_error(std::string_view action, const fs::path& path) {
  return invalid(fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(errno)));
}

Status write_all(int fd, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return system_error("write", path);
    }
    content.remove_prefix(static_cast<size_t>(n));
  }
  return ::fsync(fd) == 0 || errno == EINVAL ? success() : Status(system_error("sync", path));  // pipes: EINVAL
}

// Devices and pipes cannot be replaced, only written to.
Status write_in_place(const fs::path& path, std::string_view content) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) {
    return system_error("write", path);
  }
  Status status = write_all(fd, content, path);
  ::close(fd);
  return status;
}

}  // namespace

Result<std::string> read_file(const fs::path& path) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) {
    return invalid(fmt::format("cannot read {}: it is a folder", path.string()));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return system_error("read", path);
  }
  // Pieces, not the file's size: pipes and files that still grow have none that counts.
  constexpr size_t kPiece = size_t{1} << 20;
  std::string content;
  do {
    const size_t had = content.size();
    content.resize(had + kPiece);
    in.read(content.data() + had, static_cast<std::streamsize>(kPiece));
    content.resize(had + static_cast<size_t>(in.gcount()));
  } while (in);
  if (in.bad()) {
    return system_error("read", path);
  }
  return content;
}

Status check_writable(const fs::path& path) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) {
    return invalid(fmt::format("cannot write {}: it is a folder", path.string()));
  }
  const fs::path folder = fs::absolute(path, ec).parent_path();
  if (!fs::exists(folder, ec)) {
    return invalid(fmt::format("cannot write {}: there is no folder {}", path.string(), folder.string()));
  }
  if (!fs::is_directory(folder, ec)) {
    return invalid(fmt::format("cannot write {}: {} is no folder", path.string(), folder.string()));
  }
  const bool in_place = fs::exists(path, ec) && !fs::is_regular_file(path, ec);
  return ::access(in_place ? path.c_str() : folder.c_str(), W_OK) == 0 ? success()
                                                                       : Status(system_error("write", path));
}

Status write_file_atomic(const fs::path& file, std::string_view content) {
  static std::atomic<unsigned> counter{0};
  std::error_code ec;
  if (const fs::file_status status = fs::status(file, ec);
      fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) {
    return write_in_place(file, content);
  }
  // A link keeps pointing where it did: its target is what is replaced.
  fs::path path = file;
  if (fs::is_symlink(file, ec)) {
    if (fs::path target = fs::canonical(file, ec); !ec) {
      path = std::move(target);
    }
  }
  if (path.has_parent_path()) {
    fs::create_directories(path.parent_path(), ec);  // a failure shows at open
  }
  fs::path temporary = path;
  temporary += fmt::format(".tmp.{}.{}", ::getpid(), counter++);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) {
    return system_error("write", path);
  }
  Status status = write_all(fd, content, path);
  ::close(fd);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = system_error("rename to", path);
  }
  if (!status.ok()) {
    ::unlink(temporary.c_str());
  }
  return status;
}

Result<FileLock> FileLock::acquire(const fs::path& path) {
  std::error_code ec;
  if (path.has_parent_path()) {
    fs::create_directories(path.parent_path(), ec);
  }
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return system_error("lock", path);
  }
  while (::flock(fd, LOCK_EX) != 0) {
    if (errno != EINTR) {
      const Error e = system_error("lock", path);
      ::close(fd);
      return e;
    }
  }
  return FileLock(fd);
}

FileLock::~FileLock() {
  if (fd_ >= 0) {
    ::close(fd_);  // releases the lock
  }
}

}  // namespace cudabk
