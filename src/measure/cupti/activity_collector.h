// Receives CUPTI's activity buffers and keeps the records of interest.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "measure/cupti/cupti_library.h"
#include "measure/trace_assembly.h"

namespace cudabk {

class ActivityCollector {
 public:
  explicit ActivityCollector(const CuptiApi& api) : api_(api) {}

  // Registers this object as the process's receiver. CUPTI's buffer callbacks carry no user data, so there is one.
  Status install();
  static bool busy();  // another object is installed
  void uninstall();

  struct Records {
    std::vector<RawActivity> activities;
    std::unordered_map<uint32_t, uint64_t> external;  // correlation id -> external id
    int64_t dropped = 0;
  };
  Records take();  // and starts anew
  size_t count() const;

 private:
  static void CUPTIAPI request_buffer(uint8_t** buffer, size_t* size, size_t* max_records);
  static void CUPTIAPI complete_buffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);
  void parse(uint8_t* buffer, size_t valid);

  const CuptiApi& api_;
  mutable std::mutex mutex_;  // buffers are completed on a thread of CUPTI
  Records records_;
};

}  // namespace cudabk
