// What would run for one problem or graph, and why: rule, variant, launches, the limit and a predicted time.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backend/plan.h"
#include "core/result.h"
#include "device/cuda/compile.h"
#include "device/device.h"
#include "dispatch/profile.h"
#include "ops/op_def.h"

namespace cudabk {

// What limits a product. Measured on the device at hand, or a card's data sheet.
struct Roofs {
  double read_bytes_per_ns = 0;
  double operations_per_ns = 0;  // dense 16-bit tensor-core products, f32 accumulation; 0: not known
  std::string origin;            // "measured on this device", "data sheet of one sm_90a card (H200), not measured"
};
// By architecture name; kInvalid with the known names.
Result<Roofs> data_sheet_roofs(std::string_view arch);

struct ExplainedChoice {
  std::string node;  // "mul_mat#2"
  Problem problem;
  Choice choice;
  std::string rule;            // text of the rule that won; "last resort of this build" without one
  std::string evidence, code;  // of the rule
  bool stale = false;
  std::vector<std::pair<std::string, std::string>> others;  // families that no rule before the winner names -> why not
};

struct ExplainedLaunch {
  std::string label;
  std::string kernel;  // template-id, "gemm 4096 x 16 x 4096 f16", "fill 512 bytes"
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  std::optional<KernelReport> report;  // registers, static shared memory, spills
  std::string report_note;             // why there is none
};

// Of one quantized weight tensor in memory.
struct ExplainedLayout {
  std::string tensor, layout;  // "weights", "frag"
  int64_t raw_bytes = 0, stored_bytes = 0;
  std::string note;  // why it is raw
};

struct Explanation {
  std::string target;  // "mul_mat"
  CaseParams params;
  DeviceInfo device;
  std::string profile_source, profile_why;
  std::vector<std::string> profile_warnings;
  std::vector<ExplainedLayout> layouts;
  std::vector<ExplainedChoice> choices;
  std::vector<ExplainedLaunch> launches;
  int64_t scratch_bytes = 0;
  std::vector<FusionRecord> fusions;
  std::vector<std::string> other_fusions;  // rules whose pattern does not occur here
  Cost cost;
  Roofs roofs;
  double memory_ns = 0, compute_ns = 0;  // bytes / read roof, operations / compute roof
  double launch_ns = 0;                  // floor of the launches
  double predicted_ns = 0;
  std::string limit;  // "memory", "compute", "launches"
};

struct ExplainOptions {
  Roofs roofs;
  bool fusion = true;
  std::set<std::string> no_fuse;
  std::string forced_family;  // in place of the table's choice; empty: the table's
  Config forced_config;
  bool check_stale = true;             // compiles the rule's variant; of the device itself only
  std::optional<DeviceInfo> pose_as;   // what would run on this one, which is not here; the device is then any
  KernelCompiler* compiler = nullptr;  // used for registers where the device is emulated; may be nullptr
};

// kInvalid for params that do not build, kUnsupported when nothing can run, with every reason.
Result<Explanation> explain(Device& device, const Profile& profile, const OpDef& op, const CaseParams& params,
                            const ExplainOptions& options);

std::string explanation_text(const Explanation& e);
std::string explanation_json(const Explanation& e);  // one object, ends with a newline

}  // namespace cudabk
