// Packs activations as bf16 tiles for products by warp groups (PackTilesArgs); f16 has frag/tile_columns.h.
#pragma once

#include "frag/tile_columns.h"
#include "mmsf/group_args.h"

namespace cudabk {

// A block converts 8 columns x 32 pieces of 8 elements, columns past n as the last one.
// grid: x = ceil(n / 8), y = ceil(pieces / 32), z = batch (looped).
template <bool Vector>
KERNEL(pack_bf16_tiles, kGroupPackThreads)(PackTilesArgs a) {
  allow_next_kernel();
  wait_for_previous_kernel();
  const int tiles = grid_x(), own = block_x() * 8 + thread_x() % 8, col = own < a.n ? own : a.n - 1;
  const int pieces = (a.k + kFragDepth - 1) / kFragDepth * (kFragDepth / 8);
  const int piece = block_y() * (kGroupPackThreads / 8) + thread_x() / 8;
  for (int batch = block_z(); batch < a.batch; batch += grid_z()) {
    const auto* row = reinterpret_cast<const float*>(a.x + col * a.nb1 + batch % a.b2 * a.nb2 + batch / a.b2 * a.nb3);
    uint8_t* tile = a.tiles + (static_cast<int64_t>(batch) * tiles + block_x()) * pieces * 128;
    float v[8];
    load_piece<Vector>(row, piece, a.k, v);
    const u32x4 packed{pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]), pack_bf16(v[6], v[7])};
    store_whole(reinterpret_cast<u32x4*>(tile + (static_cast<int64_t>(piece) * 8 + thread_x() % 8) * 16), packed);
  }
}

}  // namespace cudabk
