#include "device/cuda/cubin.h"

#include <elf.h>
#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "core/hash.h"

namespace cudabk {

namespace {

// The whole number that ends just before `unit` ("12 bytes spill stores"); -1 when `unit` does not occur.
int number_before(std::string_view text, std::string_view unit) {
  const size_t end = text.find(unit);
  if (end == std::string_view::npos) {
    return -1;
  }
  size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') {
    --begin;
  }
  int value = -1;
  std::from_chars(text.data() + begin, text.data() + end, value);
  return value;
}

// A struct at an offset of the file; false when it does not lie inside.
template <class T>
bool read_at(std::string_view file, uint64_t offset, T& out) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) {
    return false;
  }
  std::memcpy(&out, file.data() + offset, sizeof(T));
  return true;
}

bool holds_code(std::string_view section) {
  // .nv.constant0 is the launch's parameter area, without content of its own.
  return section.starts_with(".text") || section.starts_with(".nv.global.init") ||
         (section.starts_with(".nv.constant") && !section.starts_with(".nv.constant0"));
}

}  // namespace

Result<KernelReport> parse_compiler_log(std::string_view log) {
  KernelReport report;
  report.registers = number_before(log, " registers");
  if (report.registers < 0) {
    return internal_error("the compiler reported no register count");
  }
  const auto or_zero = [log](std::string_view unit) { return std::max(0, number_before(log, unit)); };
  report.static_shared_bytes = or_zero(" bytes smem");
  report.local_bytes = or_zero(" bytes stack frame");
  report.spill_store_bytes = or_zero(" bytes spill stores");
  report.spill_load_bytes = or_zero(" bytes spill loads");
  return report;
}

Result<std::string> machine_code_hash(std::string_view cubin) {
  const Error broken = invalid("not a whole 64-bit ELF file");
  Elf64_Ehdr header;
  if (!read_at(cubin, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64) {
    return broken;
  }
  const auto section_at = [&](unsigned index, Elf64_Shdr& section) {
    return read_at(cubin, header.e_shoff + uint64_t{index} * header.e_shentsize, section);
  };
  Elf64_Shdr names;
  if (!section_at(header.e_shstrndx, names) || names.sh_offset > cubin.size() ||
      names.sh_size > cubin.size() - names.sh_offset) {
    return broken;
  }
  const std::string_view name_table = cubin.substr(names.sh_offset, names.sh_size);
  std::string code;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!section_at(i, section) || section.sh_name > name_table.size()) {
      return broken;
    }
    const std::string_view tail = name_table.substr(section.sh_name);
    const std::string_view name = tail.substr(0, tail.find('\0'));
    if (section.sh_type == SHT_NOBITS || !holds_code(name)) {
      continue;
    }
    if (section.sh_offset > cubin.size() || section.sh_size > cubin.size() - section.sh_offset) {
      return broken;
    }
    code += cubin.substr(section.sh_offset, section.sh_size);
  }
  if (code.empty()) {
    return invalid("an ELF file without machine code");
  }
  return "sha256:" + sha256_hex(code);
}

}  // namespace cudabk
