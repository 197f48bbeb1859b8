// The kernel variants compiled for the emulated GPU: the lines of the kernels/<family>/instances.txt files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cudabk {

struct HostInstance {
  std::string_view header;                       // "mmvq/mmvq.h", relative to kernels/
  std::string_view entry;                        // "mmvq<DType::q4_K,1,4>", without spaces
  void (*run)(const std::byte* args) = nullptr;  // one thread
  uint32_t args_bytes = 0;
};

// Sorted by header, then entry.
std::span<const HostInstance> host_instances();
// Null when the variant is not listed. Spaces in `entry` do not matter.
const HostInstance* find_host_instance(std::string_view header, std::string_view entry);

namespace host {

template <auto Kernel>
struct KernelEntry;

template <class Args, void (*Kernel)(Args)>
struct KernelEntry<Kernel> {
  static_assert(alignof(Args) <= 16);
  static void run(const std::byte* args) { Kernel(*reinterpret_cast<const Args*>(args)); }
  static constexpr HostInstance instance(std::string_view header, std::string_view entry) {
    return {header, entry, &run, sizeof(Args)};
  }
};

}  // namespace host
}  // namespace cudabk
