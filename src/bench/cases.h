// Which cases a run measures: axes, shape sets, variants and modes multiplied out and filtered.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "core/result.h"
#include "device/device.h"
#include "ops/op_def.h"

namespace cudabk {

enum class Mode { kFirst, kSecond, kBoth };  // --launch graph|eager|both, --fusion on|off|both, --cache cold|hot|both

// A family to be used instead of the table's choice. Empty family: the table decides ("auto").
struct Variant {
  std::string family;
  Config config;
  std::string text() const;  // "auto", "mmvq", "mmvq:rows=2,warps=4"
  bool operator==(const Variant&) const = default;
};

struct Selection {
  std::map<std::string, std::string> axes;  // axis name -> sweep as typed
  std::string shapes;                       // model name; sets m and k (mul_mat) or hidden and ffn (layer)
  std::string variant = "auto";             // auto | all | full | FAMILY | FAMILY:param=value,...
  std::vector<std::string> filters;         // every regex must match the case's key
  std::vector<std::string> excludes;        // no regex may
  Mode launch = Mode::kFirst;
  Mode fusion = Mode::kFirst;
  Mode cache = Mode::kFirst;
};

// One row to be: what is built and how it is run.
struct BenchCase {
  const OpDef* op = nullptr;  // nullptr for the synthetic layer
  std::string target;         // "mul_mat", "layer"
  CaseParams params;
  std::string note;  // name of the shape in its set ("ffn_down"); not part of the key
  Variant variant;
  LaunchMode launch = LaunchMode::kGraph;
  bool fusion = true;
  bool cold = true;

  // "mul_mat type=q4_K m=4096 n=1 k=14336 variant=auto launch=graph fusion=on cache=cold": identifies the row in
  // results, filters and comparisons.
  std::string key() const;
};

// All values of the axes for a target, checked: unknown axis or word, bad sweep -> kInvalid naming the choices.
// Axes not given take their defaults (gpu_values, host_values). The axis "n" or "tokens" varies fastest.
Result<std::vector<CaseParams>> expand_axes(std::string_view target, std::span<const Axis> axes,
                                            const std::map<std::string, std::string>& given, bool emulated);

// The usual value of a side axis, which the parameters of a case leave out: "auto" for the layout of mul_mat. "" when
// the axis has none, or `target` no such axis.
std::string usual_value(std::string_view target, std::string_view axis);

// kInvalid naming the op's families and parameters.
Result<Variant> parse_variant(std::string_view text, const OpDef& op);

// The layouts' part of a case's plan: as `profile` says, or all raw without one.
PlanOptions layout_options(const BenchCase& c, const Profile* profile);

// What --variant means for one case: auto -> {auto}; all -> the op's families that can run it, with their default
// configuration; full -> these, and each with one parameter changed; else the one named. `profile` says which layout
// weights get (nullptr: raw).
Result<std::vector<Variant>> variants_for(const BenchCase& c, const std::string& text, const DeviceInfo& device,
                                          const Profile* profile = nullptr);

// The cases of `bench <op>`. kInvalid for bad input (every case must build), kNothing when the filters leave none.
// `profile`: as for variants_for.
Result<std::vector<BenchCase>> select_cases(const OpDef& op, const Selection& selection, const DeviceInfo& device,
                                            const Profile* profile = nullptr);

// Multiplies `cases` with the modes of `selection`, applies its filters, and drops repeated keys.
Result<std::vector<BenchCase>> with_modes(const std::vector<BenchCase>& cases, const Selection& selection);

}  // namespace cudabk
