// Index arithmetic over rows: 64-bit offsets; divisions happen once per thread, in 32 bits where the numbers allow.
#pragma once

#include "common/rows_args.h"
#include "platform/platform.h"

namespace cudabk {

struct Quotient {
  int64_t quotient, remainder;
};

// n / d and n % d for n >= 0, d > 0.
inline Quotient split_index(int64_t n, int64_t d) {
  if (((n | d) >> 32) == 0) {
    const uint32_t q = static_cast<uint32_t>(n) / static_cast<uint32_t>(d);
    return {q, static_cast<uint32_t>(n) - q * static_cast<uint32_t>(d)};
  }
  const int64_t q = n / d;
  return {q, n - q * d};
}

inline int64_t wrap_index(int64_t i, int64_t n) { return i < n ? i : split_index(i, n).remainder; }

struct RowIndex {
  int64_t i1, i2, i3;
};

inline RowIndex split_row(int64_t row, int64_t ne1, int64_t ne2) {
  if (row < ne1) {
    return {row, 0, 0};
  }
  const Quotient a = split_index(row, ne1);
  const Quotient b = split_index(a.quotient, ne2);
  return {a.remainder, b.remainder, b.quotient};
}

inline int64_t row_offset(const RowIndex& r, const RowStrides& s) { return r.i1 * s.s1 + r.i2 * s.s2 + r.i3 * s.s3; }

// What this thread works on: its row (or none) and its first column; further packs follow every `step` columns.
struct RowSlot {
  int64_t row, col, step;
  bool active;
};

template <int Threads, int Vec, int Packs>
inline RowSlot row_slot(const RowGrid& g) {
  const int col_threads = 1 << g.col_threads_log2;
  int64_t group = block_x(), part = 0;
  if (g.blocks_per_row > 1) {
    const Quotient q = split_index(group, g.blocks_per_row);
    group = q.quotient;
    part = q.remainder;
  }
  RowSlot s;
  s.step = static_cast<int64_t>(col_threads) * Vec;
  s.row = group * (Threads >> g.col_threads_log2) + (thread_x() >> g.col_threads_log2);
  s.col = part * s.step * Packs + static_cast<int64_t>(thread_x() & (col_threads - 1)) * Vec;
  s.active = s.row < g.rows && s.col < g.cols;
  return s;
}

}  // namespace cudabk
