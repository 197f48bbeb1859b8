// Everything the project knows of one op. One file of src/ops per op family implements it; op_list.txt names it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "dispatch/problem.h"
#include "graph/graph.h"
#include "ops/launch.h"

namespace cudabk {

// Compulsory traffic and arithmetic: each tensor counted once, whatever a kernel really moves.
struct Cost {
  double bytes = 0;
  double operations = 0;    // multiply and add counted separately
  double weight_bytes = 0;  // the part that comes from weights (what must not stay in cache when measuring cold)
};

// One test or bench case as named text values in axis order: {{"type","q4_K"},{"m","4096"},...}.
// Axes left out take the axis default. The text form is the case's key in results.
struct CaseParams {
  std::vector<std::pair<std::string, std::string>> values;

  std::string text() const;                              // "type=q4_K m=4096 n=1 k=14336"
  std::string get(std::string_view name) const;          // "" when absent
  Result<int64_t> get_int(std::string_view name) const;  // kInvalid when absent or not a number
  void set(std::string_view name, std::string value);
};

struct Axis {
  std::string name;  // flag name: "m" -> -m, "type" -> --type
  std::string help;
  std::vector<std::string> gpu_values;   // swept by `bench` without flags on a GPU
  std::vector<std::string> host_values;  // ... and on the emulated device
  std::vector<std::string> allowed;      // closed set (types, words); empty: a whole number >= 0
};

class LowerContext;

class OpDef {
 public:
  virtual ~OpDef() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view alias() const { return ""; }  // CLI alias: "mulmat"
  virtual std::string_view summary() const = 0;          // one line for `list ops`

  virtual Support supports(const Tensor& t, const DeviceInfo& device) const = 0;  // correctness only
  virtual Cost cost(const Tensor& t) const = 0;
  virtual Result<std::vector<Launch>> lower(const Tensor& t, LowerContext& ctx) const = 0;

  // Dispatch: empty for ops with a single path.
  virtual std::span<const Family> families() const { return {}; }
  virtual Problem problem(const Tensor& t) const;  // default: {name, "", {}}

  // Cases.
  virtual std::span<const Axis> axes() const = 0;
  virtual Result<Tensor*> build(Graph& graph, const CaseParams& params) const = 0;  // adds leaves and the node
  virtual std::vector<CaseParams> test_cases() const = 0;
  virtual double tolerance(const Tensor& /*t*/) const { return 1e-7; }  // NMSE bound against the reference
};

// Services for lower(): names of memory, scratch, the table's choice. Implemented by the planner.
class LowerContext {
 public:
  virtual ~LowerContext() = default;
  virtual const DeviceInfo& device() const = 0;
  // Memory of a tensor (view offset included), in the raw layout: of a tensor in another layout this is a raw copy in
  // scratch, made once per plan.
  virtual BufferRef data(const Tensor& t) = 0;
  // Memory of a root tensor as it is, in the layout it has (Tensor::layout).
  virtual BufferRef stored(const Tensor& root) = 0;
  // Scratch that lives while this node's launches run; 256-byte aligned.
  virtual BufferRef scratch(int64_t bytes) = 0;
  // Scratch shared by later nodes of the plan: the first caller with this (tensor, tag) gets fresh == true and must
  // fill it; others reuse it. For quantized or converted activations.
  struct Shared {
    BufferRef ref;
    bool fresh = false;
  };
  virtual Shared shared_scratch(const Tensor& t, std::string_view tag, int64_t bytes) = 0;
  // Nodes of the graph that read `t` itself, not through a view.
  virtual int readers(const Tensor& t) const = 0;
  // The table's decision for `problem`; recorded in the plan for explain and results.
  virtual Result<Choice> choose(const OpDef& op, const Problem& problem) = 0;
};

// All ops, in the order of op_list.txt.
std::span<const OpDef* const> all_ops();
// By name or alias, case-insensitive; the error lists the valid names.
Result<const OpDef*> find_op(std::string_view name_or_alias);
// The op of a node; nullptr for views and leaves.
const OpDef* op_of(const Tensor& t);

}  // namespace cudabk
