#include "device/cuda/cubin.h"

#include <elf.h>
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <vector>

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

struct Section {
  std::string_view name;
  std::string_view content;  // empty for one without bytes in the file
};

Result<std::vector<Section>> read_sections(std::string_view cubin) {
  const Error broken = invalid("not a whole 64-bit ELF file");
  Elf64_Ehdr header;
  if (!read_at(cubin, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64) {
    return broken;
  }
  const auto section_at = [&](unsigned index, Elf64_Shdr& section) {
    return read_at(cubin, header.e_shoff + uint64_t{index} * header.e_shentsize, section);
  };
  const auto inside = [&](const Elf64_Shdr& section) {
    return section.sh_offset <= cubin.size() && section.sh_size <= cubin.size() - section.sh_offset;
  };
  Elf64_Shdr names;
  if (!section_at(header.e_shstrndx, names) || !inside(names)) {
    return broken;
  }
  const std::string_view name_table = cubin.substr(names.sh_offset, names.sh_size);
  std::vector<Section> sections;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!section_at(i, section) || section.sh_name > name_table.size()) {
      return broken;
    }
    const bool has_bytes = section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL;
    if (has_bytes && !inside(section)) {
      return broken;
    }
    const std::string_view tail = name_table.substr(section.sh_name);
    sections.push_back({tail.substr(0, tail.find('\0')),
                        has_bytes ? cubin.substr(section.sh_offset, section.sh_size) : std::string_view()});
  }
  return sections;
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
  CUDABK_ASSIGN(const std::vector<Section> sections, read_sections(cubin));
  std::string code;
  for (const Section& section : sections) {
    if (holds_code(section.name)) {
      code += section.content;
    }
  }
  if (code.empty()) {
    return invalid("an ELF file without machine code");
  }
  return "sha256:" + sha256_hex(code);
}

// A kernel's .nv.info section lists attributes: a byte of form, a byte of kind, then 16 bits, which are the value or,
// in the sized form, the length of what follows.
Result<uint32_t> parameter_bytes(std::string_view cubin, std::string_view symbol) {
  constexpr uint8_t kSizedForm = 4, kParameterBytes = 0x19;
  struct Attribute {
    uint8_t form, kind;
    uint16_t value;
  } attribute;
  CUDABK_ASSIGN(const std::vector<Section> sections, read_sections(cubin));
  for (const Section& section : sections) {
    if (section.name != fmt::format(".nv.info.{}", symbol)) {
      continue;
    }
    for (uint64_t at = 0; read_at(section.content, at, attribute);) {
      if (attribute.kind == kParameterBytes && attribute.form != kSizedForm) {
        return uint32_t{attribute.value};
      }
      at += sizeof(attribute) + (attribute.form == kSizedForm ? attribute.value : 0);
    }
  }
  return invalid(fmt::format("the machine code does not tell the size of the parameters of {}", symbol));
}

}  // namespace cudabk
