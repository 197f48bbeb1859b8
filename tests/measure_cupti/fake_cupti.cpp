#include "measure_cupti/fake_cupti.h"

#include <algorithm>

namespace cudabk {
namespace {

size_t record_bytes(const CUpti_Activity* activity) {
  switch (activity->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    default:
      return 0;
  }
}

}  // namespace

FakeCupti*& FakeCupti::current() {
  static FakeCupti* instance = nullptr;
  return instance;
}

template <class Record>
void FakeCupti::append(const Record& record) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&record);
  pending_.insert(pending_.end(), bytes, bytes + sizeof(record));
}

void FakeCupti::launch(uint32_t correlation, uint64_t node, uint64_t start, uint64_t end) {
  if (enabled.count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == 0) {
    return;
  }
  const bool api_records = enabled.count(CUPTI_ACTIVITY_KIND_RUNTIME) + enabled.count(CUPTI_ACTIVITY_KIND_DRIVER) > 0;
  if (!external_.empty() && api_records && enabled.count(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) != 0) {
    CUpti_ActivityExternalCorrelation record{};
    record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    record.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    record.externalId = external_.back();
    record.correlationId = correlation;
    append(record);
  }
  ++kernels_;
  if (lose_every > 0 && kernels_ % lose_every == 0) {
    return;
  }
  CUpti_ActivityKernel10 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  const bool untimed = untimed_every > 0 && kernels_ % untimed_every == 0;
  record.start = untimed ? 0 : start;
  record.end = untimed ? 0 : end;
  record.correlationId = correlation;
  record.graphNodeId = node;
  record.name = "_Z4spinILi32EEvi";
  record.gridX = 3;
  record.gridY = record.gridZ = 1;
  record.blockX = 128;
  record.blockY = record.blockZ = 1;
  record.registersPerThread = 40;
  record.dynamicSharedMemory = 1024;
  append(record);
}

void FakeCupti::announce(CUpti_CallbackId id, uint64_t node, uint64_t original, CUgraphNodeType type) {
  if (callback_ == nullptr) {
    return;
  }
  CUpti_GraphData graph{};
  graph.node = reinterpret_cast<CUgraphNode>(node);  // the handle is the id here
  graph.originalNode = reinterpret_cast<CUgraphNode>(original);
  graph.nodeType = type;
  CUpti_ResourceData resource{};
  resource.resourceDescriptor = &graph;
  callback_(user_data_, CUPTI_CB_DOMAIN_RESOURCE, id, &resource);
}

void FakeCupti::deliver() {
  while (request_ != nullptr && !pending_.empty()) {
    uint8_t* buffer = nullptr;
    size_t size = 0;
    size_t max_records = 0;
    request_(&buffer, &size, &max_records);
    size_t valid = 0;
    while (valid < pending_.size()) {
      const size_t bytes = record_bytes(reinterpret_cast<const CUpti_Activity*>(pending_.data() + valid));
      if (valid + bytes > size) {
        break;
      }
      valid += bytes;
    }
    std::memcpy(buffer, pending_.data(), valid);
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(valid));
    complete_(nullptr, 0, buffer, size, valid);
  }
}

CuptiApi FakeCupti::api() const {
  CuptiApi api;
  api.get_version = [](uint32_t* v) { return *v = CUPTI_API_VERSION, CUPTI_SUCCESS; };
  api.get_error_message = [](CUptiResult, const char** text) { return *text = "made up", CUPTI_SUCCESS; };
  api.subscribe = [](CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* data) {
    FakeCupti& f = *current();
    if (f.subscribe_result != CUPTI_SUCCESS) {
      return f.subscribe_result;
    }
    *handle = reinterpret_cast<CUpti_SubscriberHandle>(&f);
    f.callback_ = callback;
    f.user_data_ = data;
    f.subscribed = true;
    return CUPTI_SUCCESS;
  };
  api.unsubscribe = [](CUpti_SubscriberHandle) {
    current()->callback_ = nullptr;
    current()->subscribed = false;
    return CUPTI_SUCCESS;
  };
  api.enable_callback = [](uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId) {
    return CUPTI_SUCCESS;
  };
  api.activity_enable = [](CUpti_ActivityKind kind) {
    if (current()->enable_result == CUPTI_SUCCESS) {
      current()->enabled.insert(kind);
    }
    return current()->enable_result;
  };
  api.activity_disable = [](CUpti_ActivityKind kind) {
    current()->enabled.erase(kind);
    return CUPTI_SUCCESS;
  };
  api.activity_flush_all = [](uint32_t flag) {
    FakeCupti& f = *current();
    f.calls.push_back(flag == 0 ? "flush" : "forced flush");
    if (flag == 0 && f.flushes_late > 0) {
      --f.flushes_late;
    } else {
      f.deliver();
    }
    return CUPTI_SUCCESS;
  };
  api.activity_register_callbacks = [](CUpti_BuffersCallbackRequestFunc r, CUpti_BuffersCallbackCompleteFunc c) {
    current()->request_ = r;
    current()->complete_ = c;
    return CUPTI_SUCCESS;
  };
  api.activity_get_next_record = [](uint8_t* buffer, size_t valid, CUpti_Activity** record) {
    uint8_t* next = *record == nullptr ? buffer : reinterpret_cast<uint8_t*>(*record) + record_bytes(*record);
    if (next >= buffer + valid) {
      return CUPTI_ERROR_MAX_LIMIT_REACHED;
    }
    *record = reinterpret_cast<CUpti_Activity*>(next);
    return CUPTI_SUCCESS;
  };
  api.activity_get_num_dropped_records = [](CUcontext, uint32_t, size_t* n) { return *n = 0, CUPTI_SUCCESS; };
  api.activity_push_external_correlation_id = [](CUpti_ExternalCorrelationKind, uint64_t id) {
    current()->external_.push_back(id);
    return CUPTI_SUCCESS;
  };
  api.activity_pop_external_correlation_id = [](CUpti_ExternalCorrelationKind, uint64_t* last) {
    *last = current()->external_.back();
    current()->external_.pop_back();
    return CUPTI_SUCCESS;
  };
  api.get_graph_node_id = [](CUgraphNode node, uint64_t* id) {
    return *id = reinterpret_cast<uint64_t>(node), CUPTI_SUCCESS;
  };
  return api;
}

}  // namespace cudabk
