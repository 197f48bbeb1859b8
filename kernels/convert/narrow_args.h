// Shapes of the kernels of narrow.h; their arguments are ConvertArgs.
#pragma once

#include "convert/args.h"

namespace cudabk {

// Elements and threads of a block of narrow_pieces, threads of a block of narrow_rows and the runs of four elements
// that a thread of it holds.
constexpr int kNarrowPiece = 4096, kNarrowPieceThreads = 256, kNarrowRowThreads = 512;
constexpr int narrow_runs(int64_t k) { return k <= 4 * kNarrowRowThreads * 2 ? 2 : 8; }

}  // namespace cudabk
