// Packs activations for frag products (args.h): f16 under a power of two per column and unit that keeps any f32 in
// range, in fragment order, with the start values of the products.
#pragma once

#include "frag/args.h"

#include "common/f16_range.h"
#include "platform/platform.h"

namespace cudabk {

// The four floats of lane t in step `step` of 16, zeros past k.
template <bool Vector>
f32x4 column_quad(const float* row, int step, int t, int k) {
  const int at = 16 * step + 4 * t;
  if constexpr (Vector) {
    return at < k ? load_fresh(reinterpret_cast<const f32x4*>(row + at)) : f32x4{0, 0, 0, 0};
  } else {
    return {at < k ? load_fresh(row + at) : 0.0f, at + 1 < k ? load_fresh(row + at + 1) : 0.0f,
            at + 2 < k ? load_fresh(row + at + 2) : 0.0f, at + 3 < k ? load_fresh(row + at + 3) : 0.0f};
  }
}

// One step of 32 of a column, by four lanes. col: in the tile; step: of the unit.
template <int Group, int Cols>
void pack_step(const PackColumnsArgs& a, uint8_t* unit, int col, int step, int t, const f32x2 (&pairs)[4],
               float factor) {
  uint32_t words[4];
  float sum[2] = {0, 0};  // of the step's two halves
  for (int i = 0; i < 4; ++i) {
    words[i] = pack_f16(pairs[i].x * factor, pairs[i].y * factor);
    sum[i / 2] +=
        to_float(f16{static_cast<uint16_t>(words[i] & 0xffff)}) + to_float(f16{static_cast<uint16_t>(words[i] >> 16)});
  }
  store_whole(reinterpret_cast<u32x4*>(unit + step * column_step_bytes(Cols) + (col * 4 + t) * 16),
              u32x4{words[0], words[1], words[2], words[3]});
  for (int half = 0; half < 2; ++half) {
    sum[half] += shuffle_xor(sum[half], 1);
    sum[half] += shuffle_xor(sum[half], 2);
  }
  // Lanes t = 0 .. 3 write the start values of (half t / 2, h = t % 2); groups of 32 need two lanes.
  const int half = t / 2, h = t % 2;
  if (Group == 16 || half == 0) {
    const int group = Group == 16 ? 2 * step + half : step;
    const float total = Group == 16 ? (half == 0 ? sum[0] : sum[1]) : sum[0] + sum[1];
    const float zero = Group == 16 && half == 1 ? (h == 0 ? a.zero[2] : a.zero[3]) : (h == 0 ? a.zero[0] : a.zero[1]);
    auto* start = reinterpret_cast<float*>(unit + column_data_bytes(Cols));
    start[column_start_place(Group, Cols, group, col, h)] = -zero * total;
  }
}

// The pairs of this lane's part of a unit: lane 4 * step + t.
template <bool Vector>
void load_unit(const float* row, int unit, int k, f32x2 (&pairs)[4]) {
  for (int half = 0; half < 2; ++half) {
    const f32x4 v = column_quad<Vector>(row, unit * 16 + lane() / 4 * 2 + half, lane() % 4, k);
    pairs[2 * half] = {v.x, v.y}, pairs[2 * half + 1] = {v.z, v.w};
  }
}
inline float largest_of(const f32x2 (&pairs)[4]) {
  float largest = 0;
  for (int i = 0; i < 4; ++i) {
    largest = max_f(largest, max_f(abs_f(pairs[i].x), abs_f(pairs[i].y)));
  }
  return largest;
}

// Where a column of the activations is, and the first unit of its tile.
struct ColumnPlace {
  const float* row;
  uint8_t* tile;
};
template <int Group, int Cols>
ColumnPlace column_place(const PackColumnsArgs& a, int col, int batch, int units) {
  const int tiles = (a.n + Cols - 1) / Cols;
  return {reinterpret_cast<const float*>(a.x + col * a.nb1 + batch % a.b2 * a.nb2 + batch / a.b2 * a.nb3),
          a.units + (static_cast<int64_t>(batch) * tiles + col / Cols) * units * column_unit_bytes(Group, Cols)};
}

// A warp per unit and column: every unit has its own scale. Vector: rows start on multiples of 16 bytes, k is a
// multiple of 4.
// grid: x = ceil(units / kPackWarps), y = n, z = batch (both looped).
template <int Group, int Cols, bool Vector>
KERNEL(pack_units, kPackWarps* kWarpSize)(PackColumnsArgs a) {
  allow_next_kernel();
  const int units = (a.k + kFragDepth - 1) / kFragDepth, number = block_x() * kPackWarps + warp();
  const int ahead = number * kFragDepth + lane() * 32;  // a line of the unit
  if (lane() < kFragDepth / 32 && ahead < a.k) {
    prefetch_l2(column_place<Group, Cols>(a, block_y(), block_z(), units).row + ahead);
  }
  wait_for_previous_kernel();
  for (int batch = block_z(); batch < a.batch; batch += grid_z()) {
    for (int col = block_y(); col < a.n && number < units; col += grid_y()) {
      const ColumnPlace place = column_place<Group, Cols>(a, col, batch, units);
      uint8_t* unit = place.tile + static_cast<int64_t>(number) * column_unit_bytes(Group, Cols);
      f32x2 pairs[4];
      load_unit<Vector>(place.row, number, a.k, pairs);
      const float factor = f16_factor(warp_largest(largest_of(pairs)));
      pack_step<Group, Cols>(a, unit, col % Cols, lane() / 4, lane() % 4, pairs, factor);
      if (lane() == 0) {
        reinterpret_cast<float*>(unit + column_scale_place(Group, Cols))[col % Cols] = f16_inverse(factor);
      }
    }
  }
}

}  // namespace cudabk
