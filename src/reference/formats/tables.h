// How the decoders read the code books (kernels/formats/codebooks.h has the numbers).
#pragma once

#include "formats/codebooks.h"

namespace cudabk::formats {

inline constexpr auto kIq1sGrid = iq1s_grid();
inline constexpr auto kIq2xxsGrid = iq2xxs_grid();
inline constexpr auto kIq2xsGrid = iq2xs_grid();
inline constexpr auto kIq2sGrid = iq2s_grid();
inline constexpr auto kIq3xxsGrid = iq3xxs_grid();
inline constexpr auto kIq3sGrid = iq3s_grid();
inline constexpr auto kIq1Levels = iq1_levels();
inline constexpr auto kIq2Levels = iq2_levels();
inline constexpr auto kIq3xxsLevels = iq3xxs_levels();
inline constexpr auto kIq3sLevels = iq3s_levels();
inline constexpr auto kIq4nlValues = iq4nl_levels();
inline constexpr auto kFp4Values = fp4_levels();

// Value j (0..7) of an entry of an eight-value grid.
inline int grid8(uint16_t entry, const Levels<4>& levels, int j) { return levels[(entry >> (2 * j)) & 3]; }
// Value j (0..3) of an entry of a four-value grid.
inline int grid4(uint16_t entry, const Levels<8>& levels, int j) { return levels[(entry >> (3 * j)) & 7]; }

// The sign byte of a seven-bit sign field: bit 7 makes the number of set bits even.
inline uint8_t sign_byte(uint32_t field) {
  return static_cast<uint8_t>(field | ((__builtin_popcount(field) & 1u) << 7));
}

}  // namespace cudabk::formats
