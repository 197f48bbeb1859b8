// From the codes of a slice to values.
#pragma once

#include "formats/format.h"

namespace cudabk {

// Byte i of a word of codes, as a float.
template <bool Signed>
float code_value(uint32_t word, int i) {
  const uint32_t byte = word >> (8 * i);
  return Signed ? static_cast<float>(static_cast<int8_t>(byte)) : static_cast<float>(byte & 0xff);
}

template <DType T>
void decode_run(const typename Format<T>::Slice& s, int part, int run, float (&v)[Format<T>::kShape.run_length]) {
  const auto codes = Format<T>::codes(s, run);
  const f32x2 scale = Format<T>::scale(s, part, run);
  for (int i = 0; i < Format<T>::kShape.run_length; ++i) {
    v[i] = fma_f(scale.x, code_value<Format<T>::kSigned>(codes.words[i / 4], i % 4), scale.y);
  }
}

}  // namespace cudabk
