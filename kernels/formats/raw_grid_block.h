// RawBlock (raw_block.h) of the formats with code books. Of iq3 the `frag` layout keeps levels and signs, not entries
// of the books; the books are sorted, so that an entry is found again by halving.
#pragma once

#include "formats/lookup.h"
#include "formats/raw_block.h"

namespace cudabk {

template <int N>
constexpr bool strictly_rising(const Grid<N>& grid) {
  for (int i = 1; i < N; ++i) {
    if (grid.entries[i - 1] >= grid.entries[i]) {
      return false;
    }
  }
  return true;
}

// The number of an entry that the book has.
template <int N>
uint32_t entry_number(const Grid<N>& grid, uint32_t entry) {
  int low = 0;
  for (int step = N / 2; step > 0; step /= 2) {
    low += grid.entries[low + step] <= entry ? step : 0;
  }
  return static_cast<uint32_t>(low);
}

// Scales 2s + 1 with 128 added.
constexpr uint32_t odd_entry(uint32_t s) { return 129 + 2 * s; }
constexpr uint32_t odd_scale(uint32_t entry) { return (entry - 129) / 2; }
// Scales of groups 2i and 2i + 1 as nibbles of a byte.
template <class V>
uint32_t odd_scale_pair(const V& v, int i) {
  return odd_scale(v.entry(2 * i)) | odd_scale(v.entry(2 * i + 1)) << 4;
}
// A scale in the highest four bits, below it seven signs of each octet of the group of 32; the eighth is their parity.
// signs_of(octet): all eight.
template <class V, class SignsOf>
uint32_t scale_and_signs(const V& v, int group, SignsOf signs_of) {
  uint32_t word = odd_scale(v.entry(group)) << 28;
  for (int octet = 0; octet < 4; ++octet) {
    word |= (signs_of(4 * group + octet) & 127) << (7 * octet);
  }
  return word;
}

// ---- iq2 ----

template <DType T>
requires(T == DType::iq2_xxs) struct RawBlock<T> {
  static const uint8_t* record(const uint8_t* b, int octet) { return b + 2 + octet / 4 * 8; }
  static uint32_t number(const uint8_t* b, int octet) { return record(b, octet)[octet % 4]; }
  static uint32_t signs(const uint8_t* b, int octet) {
    return sign_byte(word_at(record(b, octet) + 4) >> (octet % 4 * 7));
  }
  static uint32_t entry(const uint8_t* b, int g) { return odd_entry(b[2 + g * 8 + 7] >> 4); }
  static uint32_t row(const uint8_t* b) { return half_at(b); }

  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < 2) {
      return v.row() >> (8 * i);
    }
    const int group = (i - 2) / 8, p = (i - 2) % 8;
    if (p < 4) {
      return v.number(4 * group + p);
    }
    return scale_and_signs(v, group, [&](int octet) { return v.signs(octet); }) >> (8 * (p - 4));
  }
};

template <DType T>
requires(T == DType::iq2_xs) struct RawBlock<T> {
  static uint32_t number(const uint8_t* b, int octet) { return half_at(b + 2 + octet * 2) & 511; }
  static uint32_t signs(const uint8_t* b, int octet) { return sign_byte(half_at(b + 2 + octet * 2) >> 9); }
  static uint32_t entry(const uint8_t* b, int g) { return odd_entry(nibble_at(b + 66, g)); }
  static uint32_t row(const uint8_t* b) { return half_at(b); }

  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < 2) {
      return v.row() >> (8 * i);
    }
    if (i < 66) {
      const int octet = (i - 2) / 2;
      return (v.number(octet) | (v.signs(octet) & 127) << 9) >> (8 * (i % 2));
    }
    return odd_scale_pair(v, i - 66);
  }
};

template <DType T>
requires(T == DType::iq2_s) struct RawBlock<T> {
  static uint32_t number(const uint8_t* b, int octet) {
    return b[2 + octet] | ((b[66 + octet / 4] >> (octet % 4 * 2)) & 3u) << 8;
  }
  static uint32_t signs(const uint8_t* b, int octet) { return b[34 + octet]; }
  static uint32_t entry(const uint8_t* b, int g) { return odd_entry(nibble_at(b + 74, g)); }
  static uint32_t row(const uint8_t* b) { return half_at(b); }

  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < 2) {
      return v.row() >> (8 * i);
    }
    if (i < 34) {
      return v.number(i - 2);
    }
    if (i < 66) {
      return v.signs(i - 34);
    }
    if (i < 74) {
      uint32_t bits = 0;
      for (int octet = 0; octet < 4; ++octet) {
        bits |= v.number(4 * (i - 66) + octet) >> 8 << (2 * octet);
      }
      return bits;
    }
    return odd_scale_pair(v, i - 74);
  }
};

// ---- iq3: entries of four levels ----

template <class V>
uint32_t octet_signs(const V& v, int octet) {
  uint32_t signs = 0;
  for (int e = 0; e < 8; ++e) {
    signs |= (v.code(8 * octet + e) >> 3 & 1) << e;
  }
  return signs;
}
template <class V, class LevelOf>
uint32_t quad_levels(const V& v, int quad, LevelOf level) {
  uint32_t entry = 0;
  for (int e = 0; e < 4; ++e) {
    entry |= level(v.code(4 * quad + e)) << (3 * e);
  }
  return entry;
}

template <DType T>
requires(T == DType::iq3_xxs) struct RawBlock<T> {  // code = level + 8 * sign
  static constexpr Grid<256> kGrid = iq3xxs_grid();
  static_assert(strictly_rising(kGrid));

  static uint32_t code(const uint8_t* b, int i) {
    const uint32_t signs = sign_byte(word_at(b + 66 + i / 32 * 4) >> (i / 8 % 4 * 7));
    return (kGrid.entries[b[2 + i / 4]] >> (i % 4 * 3) & 7u) | (signs >> (i % 8) & 1) << 3;
  }
  static uint32_t entry(const uint8_t* b, int g) { return odd_entry(b[66 + g * 4 + 3] >> 4); }
  static uint32_t row(const uint8_t* b) { return half_at(b); }

  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < 2) {
      return v.row() >> (8 * i);
    }
    if (i < 66) {
      return entry_number(kGrid, quad_levels(v, i - 2, [](uint32_t code) { return code & 7; }));
    }
    return scale_and_signs(v, (i - 66) / 4, [&](int octet) { return octet_signs(v, octet); }) >> (8 * ((i - 66) % 4));
  }
};

template <DType T>
requires(T == DType::iq3_s) struct RawBlock<T> {  // levels 1, 3 .. 15 with signs: code = 8 + level, or 7 - level
  static constexpr Grid<512> kGrid = iq3s_grid();
  static_assert(strictly_rising(kGrid));

  static uint32_t code(const uint8_t* b, int i) {
    const int quad = i / 4;
    const uint32_t number = b[2 + quad] | (b[66 + quad / 8] >> (quad % 8) & 1u) << 8;
    const uint32_t level = kGrid.entries[number] >> (i % 4 * 3) & 7u;
    return (b[74 + i / 8] >> (i % 8) & 1u) != 0 ? 7 - level : 8 + level;
  }
  static uint32_t entry(const uint8_t* b, int g) { return odd_entry(nibble_at(b + 106, g)); }
  static uint32_t row(const uint8_t* b) { return half_at(b); }

  template <class V>
  static uint32_t number(const V& v, int quad) {
    return entry_number(kGrid, quad_levels(v, quad, [](uint32_t code) { return code < 8 ? 7 - code : code - 8; }));
  }
  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < 2) {
      return v.row() >> (8 * i);
    }
    if (i < 66) {
      return number(v, i - 2);
    }
    if (i < 74) {
      uint32_t bits = 0;
      for (int quad = 0; quad < 8; ++quad) {
        bits |= number(v, 8 * (i - 66) + quad) >> 8 << quad;
      }
      return bits;
    }
    if (i < 106) {
      return octet_signs(v, i - 74) ^ 255;
    }
    return odd_scale_pair(v, i - 106);
  }
};

// ---- iq1: bit 11 of a number is the sign of the shift ----

template <DType T>
requires(T == DType::iq1_s) struct RawBlock<T> {
  static uint32_t number(const uint8_t* b, int octet) {
    const uint32_t field = half_at(b + 34 + octet / 4 * 2);
    return b[2 + octet] | (field >> (octet % 4 * 3) & 7) << 8 | field >> 15 << 11;
  }
  static uint32_t signs(const uint8_t* /*b*/, int /*octet*/) { return 0; }
  static uint32_t entry(const uint8_t* b, int g) { return odd_entry(b[34 + g * 2 + 1] >> 4 & 7u); }
  static uint32_t row(const uint8_t* b) { return half_at(b); }

  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < 2) {
      return v.row() >> (8 * i);
    }
    if (i < 34) {
      return v.number(i - 2);
    }
    const int group = (i - 34) / 2;
    uint32_t field = odd_scale(v.entry(group)) << 12 | v.number(4 * group) >> 11 << 15;
    for (int octet = 0; octet < 4; ++octet) {
      field |= (v.number(4 * group + octet) >> 8 & 7) << (3 * octet);
    }
    return field >> (8 * (i % 2));
  }
};

template <DType T>
requires(T == DType::iq1_m) struct RawBlock<T> {
  static uint32_t number(const uint8_t* b, int octet) { return b[octet] | nibble_at(b + 32, octet) << 8; }
  static uint32_t signs(const uint8_t* /*b*/, int /*octet*/) { return 0; }
  static uint32_t entry(const uint8_t* b, int g) { return odd_entry(half_at(b + 48 + g / 4 * 2) >> (g % 4 * 3) & 7); }
  static uint32_t row(const uint8_t* b) {
    uint32_t d = 0;
    for (int i = 0; i < 4; ++i) {
      d |= static_cast<uint32_t>(b[49 + 2 * i] >> 4) << (4 * i);
    }
    return d;
  }

  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < 32) {
      return v.number(i);
    }
    if (i < 48) {
      return v.number(2 * (i - 32)) >> 8 | v.number(2 * (i - 32) + 1) >> 8 << 4;
    }
    const int number = (i - 48) / 2;
    uint32_t word = (v.row() >> (4 * number) & 15) << 12;
    for (int g = 0; g < 4; ++g) {
      word |= odd_scale(v.entry(4 * number + g)) << (3 * g);
    }
    return word >> (8 * (i % 2));
  }
};

}  // namespace cudabk
