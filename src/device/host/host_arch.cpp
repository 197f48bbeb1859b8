#include "device/host/host_arch.h"

#include <fmt/format.h>

namespace cudabk {

namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int kKiB = 1 << 10;

// hardware: one common GPU of each architecture (T4, A100, RTX 3090, RTX 4090, H200, B200, RTX 5090).
constexpr HostArch kArchs[] = {
    {"sm_75", 75, 40, 4 * kMiB, 64 * kKiB},      {"sm_80", 80, 108, 40 * kMiB, 163 * kKiB},
    {"sm_86", 86, 82, 6 * kMiB, 99 * kKiB},      {"sm_89", 89, 128, 72 * kMiB, 99 * kKiB},
    {"sm_90a", 90, 132, 60 * kMiB, 227 * kKiB},  {"sm_100a", 100, 148, 126 * kMiB, 227 * kKiB},
    {"sm_120a", 120, 170, 96 * kMiB, 99 * kKiB},
};

}  // namespace

Result<HostArch> find_host_arch(std::string_view arch) {
  std::string known;
  for (const HostArch& entry : kArchs) {
    if (entry.arch == arch) {
      return entry;
    }
    known += known.empty() ? "" : ", ";
    known += entry.arch;
  }
  return invalid(fmt::format("unknown architecture '{}'; valid: {}", arch, known));
}

}  // namespace cudabk
