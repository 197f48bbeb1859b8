// The one table of tensor data types: id, name, elements and bytes of a block. Host and device read it.
// Ids are those of the ggml file format (docs/formats: MIT attribution in LICENSE).
#pragma once

#include "platform/types.h"

namespace cudabk {

// clang-format off
enum class DType : int32_t {
  f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q5_0 = 6, q5_1 = 7, q8_0 = 8, q8_1 = 9,
  q2_K = 10, q3_K = 11, q4_K = 12, q5_K = 13, q6_K = 14, q8_K = 15,
  iq2_xxs = 16, iq2_xs = 17, iq3_xxs = 18, iq1_s = 19, iq4_nl = 20, iq3_s = 21, iq2_s = 22, iq4_xs = 23,
  i8 = 24, i16 = 25, i32 = 26, i64 = 27, f64 = 28, iq1_m = 29, bf16 = 30,
  tq1_0 = 34, tq2_0 = 35, mxfp4 = 39, nvfp4 = 40, q1_0 = 41, q2_0 = 42,
};
// clang-format on

struct DTypeTraits {
  DType type;
  const char* name;    // as printed; parsed in any case
  int block_elements;  // BE: consecutive elements of one row in a block
  int block_bytes;     // BB
};

// clang-format off
constexpr DTypeTraits kDTypes[] = {
    {DType::f32, "f32", 1, 4},           {DType::f16, "f16", 1, 2},
    {DType::q4_0, "q4_0", 32, 18},       {DType::q4_1, "q4_1", 32, 20},
    {DType::q5_0, "q5_0", 32, 22},       {DType::q5_1, "q5_1", 32, 24},
    {DType::q8_0, "q8_0", 32, 34},       {DType::q8_1, "q8_1", 32, 36},
    {DType::q2_K, "q2_K", 256, 84},      {DType::q3_K, "q3_K", 256, 110},
    {DType::q4_K, "q4_K", 256, 144},     {DType::q5_K, "q5_K", 256, 176},
    {DType::q6_K, "q6_K", 256, 210},     {DType::q8_K, "q8_K", 256, 292},
    {DType::iq2_xxs, "iq2_xxs", 256, 66}, {DType::iq2_xs, "iq2_xs", 256, 74},
    {DType::iq3_xxs, "iq3_xxs", 256, 98}, {DType::iq1_s, "iq1_s", 256, 50},
    {DType::iq4_nl, "iq4_nl", 32, 18},   {DType::iq3_s, "iq3_s", 256, 110},
    {DType::iq2_s, "iq2_s", 256, 82},    {DType::iq4_xs, "iq4_xs", 256, 136},
    {DType::i8, "i8", 1, 1},             {DType::i16, "i16", 1, 2},
    {DType::i32, "i32", 1, 4},           {DType::i64, "i64", 1, 8},
    {DType::f64, "f64", 1, 8},           {DType::iq1_m, "iq1_m", 256, 56},
    {DType::bf16, "bf16", 1, 2},         {DType::tq1_0, "tq1_0", 256, 54},
    {DType::tq2_0, "tq2_0", 256, 66},    {DType::mxfp4, "mxfp4", 32, 17},
    {DType::nvfp4, "nvfp4", 64, 36},     {DType::q1_0, "q1_0", 128, 18},
    {DType::q2_0, "q2_0", 64, 18},
};
// clang-format on
constexpr int kDTypeCount = sizeof(kDTypes) / sizeof(kDTypes[0]);

// The row of `type`. Every enumerator has one (checked below).
constexpr const DTypeTraits& dtype_traits(DType type) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kDTypes[i].type == type) {
      return kDTypes[i];
    }
  }
  return kDTypes[0];
}

constexpr int block_elements(DType type) { return dtype_traits(type).block_elements; }
constexpr int block_bytes(DType type) { return dtype_traits(type).block_bytes; }
constexpr bool is_quantized(DType type) { return block_elements(type) > 1; }
// The floats that kernels take; f64 is none of them.
constexpr bool is_float(DType type) { return type == DType::f32 || type == DType::f16 || type == DType::bf16; }

static_assert(block_bytes(DType::q4_K) == 144 && block_bytes(DType::q2_0) == 18 && kDTypeCount == 35);

}  // namespace cudabk
