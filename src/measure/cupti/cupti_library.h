// CUPTI, opened at first use. Types come from the toolkit's headers; nothing links to the library.
#pragma once

#include <cupti.h>

#include <span>
#include <string>

#include "core/result.h"

namespace cudabk {

struct CuptiApi {
  decltype(&cuptiGetVersion) get_version = nullptr;
  decltype(&cuptiGetErrorMessage) get_error_message = nullptr;
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiEnableCallback) enable_callback = nullptr;
  decltype(&cuptiActivityEnable) activity_enable = nullptr;
  decltype(&cuptiActivityDisable) activity_disable = nullptr;
  decltype(&cuptiActivityFlushAll) activity_flush_all = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) activity_register_callbacks = nullptr;
  decltype(&cuptiActivityGetNextRecord) activity_get_next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) activity_get_num_dropped_records = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) activity_push_external_correlation_id = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) activity_pop_external_correlation_id = nullptr;
  decltype(&cuptiGetGraphNodeId) get_graph_node_id = nullptr;

  // success, or an error of kind kUnsupported: "CUPTI: <call>: <what the library says>" with advice where there is any.
  Status check(CUptiResult result, const char* call) const;
};

// The process's one copy, never closed (the library keeps threads). kUnsupported with the places that were tried, or
// when the library is too old for the record layouts used here. Makes no CUPTI call but the version query.
Result<const CuptiApi*> cupti_api();

// Opens the first of `names` that can be opened and fills the table; what cupti_api does with its own list.
Result<CuptiApi> load_cupti(std::span<const char* const> names);

// Advice for an error, for people; empty when there is none.
std::string cupti_advice(CUptiResult result);

}  // namespace cudabk
