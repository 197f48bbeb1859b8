// The hash of a kernel's machine code. What it must not depend on are positions: the address of every global object of
// a program, used or not, has a slot of 8 bytes in constant bank 4, and code finds a table by the number of its slot. A
// constant that is declared in front of it moves the slot and with it the code, without a difference in what runs.
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "core/hash.h"
#include "device/cuda/cubin.h"
#include "device/cuda/elf_file.h"

namespace cudabk {

namespace {

constexpr uint64_t kSlotBytes = 8;
constexpr uint64_t kInstructionBytes = 16;  // of sm_70 and later
constexpr std::string_view kSlotBank = ".nv.constant4";

// The operand of an instruction that lies in a constant bank, in its first 64 bits: the form of the operands, the bank
// and the offset in bytes. No file says which instructions read a slot; tests compare for every architecture.
class ConstantOperand {
 public:
  explicit ConstantOperand(uint64_t word) : word_(word) {}

  bool in_bank_4() const {
    const uint64_t form = word_ >> 9 & 7;
    return (form == 3 || form == 5) && (word_ >> 54 & 31) == 4;
  }
  uint64_t offset() const { return word_ >> shift() & 0xffff; }
  uint64_t with_offset(uint64_t offset) const {
    return (word_ & ~(uint64_t{0xffff} << shift())) | (offset & 0xffff) << shift();
  }

 private:
  static constexpr uint64_t kUniformLoad = 0x7ac;  // of sm_100 and later
  int shift() const { return (word_ & 0xfff) == kUniformLoad ? 37 : 38; }

  uint64_t word_;
};

// Code and the data that it can reach, as one text in which no position occurs.
class CodeText {
 public:
  explicit CodeText(const ElfFile& file) : file_(file) {
    for (const ElfRelocation& r : file.relocations) {
      places_[r.section].emplace(r.offset, &r);
    }
    for (uint32_t i = 0; i < file.sections.size(); ++i) {
      if (file.sections[i].name == kSlotBank) {
        slots_ = i;
      }
    }
  }

  // kInvalid without code, or where objects overlap beyond what a compiler writes.
  Result<std::string> text() {
    for (uint32_t i = 0; i < file_.sections.size(); ++i) {
      const std::string_view name = file_.sections[i].name;
      if (name.starts_with(".text")) {
        add_code(i);
      } else if (is_literals(name)) {
        add(file_.sections[i].content);
      }
    }
    if (!has_code_) {
      return invalid("an ELF file without machine code");
    }
    size_t bytes = 0;
    for (const ElfSection& section : file_.sections) {
      bytes += section.content.size();
    }
    for (size_t i = 0; i < objects_.size(); ++i) {  // more come to be known meanwhile
      add_object(file_.symbols[objects_[i]]);
      if (text_.size() > kMostTimesSections * bytes + kMostTimesSections) {
        return invalid("an ELF file whose objects overlap");
      }
    }
    return std::move(text_);
  }

 private:
  // Bank 0 is the launch's parameter area, without content of its own. The others are the kernel's literals, and
  // objects in constant memory, where kernels keep none.
  static bool is_literals(std::string_view name) {
    return name.starts_with(".nv.constant") && !name.starts_with(".nv.constant0") && name != kSlotBank;
  }

  void add(std::string_view part) {  // lengths keep neighbours apart
    text_ += fmt::format("{}:", part.size());
    text_ += part;
  }

  void add_code(uint32_t section) {
    std::string code(file_.sections[section].content);
    std::vector<uint64_t> used;  // slots, in the order of their first use
    uint64_t word;
    for (uint64_t at = 0; read_at(code, at, word); at += kInstructionBytes) {
      const ConstantOperand operand(word);
      const uint64_t offset = operand.offset(), slot = offset - offset % kSlotBytes;
      if (!operand.in_bank_4() || !slots_ || relocation_at(*slots_, slot) == nullptr) {
        continue;
      }
      const auto found = std::find(used.begin(), used.end(), slot);
      const uint64_t number = static_cast<uint64_t>(found - used.begin());
      if (found == used.end()) {
        used.push_back(slot);
      }
      word = operand.with_offset(number * kSlotBytes + offset % kSlotBytes);
      std::memcpy(code.data() + at, &word, sizeof(word));
    }
    has_code_ |= !code.empty();
    add(code);
    add_targets(section, 0, code.size());
    for (const uint64_t slot : used) {
      add(file_.sections[*slots_].content.substr(std::min<uint64_t>(slot, file_.sections[*slots_].content.size()),
                                                 kSlotBytes));
      add_targets(*slots_, slot, 1);
    }
  }

  const ElfRelocation* relocation_at(uint32_t section, uint64_t offset) const {
    const auto places = places_.find(section);
    if (places == places_.end()) {
      return nullptr;
    }
    const auto at = places->second.find(offset);
    return at == places->second.end() ? nullptr : at->second;
  }

  // What the relocations of `size` bytes of a section point to.
  void add_targets(uint32_t section, uint64_t begin, uint64_t size) {
    const auto places = places_.find(section);
    if (places == places_.end()) {
      return;
    }
    const auto& at = places->second;
    for (auto it = at.lower_bound(begin); it != at.end() && it->first - begin < size; ++it) {
      const ElfRelocation& r = *it->second;
      const auto [number, is_new] = numbers_.try_emplace(r.symbol, objects_.size());
      if (is_new) {
        objects_.push_back(r.symbol);
      }
      text_ += fmt::format("@{},{},{}:{};", r.offset - begin, r.type, r.addend, number->second);
    }
  }

  void add_object(const ElfSymbol& symbol) {
    if (symbol.section == SHN_UNDEF || symbol.section >= file_.sections.size()) {
      add(symbol.name);  // defined elsewhere
      return;
    }
    const ElfSection& section = file_.sections[symbol.section];
    if (section.name.starts_with(".text")) {
      return;  // added as code
    }
    const std::string_view rest = section.content.substr(std::min<uint64_t>(symbol.value, section.content.size()));
    // A section as a whole has no size.
    const std::string_view content = symbol.size == 0 ? rest : rest.substr(0, symbol.size);
    text_ += fmt::format("{},", symbol.size);  // what starts as zeros has no bytes in the file
    add(content);
    add_targets(symbol.section, symbol.value, content.size());
  }

  static constexpr size_t kMostTimesSections = 16;

  const ElfFile& file_;
  std::optional<uint32_t> slots_;                                        // section of bank 4
  std::map<uint32_t, std::map<uint64_t, const ElfRelocation*>> places_;  // by section and offset
  std::vector<uint32_t> objects_;                                        // symbols that the text refers to, in order
  std::map<uint32_t, size_t> numbers_;                                   // their places in objects_
  bool has_code_ = false;
  std::string text_;
};

}  // namespace

Result<std::string> machine_code_hash(std::string_view cubin) {
  CUDABK_ASSIGN(const ElfFile file, ElfFile::parse(cubin));
  CUDABK_ASSIGN(const std::string code, CodeText(file).text());
  return "sha256:" + sha256_hex(code);
}

}  // namespace cudabk
