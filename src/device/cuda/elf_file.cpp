#include "device/cuda/elf_file.h"

#include <elf.h>

namespace cudabk {

namespace {

// The text that starts at `offset` of a table of zero-terminated ones; false outside of it.
bool text_at(std::string_view table, uint64_t offset, std::string_view& out) {
  if (offset > table.size()) {
    return false;
  }
  const std::string_view tail = table.substr(offset);
  out = tail.substr(0, tail.find('\0'));
  return true;
}

// A Reader's functions are false for a file that is not whole.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool read(ElfFile& file) {
    return read_sections(file) && read_symbols(file) && read_relocations<Elf64_Rel>(file, SHT_REL) &&
           read_relocations<Elf64_Rela>(file, SHT_RELA);
  }

 private:
  bool read_sections(ElfFile& file) {
    Elf64_Ehdr header;
    if (!read_at(bytes_, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize < sizeof(Elf64_Shdr)) {
      return false;
    }
    for (unsigned i = 0; i < header.e_shnum; ++i) {
      Elf64_Shdr section;
      if (header.e_shoff > bytes_.size() || !read_at(bytes_, header.e_shoff + i * header.e_shentsize, section)) {
        return false;
      }
      const bool has_bytes = section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL;
      if (has_bytes && (section.sh_offset > bytes_.size() || section.sh_size > bytes_.size() - section.sh_offset)) {
        return false;
      }
      headers_.push_back(section);
      file.sections.push_back({{}, has_bytes ? bytes_.substr(section.sh_offset, section.sh_size) : std::string_view()});
    }
    if (header.e_shstrndx >= headers_.size()) {
      return false;
    }
    for (size_t i = 0; i < headers_.size(); ++i) {
      if (!text_at(file.sections[header.e_shstrndx].content, headers_[i].sh_name, file.sections[i].name)) {
        return false;
      }
    }
    return true;
  }

  bool read_symbols(ElfFile& file) {
    for (size_t i = 0; i < headers_.size(); ++i) {
      if (headers_[i].sh_type != SHT_SYMTAB) {
        continue;
      }
      if (!file.symbols.empty() || headers_[i].sh_link >= headers_.size()) {
        return false;
      }
      const std::string_view names = file.sections[headers_[i].sh_link].content;
      Elf64_Sym from;
      for (uint64_t at = 0; read_at(file.sections[i].content, at, from); at += sizeof(from)) {
        ElfSymbol symbol{{}, from.st_shndx, from.st_value, from.st_size};
        if (!text_at(names, from.st_name, symbol.name)) {
          return false;
        }
        file.symbols.push_back(symbol);
      }
    }
    return true;
  }

  template <class Entry>
  bool read_relocations(ElfFile& file, uint32_t type) {
    for (size_t i = 0; i < headers_.size(); ++i) {
      if (headers_[i].sh_type != type) {
        continue;
      }
      Entry from;
      for (uint64_t at = 0; read_at(file.sections[i].content, at, from); at += sizeof(from)) {
        ElfRelocation relocation{headers_[i].sh_info, from.r_offset, static_cast<uint32_t>(ELF64_R_TYPE(from.r_info)),
                                 static_cast<uint32_t>(ELF64_R_SYM(from.r_info)), 0};
        if constexpr (std::is_same_v<Entry, Elf64_Rela>) {
          relocation.addend = from.r_addend;
        }
        if (relocation.section >= headers_.size() || relocation.symbol >= file.symbols.size()) {
          return false;
        }
        file.relocations.push_back(relocation);
      }
    }
    return true;
  }

  std::string_view bytes_;
  std::vector<Elf64_Shdr> headers_;
};

}  // namespace

Result<ElfFile> ElfFile::parse(std::string_view bytes) {
  ElfFile file;
  if (!Reader(bytes).read(file)) {
    return invalid("not a whole 64-bit ELF file");
  }
  return file;
}

}  // namespace cudabk
