#include "device/cuda/cubin.h"

#include <fmt/format.h>

#include <charconv>

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

// A kernel's .nv.info section lists attributes: a byte of form, a byte of kind, then 16 bits, which are the value or,
// in the sized form, the length of what follows.
Result<uint32_t> parameter_bytes(std::string_view cubin, std::string_view symbol) {
  constexpr uint8_t kSizedForm = 4, kParameterBytes = 0x19;
  struct Attribute {
    uint8_t form, kind;
    uint16_t value;
  } attribute;
  CUDABK_ASSIGN(const ElfFile file, ElfFile::parse(cubin));
  for (const ElfSection& section : file.sections) {
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
