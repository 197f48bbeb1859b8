#include "measure/cupti/activity_collector.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace cudabk {
namespace {

constexpr size_t kBufferBytes = 4 << 20;  // some 20,000 kernel records
constexpr size_t kBufferAlignment = 64;   // CUPTI asks for 8

std::mutex installed_mutex;
ActivityCollector* installed = nullptr;  // guarded by installed_mutex

std::string demangled(const char* name) {
  if (name == nullptr) {
    return "unknown";
  }
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : std::string(name);
}

Dim3 dims(int32_t x, int32_t y, int32_t z) {
  return {static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(z)};
}

RawActivity from_kernel(const CUpti_ActivityKernel10& k) {
  RawActivity raw;
  raw.record.kind = ActivityKind::kKernel;
  raw.record.name = demangled(k.name);
  raw.record.start_ns = k.start;
  raw.record.end_ns = k.end;
  raw.record.grid = dims(k.gridX, k.gridY, k.gridZ);
  raw.record.block = dims(k.blockX, k.blockY, k.blockZ);
  raw.record.registers = k.registersPerThread;
  raw.record.static_shared_bytes = k.staticSharedMemory;
  raw.record.dynamic_shared_bytes = k.dynamicSharedMemory;
  raw.correlation = k.correlationId;
  raw.graph_node = k.graphNodeId;
  return raw;
}

// Memory operations: CUpti_ActivityMemset4 and CUpti_ActivityMemcpy6 share these names.
template <class Activity>
RawActivity from_memory(const Activity& m, ActivityKind kind, const char* name) {
  RawActivity raw;
  raw.record.kind = kind;
  raw.record.name = name;
  raw.record.start_ns = m.start;
  raw.record.end_ns = m.end;
  raw.correlation = m.correlationId;
  raw.graph_node = m.graphNodeId;
  return raw;
}

}  // namespace

bool ActivityCollector::busy() {
  const std::lock_guard lock(installed_mutex);
  return installed != nullptr;
}

Status ActivityCollector::install() {
  const std::lock_guard lock(installed_mutex);
  CUDABK_TRY(api_.check(api_.activity_register_callbacks(&request_buffer, &complete_buffer),
                        "cuptiActivityRegisterCallbacks"));
  installed = this;
  return success();
}

void ActivityCollector::uninstall() {
  const std::lock_guard lock(installed_mutex);
  if (installed == this) {
    installed = nullptr;
  }
}

void ActivityCollector::request_buffer(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *size = *buffer != nullptr ? kBufferBytes : 0;
  *max_records = 0;  // as many as fit
}

void ActivityCollector::complete_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  {
    const std::lock_guard lock(installed_mutex);
    if (installed != nullptr && valid > 0) {
      installed->parse(buffer, valid);
    }
  }
  std::free(buffer);
}

void ActivityCollector::parse(uint8_t* buffer, size_t valid) {
  const std::lock_guard lock(mutex_);
  CUpti_Activity* activity = nullptr;
  while (api_.activity_get_next_record(buffer, valid, &activity) == CUPTI_SUCCESS) {
    const void* record = activity;
    switch (activity->kind) {
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        records_.activities.push_back(from_kernel(*static_cast<const CUpti_ActivityKernel10*>(record)));
        break;
      case CUPTI_ACTIVITY_KIND_MEMSET:
        records_.activities.push_back(
            from_memory(*static_cast<const CUpti_ActivityMemset4*>(record), ActivityKind::kMemset, "memset"));
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        records_.activities.push_back(
            from_memory(*static_cast<const CUpti_ActivityMemcpy6*>(record), ActivityKind::kMemcpy, "memcpy"));
        break;
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const auto& external = *static_cast<const CUpti_ActivityExternalCorrelation*>(record);
        records_.external[external.correlationId] = external.externalId;
        break;
      }
      default:
        break;  // API records, which external correlation needs switched on
    }
  }
  size_t dropped = 0;
  if (api_.activity_get_num_dropped_records(nullptr, 0, &dropped) == CUPTI_SUCCESS) {
    records_.dropped += static_cast<int64_t>(dropped);
  }
}

ActivityCollector::Records ActivityCollector::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(records_, Records{});
}

size_t ActivityCollector::count() const {
  const std::lock_guard lock(mutex_);
  return records_.activities.size();
}

}  // namespace cudabk
