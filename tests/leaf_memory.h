// Values whose leaves are given by the test.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "graph/init.h"
#include "reference/reference.h"

namespace cudabk::test {

class LeafMemory final : public Values {
 public:
  std::map<const Tensor*, std::vector<std::byte>> memory;
  std::span<const std::byte> bytes(const Tensor& root) const override {
    const auto found = memory.find(&root);
    return found == memory.end() ? std::span<const std::byte>{} : std::span<const std::byte>(found->second);
  }
  template <class T>
  void set(const Tensor* t, const std::vector<T>& values) {
    auto& bytes = memory[t];
    bytes.resize(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  void randomize(const Tensor* t, uint64_t seed) {
    auto& bytes = memory[t];
    bytes.resize(static_cast<size_t>(byte_size(*t)));
    ASSERT_TRUE(fill_random({.type = t->type, .stddev = 1, .seed = seed}, bytes).ok());
  }
};

}  // namespace cudabk::test
