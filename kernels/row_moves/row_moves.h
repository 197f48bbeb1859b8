// Moves of rows: plain elements (move_rows), out of a block type (decode_rows), into one (encode_rows). Which row goes
// where is RowMap; the three kernels serve get_rows, set_rows and copies alike.
#pragma once

#include "common/pack.h"
#include "common/rows.h"
#include "formats/all.h"
#include "formats/decode.h"
#include "formats/encoders.h"
#include "row_moves/args.h"

namespace cudabk {

struct RowPlace {
  int64_t src, dst;  // bytes
};

template <RowMap Map>
int64_t row_index(const RowMovesArgs& a, const RowIndex& r) {
  const uint8_t* p = a.index + r.i1 * a.index_strides.s1 + wrap_index(r.i2, a.index_ne1) * a.index_strides.s2 +
                     wrap_index(r.i3, a.index_ne2) * a.index_strides.s3;
  if constexpr (Map == RowMap::kScatter64) {
    return load_fresh(reinterpret_cast<const int64_t*>(p));
  } else {
    return load_fresh(reinterpret_cast<const int32_t*>(p));
  }
}

template <RowMap Map>
RowPlace place_row(const RowMovesArgs& a, int64_t row) {
  if constexpr (Map == RowMap::kReshaped) {
    const Quotient s = split_index(row, a.src_blocks), d = split_index(row, a.dst_blocks);
    return {s.remainder * a.src_s0 + row_offset(split_row(s.quotient, a.src_ne1, a.src_ne2), a.src_strides),
            d.remainder * a.dst_s0 + row_offset(split_row(d.quotient, a.dst_ne1, a.dst_ne2), a.dst_strides)};
  } else {
    RowIndex from = split_row(row, a.grid.ne1, a.grid.ne2), to = from;
    if constexpr (Map == RowMap::kGather32) {
      from.i1 = row_index<Map>(a, to);
    } else if constexpr (Map != RowMap::kDirect) {
      to.i1 = row_index<Map>(a, from);
    }
    return {row_offset(from, a.src_strides), row_offset(to, a.dst_strides)};
  }
}

// ---- plain elements ----

// Vec elements per access: both sides are aligned to them and cols is a multiple.
template <class Src, class Dst, RowMap Map, int Vec, int Packs>
KERNEL(move_rows, kRowMoveThreads)(RowMovesArgs a) {
  wait_for_previous_kernel();
  const RowSlot slot = row_slot<kRowMoveThreads, Vec, Packs>(a.grid);
  if (!slot.active) {
    return;
  }
  const RowPlace place = place_row<Map>(a, slot.row);
  const Src* src = reinterpret_cast<const Src*>(a.src + place.src);
  Dst* dst = reinterpret_cast<Dst*>(a.dst + place.dst);
  Src in[Packs][Vec];
  for (int j = 0; j < Packs; ++j) {
    const int64_t col = slot.col + j * slot.step;
    if (col < a.grid.cols) {
      Pack<Src, Vec>::load(src + col, in[j]);
    }
  }
  for (int j = 0; j < Packs; ++j) {
    const int64_t col = slot.col + j * slot.step;
    if (col < a.grid.cols) {
      Dst out[Vec];
      for (int i = 0; i < Vec; ++i) {
        out[i] = Convert<Dst, Src>::of(in[j][i]);
      }
      Pack<Dst, Vec>::store(dst + col, out);
    }
  }
}

// ---- out of a block type ----

// A warp's stage holds one run per lane as units of four floats. Units are exchanged by the lane's number, so that
// eight lanes that store or load the stage together meet in different banks.
template <int RunLength>
struct DecodeStage {
  static constexpr int kUnits = RunLength / 4;  // of a run
  static_assert(kUnits == 4 || kUnits == 8);

  static int at(int owner, int unit) { return owner * kUnits + (unit ^ (kUnits == 8 ? owner & 7 : (owner >> 1) & 3)); }
};

// Where a lane's run goes: byte offset from the result's start, negative when there is none. The offset of another
// lane:
inline int64_t shuffle_offset(int64_t offset, int from) {
  const uint64_t bits = static_cast<uint64_t>(offset);
  const uint32_t low = shuffle(static_cast<uint32_t>(bits & 0xffffffffu), from);
  const uint32_t high = shuffle(static_cast<uint32_t>(bits >> 32), from);
  return static_cast<int64_t>(static_cast<uint64_t>(high) << 32 | low);
}

// The runs of 32 lanes from the stage to where they go; neighbouring lanes store neighbouring bytes.
template <int RunLength, bool Aligned>
void store_runs(const f32x4* stage, uint8_t* dst, int64_t offset) {
  using Stage = DecodeStage<RunLength>;
  constexpr int kParts = Aligned ? Stage::kUnits : RunLength;  // stores of a run
  constexpr int kOwners = kWarpSize / kParts;
  for (int first = 0; first < kWarpSize; first += kOwners) {
    const int owner = first + lane() / kParts, part = lane() % kParts;
    const int64_t to = shuffle_offset(offset, owner);
    if (to < 0) {
      continue;
    }
    if constexpr (Aligned) {
      store_whole(reinterpret_cast<f32x4*>(dst + to) + part, stage[Stage::at(owner, part)]);
    } else {
      const auto* unit = reinterpret_cast<const float*>(stage + Stage::at(owner, part / 4));
      reinterpret_cast<float*>(dst + to)[part] = unit[part % 4];
    }
  }
}

// Rows of blocks to f32; a thread decodes slices (grid.cols counts them), one run at a time. Aligned: every row of dst
// starts on a multiple of 16 bytes. Dynamic shared memory: decode_stage_bytes.
template <DType T, RowMap Map, bool Aligned, int Packs>
KERNEL(decode_rows, kRowMoveThreads)(RowMovesArgs a) {
  using F = Format<T>;
  constexpr int kRun = F::kShape.run_length;
  f32x4* stage = shared_memory<f32x4>() + warp() * (kWarpSize * kRun / 4);
  wait_for_previous_kernel();
  const RowSlot slot = row_slot<kRowMoveThreads, 1, Packs>(a.grid);
  const RowPlace place = slot.row < a.grid.rows ? place_row<Map>(a, slot.row) : RowPlace{0, 0};
  for (int j = 0; j < Packs; ++j) {
    const int64_t col = slot.col + j * slot.step;
    const bool active = slot.active && col < a.grid.cols;
    const int slice = static_cast<int>(col), part = slice % F::kShape.parts;
    typename F::Slice s{};
    if (active) {
      s = load_slice<T>(a.src + place.src, slice);
    }
    for (int run = 0; run < F::kShape.runs; ++run) {
      if (active) {
        float v[kRun];
        decode_run<T>(s, part, run, v);
        for (int u = 0; u < kRun / 4; ++u) {
          stage[DecodeStage<kRun>::at(lane(), u)] = {v[4 * u], v[4 * u + 1], v[4 * u + 2], v[4 * u + 3]};
        }
      }
      const int64_t element = static_cast<int64_t>(slice / F::kShape.parts) * F::kBlock + F::run_offset(part, run);
      warp_sync();
      store_runs<kRun, Aligned>(stage, a.dst, active ? place.dst + element * 4 : -1);
      warp_sync();
    }
  }
}

// ---- into a block type ----

template <bool Aligned>
FourFloats load_four_floats(const uint8_t* p) {
  if constexpr (Aligned) {
    const f32x4 v = load_fresh(reinterpret_cast<const f32x4*>(p));
    return {{v.x, v.y, v.z, v.w}};
  } else {
    const auto* x = reinterpret_cast<const float*>(p);
    return {{load_fresh(x), load_fresh(x + 1), load_fresh(x + 2), load_fresh(x + 3)}};
  }
}

// Four blocks that follow each other in a row, of which `count` exist, in words of four bytes.
template <int Bytes>
void store_blocks(const uint8_t* stage, uint8_t* dst, int count) {
  const int bytes = count * Bytes;
  for (int i = 4 * lane(); i + 4 <= bytes; i += 4 * kWarpSize) {
    store_whole(reinterpret_cast<uint32_t*>(dst + i), *reinterpret_cast<const uint32_t*>(stage + i));
  }
  if (bytes % 4 != 0 && lane() == 0) {
    *reinterpret_cast<uint16_t*>(dst + bytes - 2) = *reinterpret_cast<const uint16_t*>(stage + bytes - 2);
  }
}

// Rows of f32 to blocks of T; eight threads share a block. Aligned: every row of src starts on a multiple of 16 bytes.
// Wide: a warp works on one row, and every row of dst starts on a multiple of 4 bytes. Dynamic shared memory:
// encode_stage_bytes.
template <DType T, RowMap Map, bool Aligned, bool Wide, int Packs>
KERNEL(encode_rows, kRowMoveThreads)(RowMovesArgs a) {
  constexpr int kBytes = Encode<T>::kBytes, kBlocks = kWarpSize / kEncodeLanes;
  uint8_t* stage = shared_memory<uint8_t>() + warp() * (kBlocks * kBytes);
  const int part = lane() % kEncodeLanes;
  uint8_t* own = stage + lane() / kEncodeLanes * kBytes;
  wait_for_previous_kernel();
  const RowSlot slot = row_slot<kRowMoveThreads, kEncodeElements, Packs>(a.grid);
  const RowPlace place = slot.row < a.grid.rows ? place_row<Map>(a, slot.row) : RowPlace{0, 0};
  const auto load = [&](int64_t col) {
    return slot.active && col < a.grid.cols ? load_four_floats<Aligned>(a.src + place.src + col * 4) : FourFloats{};
  };
  FourFloats next = load(slot.col);
  for (int j = 0; j < Packs; ++j) {
    const int64_t col = slot.col + j * slot.step;
    const FourFloats x = next;
    if (j + 1 < Packs) {
      next = load(col + slot.step);  // on its way while this one is encoded
    }
    Encode<T>::encode(x, part, own);
    warp_sync();
    if constexpr (Wide) {
      const int64_t first = col / kEncodeBlock - lane() / kEncodeLanes;  // block of the row that lane 0 shares
      const int64_t left = a.grid.cols / kEncodeBlock - first;
      if (slot.row < a.grid.rows && left > 0) {
        const int count = left < kBlocks ? static_cast<int>(left) : kBlocks;
        store_blocks<kBytes>(stage, a.dst + place.dst + first * kBytes, count);
      }
    } else if (slot.active && col < a.grid.cols) {
      auto* to = reinterpret_cast<uint16_t*>(a.dst + place.dst + col / kEncodeBlock * kBytes);
      for (int i = part; i < kBytes / 2; i += kEncodeLanes) {
        to[i] = reinterpret_cast<const uint16_t*>(own)[i];
      }
    }
    warp_sync();
  }
}

}  // namespace cudabk
