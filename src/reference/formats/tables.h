// Lookup tables of the non-linear formats. Origin: constants of the ggml file formats (MIT licence, see LICENSE).
#pragma once

#include <cstdint>

namespace cudabk::formats {

extern const uint16_t kIq1sGrid[2048];
extern const uint16_t kIq2xxsGrid[256];
extern const uint16_t kIq2xsGrid[512];
extern const uint16_t kIq2sGrid[1024];
extern const uint16_t kIq3xxsGrid[256];
extern const uint16_t kIq3sGrid[512];

inline constexpr int8_t kIq1Levels[4] = {-1, 0, 1, 0};  // the last is unused
inline constexpr int8_t kIq2Levels[4] = {8, 25, 43, 0};
inline constexpr int8_t kIq3xxsLevels[8] = {4, 12, 20, 28, 36, 44, 52, 62};
inline constexpr int8_t kIq3sLevels[8] = {1, 3, 5, 7, 9, 11, 13, 15};

inline constexpr int8_t kIq4nlValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
inline constexpr int8_t kFp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};  // twice e2m1

// Value j (0..7) of an entry of an eight-value grid.
inline int grid8(uint16_t entry, const int8_t (&levels)[4], int j) { return levels[(entry >> (2 * j)) & 3]; }
// Value j (0..3) of an entry of a four-value grid.
inline int grid4(uint16_t entry, const int8_t (&levels)[8], int j) { return levels[(entry >> (3 * j)) & 7]; }

// The sign byte of a seven-bit sign field: bit 7 makes the number of set bits even.
inline uint8_t sign_byte(uint32_t field) {
  return static_cast<uint8_t>(field | ((__builtin_popcount(field) & 1u) << 7));
}

}  // namespace cudabk::formats
