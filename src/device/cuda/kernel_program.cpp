#include "device/cuda/kernel_program.h"

#include <fmt/format.h>

#include "core/hash.h"
#include "device/cuda/compile.h"

namespace cudabk {

namespace {

// Paths of `#include "..."` lines.
std::vector<std::string_view> quoted_includes(std::string_view text) {
  std::vector<std::string_view> paths;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string_view::npos || line[hash] != '#' || line.find("include", hash) == std::string_view::npos) {
      continue;
    }
    const size_t open = line.find('"', hash);
    const size_t close = open == std::string_view::npos ? open : line.find('"', open + 1);
    if (close != std::string_view::npos) {
      paths.push_back(line.substr(open + 1, close - open - 1));
    }
  }
  return paths;
}

bool emulator_only(std::string_view path) { return path.starts_with("platform/host"); }

}  // namespace

std::string arch_of_compute_capability(int cc) {
  const bool has_features = cc == 90 || cc == 100 || cc == 103 || cc == 110 || cc == 120 || cc == 121;
  return fmt::format("sm_{}{}", cc, has_features ? "a" : "");
}

KernelPrograms::KernelPrograms(std::span<const KernelSource> sources) {
  for (const KernelSource& source : sources) {
    sources_.emplace(source.path, source.content);
  }
}

Status KernelPrograms::collect(std::string_view path, std::string_view included_from,
                               std::set<std::string_view>& seen) const {
  const auto found = sources_.find(path);
  if (found == sources_.end()) {
    return invalid(
        fmt::format("no kernel source {}{}{}", path, included_from.empty() ? "" : ", included from ", included_from));
  }
  if (!seen.insert(found->first).second) {
    return success();
  }
  for (const std::string_view include : quoted_includes(found->second)) {
    if (!emulator_only(include)) {
      CUDABK_TRY(collect(include, found->first, seen));
    }
  }
  return success();
}

Result<std::vector<std::string_view>> KernelPrograms::closure(const std::string& header) const {
  std::set<std::string_view> seen;
  CUDABK_TRY(collect(header, "", seen));
  return std::vector<std::string_view>(seen.begin(), seen.end());
}

Result<Nvrtc::Input> KernelPrograms::program(const KernelKey& key, std::string_view arch) const {
  CUDABK_ASSIGN(const std::vector<std::string_view> paths, closure(key.header));
  Nvrtc::Input input;
  for (const std::string_view path : paths) {
    input.headers.push_back({std::string(path), std::string(sources_.at(path))});
  }
  input.entry = key.entry;
  input.source = fmt::format("#include \"{}\"\nusing namespace cudabk;\n", key.header);
  input.options = {"-std=c++20", fmt::format("-arch={}", arch), "-default-device", "-fmad=true", "--ptxas-options=-v"};
  return input;
}

std::string KernelPrograms::cache_key(const Nvrtc::Input& input, std::string_view compiler_version) {
  std::string text = fmt::format("cubin/2\n{}\n", compiler_version);
  const auto append = [&text](std::string_view part) {  // lengths keep neighbours apart
    text += fmt::format("{}:{}\n", part.size(), part);
  };
  append(input.source);
  append(input.entry);
  for (const std::string& option : input.options) {
    append(option);
  }
  for (const Nvrtc::Header& header : input.headers) {
    append(header.name);
    append(header.content);
  }
  return sha256_hex(text);
}

}  // namespace cudabk
