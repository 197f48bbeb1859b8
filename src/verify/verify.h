// Comparison of a device's results with the reference.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/buffers.h"
#include "verify/compare.h"
#include "verify/sample.h"

namespace cudabk {

struct VerifyOptions {
  std::vector<const Tensor*> outputs;  // empty: every output of the graph, or its last node when none is marked
  uint64_t seed = 0;                   // of the sampled region
  int64_t full_threshold = kFullCheckElements;
  double bound = 0;                 // NMSE; 0: the tolerances of the ops on the way from the leaves, added up
  bool non_finite_allowed = false;  // see CompareOptions
};

struct OutputCheck {
  std::string name;                      // of the tensor
  std::string shape;                     // "f32[4096,16]"
  int64_t elements = 0;                  // of the whole result; comparison.count were checked
  std::array<int64_t, 4> worst_index{};  // position of comparison.worst in the tensor
  Comparison comparison;
  // "mul_mat#2 f32[4096,16]: NaN at [17,3]: got nan, want 0.25 (NMSE ..., bound ..., 65536 of 65536 elements)"
  std::string text() const;
};

struct VerifyReport {
  std::vector<OutputCheck> outputs;
  bool pass() const;
  double worst_nmse() const;  // over the outputs
  Status status() const;      // kWrongOutput with the text of every output that fails
};

// Compares one result with the reference. `memory`: bytes of t.root() after the run. `inputs`: at least the leaves that
// `t` depends on. options.bound must be set.
Result<OutputCheck> check_output(const Tensor& t, std::span<const std::byte> memory, const Values& inputs,
                                 const VerifyOptions& options);

// Downloads leaves and outputs as they are now, after a run, and compares. Not for ops that wrote over their own input:
// their leaves no longer hold it (verify_graph reads the leaves before the run).
Result<VerifyReport> check_outputs(const Graph& graph, GraphBuffers& buffers, const VerifyOptions& options);

// Copies the leaves, poisons the results, runs the graph, waits, looks at the guard zones, and checks the outputs.
Result<VerifyReport> verify_graph(const Graph& graph, GraphBuffers& buffers, Backend& backend,
                                  const VerifyOptions& options);

}  // namespace cudabk
