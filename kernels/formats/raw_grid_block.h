// RawBlock (raw_block.h) of the formats with code books. The `frag` layout keeps levels and signs, not entries of the
// books; the books are sorted, so that an entry is found again by halving.
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

// Codes of an octet from 8 * octet on: the levels' numbers in fields of 2 bits, and their bit 2 (signs).
template <class V>
uint32_t octet_levels(const V& v, int octet) {
  uint32_t entry = 0;
  for (int e = 0; e < 8; ++e) {
    entry |= (v.code(8 * octet + e) & 3) << (2 * e);
  }
  return entry;
}
template <class V>
uint32_t octet_signs(const V& v, int octet, int bit) {
  uint32_t signs = 0;
  for (int e = 0; e < 8; ++e) {
    signs |= (v.code(8 * octet + e) >> bit & 1) << e;
  }
  return signs;
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
template <class V>
uint32_t scale_and_signs(const V& v, int group, int sign_bit) {
  uint32_t word = odd_scale(v.entry(group)) << 28;
  for (int octet = 0; octet < 4; ++octet) {
    word |= (octet_signs(v, 4 * group + octet, sign_bit) & 127) << (7 * octet);
  }
  return word;
}

// ---- iq2: code = level + 4 * sign ----

template <DType T>
requires(T == DType::iq2_xxs) struct RawBlock<T> {
  static constexpr Grid<256> kGrid = iq2xxs_grid();
  static_assert(strictly_rising(kGrid));

  static uint32_t code(const uint8_t* b, int i) {
    const uint8_t* record = b + 2 + i / 32 * 8;
    const int octet = i / 8 % 4, e = i % 8;
    const uint32_t level = kGrid.entries[record[octet]] >> (2 * e) & 3u;
    return level | (sign_byte(word_at(record + 4) >> (7 * octet)) >> e & 1) << 2;
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
      return entry_number(kGrid, octet_levels(v, 4 * group + p));
    }
    return scale_and_signs(v, group, 2) >> (8 * (p - 4));
  }
};

template <DType T>
requires(T == DType::iq2_xs) struct RawBlock<T> {
  static constexpr Grid<512> kGrid = iq2xs_grid();
  static_assert(strictly_rising(kGrid));

  static uint32_t code(const uint8_t* b, int i) {
    const uint32_t octet = half_at(b + 2 + i / 8 * 2);
    return (kGrid.entries[octet & 511] >> (i % 8 * 2) & 3u) | (sign_byte(octet >> 9) >> (i % 8) & 1) << 2;
  }
  static uint32_t entry(const uint8_t* b, int g) { return odd_entry(nibble_at(b + 66, g)); }
  static uint32_t row(const uint8_t* b) { return half_at(b); }

  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < 2) {
      return v.row() >> (8 * i);
    }
    if (i < 66) {
      const int octet = (i - 2) / 2;
      const uint32_t field = entry_number(kGrid, octet_levels(v, octet)) | (octet_signs(v, octet, 2) & 127) << 9;
      return field >> (8 * (i % 2));
    }
    return odd_scale_pair(v, i - 66);
  }
};

template <DType T>
requires(T == DType::iq2_s) struct RawBlock<T> {
  static constexpr Grid<1024> kGrid = iq2s_grid();
  static_assert(strictly_rising(kGrid));

  static uint32_t code(const uint8_t* b, int i) {
    const int octet = i / 8;
    const uint32_t number = b[2 + octet] | ((b[66 + octet / 4] >> (octet % 4 * 2)) & 3u) << 8;
    return (kGrid.entries[number] >> (i % 8 * 2) & 3u) | (b[34 + octet] >> (i % 8) & 1u) << 2;
  }
  static uint32_t entry(const uint8_t* b, int g) { return odd_entry(nibble_at(b + 74, g)); }
  static uint32_t row(const uint8_t* b) { return half_at(b); }

  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < 2) {
      return v.row() >> (8 * i);
    }
    if (i < 34) {
      return entry_number(kGrid, octet_levels(v, i - 2));
    }
    if (i < 66) {
      return octet_signs(v, i - 34, 2);
    }
    if (i < 74) {
      uint32_t bits = 0;
      for (int octet = 0; octet < 4; ++octet) {
        bits |= entry_number(kGrid, octet_levels(v, 4 * (i - 66) + octet)) >> 8 << (2 * octet);
      }
      return bits;
    }
    return odd_scale_pair(v, i - 74);
  }
};

// ---- iq3: entries of four levels ----

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
    return scale_and_signs(v, (i - 66) / 4, 3) >> (8 * ((i - 66) % 4));
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
      return octet_signs(v, i - 74, 3) ^ 255;
    }
    return odd_scale_pair(v, i - 106);
  }
};

// ---- iq1: code = level + 4 where the shift is negative ----

template <DType T>
requires(T == DType::iq1_s) struct RawBlock<T> {
  static constexpr Grid<2048> kGrid = iq1s_grid();
  static_assert(strictly_rising(kGrid));

  static uint32_t code(const uint8_t* b, int i) {
    const uint32_t field = half_at(b + 34 + i / 32 * 2);
    const uint32_t number = b[2 + i / 8] | (field >> (i / 8 % 4 * 3) & 7) << 8;
    return (kGrid.entries[number] >> (i % 8 * 2) & 3u) | field >> 15 << 2;
  }
  static uint32_t entry(const uint8_t* b, int g) { return odd_entry(b[34 + g * 2 + 1] >> 4 & 7u); }
  static uint32_t row(const uint8_t* b) { return half_at(b); }

  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < 2) {
      return v.row() >> (8 * i);
    }
    if (i < 34) {
      return entry_number(kGrid, octet_levels(v, i - 2));
    }
    const int group = (i - 34) / 2;
    uint32_t field = odd_scale(v.entry(group)) << 12 | (v.code(32 * group) >> 2 & 1) << 15;
    for (int octet = 0; octet < 4; ++octet) {
      field |= entry_number(kGrid, octet_levels(v, 4 * group + octet)) >> 8 << (3 * octet);
    }
    return field >> (8 * (i % 2));
  }
};

template <DType T>
requires(T == DType::iq1_m) struct RawBlock<T> {
  static constexpr Grid<2048> kGrid = iq1s_grid();
  static_assert(strictly_rising(kGrid));

  static uint32_t code(const uint8_t* b, int i) {
    const int octet = i / 8;
    const uint32_t field = nibble_at(b + 32, octet);
    return (kGrid.entries[b[octet] | (field & 7) << 8] >> (i % 8 * 2) & 3u) | field >> 3 << 2;
  }
  static uint32_t entry(const uint8_t* b, int g) { return odd_entry(half_at(b + 48 + g / 4 * 2) >> (g % 4 * 3) & 7); }
  static uint32_t row(const uint8_t* b) {
    uint32_t d = 0;
    for (int i = 0; i < 4; ++i) {
      d |= static_cast<uint32_t>(b[49 + 2 * i] >> 4) << (4 * i);
    }
    return d;
  }

  template <class V>
  static uint32_t field(const V& v, int octet) {
    return entry_number(kGrid, octet_levels(v, octet)) >> 8 | (v.code(8 * octet) >> 2 & 1) << 3;
  }
  template <class V>
  static uint32_t byte(const V& v, int i) {
    if (i < 32) {
      return entry_number(kGrid, octet_levels(v, i));
    }
    if (i < 48) {
      return field(v, 2 * (i - 32)) | field(v, 2 * (i - 32) + 1) << 4;
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
