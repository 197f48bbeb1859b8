// JSON -> RunResult, the inverse of src/bench/result_json.cpp.
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "bench/result_digest.h"
#include "core/json_guard.h"
#include "core/units.h"
#include "results/json_node.h"
#include "results/load.h"

namespace cudabk {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kMaxInt = std::numeric_limits<int>::max();
constexpr size_t kMaxKeyBytes =
    2048;  // ten times the longest there are; regular expressions recurse once per character
constexpr std::string_view kSchemaFamily = "cudabk-result/";

int read_count(const JsonNode& node) { return static_cast<int>(node.integer(0, kMaxInt)); }

std::vector<double> read_numbers(const JsonNode& node) {
  std::vector<double> numbers;
  node.each([&](const JsonNode& element) { numbers.push_back(element.number()); });
  return numbers;
}

std::map<std::string, std::string> read_text_map(const JsonNode& node) {
  std::map<std::string, std::string> map;
  node.each_member([&](const std::string& name, const JsonNode& value) { map[name] = value.text(); });
  return map;
}

CaseStatus read_status(const JsonNode& node) {
  const std::string word = node.text();
  for (int i = 0; i <= static_cast<int>(CaseStatus::kInterrupted); ++i) {
    if (status_name(static_cast<CaseStatus>(i)) == word) {
      return static_cast<CaseStatus>(i);
    }
  }
  node.complain(fmt::format("unknown status \"{}\"", word));
  return CaseStatus::kFailed;
}

std::optional<Summary> read_summary(const JsonNode& node) {
  if (node.null()) {
    return std::nullopt;
  }
  Summary s;
  s.count = static_cast<size_t>(node.member("count").integer());
  s.median = node.member("median_ns").number();
  s.mean = node.member("mean_ns").number();
  s.min = node.member("min_ns").number();
  s.max = node.member("max_ns").number();
  s.p10 = node.member("p10_ns").number();
  s.p90 = node.member("p90_ns").number();
  s.noise_percent = node.member("noise_percent").number_or_null();
  const std::vector<double> interval = read_numbers(node.member("interval_ns"));
  if (interval.size() != 2) {
    node.member("interval_ns").complain("expected two numbers");
    return std::nullopt;
  }
  s.interval.low = interval[0];
  s.interval.high = interval[1];
  s.interval.coverage = node.member("interval_coverage").number();
  s.half_width = node.member("half_width").number_or_null();
  if (s.count < kMinSamplesForNoise) {  // older documents have 0 there
    s.noise_percent = s.half_width = std::nullopt;
  }
  s.outliers = static_cast<size_t>(node.member("outliers").integer());
  s.drift.percent = node.member("drift_percent").number();
  s.drift.detected = node.member("drift_detected").boolean();
  return s;
}

std::array<uint32_t, 3> read_extents(const JsonNode& node) {
  std::array<uint32_t, 3> extents{};
  size_t count = 0;
  node.each([&](const JsonNode& element) {
    const auto value = static_cast<uint32_t>(element.integer(0, std::numeric_limits<uint32_t>::max()));
    if (count < extents.size()) {
      extents[count] = value;
    }
    ++count;
  });
  if (count != extents.size()) {
    node.complain("expected three whole numbers");
  }
  return extents;
}

LaunchResult read_launch(const JsonNode& node) {
  LaunchResult launch;
  launch.label = node.member("label").text();
  launch.kernel = node.member("kernel").text();
  launch.code_hash = node.member("code").text_or_empty();
  launch.grid = read_extents(node.member("grid"));
  launch.block = read_extents(node.member("block"));
  launch.shared_bytes = static_cast<uint32_t>(node.member("shared_bytes").integer(0, UINT32_MAX));
  launch.registers = read_count(node.member("registers"));
  launch.spill_bytes = read_count(node.member("spill_bytes"));
  launch.kernels = read_count(node.member("device_kernels"));
  launch.median_ns = node.member("median_ns").number_or_null();
  launch.gap_ns = node.member("gap_ns").number_or_null();
  return launch;
}

CheckResult read_check(const JsonNode& node) {
  CheckResult check;
  if (node.null()) {
    return check;
  }
  check.done = true;
  check.passed = node.member("passed").boolean();
  check.nmse = node.member("nmse").number();
  check.tolerance = node.member("tolerance").number();
  check.elements = node.member("elements").integer();
  check.worst = node.member("worst").text_or_empty();
  return check;
}

void read_choice(const JsonNode& node, CaseResult& result) {
  if (node.null()) {
    return;
  }
  result.family = node.member("family").text();
  result.rule = static_cast<int>(node.member("rule").integer(-1, kMaxInt));
  node.member("config").each_member([&](const std::string& name, const JsonNode& value) {
    result.config[name] = static_cast<int>(value.integer(std::numeric_limits<int>::min(), kMaxInt));
  });
}

void read_identity(const JsonNode& node, CaseResult& result) {
  result.key = node.member("key").text();
  if (result.key.size() > kMaxKeyBytes) {
    node.member("key").complain(fmt::format("{} bytes are too many for a key", result.key.size()));
  }
  result.repetition = read_count(node.member("repetition"));
  result.target = node.member("target").text();
  node.member("params").each_member(
      [&](const std::string& name, const JsonNode& value) { result.params.values.emplace_back(name, value.text()); });
  result.note = node.member("shape_name").text_or_empty();
  result.variant = node.member("variant").text();
  result.launch = node.member("launch").text();
  result.fallback = node.member("launch_fallback").text_or_empty();
  result.fusion = node.member("fusion").text();
  result.cache = node.member("cache").text();
}

void read_timing(const JsonNode& node, CaseResult& result) {
  const JsonNode cost = node.member("cost");
  result.cost = {cost.member("bytes").number(), cost.member("operations").number(),
                 cost.member("weight_bytes").number()};
  const JsonNode figures = node.member("figures");
  result.kernel_ns = figures.member("kernel_ns").number_or_null();
  result.gap_ns = figures.member("gap_ns").number_or_null();
  if (figures.has("span_ns")) {  // older documents have neither
    result.span_ns = figures.member("span_ns").number_or_null();
    result.span_time_ns = figures.member("span_time_ns").number_or_null();
  }
  result.host_enqueue_ns = figures.member("host_enqueue_ns").number_or_null();
  result.summary = read_summary(node.member("summary"));
  result.samples_ns = read_numbers(node.member("samples_ns"));
  result.clocks_mhz = read_numbers(node.member("clocks_mhz"));
  node.member("clock_samples").each([&](const JsonNode& element) {
    result.clock_samples.push_back(read_count(element));
  });
}

CaseResult read_case(const JsonNode& node) {
  CaseResult result;
  read_identity(node, result);
  result.status = read_status(node.member("status"));
  result.message = node.member("message").text_or_empty();
  result.flags = node.member("flags").texts();
  result.seed = node.member("seed").unsigned_integer();
  read_choice(node.member("choice"), result);
  result.fusions = node.member("fusions").texts();
  result.copies = read_count(node.member("copies"));
  result.launches = read_count(node.member("launches"));
  result.weight_bytes = node.member("weight_bytes_per_replay").integer();
  if (node.has("repack")) {  // older documents have neither
    result.layout = node.member("layout").text();
    const JsonNode repack = node.member("repack");
    result.repack.tensors = repack.member("tensors").integer();
    result.repack.bytes = repack.member("bytes").integer();
    result.repack.ns = repack.member("ns").number();
  }
  result.footprint_l2 = node.member("footprint_l2").number();
  result.cold_proven = node.member("cold_proven").boolean();
  result.timer = node.member("timer").text_or_empty();
  result.stop_reason = node.member("stop_reason").text_or_empty();
  result.warmup_replays = read_count(node.member("warmup_replays"));
  read_timing(node, result);
  result.check = read_check(node.member("check"));
  node.member("kernels").each([&](const JsonNode& element) { result.breakdown.push_back(read_launch(element)); });
  result.command = node.member("command").text();
  return result;
}

RunEnvironment read_environment(const JsonNode& node) {
  RunEnvironment environment;
  environment.tool_version = node.member("tool").member("version").text();
  const JsonNode device = node.member("device");
  environment.device.id = device.member("id").text();
  environment.device.name = device.member("name").text();
  environment.device.arch = device.member("arch").text();
  environment.device.sm_count = read_count(device.member("sm_count"));
  environment.device.l2_bytes = device.member("l2_bytes").integer();
  environment.device.memory_bytes = device.member("memory_bytes").integer();
  environment.device.driver_text = device.member("driver").text_or_empty();
  environment.device.uuid = device.member("uuid").text_or_empty();
  environment.device.emulated = device.member("emulated").boolean();
  environment.toolkit = node.member("toolkit").text_or_empty();
  const JsonNode profile = node.member("profile");
  environment.profile_source = profile.member("source").text();
  environment.profile_why = profile.member("why").text();
  environment.profile_warnings = profile.member("warnings").texts();
  environment.facts = read_text_map(node.member("facts"));
  environment.tags = read_text_map(node.member("tags"));
  environment.arguments = node.member("arguments").texts();
  environment.started = node.member("started").text();
  return environment;
}

RunLimits read_limits(const JsonNode& node) {
  const auto per_ns = [&](const char* name) {
    const std::optional<double> per_second = node.member(name).number_or_null();
    return per_second ? std::optional(*per_second * 1e-9) : std::nullopt;
  };
  RunLimits limits;
  limits.read_bytes_per_ns = per_ns("read_bytes_per_second");
  limits.copy_bytes_per_ns = per_ns("copy_bytes_per_second");
  limits.gemm_operations_per_ns = per_ns("gemm_operations_per_second");
  limits.gemm = node.member("gemm").text_or_empty();
  limits.note = node.member("note").text_or_empty();
  return limits;
}

RunResult read_run(const JsonNode& root) {
  RunResult run;
  run.complete = root.member("complete").boolean();
  run.incomplete_reason = root.member("incomplete_reason").text_or_empty();
  run.environment = read_environment(root.member("environment"));
  run.limits = read_limits(root.member("limits"));
  root.member("cases").each([&](const JsonNode& element) { run.cases.push_back(read_case(element)); });
  return run;
}

struct Refusal {
  LoadFault fault = LoadFault::kNone;
  std::string why;
};

Refusal check_schema(const Json& json) {
  if (!json.is_object() || !json.contains("schema") || !json["schema"].is_string()) {
    return {LoadFault::kOtherDocument, fmt::format("no result: it has no \"schema\" (expected {})", kResultSchema)};
  }
  const auto& schema = json["schema"].get_ref<const std::string&>();
  if (schema == kResultSchema) {
    return json.contains("cases")
               ? Refusal{}
               : Refusal{LoadFault::kOtherDocument, "no result: the header of JSON lines; use --json"};
  }
  const std::string shown = schema.size() <= 60 ? schema : schema.substr(0, 60) + "...";
  const Result<int64_t> known = parse_int(kResultSchema.substr(kSchemaFamily.size()));
  if (schema.rfind(kSchemaFamily, 0) == 0) {
    if (const Result<int64_t> version = parse_int(schema.substr(kSchemaFamily.size())); version.ok()) {
      return *version > *known
                 ? Refusal{LoadFault::kNewerSchema,
                           fmt::format("schema {} is newer than this program, which reads {}; use a newer cudabk",
                                       shown, kResultSchema)}
                 : Refusal{LoadFault::kOlderSchema,
                           fmt::format("schema {} is older than {}, which this program reads; measure again", shown,
                                       kResultSchema)};
    }
  }
  return {LoadFault::kOtherDocument,
          fmt::format("no result: its schema is \"{}\" (expected {})", shown, kResultSchema)};
}

Refusal check_rows(const RunResult& run) {
  if (run.cases.empty()) {
    return {LoadFault::kNoRows,
            run.incomplete_reason.empty() ? "it has no rows" : "it has no rows (" + run.incomplete_reason + ")"};
  }
  std::set<std::pair<std::string_view, int>> seen;
  for (const CaseResult& result : run.cases) {
    if (!seen.emplace(result.key, result.repetition).second) {
      return {LoadFault::kDuplicates,
              fmt::format("two rows have the key \"{}\" and repetition {}", result.key, result.repetition)};
    }
  }
  return {};
}

Refusal read_document(std::string_view text, ResultFile& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return {LoadFault::kNotJson, "the file is empty"};
  }
  if (nests_deeper_than(text, kMaxJsonDepth)) {
    return {LoadFault::kNotJson, fmt::format("nested deeper than {}: no result", kMaxJsonDepth)};
  }
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || has_zero_byte(text)) {
    return {LoadFault::kNotJson, "truncated or not JSON"};
  }
  if (Refusal refusal = check_schema(json); refusal.fault != LoadFault::kNone) {
    return refusal;
  }
  std::string complaint;
  const JsonNode root(json, complaint);
  file.run = read_run(root);
  if (!complaint.empty()) {
    return {LoadFault::kMalformed, complaint};
  }
  if (!root.has("digest")) {
    return {LoadFault::kEdited, "it has no digest: the file was edited or not written by cudabk"};
  }
  file.digest = root.member("digest").text_or_empty();
  if (file.digest != digest_of_document(json)) {
    return {LoadFault::kEdited, "the digest does not match: the file was edited or damaged after cudabk wrote it"};
  }
  return check_rows(file.run);
}

}  // namespace

Result<ResultFile> parse_result(std::string_view text, const std::filesystem::path& path, LoadFault* fault) {
  ResultFile file;
  file.path = path;
  const Refusal refusal = read_document(text, file);
  if (fault != nullptr) {
    *fault = refusal.fault;
  }
  if (refusal.fault != LoadFault::kNone) {
    const ErrorKind kind = refusal.fault == LoadFault::kNoRows ? ErrorKind::kNothing : ErrorKind::kInvalid;
    return Error{kind, fmt::format("{}: {}", path.string(), refusal.why)};
  }
  return file;
}

}  // namespace cudabk
