// The parts of a 64-bit ELF file (a cubin), found with every offset checked.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace cudabk {

struct ElfSection {
  std::string_view name;
  std::string_view content;  // empty for one without bytes in the file
};

struct ElfSymbol {
  std::string_view name;
  uint32_t section = 0;  // an index, or one of the reserved values that name no section
  uint64_t value = 0;    // bytes from the start of the section
  uint64_t size = 0;     // bytes
};

struct ElfRelocation {
  uint32_t section = 0;  // of the place that is filled in
  uint64_t offset = 0;   // of that place, bytes from the start of the section
  uint32_t type = 0;
  uint32_t symbol = 0;  // index of the one whose address it becomes, plus `addend`
  int64_t addend = 0;   // 0 where the file keeps it in the place itself
};

// Views into the bytes it was read from, which must outlive it.
struct ElfFile {
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;
  std::vector<ElfRelocation> relocations;  // ordered as in the file

  // kInvalid when the bytes are not a whole 64-bit ELF file with at most one table of symbols.
  static Result<ElfFile> parse(std::string_view bytes);
};

// A struct at an offset of `bytes`; false when it does not lie inside.
template <class T>
bool read_at(std::string_view bytes, uint64_t offset, T& out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
    return false;
  }
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return true;
}

}  // namespace cudabk
