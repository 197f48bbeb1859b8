// Frag weights times tiles of columns, by warp groups: codes become scaled f16 values in registers, the first operand;
// columns come through a ring in shared memory, the second. A block computes Groups * 64 rows x Cols columns. While a
// product of one tile of k runs, the next one is decoded.
#pragma once

#include "formats/frag_lookup.h"
#include "frag/multiply.h"
#include "frag/tile_args.h"
#include "mmvq/vector.h"

namespace cudabk {

// {x, x} as two halves.
inline uint32_t twice_f16(float x) { return pack_f16(x, x); }

// Rows g and g + 8 of a strip: scale and minimum of a group as pairs of halves.
struct HalfScales {
  uint32_t scale[2], min[2];
};

// Row g + 8h of one unit: what its group entries are multiplied with, brought into f16's range by the row's factor, as
// pairs of halves; by parity of the group where groups of 16 have different factors.
struct HalfRow {
  uint32_t d[2], d_bias[2];  // bias: -1024 d
  uint32_t min, min_bias;    // of minima that are taken off: -dmin and 1024 dmin
  float factor;
};
template <FragShape S, int H>
HalfRow half_row(uint32_t words, float factor) {
  constexpr float kOdd = frag_factor(S, 0, 0) / frag_factor(S, 1, 0);
  HalfRow r{};
  r.factor = factor;
  if constexpr (S.row_bytes() != 0) {
    const float d = low_f16(words) * factor;
    r.d[0] = twice_f16(d), r.d[1] = twice_f16(d * kOdd);
    r.d_bias[0] = twice_f16(d * -1024.0f), r.d_bias[1] = twice_f16(d * (-1024.0f * kOdd));
  }
  if constexpr (S.row_bytes() == 4) {
    const float min = high_f16(words) * (factor / frag_row_factor(S, H));
    r.min = twice_f16(-min), r.min_bias = twice_f16(min * 1024.0f);
  }
  return r;
}

// Byte I of a word as a pair {1024 + byte, 1024 + byte}.
template <int I>
uint32_t byte_pair(uint32_t word) {
  return byte_perm(word, kF16Magic, 0x5050 | I << 8 | I);
}

// A zero point that f16 cannot take off exactly together with the 1024 is taken off as a minimum.
template <FragShape S>
constexpr bool kFractionalZero = S.zero != static_cast<float>(static_cast<int>(S.zero));
template <FragShape S>
constexpr bool kValueHasMin = S.has_min() || kFractionalZero<S>;

// Scale and minimum of group G of row g + 8H.
template <FragShape S, int H, int G>
void half_scale(u32x2 words, const HalfRow& r, uint32_t& scale, uint32_t& min) {
  using enum FragScale;
  constexpr int kParity = S.group == 16 ? G % 2 : 0;
  if constexpr (S.scale == kByte) {  // stored with 128 added
    scale = f16x2_mul(f16x2_add(byte_pair<G>(words.x), twice_f16(-1152.0f)), r.d[kParity]);
  } else if constexpr (S.scale == kByteMin) {
    scale = f16x2_fma(byte_pair<G>(words.x), r.d[0], r.d_bias[0]);
    min = f16x2_fma(byte_pair<G + 2>(words.x), r.min, r.min_bias);
  } else if constexpr (S.scale == kNibbleMin) {
    scale = f16x2_fma(byte_pair<G>(words.x & 0x0f0f0f0fu), r.d[kParity], r.d_bias[kParity]);
    min = f16x2_fma(byte_pair<G>((words.x >> 4) & 0x0f0f0f0fu), r.min, r.min_bias);
  } else {
    const f32x2 s = group_scale<S, H, G>(words, FragRowScale{});
    scale = twice_f16(s.x * r.factor);
    min = twice_f16(s.y * (-1024.0f * r.factor));
  }
  if constexpr (kFractionalZero<S>) {
    min = f16x2_mul(scale, twice_f16(-frag_factor(S, kParity, H) * S.zero));
  }
}
template <FragShape S, int G>
HalfScales half_scales(const FragTile<S>& tile, const HalfRow (&rows)[2]) {
  HalfScales v{};
  half_scale<S, 0, G>(tile.groups[0], rows[0], v.scale[0], v.min[0]);
  half_scale<S, 1, G>(tile.groups[1], rows[1], v.scale[1], v.min[1]);
  return v;
}

// Fragment of step J (0 .. 3) of a tile as values: scale * factor * (code - zero) - min.
template <DType T, int J>
void value_fragment(const FragTile<frag_shape(T)>& tile, const HalfScales& s, uint32_t (&a)[4]) {
  constexpr FragShape S = frag_shape(T);
  constexpr int kParity = S.group == 16 ? J % 2 : 0;
  lookup_fragment<T, J>(tile.words, a);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int h = i % 2;
    const float zero = kFractionalZero<S> ? 0 : S.zero;
    const float bias = -(1024 + (h == 0 ? frag_factor(S, kParity, 0) : frag_factor(S, kParity, 1)) * zero);
    const uint32_t code = f16x2_add(a[i], twice_f16(bias));
    a[i] = kValueHasMin<S> ? f16x2_fma(code, s.scale[h], s.min[h]) : f16x2_mul(code, s.scale[h]);
  }
}

template <DType T>
void value_fragments(const FragTile<frag_shape(T)>& tile, const HalfRow (&rows)[2], uint32_t (&a)[4][4]) {
  constexpr FragShape S = frag_shape(T);
  if constexpr (S.group == 32) {
    const HalfScales first = half_scales<S, 0>(tile, rows), second = half_scales<S, 1>(tile, rows);
    value_fragment<T, 0>(tile, first, a[0]);
    value_fragment<T, 1>(tile, first, a[1]);
    value_fragment<T, 2>(tile, second, a[2]);
    value_fragment<T, 3>(tile, second, a[3]);
  } else {
    value_fragment<T, 0>(tile, half_scales<S, 0>(tile, rows), a[0]);
    value_fragment<T, 1>(tile, half_scales<S, 1>(tile, rows), a[1]);
    value_fragment<T, 2>(tile, half_scales<S, 2>(tile, rows), a[2]);
    value_fragment<T, 3>(tile, half_scales<S, 3>(tile, rows), a[3]);
  }
}

template <int Cols>
struct TileSums {
  static constexpr int kWide = Cols < 128 ? Cols : 128;  // columns of one product
  float v[Cols / kWide][kWide / 2];
};

template <int Cols, int Strips>
void store_tile_sums(const TileSums<Cols> (&sum)[Strips], const FragTileArgs& a, int batch, int split, int64_t row0,
                     const float (&inverse)[Strips][2]) {
  constexpr int kWide = TileSums<Cols>::kWide;
  float* dst = a.dst + static_cast<int64_t>(split) * a.m * a.n * a.batch.batch;
#pragma unroll
  for (int c = 0; c < Cols / 8; ++c) {
#pragma unroll
    for (int o = 0; o < 2; ++o) {
      const int64_t col = static_cast<int64_t>(block_y()) * Cols + 8 * c + 2 * (lane() % 4) + o;
      if (col >= a.n) {
        continue;
      }
      const float scale = load_fresh(a.x_scale + static_cast<int64_t>(batch) * a.n + col);
#pragma unroll
      for (int i = 0; i < 2 * Strips; ++i) {
        const int64_t row = row0 + i / 2 * 64 + 8 * (i % 2) + lane() / 4;
        if (row < a.m) {
          float v = sum[i / 2].v[8 * c / kWide][8 * c % kWide / 2 + 2 * (i % 2) + o] * scale * inverse[i / 2][i % 2];
          if (a.epilogue.addend != nullptr && a.splits == 1) {
            v += a.epilogue.addend[row + col * a.epilogue.column_stride + batch * a.epilogue.batch_stride];
          }
          dst[row + a.m * (col + static_cast<int64_t>(a.n) * batch)] = v;
        }
      }
    }
  }
}

// Shared memory: a table (frag_lookup.h), stages of [columns][strips of all consumers], then the barriers. A producer
// warp fills stages, the warp groups (consumers) empty them.
template <DType T, int Cols, int Groups, int Stages>
struct FragTileProduct {
  static constexpr int Strips = 1;  // of a warp; more would not leave registers for the sums
  static constexpr FragShape S = frag_shape(T);
  static constexpr int kWide = TileSums<Cols>::kWide, kUnitBytes = S.unit_bytes();
  static constexpr int kColumnUnit = 4 * kTileColumnsBytes, kColumnsBytes = Cols / 8 * kColumnUnit;
  static constexpr int kStrips = Groups * Strips * 4, kStageBytes = kColumnsBytes + kStrips * kUnitBytes;
  static constexpr int stages_at() { return frag_lookup_bytes(T); }  // in shared memory, behind the table

  struct Walk {
    const uint8_t *weights, *x;  // of the batch
    int begin, units;            // of this part of k
    int total_units;
    int strip0, last_strip, tile0, last_tile;
  };
  static SharedBarrier* full(int stage) {
    return reinterpret_cast<SharedBarrier*>(shared_memory<uint8_t>() + (stages_at() + Stages * kStageBytes)) + stage;
  }
  static SharedBarrier* empty(int stage) { return full(Stages + stage); }

  // ---- the producer warp: lane i copies the i-th strip and column tile ----
  static void copy_strips(const Walk& w, int unit, int stage) {
    uint8_t* to = shared_memory<uint8_t>() + stage * kStageBytes + (stages_at() + kColumnsBytes);
    for (int s = lane(); s < kStrips; s += kWarpSize) {  // strips past the last are read as the last one, not stored
      const int strip = w.strip0 + s < w.last_strip ? w.strip0 + s : w.last_strip;
      bulk_copy(to + s * kUnitBytes,
                w.weights + (static_cast<int64_t>(strip) * w.total_units + w.begin + unit) * kUnitBytes, kUnitBytes,
                full(stage));
    }
  }
  static void copy_columns(const Walk& w, int unit, int stage) {
    uint8_t* to = shared_memory<uint8_t>() + stage * kStageBytes + stages_at();
    for (int c = lane(); c < Cols / 8; c += kWarpSize) {
      const int tile = w.tile0 + c < w.last_tile ? w.tile0 + c : w.last_tile;
      bulk_copy(to + c * kColumnUnit, w.x + (static_cast<int64_t>(tile) * w.total_units + w.begin + unit) * kColumnUnit,
                kColumnUnit, full(stage));
    }
  }
  static void expect_stage(int stage) {
    if (lane() == 0) {
      barrier_expect(full(stage), kStageBytes);
    }
    warp_sync();
  }
  static void produce(const Walk& w) {
    for (int unit = 0; unit < Stages && unit < w.units; ++unit) {
      expect_stage(unit);
      copy_strips(w, unit, unit);
    }
    wait_for_previous_kernel();  // weights are constant: their copies may overlap the kernel before this one
    for (int unit = 0; unit < Stages && unit < w.units; ++unit) {
      copy_columns(w, unit, unit);
    }
    for (int unit = Stages, stage = 0, parity = 0; unit < w.units; ++unit) {
      barrier_wait(empty(stage), parity);
      expect_stage(stage);
      copy_strips(w, unit, stage);
      copy_columns(w, unit, stage);
      if (++stage == Stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  }

  // ---- a consumer warp ----
  static void multiply(TileSums<Cols>& sum, const uint32_t (&a)[4][4], uint64_t columns) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int c = 0; c < Cols / kWide; ++c) {
        wgmma_f16(sum.v[c], a[j], columns + (c * kWide * 512 + j * 256) / 16);
      }
    }
  }

  // Tile number Tile of a unit; strips: this warp's first one in the stage, the others 4 further each.
  template <int Tile>
  static void multiply_tile(TileSums<Cols> (&sum)[Strips], uint32_t (&a)[2][4][4], const HalfRow (&rows)[Strips][2],
                            const uint8_t* strips, uint64_t columns) {
#pragma unroll
    for (int s = 0; s < Strips; ++s) {
      uint32_t(&fragments)[4][4] = a[(Strips == 1 ? Tile : s) % 2];
      FragTile<S> tile;
      tile.template load<FragMemory::kShared>(strips + s * 4 * kUnitBytes, Tile);
      value_fragments<T>(tile, rows[s], fragments);
      wgmma_fence();
      multiply(sum[s], fragments, columns + Tile * kTileColumnsBytes / 16);
      wgmma_commit();
      wgmma_wait<1>();
    }
  }
  static void consume(const Walk& w, TileSums<Cols> (&sum)[Strips], const float (&factor)[Strips][2]) {
    uint32_t a[2][4][4];
    const int slot = warp() / 4 * Strips * 4 + warp() % 4;
    for (int unit = 0, stage = 0, parity = 0; unit < w.units; ++unit) {
      const uint8_t* memory = shared_memory<uint8_t>() + stage * kStageBytes + stages_at();
      const uint8_t* strips = memory + kColumnsBytes + slot * kUnitBytes;
      const uint64_t columns = wgmma_operand(memory, 128, kColumnUnit);
      barrier_wait(full(stage), parity);
      HalfRow rows[Strips][2];
#pragma unroll
      for (int s = 0; s < Strips; ++s) {
        const uint8_t* strip = strips + s * 4 * kUnitBytes;
        rows[s][0] = half_row<S, 0>(load_row_words<S, FragMemory::kShared>(strip, lane() / 4), factor[s][0]);
        rows[s][1] = half_row<S, 1>(load_row_words<S, FragMemory::kShared>(strip, lane() / 4 + 8), factor[s][1]);
      }
      multiply_tile<0>(sum, a, rows, strips, columns);
      if (unit > 0 && lane() == 0) {  // products of the unit before have ended
        barrier_arrive(empty(stage == 0 ? Stages - 1 : stage - 1));
      }
      multiply_tile<1>(sum, a, rows, strips, columns);
      multiply_tile<2>(sum, a, rows, strips, columns);
      multiply_tile<3>(sum, a, rows, strips, columns);
      if (++stage == Stages) {
        stage = 0;
        parity ^= 1;
      }
    }
    wgmma_wait<0>();
  }

  static void run(const FragTileArgs& args, int batch, int split) {
    const int begin = static_cast<int>(static_cast<int64_t>(args.units) * split / args.splits);
    const int end = static_cast<int>(static_cast<int64_t>(args.units) * (split + 1) / args.splits);
    const int tiles = (args.n + 7) / 8, strips = (args.m + kFragRows - 1) / kFragRows;
    const Walk w{args.weights + weight_offset(args.batch, batch, args.stride2, args.stride3),
                 args.x + static_cast<int64_t>(batch) * tiles * args.units * kColumnUnit,
                 begin,
                 end - begin,
                 args.units,
                 static_cast<int>(block_x()) * kStrips,
                 strips - 1,
                 static_cast<int>(block_y()) * (Cols / 8),
                 tiles - 1};
    if (thread_x() < 2 * Stages) {
      barrier_init(full(thread_x()), static_cast<int>(thread_x()) < Stages ? 1 : Groups * 4);
      barrier_init_done();
    }
    block_sync();
    allow_next_kernel();
    if (warp() == Groups * 4) {
      produce(w);
    } else {
      const int strip0 = w.strip0 + warp() / 4 * Strips * 4 + warp() % 4;
      const auto* factors = reinterpret_cast<const float*>(
          args.row_factor + weight_offset(args.batch, batch, args.factor_stride2, args.factor_stride3));
      float factor[Strips][2], inverse[Strips][2];
      TileSums<Cols> sum[Strips];
#pragma unroll
      for (int s = 0; s < Strips; ++s) {
        const int strip = strip0 + 4 * s < strips ? strip0 + 4 * s : strips - 1;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          factor[s][h] = load_readonly(factors + strip * 16 + 8 * h + lane() / 4);
          inverse[s][h] = divide(h == 0 ? frag_row_factor(S, 0) : frag_row_factor(S, 1), factor[s][h]);
        }
#pragma unroll
        for (auto& part : sum[s].v) {
#pragma unroll
          for (float& v : part) {
            v = 0;
          }
        }
      }
      consume(w, sum, factor);
      store_tile_sums<Cols, Strips>(sum, args, batch, split, static_cast<int64_t>(strip0) * 16, inverse);
    }
    block_sync();  // the next part uses the barriers again
  }
};

// grid: x = ceil(m / (Groups * 64)), y = ceil(n / Cols), z = batch * splits (looped).
template <DType T, int Cols, int Groups, int Stages>
KERNEL(frag_tile, Groups * 128 + 32)(FragTileArgs a) {
  fill_frag_lookup<T, Groups * 4 + 1>();
  for (int z = block_z(); z < a.batch.batch * a.splits; z += grid_z()) {
    FragTileProduct<T, Cols, Groups, Stages>::run(a, z / a.splits, z % a.splits);
  }
}

}  // namespace cudabk
