#include "cli/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace cudabk::cli {
namespace {

// False unless all of `text` is a number that fits.
template <class Number>
bool read_number(const std::string& text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Check one_of(std::vector<std::string> words) {
  return [words = std::move(words)](const std::string& text) {
    const bool known = std::find(words.begin(), words.end(), text) != words.end();
    return known ? "" : fmt::format("unknown value '{}'; valid: {}", text, fmt::join(words, ", "));
  };
}

Check whole_number(int64_t low, int64_t high) {
  return [low, high](const std::string& text) {
    int64_t value = 0;
    const bool good = read_number(text, value) && value >= low && value <= high;
    return good ? "" : fmt::format("'{}' is no whole number from {} to {}", text, low, high);
  };
}

std::string check_seed(const std::string& text) {
  uint64_t value = 0;
  return read_number(text, value) ? "" : fmt::format("'{}' is no whole number below 2^64", text);
}

}  // namespace cudabk::cli
