// What the tuner chooses between: kernel families with a complete configuration, and the shapes it measures them on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dispatch/problem.h"

namespace cudabk {

struct Candidate {
  std::string family;
  Config config;  // complete

  auto operator<=>(const Candidate&) const = default;
  std::string text() const;  // "mmvq rows=2 warps=4"
};

// Named extents of one problem size, in the order of the op's axes: {{"m", 4096}, {"n", 1}, {"k", 4096}}.
using TuneShape = std::vector<std::pair<std::string, int64_t>>;
std::string shape_label(const TuneShape& shape);  // "m=4096 n=1 k=4096"

// Every configuration of every family that can run `problem`, fallback configurations first within a family.
std::vector<Candidate> search_space(const Problem& problem, const DeviceInfo& device, std::span<const Family> families);

// Products of the sizes of real models on a GPU; tiny ones on the emulated device, in the order to measure them.
std::vector<TuneShape> default_tune_shapes(const DeviceInfo& device);
// Every (m, k) with every n, one pair after the other, so that a run cut short has whole columns.
std::vector<TuneShape> cross_shapes(const std::vector<std::pair<int64_t, int64_t>>& m_k, const std::vector<int64_t>& n);
// Shapes between and beside the given ones, none of them among them: where the fitted table is checked.
std::vector<TuneShape> unseen_shapes(const std::vector<TuneShape>& seen);

}  // namespace cudabk
