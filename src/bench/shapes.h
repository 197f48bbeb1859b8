// Shape sets of real models (tuning/shapes/*.json, embedded at build).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace cudabk {

// One weight matrix of a model: y[m] = W[k -> m] x.
struct MatrixShape {
  std::string name;  // "ffn_down"
  int64_t m = 0, k = 0;
  int64_t count = 0;  // how many such products one token runs through
};

struct ModelShapes {
  std::string model;  // "llama-3.1-8b"
  int64_t hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0, layers = 0, vocab = 0;
  std::vector<MatrixShape> mul_mat;
};

// kInvalid with the source, the path and the reason.
Result<ModelShapes> parse_shapes(std::string_view json, std::string_view source);

// All embedded sets, by name. The error names the broken file (a build fault).
Result<std::vector<ModelShapes>> model_shapes();

// In any case; the error lists the names.
Result<ModelShapes> find_shapes(std::string_view model);

// The files of tuning/shapes as text (generated at build).
struct EmbeddedText {
  std::string_view name;
  std::string_view text;
};
std::span<const EmbeddedText> embedded_shapes();

}  // namespace cudabk
