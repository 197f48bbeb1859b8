// Copies between layouts and types. The host picks the narrowest description that fits: bytes, rows that are dense on
// both sides, a transpose through shared memory, or any strides element by element.
#pragma once

#include "common/pack.h"
#include "common/rows.h"
#include "copy/args.h"

namespace cudabk {

// Width bytes per access; the last bytes % Width are copied one by one by the first threads.
template <int Threads, int Width, int Packs>
KERNEL(copy_bytes, Threads)(CopyBytesArgs p) {
  static_assert(Width == 4 || Width == 16);
  wait_for_previous_kernel();
  constexpr int kWords = Width / 4;
  const int64_t count = p.bytes / Width;
  const int64_t first = static_cast<int64_t>(block_x()) * (Threads * Packs) + thread_x();
  const uint32_t* src = static_cast<const uint32_t*>(p.src);
  uint32_t* dst = static_cast<uint32_t*>(p.dst);
  uint32_t v[Packs][kWords];
  for (int j = 0; j < Packs; ++j) {
    const int64_t i = first + j * Threads;
    if (i < count) {
      WordAccess<kWords>::load(src + i * kWords, v[j]);
    }
  }
  allow_next_kernel();
  for (int j = 0; j < Packs; ++j) {
    const int64_t i = first + j * Threads;
    if (i < count) {
      WordAccess<kWords>::store(dst + i * kWords, v[j]);
    }
  }
  const int64_t tail = count * Width + first;
  if (first < Width && tail < p.bytes) {
    static_cast<uint8_t*>(p.dst)[tail] = static_cast<const uint8_t*>(p.src)[tail];
  }
}

// Vec elements per access: both sides are aligned to Vec elements and cols is a multiple of Vec.
template <class Src, class Dst, int Threads, int Vec, int Packs>
KERNEL(copy_rows, Threads)(CopyRowsArgs p) {
  wait_for_previous_kernel();
  const RowSlot slot = row_slot<Threads, Vec, Packs>(p.grid);
  if (!slot.active) {
    return;
  }
  const RowIndex r = split_row(slot.row, p.grid.ne1, p.grid.ne2);
  const Src* src = static_cast<const Src*>(p.src) + row_offset(r, p.src_strides);
  Dst* dst = static_cast<Dst*>(p.dst) + row_offset(r, p.dst_strides);
  Src in[Packs][Vec];
  for (int j = 0; j < Packs; ++j) {
    const int64_t col = slot.col + j * slot.step;
    if (col < p.grid.cols) {
      Pack<Src, Vec>::load(src + col, in[j]);
    }
  }
  allow_next_kernel();
  for (int j = 0; j < Packs; ++j) {
    const int64_t col = slot.col + j * slot.step;
    if (col < p.grid.cols) {
      Dst out[Vec];
      for (int i = 0; i < Vec; ++i) {
        out[i] = Convert<Dst, Src>::of(in[j][i]);
      }
      Pack<Dst, Vec>::store(dst + col, out);
    }
  }
}

// One Tile x Tile tile per block through shared memory. Loads run along src's dense dim, stores along dst's. The pad of
// one 32-bit word per row keeps both walks free of bank conflicts. Dynamic shared memory:
// Tile * (Tile + 4 / sizeof(Src)) elements of Src.
template <class Src, class Dst, int Threads, int Tile>
KERNEL(copy_transposed, Threads)(CopyTransposedArgs p) {
  constexpr int kPitch = Tile + 4 / static_cast<int>(sizeof(Src));
  constexpr int kStep = Threads / Tile;  // lines of the tile that one pass of the block covers
  static_assert(Threads % Tile == 0 && Tile % kStep == 0);
  wait_for_previous_kernel();
  Src* tile = shared_memory<Src>();

  // Setup: which tile of which matrix.
  const Quotient b0 = split_index(block_x(), p.tiles0);
  const Quotient b1 = split_index(b0.quotient, p.tiles1);
  const Quotient b2 = split_index(b1.quotient, p.ne2);
  const int64_t base0 = b0.remainder * Tile, base1 = b1.remainder * Tile;
  const Src* src = static_cast<const Src*>(p.src) + b2.remainder * p.src_s2 + b2.quotient * p.src_s3;
  Dst* dst = static_cast<Dst*>(p.dst) + b2.remainder * p.dst_s2 + b2.quotient * p.dst_s3;
  const int fast = thread_x() % Tile, slow = thread_x() / Tile;

  // Load: consecutive threads along dim 1.
  const int64_t load1 = base1 + fast;
  for (int j = 0; j < Tile; j += kStep) {
    const int64_t load0 = base0 + slow + j;
    if (load0 < p.ne0 && load1 < p.ne1) {
      tile[(slow + j) * kPitch + fast] = src[load0 * p.src_s0 + load1];
    }
  }
  block_sync();
  allow_next_kernel();

  // Store: consecutive threads along dim 0.
  const int64_t store0 = base0 + fast;
  for (int j = 0; j < Tile; j += kStep) {
    const int64_t store1 = base1 + slow + j;
    if (store0 < p.ne0 && store1 < p.ne1) {
      dst[store1 * p.dst_s1 + store0] = Convert<Dst, Src>::of(tile[fast * kPitch + slow + j]);
    }
  }
}

// One element per thread, any strides and shapes on both sides.
template <class Src, class Dst, int Threads>
KERNEL(copy_strided, Threads)(CopyStridedArgs p) {
  wait_for_previous_kernel();
  const int64_t n = static_cast<int64_t>(block_x()) * Threads + thread_x();
  if (n >= p.elements) {
    return;
  }
  const Quotient s = split_index(n, p.src_ne0);
  const Quotient d = split_index(n, p.dst_ne0);
  const int64_t from = s.remainder * p.src_s0 + row_offset(split_row(s.quotient, p.src_ne1, p.src_ne2), p.src_strides);
  const int64_t to = d.remainder * p.dst_s0 + row_offset(split_row(d.quotient, p.dst_ne1, p.dst_ne2), p.dst_strides);
  static_cast<Dst*>(p.dst)[to] = Convert<Dst, Src>::of(static_cast<const Src*>(p.src)[from]);
}

}  // namespace cudabk
