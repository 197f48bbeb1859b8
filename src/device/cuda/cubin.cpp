#include "device/cuda/cubin.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "device/cuda/elf_file.h"

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

// A section of attributes has for each a byte of form, a byte of kind, then 16 bits, which are the value or, in the
// sized form, the length of what follows.
struct Attribute {
  uint8_t kind = 0;
  uint16_t value = 0;
  std::string_view content;  // empty but in the sized form
};

std::vector<Attribute> attributes(const ElfFile& file, std::string_view section_name) {
  constexpr uint8_t kSizedForm = 4;
  struct {
    uint8_t form, kind;
    uint16_t value;
  } head;
  std::vector<Attribute> found;
  for (const ElfSection& section : file.sections) {
    if (section.name != section_name) {
      continue;
    }
    for (uint64_t at = 0; read_at(section.content, at, head);) {
      at += sizeof(head);
      const uint16_t size = head.form == kSizedForm ? head.value : 0;
      found.push_back({head.kind, head.value, section.content.substr(std::min(at, section.content.size()), size)});
      at += size;
    }
  }
  return found;
}

}  // namespace

Result<KernelReport> parse_compiler_log(std::string_view log) {
  KernelReport report;
  report.registers = number_before(log, " registers");
  if (report.registers < 0) {
    return internal_error("the compiler reported no register count");
  }
  report.spill_store_bytes = number_before(log, " bytes spill stores");
  report.spill_load_bytes = number_before(log, " bytes spill loads");
  if (report.spill_store_bytes < 0 || report.spill_load_bytes < 0) {
    return internal_error("the compiler did not report whether registers spill");
  }
  report.static_shared_bytes = std::max(0, number_before(log, " bytes smem"));  // not mentioned when there is none
  return report;
}

Result<uint32_t> parameter_bytes(std::string_view cubin, std::string_view symbol) {
  constexpr uint8_t kParameterBytes = 0x19;
  CUDABK_ASSIGN(const ElfFile file, ElfFile::parse(cubin));
  for (const Attribute& attribute : attributes(file, fmt::format(".nv.info.{}", symbol))) {
    if (attribute.kind == kParameterBytes && attribute.content.empty()) {
      return uint32_t{attribute.value};
    }
  }
  return invalid(fmt::format("the machine code does not tell the size of the parameters of {}", symbol));
}

Result<uint32_t> stack_bytes(std::string_view cubin, std::string_view symbol) {
  constexpr uint8_t kStackBytes = 0x12;  // of a kernel with all that it calls
  struct {
    uint32_t symbol, bytes;
  } stack;
  CUDABK_ASSIGN(const ElfFile file, ElfFile::parse(cubin));
  for (const Attribute& attribute : attributes(file, ".nv.info")) {
    if (attribute.kind == kStackBytes && read_at(attribute.content, 0, stack) && stack.symbol < file.symbols.size() &&
        file.symbols[stack.symbol].name == symbol) {
      return stack.bytes;
    }
  }
  return invalid(fmt::format("the machine code does not tell the stack frame of {}", symbol));
}

}  // namespace cudabk
