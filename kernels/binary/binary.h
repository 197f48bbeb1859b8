// Element-wise operations of two tensors, the second broadcast by modulo: y = op(a, b), computed in f32.
#pragma once

#include "binary/args.h"
#include "common/pack.h"
#include "common/rows.h"

namespace cudabk {

struct Add {
  static float apply(float a, float b) { return a + b; }
};
struct Mul {
  static float apply(float a, float b) { return a * b; }
};

// How b is read along dim 0.
enum class ColumnMode {
  kSame,    // as many columns as a
  kScalar,  // one column, broadcast
  kWrap,    // repeats; scalar accesses only
};

// Vec elements per access: a, y (and b with kSame) are aligned to Vec elements and cols is a multiple of Vec.
template <class Op, class A, class B, class Y, ColumnMode Mode, int Threads, int Vec, int Packs>
KERNEL(binary, Threads)(BinaryArgs p) {
  static_assert(Mode != ColumnMode::kWrap || Vec == 1, "wrapped columns are read one by one");
  wait_for_previous_kernel();
  const RowSlot slot = row_slot<Threads, Vec, Packs>(p.grid);
  if (!slot.active) {
    return;
  }
  const RowIndex r = split_row(slot.row, p.grid.ne1, p.grid.ne2);
  const RowIndex rb{wrap_index(r.i1, p.b_ne1), wrap_index(r.i2, p.b_ne2), wrap_index(r.i3, p.b_ne3)};
  const A* a = static_cast<const A*>(p.a) + row_offset(r, p.a_strides);
  const B* b = static_cast<const B*>(p.b) + row_offset(rb, p.b_strides);
  Y* y = static_cast<Y*>(p.y) + row_offset(r, p.y_strides);

  // All loads first, so that they are in flight together.
  A va[Packs][Vec];
  B vb[Packs][Mode == ColumnMode::kScalar ? 1 : Vec];
  for (int j = 0; j < Packs; ++j) {
    const int64_t col = slot.col + j * slot.step;
    if (col < p.grid.cols) {
      Pack<A, Vec>::load(a + col, va[j]);
      if constexpr (Mode == ColumnMode::kSame) {
        Pack<B, Vec>::load(b + col, vb[j]);
      } else {
        vb[j][0] = b[Mode == ColumnMode::kScalar ? 0 : wrap_index(col, p.b_cols)];
      }
    }
  }
  allow_next_kernel();
  for (int j = 0; j < Packs; ++j) {
    const int64_t col = slot.col + j * slot.step;
    if (col < p.grid.cols) {
      Y vy[Vec];
      for (int i = 0; i < Vec; ++i) {
        vy[i] = Narrow<Y>::of(Op::apply(widen(va[j][i]), widen(vb[j][Mode == ColumnMode::kScalar ? 0 : i])));
      }
      Pack<Y, Vec>::store(y + col, vy);
    }
  }
}

}  // namespace cudabk
