// Tables of 16 in shared memory. Selecting bytes takes 15 integer instructions for 8 codes (frag.h); two codes that are
// one register of a fragment are also one byte, so 256 registers, read by that byte, are all there is: 8 instructions
// and 4 reads. Every lane has its own copy, so that reads never meet in a bank.
#pragma once

#include "formats/frag.h"

namespace cudabk {

// The table or book of the type, if it has one, by all Warps warps of a block; waits for all of them.
template <DType T, int Warps, int Stride = 128>
void fill_frag_lookup() {
  if constexpr (has_frag_lookup(T)) {
    constexpr FragTable kTable = frag_table(T);
    for (int byte = warp(); byte < 256; byte += Warps) {
      const uint32_t codes = static_cast<uint32_t>(byte);
      const uint32_t v = look_up_16(kTable, codes & 0x77, ((codes >> 1) & 0x44) | 0x10);
      constexpr uint32_t kZero = 0xe480e480u;  // -1152: of the magic number and of the table
      shared_memory<uint32_t>()[byte * (Stride / 4) + lane()] = f16x2_add(byte_perm(v, kF16Magic, 0x5150), kZero);
    }
    block_sync();
  }
  fill_frag_book<T>(Warps * kWarpSize);
}

// frag_fragment in blocks that have filled the table; the values themselves where there is one.
template <DType T, int J, int Stride = 128>
void lookup_fragment(const FragWords<frag_shape(T)>& w, uint32_t (&a)[4]) {
  if constexpr (has_frag_lookup(T)) {
    const uint8_t* table = shared_memory<uint8_t>();
    const uint32_t x = w.low[J], place = static_cast<uint32_t>(lane()) * 4;
    if constexpr (Stride == 256) {  // the byte becomes the second byte of the place
      a[0] = *reinterpret_cast<const uint32_t*>(table + byte_perm(x, place, 0x5504));
      a[2] = *reinterpret_cast<const uint32_t*>(table + byte_perm(x, place, 0x5514));
      a[1] = *reinterpret_cast<const uint32_t*>(table + byte_perm(x, place, 0x5524));
      a[3] = *reinterpret_cast<const uint32_t*>(table + byte_perm(x, place, 0x5534));
    } else {
      a[0] = *reinterpret_cast<const uint32_t*>(table + and_or(x << 7, 0x7f80, place));
      a[2] = *reinterpret_cast<const uint32_t*>(table + and_or(x >> 1, 0x7f80, place));
      a[1] = *reinterpret_cast<const uint32_t*>(table + and_or(x >> 9, 0x7f80, place));
      a[3] = *reinterpret_cast<const uint32_t*>(table + and_or(x >> 17, 0x7f80, place));
    }
  } else {
    frag_fragment<T, J>(w, a);
  }
}

}  // namespace cudabk
