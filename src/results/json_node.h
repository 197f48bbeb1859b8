// Reading a JSON document member by member: the first thing that is missing or has another type is kept with its path,
// everything read after it is empty, and the caller asks once at the end.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace cudabk {

class JsonNode {
 public:
  using Json = nlohmann::ordered_json;

  // `fault` gets the first complaint ("/cases/3/key: expected text, found 7"); both must outlive the node.
  JsonNode(const Json& root, std::string& fault) : json_(&root), fault_(&fault) {}

  JsonNode member(const char* name) const;  // a missing one is a complaint
  bool has(const char* name) const { return json_->is_object() && json_->contains(name); }
  bool null() const { return json_->is_null(); }

  std::string text() const;
  std::string text_or_empty() const;  // null: ""
  std::vector<std::string> texts() const;
  bool boolean() const;
  double number() const;  // null: NaN
  std::optional<double> number_or_null() const;
  int64_t integer(int64_t low = 0, int64_t high = INT64_MAX) const;
  uint64_t unsigned_integer() const;

  template <class Use>  // Use(JsonNode element)
  void each(Use use) const {
    if (!expect(json_->is_array(), "a list")) {
      return;
    }
    size_t index = 0;
    for (const Json& element : *json_) {
      use(JsonNode(element, this, nullptr, index++));
    }
  }
  template <class Use>  // Use(const std::string& name, JsonNode value)
  void each_member(Use use) const {
    if (!expect(json_->is_object(), "an object")) {
      return;
    }
    for (auto it = json_->begin(); it != json_->end(); ++it) {
      use(it.key(), JsonNode(it.value(), this, it.key().c_str(), 0));
    }
  }

  void complain(const std::string& what) const;

 private:
  JsonNode(const Json& json, const JsonNode* parent, const char* name, size_t index)
      : json_(&json), parent_(parent), name_(name), index_(index), fault_(parent->fault_) {}

  bool expect(bool fits, const char* what) const;
  std::string path() const;

  const Json* json_;
  const JsonNode* parent_ = nullptr;  // lives as long as the child: nodes are used where they are made
  const char* name_ = nullptr;        // in an object; nullptr: element `index_` of a list
  size_t index_ = 0;
  std::string* fault_;
};

}  // namespace cudabk
