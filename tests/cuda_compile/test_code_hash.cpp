// What the hash of machine code depends on, with kernels of the project compiled by NVRTC, and hostile files.
#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "device/cuda/compile.h"
#include "device/cuda/cubin.h"
#include "device/cuda/elf_file.h"

namespace cudabk {
namespace {

constexpr std::string_view kHeader = "own/variant.h";

// The embedded sources with one more, which includes kernels, and with `from` in one of them replaced by `to`.
struct Sources {
  explicit Sources(std::string text) : header(std::move(text)) {}
  void replace(std::string_view path, std::string_view from, std::string_view to) {
    const KernelSource* source = find_kernel_source(path);
    ASSERT_NE(source, nullptr) << path;
    changed_path = path;
    changed = source->content;
    const size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << path << " has no " << from;
    changed.replace(at, from.size(), to);
  }
  std::vector<KernelSource> list() const {
    std::vector<KernelSource> sources{{kHeader, header}};
    for (const KernelSource& source : kernel_sources()) {
      sources.push_back(source.path == changed_path ? KernelSource{source.path, changed} : source);
    }
    return sources;
  }
  std::string header, changed_path, changed;
};

CompiledKernel compile(const Sources& sources, std::string entry, std::string_view arch) {
  const std::vector<KernelSource> list = sources.list();
  KernelCompiler compiler(CompileOptions{}, list);
  auto kernel = compiler.compile({std::string(kHeader), std::move(entry), 0}, arch);
  EXPECT_TRUE(kernel.ok()) << kernel.error().message;
  return kernel.ok() ? std::move(kernel).value() : CompiledKernel();
}

std::string hash_of(const Sources& sources, std::string entry, std::string_view arch) {
  return compile(sources, std::move(entry), arch).report.code_hash;
}

const std::string kIncludes = "#include \"convert/convert.h\"\n#include \"frag/repack.h\"\n";
// Reads the grid of iq1_s from global memory, by its slot in constant bank 4.
constexpr const char* kTableEntry = "dequantize<DType::iq1_s, DType::bf16>";
// Has its table of 16 levels in registers or shared memory.
constexpr const char* kFragEntry = "dequantize_frag<DType::iq4_nl, DType::bf16>";

class CodeHash : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    KernelCompiler compiler(CompileOptions{});
    if (auto version = compiler.compiler_version(); !version.ok()) {
      GTEST_SKIP() << "no kernel is compiled here: " << version.error().message;
    }
  }
};

// In front of everything, so that the slots of all tables move.
const std::string kUnused =
    "#include \"platform/platform.h\"\nnamespace cudabk { constexpr int kUnused[3] = {1, 2, 3};\n"
    "struct Unused { static constexpr float kMember = 2; }; inline float use_member() { return Unused::kMember; }\n"
    "inline constexpr const char* kText = \"unused\"; }\n";
const std::string kOtherOrder =
    "#include \"frag/repack.h\"\n#include \"mmvf/mmvf.h\"\n#include \"convert/convert.h\"\n";

TEST_P(CodeHash, OfATableInGlobalMemory) {
  const Sources plain(kIncludes);
  const CompiledKernel kernel = compile(plain, kTableEntry, GetParam());
  const CompiledKernel moved = compile(Sources(kUnused + kIncludes), kTableEntry, GetParam());
  EXPECT_NE(kernel.cubin.size(), moved.cubin.size()) << "the constants are not in the file: nothing is tested";
  const std::string hash = kernel.report.code_hash;
  EXPECT_EQ(hash, moved.report.code_hash);
  EXPECT_EQ(hash, hash_of(plain, kTableEntry, GetParam())) << "two compilations";
  EXPECT_EQ(hash, hash_of(Sources(kOtherOrder), kTableEntry, GetParam()));
  Sources changed(kIncludes);
  changed.replace("formats/codebooks.h", "0, 2, 5, 8, 10, 17, 21, 32,", "0, 2, 5, 8, 10, 17, 21, 33,");
  EXPECT_NE(hash, hash_of(changed, kTableEntry, GetParam()));
}

TEST_P(CodeHash, OfATableInTheCode) {
  const std::string hash = hash_of(Sources(kIncludes), kFragEntry, GetParam());
  EXPECT_EQ(hash, hash_of(Sources(kUnused + kOtherOrder), kFragEntry, GetParam()));
  Sources levels(kIncludes), other(kIncludes);
  levels.replace("formats/codebooks.h", "25, 38, 53, 69, 89, 113", "25, 38, 53, 69, 89, 112");
  EXPECT_NE(hash, hash_of(levels, kFragEntry, GetParam()));
  other.replace("formats/codebooks.h", "0, 2, 5, 8, 10, 17, 21, 32,", "0, 2, 5, 8, 10, 17, 21, 33,");
  EXPECT_EQ(hash, hash_of(other, kFragEntry, GetParam())) << "a table of another format";
}

TEST_P(CodeHash, AnInstructionCounts) {
  const auto text = [](const char* tables, const char* sum) {
    return Sources(fmt::format(
        "#include \"platform/platform.h\"\nnamespace cudabk {{\nstruct A {{ const uint32_t* x; uint32_t* y; }};\n{}\n"
        "template <int N> KERNEL(looked_up, N)(A a) {{ const uint32_t i = a.x[thread_x()];\n"
        "  a.y[thread_x()] = {}; }} }}\n",
        tables, sum));
  };
  const char* two = "constexpr uint32_t kA[64] = {7, 5}; constexpr uint32_t kB[64] = {9, 4};";
  const char* exchanged = "constexpr uint32_t kB[64] = {9, 4}; constexpr uint32_t kA[64] = {7, 5};";
  const auto hash = [&](const char* tables, const char* sum) {
    return hash_of(text(tables, sum), "looked_up<32>", GetParam());
  };
  const std::string plain = hash(two, "kA[i & 63] * 3 + kB[i >> 26]");
  EXPECT_EQ(plain, hash(exchanged, "kA[i & 63] * 3 + kB[i >> 26]"));
  EXPECT_NE(plain, hash(two, "kA[i & 63] * 5 + kB[i >> 26]"));
  EXPECT_NE(plain, hash(two, "kB[i & 63] * 3 + kA[i >> 26]"));
  EXPECT_NE(plain, hash("constexpr uint32_t kA[64] = {7, 5}; constexpr uint32_t kB[64] = {9, 4, 1};",
                        "kA[i & 63] * 3 + kB[i >> 26]"));
}

INSTANTIATE_TEST_SUITE_P(All, CodeHash, testing::Values("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a"),
                         [](const auto& info) { return std::string(info.param); });

// ---- files that no compiler wrote ----

// A file with a section of code that reads slot 0 of bank 4, `objects` with relocations to each other, and a table of
// symbols.
struct MadeFile {
  struct Object {
    uint64_t value, size;
    std::vector<uint32_t> points_to;  // objects
  };
  std::string bytes;

  explicit MadeFile(const std::vector<Object>& objects, uint64_t data_bytes = 64) {
    const std::string names = std::string("\0.text.k\0.nv.constant4\0.nv.global.init\0r\0s\0", 43);
    const auto name = [&](std::string_view text) { return static_cast<uint32_t>(names.find(text)); };
    const uint64_t code[4] = {uint64_t{4} << 54 | 0x0625, 1, 0, 2};
    std::vector<Elf64_Sym> symbols(1, Elf64_Sym{});
    std::vector<Elf64_Rel> slots{{0, ELF64_R_INFO(1, 2)}}, pointers;
    for (const Object& object : objects) {
      symbols.push_back({0, STT_OBJECT, 0, 3, object.value, object.size});
      for (size_t i = 0; i < object.points_to.size(); ++i) {
        pointers.push_back({object.value + 8 * i, ELF64_R_INFO(object.points_to[i] + 1, 2)});
      }
    }
    bytes.resize(sizeof(Elf64_Ehdr));
    add({}, SHT_NULL, "");
    add(name(".text.k"), SHT_PROGBITS, view(code, sizeof(code)));
    add(name(".nv.constant4"), SHT_PROGBITS, std::string(8, '\0'));
    add(name(".nv.global.init"), SHT_PROGBITS, std::string(data_bytes, 'd'));
    add(name("s"), SHT_SYMTAB, view(symbols.data(), symbols.size() * sizeof(symbols[0])), 7);
    add(name("r"), SHT_REL, view(slots.data(), slots.size() * sizeof(slots[0])), 4, 2);
    add(name("r"), SHT_REL, view(pointers.data(), pointers.size() * sizeof(pointers[0])), 4, 3);
    add(name("s"), SHT_STRTAB, names);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_shoff = bytes.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(headers_.size());
    header.e_shstrndx = 7;
    std::memcpy(bytes.data(), &header, sizeof(header));
    bytes += view(headers_.data(), headers_.size() * sizeof(headers_[0]));
  }

 private:
  static std::string view(const void* data, size_t size) { return {static_cast<const char*>(data), size}; }
  void add(uint32_t name, uint32_t type, const std::string& content, uint32_t link = 0, uint32_t info = 0) {
    Elf64_Shdr section{};
    section.sh_name = name;
    section.sh_type = type;
    section.sh_offset = bytes.size();
    section.sh_size = content.size();
    section.sh_link = link;
    section.sh_info = info;
    headers_.push_back(section);
    bytes += content;
  }
  std::vector<Elf64_Shdr> headers_;
};

TEST(CodeHashOfFiles, ObjectsAreFollowedThroughPointers) {
  const auto hash = [](const std::vector<MadeFile::Object>& objects, size_t changed = 0) {
    MadeFile file(objects);
    const size_t data = file.bytes.find(std::string(64, 'd'));
    EXPECT_NE(data, std::string::npos);
    if (changed > 0) {
      file.bytes[data + changed] = 'x';
    }
    auto hash = machine_code_hash(file.bytes);
    EXPECT_TRUE(hash.ok()) << hash.error().message;
    return hash.ok() ? *hash : "";
  };
  const std::vector<MadeFile::Object> chain{{0, 16, {1}}, {16, 16, {0, 1}}, {32, 16, {}}};  // a cycle, and one unread
  EXPECT_EQ(hash(chain), hash(chain, 33));
  EXPECT_NE(hash(chain), hash(chain, 17));
  EXPECT_NE(hash(chain), hash(chain, 8));
  EXPECT_NE(hash(chain), hash({{0, 16, {2}}, {16, 16, {0, 1}}, {32, 16, {}}}));
  // The same objects at other places.
  EXPECT_EQ(hash(chain), hash({{40, 16, {1}}, {16, 16, {0, 1}}, {0, 8, {}}}));
  // Beyond the end of its section: as much as there is.
  EXPECT_FALSE(hash({{60, 1000, {}}}).empty());
  EXPECT_FALSE(hash({{~uint64_t{0}, ~uint64_t{0}, {}}}).empty());
}

TEST(CodeHashOfFiles, ObjectsThatOverlapDoNotFillTheMemory) {
  std::vector<MadeFile::Object> objects(4000, {0, 1 << 20, {}});
  for (uint32_t i = 0; i < objects.size(); ++i) {
    objects[0].points_to.push_back(i);
  }
  const auto hash = machine_code_hash(MadeFile(objects, 1 << 20).bytes);
  ASSERT_FALSE(hash.ok());
  EXPECT_NE(hash.error().message.find("overlap"), std::string::npos) << hash.error().message;
}

TEST(CodeHashOfFiles, DamagedFilesAreRefusedOrHashed) {
  const uint32_t seed = 71;
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const std::string whole = MadeFile({{0, 16, {1}}, {16, 16, {0, 2}}, {32, 16, {}}}).bytes;
  ASSERT_TRUE(machine_code_hash(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(machine_code_hash(std::string(whole.substr(0, size))).ok()) << size;
  }
  const uint64_t extremes[] = {0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, ~uint64_t{0}, ~uint64_t{0} - 63};
  int refused = 0;
  constexpr int kRounds = 20000;
  for (int i = 0; i < kRounds; ++i) {
    std::string damaged = whole;
    for (unsigned n = 1 + random() % 3; n > 0; --n) {
      const uint64_t value = extremes[random() % std::size(extremes)];
      const size_t bytes = size_t{1} << random() % 4;
      std::memcpy(damaged.data() + random() % (damaged.size() - bytes + 1), &value, bytes);
    }
    refused += machine_code_hash(damaged).ok() ? 0 : 1;
    static_cast<void>(parameter_bytes(damaged, "k").ok());
    static_cast<void>(stack_bytes(damaged, "k").ok());
  }
  EXPECT_GT(refused, kRounds / 10);
  EXPECT_LT(refused, kRounds);
}

}  // namespace
}  // namespace cudabk
