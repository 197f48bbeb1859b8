// Gated linear units: y = act(x) * g, computed in f32 and rounded once.
#pragma once

#include "common/pack.h"
#include "common/rows.h"
#include "glu/args.h"

namespace cudabk {

struct Silu {
  // x / (1 + exp(-x)); the reciprocal as the square of the reciprocal root, since a division would cost as much as the
  // memory traffic.
  static float apply(float x) {
    const float root = inverse_sqrt(1.0f + fast_exp(-x));
    return x * root * root;
  }
};

// Vec elements per access: x, g and y are aligned to Vec elements and cols is a multiple of Vec.
template <class Act, class T, int Threads, int Vec, int Packs>
KERNEL(glu, Threads)(GluArgs p) {
  wait_for_previous_kernel();
  const RowSlot slot = row_slot<Threads, Vec, Packs>(p.grid);
  if (!slot.active) {
    return;
  }
  const RowIndex r = split_row(slot.row, p.grid.ne1, p.grid.ne2);
  const T* x = static_cast<const T*>(p.x) + row_offset(r, p.x_strides);
  const T* g = static_cast<const T*>(p.g) + row_offset(r, p.g_strides);
  T* y = static_cast<T*>(p.y) + row_offset(r, p.y_strides);

  T vx[Packs][Vec];
  T vg[Packs][Vec];
  for (int j = 0; j < Packs; ++j) {
    const int64_t col = slot.col + j * slot.step;
    if (col < p.grid.cols) {
      Pack<T, Vec>::load(x + col, vx[j]);
      Pack<T, Vec>::load(g + col, vg[j]);
    }
  }
  allow_next_kernel();
  for (int j = 0; j < Packs; ++j) {
    const int64_t col = slot.col + j * slot.step;
    if (col < p.grid.cols) {
      T vy[Vec];
      for (int i = 0; i < Vec; ++i) {
        vy[i] = Narrow<T>::of(Act::apply(widen(vx[j][i])) * widen(vg[j][i]));
      }
      Pack<T, Vec>::store(y + col, vy);
    }
  }
}

}  // namespace cudabk
