// Code books of the `frag` layout. An entry says which of 8 numbers an octet of elements has, a nibble each, as
// byte_perm takes them: of element e (0 .. 3) of the lower half nibble e / 2 + 2 (e % 2), of the upper half the same 16
// bits above. A lane has half of an octet of rows g and g + 8 in a step of 16, so two lanes look up the same entry and
// take a half each. Books are copied to the beginning of a block's shared memory, where one rotation and one masking of
// a lane's word (frag_place.h) make the place of an entry.
#pragma once

#include "formats/codebooks.h"
#include "formats/frag_place.h"
#include "platform/platform.h"

namespace cudabk {

template <int N>
struct alignas(16) BookSelectors {
  uint32_t entries[N];
};
template <int N>
constexpr BookSelectors<N> book_selectors(const Grid<N>& grid) {
  BookSelectors<N> book{};
  for (int i = 0; i < N; ++i) {
    for (int e = 0; e < 8; ++e) {
      const uint32_t level = static_cast<uint32_t>(grid[static_cast<uint32_t>(i)]) >> (2 * e) & 3;
      book.entries[i] |= level << (16 * (e / 4) + 4 * (e % 4 / 2 + 2 * (e % 2)));
    }
  }
  return book;
}

// The grid of a type, once. A member of a template: part of those modules only that use it.
template <DType T>
constexpr auto frag_book() {
  if constexpr (T == DType::iq2_xxs) {
    return book_selectors(iq2xxs_grid());
  } else if constexpr (T == DType::iq2_xs) {
    return book_selectors(iq2xs_grid());
  } else if constexpr (T == DType::iq2_s) {
    return book_selectors(iq2s_grid());
  } else {
    return book_selectors(iq1s_grid());
  }
}
template <DType T>
struct FragBook {
  static constexpr auto kEntries = frag_book<T>();
};

// Pieces first, first + step ... of 4 entries to shared memory. The entries of iq1 come twice, the second time with the
// numbers of the levels that have a negative shift.
template <DType T>
void copy_frag_book(int first, int step) {
  constexpr int kPieces = static_cast<int>(sizeof(FragBook<T>::kEntries)) / 16;
  const auto* from = reinterpret_cast<const u32x4*>(FragBook<T>::kEntries.entries);
  auto* to = shared_memory<u32x4>();
  for (int i = first; i < kPieces; i += step) {
    const u32x4 v = load_readonly(from + i);
    to[i] = v;
    if constexpr (frag_book_bytes(T) == 2 * kPieces * 16) {
      constexpr uint32_t kShift = 0x44444444u;
      to[kPieces + i] = {v.x | kShift, v.y | kShift, v.z | kShift, v.w | kShift};
    }
  }
}
// By all threads of a block, `threads` of them; waits for all of them.
template <DType T>
void fill_frag_book(int threads) {
  if constexpr (frag_shape(T).has_book()) {
    copy_frag_book<T>(thread_x(), threads);
    block_sync();
  }
}

inline uint32_t rotate_right(uint32_t w, int n) {
  return n == 0 ? w : funnel_shift_right(w, w, static_cast<uint32_t>(n));
}

// The signs of row half H in step J at bit 2 of nibbles 0 .. 3; other bits do not matter. Shifts to the left are
// multiplications, which leave the pipe of logical instructions alone, if they are not joined with one to the right.
template <int H, int J>
uint32_t moved_signs(uint32_t word) {
  constexpr int kBit = frag_sign_bit(J);
  if constexpr (kBit > 2) {
    return word >> (16 * H + kBit - 2);
  } else if constexpr (H == 0) {
    return word << (2 - kBit);
  } else {
    return static_cast<uint32_t>(opaque(static_cast<int>(word >> 16))) << (2 - kBit);
  }
}

// The numbers of a lane's four elements of row half H in step J of a tile, as nibbles 0 .. 3 of the result.
// low, rest: the lane's words of the three planes.
template <FragShape S, int H, int J, int Low, int Rest>
uint32_t book_numbers(const uint32_t (&low)[Low], const uint32_t (&rest)[Rest]) {
  constexpr FragBookPart kFirst = frag_book_part(S, H, J, 0), kSecond = frag_book_part(S, H, J, 1);
  constexpr auto kMask = [](const FragBookPart& p) { return ((1u << p.count) - 1) << (2 + p.first); };
  constexpr auto kTurn = [](const FragBookPart& p) { return (p.bit - p.first - 2 + 32) % 32; };
  uint32_t place = static_cast<uint32_t>(lane()) % 2 * 2;
  place = and_or(rotate_right(kFirst.high ? rest[0] : low[H], kTurn(kFirst)), kMask(kFirst), place);
  if constexpr (kSecond.count != 0) {
    place = and_or(rotate_right(rest[0], kTurn(kSecond)), kMask(kSecond), place);
  }
  const uint32_t entry = shared_half(shared_address(shared_memory<uint8_t>()) + place);
  if constexpr (S.signs) {
    return and_or(moved_signs<H, J>(rest[S.high_words()]), 0x4444, entry);
  }
  return entry;
}

}  // namespace cudabk
