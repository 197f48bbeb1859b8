#include "kernel_text.h"

#include <algorithm>

namespace cudabk {

namespace {

// The path in a line `#include "path"`; empty for any other line.
std::string_view included_path(std::string_view line) {
  const size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos || line[start] != '#') {
    return {};
  }
  const size_t word = line.find("include", start);
  const size_t open = line.find('"', start);
  const size_t close = open == std::string_view::npos ? open : line.find('"', open + 1);
  if (word == std::string_view::npos || close == std::string_view::npos || word > open) {
    return {};
  }
  return line.substr(open + 1, close - open - 1);
}

void add_with_includes(std::string_view path, std::vector<const KernelSource*>& found) {
  const KernelSource* source = find_kernel_source(path);
  if (source == nullptr || std::find(found.begin(), found.end(), source) != found.end()) {
    return;
  }
  found.push_back(source);
  std::string_view rest = source->content;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view include = included_path(rest.substr(0, end));
    if (!include.empty()) {
      add_with_includes(include, found);
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace

const KernelSource* find_kernel_source(std::string_view path) {
  const std::span<const KernelSource> all = kernel_sources();
  const auto found = std::find_if(all.begin(), all.end(), [&](const KernelSource& s) { return s.path == path; });
  return found != all.end() ? &*found : nullptr;
}

std::vector<const KernelSource*> kernel_source_closure(std::string_view header) {
  std::vector<const KernelSource*> found;
  add_with_includes(header, found);
  return found;
}

std::string source_hash_text(std::string_view header) {
  std::string text;
  for (const KernelSource* source : kernel_source_closure(header)) {
    text.append(source->path).append("\n").append(source->content).append("\n");
  }
  return text;
}

std::string normalized_entry(std::string_view entry) {
  std::string text;
  text.reserve(entry.size());
  for (const char c : entry) {
    if (c != ' ' && c != '\t') {
      text += c;
    }
  }
  return text;
}

}  // namespace cudabk
