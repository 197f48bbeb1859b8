// Weights from raw blocks to the `frag` layout (formats/frag_shape.h) and back, bit for bit, and to dense floats.
#pragma once

#include "formats/floats.h"
#include "formats/frag.h"
#include "formats/raw_grid_block.h"
#include "frag/args.h"

namespace cudabk {

// A block of threads works on a unit; one per unit of all slices, looped.
struct UnitPlace {
  int64_t slice, strip, unit;
};
inline UnitPlace unit_place(int64_t index, int m, int units) {
  const int64_t strips = frag_strips(m);
  return {index / units / strips, index / units % strips, index % units};
}

// ---- raw -> frag ----

// Writes a group's entry in a unit.
template <FragShape S>
void put_entry(uint8_t* unit, int row, int group, uint32_t entry) {
  uint8_t* p = unit + frag_entry_offset(S, row, group);
  p[0] = static_cast<uint8_t>(entry);
  if constexpr (S.scale == FragScale::kHalf || S.scale == FragScale::kHalfMin) {
    p[1] = static_cast<uint8_t>(entry >> 8);
  }
  if constexpr (S.scale == FragScale::kByteMin) {
    p[2] = static_cast<uint8_t>(entry >> 8);
  }
  if constexpr (S.scale == FragScale::kHalfMin) {
    p[2] = static_cast<uint8_t>(entry >> 16);
    p[3] = static_cast<uint8_t>(entry >> 24);
  }
}

// Adds the code's bits to the planes, which start as zeros. Two threads may share a word.
template <FragShape S>
void put_code(uint8_t* unit, int row, int k, uint32_t code) {
  const FragPlace low = frag_low_place(S, row, k);
  atomic_add(reinterpret_cast<uint32_t*>(unit + low.offset), (code & ((1u << S.low_bits) - 1)) << low.bit);
  if constexpr (S.high_bits != 0) {
    const FragPlace high = frag_high_place(S, row, k);
    atomic_add(reinterpret_cast<uint32_t*>(unit + high.offset), (code >> S.low_bits) << high.bit);
  }
}

// Adds an entry of the book and the signs of its octet (0 .. 31) to the planes.
template <FragShape S>
void put_octet(uint8_t* unit, int row, int octet, uint32_t number, uint32_t signs) {
  const FragOctet o = frag_octet(row, octet);
  for (int i = 0; i < 2; ++i) {
    const FragBookPart part = frag_book_part(S, o.h, o.j, i);
    const FragBookPlace place = frag_book_place(S, o, part);
    const uint32_t bits = (number >> part.first) & ((1u << part.count) - 1);
    atomic_add(reinterpret_cast<uint32_t*>(unit + place.offset), rotate_right(bits, 32 - part.bit) << place.moved);
  }
  for (int half = 0; S.signs && half < 2; ++half) {
    uint32_t bits = 0;
    for (int e = 4 * half; e < 4 * half + 4; ++e) {
      bits |= (signs >> e & 1) << frag_sign_place(S, row, 8 * octet + e).bit;
    }
    atomic_add(reinterpret_cast<uint32_t*>(unit + frag_sign_place(S, row, 8 * octet + 4 * half).offset), bits);
  }
}

// One unit, from the raw rows of its strip; rows and blocks past the matrix become zeros.
template <DType T>
void pack_unit_of_rows(const RepackArgs& a, const UnitPlace& place, uint8_t* unit) {
  constexpr FragShape S = frag_shape(T);
  constexpr int kElements = block_elements(T), kBytes = block_bytes(T), kGroups = kFragDepth / S.group;
  const int64_t first_row = place.strip * kFragRows, first_block = place.unit * (kFragDepth / kElements);
  const int64_t blocks = a.row_bytes / kBytes;
  const uint8_t* rows = a.src + (place.slice * a.m + first_row) * a.row_bytes;
  constexpr int kCodes = S.has_book() ? kFragDepth / 8 : kFragDepth;
  for (int i = thread_x(); i < kFragRows * kCodes; i += kRepackThreads) {
    const int row = i / kCodes, code = i % kCodes, k = code * (kFragDepth / kCodes);
    const int64_t block = first_block + k / kElements;
    if (first_row + row < a.m && block < blocks) {
      const uint8_t* raw = rows + row * a.row_bytes + block * kBytes;
      if constexpr (S.has_book()) {
        put_octet<S>(unit, row, code, RawBlock<T>::number(raw, code), RawBlock<T>::signs(raw, code));
      } else {
        put_code<S>(unit, row, k, RawBlock<T>::code(raw, k % kElements));
      }
    }
  }
  for (int i = thread_x(); i < kFragRows * kGroups; i += kRepackThreads) {
    const int row = i / kGroups, group = i % kGroups, k = group * S.group;
    const int64_t block = first_block + k / kElements;
    const bool inside = first_row + row < a.m && block < blocks;
    put_entry<S>(unit, row, group,
                 inside ? RawBlock<T>::entry(rows + row * a.row_bytes + block * kBytes, k % kElements / S.group)
                        : frag_empty_entry(S));
  }
  if constexpr (S.row_bytes() != 0) {
    const int row = thread_x();
    if (row < kFragRows && first_row + row < a.m) {
      const uint32_t words = RawBlock<T>::row(rows + row * a.row_bytes + first_block * kBytes);
      for (int i = 0; i < S.row_bytes(); ++i) {
        unit[S.row_offset() + row * S.row_bytes() + i] = static_cast<uint8_t>(words >> (8 * i));
      }
    }
  }
}

// shared: a unit. grid: x = units (looped).
template <DType T>
KERNEL(pack_frag, kRepackThreads)(RepackArgs a) {
  constexpr int kWords = frag_shape(T).unit_bytes() / 16;
  auto* shared = shared_memory<u32x4>();
  wait_for_previous_kernel();
  for (int64_t index = block_x(); index < a.count; index += grid_x()) {
    for (int i = thread_x(); i < kWords; i += kRepackThreads) {
      shared[i] = {0, 0, 0, 0};
    }
    block_sync();
    pack_unit_of_rows<T>(a, unit_place(index, a.m, a.units), reinterpret_cast<uint8_t*>(shared));
    block_sync();
    auto* dst = reinterpret_cast<u32x4*>(a.dst) + index * kWords;
    for (int i = thread_x(); i < kWords; i += kRepackThreads) {
      dst[i] = shared[i];
    }
    block_sync();
  }
  allow_next_kernel();
}

// ---- frag -> raw ----

// A raw block as it stands in a unit: the source of RawBlock<T>::byte.
template <DType T>
struct UnitBlock {
  static constexpr FragShape S = frag_shape(T);
  const uint8_t* unit;
  int place, k;  // row of the unit, first element

  uint32_t bits(FragPlace at, int count) const {
    return (*reinterpret_cast<const uint32_t*>(unit + at.offset) >> at.bit) & ((1u << count) - 1);
  }
  uint32_t code(int i) const {
    uint32_t v = bits(frag_low_place(S, place, k + i), S.low_bits);
    if constexpr (S.high_bits != 0) {
      v |= bits(frag_high_place(S, place, k + i), S.high_bits) << S.low_bits;
    }
    return v;
  }
  // Of types with a book.
  uint32_t number(int octet) const {
    const FragOctet o = frag_octet(place, k / 8 + octet);
    uint32_t v = 0;
    for (int i = 0; i < 2; ++i) {
      const FragBookPart part = frag_book_part(S, o.h, o.j, i);
      const FragBookPlace at = frag_book_place(S, o, part);
      const uint32_t word = *reinterpret_cast<const uint32_t*>(unit + at.offset) >> at.moved;
      v |= (rotate_right(word, part.bit) & ((1u << part.count) - 1)) << part.first;
    }
    return v;
  }
  uint32_t signs(int octet) const {
    uint32_t v = 0;
    for (int e = 0; e < 8; ++e) {
      v |= bits(frag_sign_place(S, place, k + 8 * octet + e), 1) << e;
    }
    return v;
  }
  uint32_t entry(int g) const {
    const uint8_t* p = unit + frag_entry_offset(S, place, k / S.group + g);
    if constexpr (S.scale == FragScale::kHalf) {
      return half_at(p);
    } else if constexpr (S.scale == FragScale::kHalfMin) {
      return word_at(p);
    } else if constexpr (S.scale == FragScale::kByteMin) {
      return p[0] | static_cast<uint32_t>(p[2]) << 8;
    } else {
      return p[0];
    }
  }
  uint32_t row() const {
    const uint8_t* p = unit + S.row_offset() + place * S.row_bytes();
    return S.row_bytes() == 4 ? word_at(p) : half_at(p);
  }
};

// shared: a unit. grid: x = units (looped).
template <DType T>
KERNEL_MIN_BLOCKS(unpack_frag, kRepackThreads, 8)(RepackArgs a) {
  constexpr int kElements = block_elements(T), kBytes = block_bytes(T), kWords = frag_shape(T).unit_bytes() / 16;
  constexpr int kRowBytes = kFragDepth / kElements * kBytes;  // of a unit's row
  auto* shared = shared_memory<u32x4>();
  wait_for_previous_kernel();
  for (int64_t index = block_x(); index < a.count; index += grid_x()) {
    const UnitPlace place = unit_place(index, a.m, a.units);
    const auto* src = reinterpret_cast<const u32x4*>(a.src) + index * kWords;
    for (int i = thread_x(); i < kWords; i += kRepackThreads) {
      shared[i] = load_fresh(src + i);
    }
    block_sync();
    const int64_t first_row = place.strip * kFragRows, first_byte = place.unit * kRowBytes;
    uint8_t* rows = a.dst + (place.slice * a.m + first_row) * a.row_bytes + first_byte;
    for (int i = thread_x(); i < kFragRows * kRowBytes; i += kRepackThreads) {
      const int row = i / kRowBytes, byte = i % kRowBytes;
      if (first_row + row < a.m && first_byte + byte < a.row_bytes) {
        const UnitBlock<T> block{reinterpret_cast<const uint8_t*>(shared), row, byte / kBytes * kElements};
        rows[row * a.row_bytes + byte] = static_cast<uint8_t>(RawBlock<T>::byte(block, byte % kBytes));
      }
    }
    block_sync();
  }
  allow_next_kernel();
}

// ---- frag -> floats ----

template <DType To>
void store_pair(uint8_t* dst, float x, float y) {
  if constexpr (To == DType::f32) {
    *reinterpret_cast<f32x2*>(dst) = {x, y};
  } else {
    *reinterpret_cast<uint32_t*>(dst) = To == DType::f16 ? pack_f16(x, y) : pack_bf16(x, y);
  }
}

// Step J of 16 elements of this lane's rows g and g + 8, decoded to the tile's rows in shared memory.
template <DType T, DType To, int J>
void dequantize_step(const FragWords<frag_shape(T)>& words, const u32x2 (&entries)[2], const FragRowScale (&rows)[2],
                     uint8_t* tile) {
  constexpr FragShape S = frag_shape(T);
  constexpr int kGroup = J * 16 / S.group;
  const f32x2 scales[2] = {group_scale<S, 0, kGroup>(entries[0], rows[0]),
                           group_scale<S, 1, kGroup>(entries[1], rows[1])};
  uint32_t a[4];
  frag_fragment<T, J>(words, a);
  for (int i = 0; i < 4; ++i) {
    const int h = i % 2, row = lane() / 4 + 8 * h, k = 16 * J + 4 * (lane() % 4) + i / 2 * 2;
    const float zero = frag_decoded_zero(S, J % 2, h), factor = frag_row_factor(S, h);
    const float x = low_f16(a[i]) - zero, y = high_f16(a[i]) - zero;
    store_pair<To>(tile + row * frag_tile_row_bytes(block_bytes(To)) + k * block_bytes(To),
                   fma_f(scales[h].x, x, -1024 * scales[h].y) * factor,
                   fma_f(scales[h].x, y, -1024 * scales[h].y) * factor);
  }
}

// A warp's tile to its rows in dst, 16 bytes at a time.
template <DType To>
void store_tile(const uint8_t* tile, uint8_t* dst, int rows, int k, int64_t row_stride) {
  constexpr int kUnit = 16 / block_bytes(To), kUnits = 64 / kUnit;
  for (int i = lane(); i < kFragRows * kUnits; i += kWarpSize) {
    const int row = i / kUnits, unit = i % kUnits;
    if (row < rows && unit * kUnit < k) {
      *reinterpret_cast<u32x4*>(dst + row * row_stride + unit * 16) =
          *reinterpret_cast<const u32x4*>(tile + row * frag_tile_row_bytes(block_bytes(To)) + unit * 16);
    }
  }
}

// A warp decodes a tile. shared: dequantize_frag_shared_bytes. grid: x = units (looped).
template <DType T, DType To>
KERNEL(dequantize_frag, kRepackThreads)(DequantizeFragArgs a) {
  constexpr FragShape S = frag_shape(T);
  auto* tile =
      shared_memory<uint8_t>() + frag_book_bytes(T) + warp() * kFragRows * frag_tile_row_bytes(block_bytes(To));
  fill_frag_book<T>(kRepackThreads);
  wait_for_previous_kernel();
  for (int64_t index = block_x(); index < a.count; index += grid_x()) {
    const UnitPlace place = unit_place(index, a.m, a.units);
    const uint8_t* unit = a.weights + place.slice % a.a2 * a.stride2 + place.slice / a.a2 * a.stride3 +
                          (place.strip * a.units + place.unit) * S.unit_bytes();
    const FragWords<S> words = load_frag_words<S, FragMemory::kConstant>(unit, warp());
    const int g = lane() / 4;
    const u32x2 entries[2] = {load_group_words<S, FragMemory::kConstant>(unit, warp(), g),
                              load_group_words<S, FragMemory::kConstant>(unit, warp(), g + 8)};
    const FragRowScale rows[2] = {row_scale<S, 0>(load_row_words<S, FragMemory::kConstant>(unit, g)),
                                  row_scale<S, 1>(load_row_words<S, FragMemory::kConstant>(unit, g + 8))};
    dequantize_step<T, To, 0>(words, entries, rows, tile);
    dequantize_step<T, To, 1>(words, entries, rows, tile);
    dequantize_step<T, To, 2>(words, entries, rows, tile);
    dequantize_step<T, To, 3>(words, entries, rows, tile);
    warp_sync();
    const int64_t row = place.strip * kFragRows, k = place.unit * kFragDepth + warp() * 64;
    store_tile<To>(tile, a.dst + ((place.slice * a.m + row) * a.k + k) * block_bytes(To),
                   static_cast<int>(a.m - row < kFragRows ? a.m - row : kFragRows),
                   static_cast<int>(a.k - k < 64 ? a.k - k : 64), static_cast<int64_t>(a.k) * block_bytes(To));
    warp_sync();
  }
  allow_next_kernel();
}

}  // namespace cudabk
