// The kernels' sources and the list of their variants, as text inside the program.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudabk {

struct KernelSource {
  std::string_view path;  // relative to kernels/: "mmvq/mmvq.h"
  std::string_view content;
};

// Every header of kernels/ but those of the emulated GPU, sorted by path.
std::span<const KernelSource> kernel_sources();
// Null when there is no such file.
const KernelSource* find_kernel_source(std::string_view path);

// `header` and every header it includes with "...", directly or not, each once, in the order of first mention. Empty
// when `header` is not embedded. Both branches of a condition count; headers of the emulated GPU do not.
std::vector<const KernelSource*> kernel_source_closure(std::string_view header);
// Paths and contents of the closure in one text: what a hash of the source must cover.
std::string source_hash_text(std::string_view header);

struct ListedKernel {
  std::string_view header;     // "mmvq/mmvq.h"
  std::string_view entry;      // "mmvq<DType::q4_K,1,4>", without spaces
  std::string_view list_file;  // "kernels/mmvq/instances.txt"
};

// Every line of the instance lists, braces expanded, without duplicates, in the order of the lists.
std::span<const ListedKernel> listed_kernels();

// The form in which variants are compared: `entry` without spaces.
std::string normalized_entry(std::string_view entry);

}  // namespace cudabk
