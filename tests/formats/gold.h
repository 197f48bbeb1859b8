// Reader of the .gold containers (tests/data/README.md).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace cudabk::test {

class Gold {
 public:
  explicit Gold(const std::string& name) {
    const std::string path = std::string(CUDABK_TEST_DATA) + "/golden/" + name + ".gold";
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    valid_ = bytes_.size() >= 64 && std::memcmp(bytes_.data(), "CBKGOLD1", 8) == 0;
    EXPECT_TRUE(valid_) << path;
  }
  bool valid() const { return valid_; }
  uint32_t type_id() const { return word(8); }
  uint32_t block_elements() const { return word(12); }
  uint32_t block_bytes() const { return word(16); }
  int64_t rows() const { return word(20); }
  int64_t cols() const { return word(24); }
  int64_t vectors() const { return word(28); }
  bool encoded_by_rule() const { return (word(56) & 1) != 0; }

  // All elements of a section; a test failure when it is missing or T has another size than its elements.
  template <class T>
  std::vector<T> section(const std::string& name) const {
    constexpr uint32_t kSizes[] = {1, 2, 4, 8, 4, 4};
    for (uint32_t i = 0; i < word(36); ++i) {
      const size_t entry = 64 + 32 * static_cast<size_t>(i);
      char text[9] = {};
      std::memcpy(text, bytes_.data() + entry, 8);
      if (name != text) {
        continue;
      }
      if (kSizes[word(entry + 8)] != sizeof(T)) {
        ADD_FAILURE() << name << " has elements of " << kSizes[word(entry + 8)] << " bytes";
        return {};
      }
      std::vector<T> data(static_cast<size_t>(word(entry + 12)) * word(entry + 16));
      uint64_t offset = 0;
      std::memcpy(&offset, bytes_.data() + entry + 24, 8);
      EXPECT_LE(offset + data.size() * sizeof(T), bytes_.size()) << name;
      std::memcpy(data.data(), bytes_.data() + offset, data.size() * sizeof(T));
      return data;
    }
    ADD_FAILURE() << "no section " << name;
    return {};
  }

 private:
  uint32_t word(size_t at) const {
    uint32_t value = 0;
    std::memcpy(&value, bytes_.data() + at, 4);
    return value;
  }
  std::vector<char> bytes_;
  bool valid_ = false;
};

}  // namespace cudabk::test
