// From a kernel key to the text that NVRTC compiles: the generated program, the headers it pulls in, the options.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "device/cuda/nvrtc.h"
#include "device/device.h"
#include "kernel_text.h"

namespace cudabk {

// Builds programs from a set of sources that outlives it. Thread-safe.
class KernelPrograms {
 public:
  explicit KernelPrograms(std::span<const KernelSource> sources);

  // kInvalid when the key's header, or one it includes, is not among the sources.
  Result<Nvrtc::Input> program(const KernelKey& key, std::string_view arch) const;
  // Identity of a program on disk: sha256 over sources, entry, options, architecture and compiler version.
  static std::string cache_key(const Nvrtc::Input& input, std::string_view compiler_version);

 private:
  // The header and everything it includes, in a fixed order. The emulator's side of the platform layer is not part of
  // a GPU program and is left out.
  Result<std::vector<std::string_view>> closure(const std::string& header) const;
  Status collect(std::string_view path, std::string_view included_from, std::set<std::string_view>& seen) const;

  std::map<std::string_view, std::string_view> sources_;  // path -> content
};

}  // namespace cudabk
