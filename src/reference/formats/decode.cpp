// Rows of any type to f32.
#include "formats/dtypes.h"
#include "reference/formats/blocks.h"
#include "reference/reference.h"

namespace cudabk {
namespace {
using namespace formats;

// nullptr: not a block type.
BlockDecoder block_decoder(DType type) {
  switch (type) {
    case DType::q4_0:
      return decode_q4_0;
    case DType::q4_1:
      return decode_q4_1;
    case DType::q5_0:
      return decode_q5_0;
    case DType::q5_1:
      return decode_q5_1;
    case DType::q8_0:
      return decode_q8_0;
    case DType::q8_1:
      return decode_q8_1;
    case DType::q2_K:
      return decode_q2_k;
    case DType::q3_K:
      return decode_q3_k;
    case DType::q4_K:
      return decode_q4_k;
    case DType::q5_K:
      return decode_q5_k;
    case DType::q6_K:
      return decode_q6_k;
    case DType::q8_K:
      return decode_q8_k;
    case DType::iq2_xxs:
      return decode_iq2_xxs;
    case DType::iq2_xs:
      return decode_iq2_xs;
    case DType::iq3_xxs:
      return decode_iq3_xxs;
    case DType::iq1_s:
      return decode_iq1_s;
    case DType::iq4_nl:
      return decode_iq4_nl;
    case DType::iq3_s:
      return decode_iq3_s;
    case DType::iq2_s:
      return decode_iq2_s;
    case DType::iq4_xs:
      return decode_iq4_xs;
    case DType::iq1_m:
      return decode_iq1_m;
    case DType::tq1_0:
      return decode_tq1_0;
    case DType::tq2_0:
      return decode_tq2_0;
    case DType::mxfp4:
      return decode_mxfp4;
    case DType::nvfp4:
      return decode_nvfp4;
    case DType::q1_0:
      return decode_q1_0;
    case DType::q2_0:
      return decode_q2_0;
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::f64:
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
      return nullptr;
  }
  return nullptr;
}

template <class T>
void widen(const uint8_t* src, int64_t n, float* dst) {
  for (int64_t i = 0; i < n; ++i) {
    dst[i] = static_cast<float>(load<T>(src + i * static_cast<int64_t>(sizeof(T))));
  }
}

}  // namespace

void decode_row(DType type, const std::byte* row, int64_t elements, float* dst) {
  const auto* src = reinterpret_cast<const uint8_t*>(row);
  if (const BlockDecoder decode = block_decoder(type)) {
    for (int64_t i = 0; i < elements; i += block_elements(type), src += block_bytes(type)) {
      decode(src, dst + i);
    }
    return;
  }
  switch (type) {
    case DType::f16:
      for (int64_t i = 0; i < elements; ++i) {
        dst[i] = f16_to_f32(load<uint16_t>(src + 2 * i));
      }
      return;
    case DType::bf16:
      for (int64_t i = 0; i < elements; ++i) {
        dst[i] = bf16_to_f32(load<uint16_t>(src + 2 * i));
      }
      return;
    case DType::f64:
      return widen<double>(src, elements, dst);
    case DType::i8:
      return widen<int8_t>(src, elements, dst);
    case DType::i16:
      return widen<int16_t>(src, elements, dst);
    case DType::i32:
      return widen<int32_t>(src, elements, dst);
    case DType::i64:
      return widen<int64_t>(src, elements, dst);
    default:
      return widen<float>(src, elements, dst);
  }
}

}  // namespace cudabk
