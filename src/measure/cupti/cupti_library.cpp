#include "measure/cupti/cupti_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace cudabk {
namespace {

constexpr uint32_t kOldestVersion = 130000;  // record layouts: CUpti_ActivityKernel10, CUpti_ActivityMemset4

constexpr const char* kLibraryNames[] = {
    "libcupti.so.13",
    "libcupti.so",
    "/usr/local/cuda/lib64/libcupti.so.13",
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
    "/usr/local/cuda-13/lib64/libcupti.so.13",
    "/usr/local/cuda-13/extras/CUPTI/lib64/libcupti.so.13",
    "/usr/local/cuda-13.0/lib64/libcupti.so.13",
    "/usr/local/cuda-13.0/extras/CUPTI/lib64/libcupti.so.13",
};

template <class Function>
bool load(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    missing = name;
  }
  return function != nullptr;
}

}  // namespace

Result<CuptiApi> load_cupti(std::span<const char* const> names) {
  void* library = nullptr;
  for (const char* name : names) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) {
      break;
    }
  }
  if (library == nullptr) {
    return unsupported(fmt::format("CUPTI was not found (tried {})", fmt::join(names, ", ")));
  }
  CuptiApi api;
  std::string missing;
  const bool complete =
      load(library, "cuptiGetVersion", api.get_version, missing) &&
      load(library, "cuptiGetErrorMessage", api.get_error_message, missing) &&
      load(library, "cuptiSubscribe", api.subscribe, missing) &&
      load(library, "cuptiUnsubscribe", api.unsubscribe, missing) &&
      load(library, "cuptiEnableCallback", api.enable_callback, missing) &&
      load(library, "cuptiActivityEnable", api.activity_enable, missing) &&
      load(library, "cuptiActivityDisable", api.activity_disable, missing) &&
      load(library, "cuptiActivityFlushAll", api.activity_flush_all, missing) &&
      load(library, "cuptiActivityRegisterCallbacks", api.activity_register_callbacks, missing) &&
      load(library, "cuptiActivityGetNextRecord", api.activity_get_next_record, missing) &&
      load(library, "cuptiActivityGetNumDroppedRecords", api.activity_get_num_dropped_records, missing) &&
      load(library, "cuptiActivityPushExternalCorrelationId", api.activity_push_external_correlation_id, missing) &&
      load(library, "cuptiActivityPopExternalCorrelationId", api.activity_pop_external_correlation_id, missing) &&
      load(library, "cuptiGetGraphNodeId", api.get_graph_node_id, missing);
  if (!complete) {
    return unsupported(fmt::format("CUPTI has no function {}: the library is too old", missing));
  }
  uint32_t version = 0;
  CUDABK_TRY(api.check(api.get_version(&version), "cuptiGetVersion"));
  if (version < kOldestVersion) {
    return unsupported(fmt::format("CUPTI API version {} is too old, {} is needed", version, kOldestVersion));
  }
  return api;
}

std::string cupti_advice(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "another profiler or sanitizer is attached to this process";
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "profiling is restricted to administrators here; run as root, start the container with --cap-add "
             "SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0";
    case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
      return "WSL does not offer it; no permission helps";
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
      return "a MIG slice does not offer it";
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
      return "confidential computing is on";
    case CUPTI_ERROR_NOT_INITIALIZED:
      return "CUPTI does not fit the driver, or another tool took it first";
    default:
      return "";
  }
}

Status CuptiApi::check(CUptiResult result, const char* call) const {
  if (result == CUPTI_SUCCESS) {
    return success();
  }
  const char* text = nullptr;
  if (get_error_message(result, &text) != CUPTI_SUCCESS || text == nullptr) {
    text = "unknown error";
  }
  std::string message = fmt::format("CUPTI: {}: {} (error {})", call, text, static_cast<int>(result));
  if (const std::string advice = cupti_advice(result); !advice.empty()) {
    message += "; " + advice;
  }
  return unsupported(std::move(message));
}

Result<const CuptiApi*> cupti_api() {
  static const Result<CuptiApi> api = load_cupti(kLibraryNames);
  if (!api.ok()) {
    return api.error();
  }
  return &*api;
}

}  // namespace cudabk
