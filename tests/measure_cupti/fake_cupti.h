// A made-up CUPTI: a function table over one global state, which tests drive by "launching" kernels.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "measure/cupti/cupti_library.h"

namespace cudabk {

class FakeCupti {
 public:
  FakeCupti() { current() = this; }
  ~FakeCupti() { current() = nullptr; }
  FakeCupti(const FakeCupti&) = delete;

  CuptiApi api() const;

  // What a test sets.
  CUptiResult subscribe_result = CUPTI_SUCCESS;
  CUptiResult enable_result = CUPTI_SUCCESS;
  int lose_every = 0;     // drop each n-th kernel record
  int untimed_every = 0;  // ... or its times
  int flushes_late = 0;   // plain flushes that deliver nothing yet

  // What happens on the "device". A call outside of any enabled kind leaves no record.
  void launch(uint32_t correlation, uint64_t node, uint64_t start, uint64_t end);
  void announce(CUpti_CallbackId id, uint64_t node, uint64_t original, CUgraphNodeType type);
  uint32_t next_correlation = 1;

  // What happened.
  std::set<int> enabled;
  std::vector<std::string> calls;
  bool subscribed = false;
  int external_depth() const { return static_cast<int>(external_.size()); }

 private:
  static FakeCupti*& current();
  template <class Record>
  void append(const Record& record);
  void deliver();

  CUpti_CallbackFunc callback_ = nullptr;
  void* user_data_ = nullptr;
  CUpti_BuffersCallbackRequestFunc request_ = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete_ = nullptr;
  std::vector<uint64_t> external_;
  std::vector<uint8_t> pending_;
  int kernels_ = 0;
};

}  // namespace cudabk
