#include "device/cuda/cubin_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "core/file.h"
#include "core/hash.h"

namespace cudabk {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSchema = "cudabk-cubin/1";
// The folder is measured again after this share of the limit was written, not at every insertion.
constexpr int64_t kMeasureShare = 16;

std::string encode(const CompiledKernel& kernel) {
  const KernelReport& r = kernel.report;
  const std::string body =
      fmt::format("{} {} {} {} {} {} {} {}\n", r.registers, r.static_shared_bytes, r.local_bytes, r.spill_store_bytes,
                  r.spill_load_bytes, r.code_hash, kernel.lowered_name.size(), kernel.cubin.size()) +
      kernel.lowered_name + kernel.cubin;
  return fmt::format("{} {}\n{}", kSchema, sha256_hex(body), body);
}

// Takes the text up to `stop` off the front of `rest`; false when there is no `stop`.
bool take_until(std::string_view& rest, char stop, std::string_view& out) {
  const size_t at = rest.find(stop);
  if (at == std::string_view::npos) {
    return false;
  }
  out = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  return true;
}

template <class Int>
bool take_number(std::string_view& rest, char stop, Int& out) {
  std::string_view text;
  return take_until(rest, stop, text) && std::from_chars(text.data(), text.data() + text.size(), out).ec == std::errc();
}

std::optional<CompiledKernel> decode(std::string_view file) {
  std::string_view schema, checksum, hash;
  if (!take_until(file, ' ', schema) || schema != kSchema || !take_until(file, '\n', checksum) ||
      checksum != sha256_hex(file)) {
    return std::nullopt;
  }
  CompiledKernel kernel;
  KernelReport& r = kernel.report;
  size_t name_size = 0, cubin_size = 0;
  if (!take_number(file, ' ', r.registers) || !take_number(file, ' ', r.static_shared_bytes) ||
      !take_number(file, ' ', r.local_bytes) || !take_number(file, ' ', r.spill_store_bytes) ||
      !take_number(file, ' ', r.spill_load_bytes) || !take_until(file, ' ', hash) ||
      !take_number(file, ' ', name_size) || !take_number(file, '\n', cubin_size) ||
      file.size() != name_size + cubin_size) {
    return std::nullopt;
  }
  r.code_hash = hash;
  r.from_cache = true;
  kernel.lowered_name = file.substr(0, name_size);
  kernel.cubin = file.substr(name_size);
  return kernel;
}

struct Entry {
  fs::path path;
  int64_t bytes = 0;
  fs::file_time_type used;
};

std::vector<Entry> list_entries(const fs::path& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".cubin") {
      continue;
    }
    std::error_code gone;  // another process may remove it meanwhile
    const auto bytes = fs::file_size(it->path(), gone);
    const auto used = gone ? fs::file_time_type{} : fs::last_write_time(it->path(), gone);
    if (!gone) {
      entries.push_back({it->path(), static_cast<int64_t>(bytes), used});
    }
  }
  return entries;
}

}  // namespace

std::optional<CompiledKernel> CubinCache::find(const std::string& key) const {
  const fs::path path = entry_path(key);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return std::nullopt;
  }
  const Result<std::string> file = read_file(path);
  if (!file.ok()) {
    return std::nullopt;
  }
  std::optional<CompiledKernel> kernel = decode(*file);
  if (kernel) {
    fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);  // the order of eviction
  }
  return kernel;
}

bool CubinCache::contains(const std::string& key) const {
  std::error_code ignored;
  return fs::exists(entry_path(key), ignored);
}

Status CubinCache::insert(const std::string& key, const CompiledKernel& kernel) {
  const std::string file = encode(kernel);
  CUDABK_TRY(write_file_atomic(entry_path(key), file));
  std::lock_guard lock(mutex_);
  if (written_bytes_ >= 0) {
    written_bytes_ += static_cast<int64_t>(file.size());
    if (written_bytes_ < limit_ / kMeasureShare) {
      return success();
    }
  }
  written_bytes_ = 0;
  return evict(key);
}

Status CubinCache::evict(const std::string& keep) {
  CUDABK_ASSIGN(const FileLock lock, FileLock::acquire(folder_ / "lock"));
  std::vector<Entry> entries = list_entries(folder_);
  int64_t total = 0;
  for (const Entry& entry : entries) {
    total += entry.bytes;
  }
  if (total <= limit_) {
    return success();
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  // Below the limit by the share that may be written before the next look.
  const int64_t target = limit_ - limit_ / kMeasureShare;
  for (const Entry& entry : entries) {
    if (total <= target) {
      break;
    }
    std::error_code ignored;
    if (entry.path != entry_path(keep) && fs::remove(entry.path, ignored)) {
      total -= entry.bytes;
    }
  }
  return success();
}

Result<int64_t> CubinCache::clear() {
  int64_t bytes = 0;
  std::error_code error;
  if (!fs::exists(folder_, error)) {
    return bytes;
  }
  CUDABK_ASSIGN(const FileLock lock, FileLock::acquire(folder_ / "lock"));
  for (const Entry& entry : list_entries(folder_)) {
    if (!fs::remove(entry.path, error) && error) {
      return invalid(fmt::format("cannot remove {}: {}", entry.path.string(), error.message()));
    }
    bytes += entry.bytes;
  }
  return bytes;
}

}  // namespace cudabk
