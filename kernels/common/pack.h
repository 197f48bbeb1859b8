// Packs: N consecutive elements moved with one load or store of at most 16 bytes.
#pragma once

#include "platform/platform.h"

namespace cudabk {

// ---- one element: to float and back, and between storage types ----

inline float widen(float v) { return v; }
inline float widen(f16 v) { return to_float(v); }
inline float widen(bf16 v) { return to_float(v); }

template <class T>
struct Narrow;  // Narrow<T>::of(float): nearest, ties to even
template <>
struct Narrow<float> {
  static float of(float v) { return v; }
};
template <>
struct Narrow<f16> {
  static f16 of(float v) { return to_f16(v); }
};
template <>
struct Narrow<bf16> {
  static bf16 of(float v) { return to_bf16(v); }
};
template <>
struct Narrow<int32_t> {  // truncation toward zero; saturates, NaN becomes 0
  static int32_t of(float v) {
    if (!(v == v)) {
      return 0;
    }
    if (v >= 2147483648.0f) {
      return 2147483647;
    }
    if (v < -2147483648.0f) {
      return -2147483647 - 1;
    }
    return static_cast<int32_t>(v);
  }
};

// Conversion of one element between storage types; equal types keep their bits.
template <class Dst, class Src>
struct Convert {
  static Dst of(Src v) { return Narrow<Dst>::of(widen(v)); }
};
template <class T>
struct Convert<T, T> {
  static T of(T v) { return v; }
};
template <>
struct Convert<float, int32_t> {
  static float of(int32_t v) { return static_cast<float>(v); }
};

// ---- element <-> bits ----

inline uint32_t element_bits(float v) { return float_bits(v); }
inline uint32_t element_bits(int32_t v) { return static_cast<uint32_t>(v); }
inline uint32_t element_bits(uint32_t v) { return v; }
inline uint32_t element_bits(uint16_t v) { return v; }
inline uint32_t element_bits(f16 v) { return v.bits; }
inline uint32_t element_bits(bf16 v) { return v.bits; }

inline void set_bits(float& v, uint32_t bits) { v = bits_to_float(bits); }
inline void set_bits(int32_t& v, uint32_t bits) { v = static_cast<int32_t>(bits); }
inline void set_bits(uint32_t& v, uint32_t bits) { v = bits; }
inline void set_bits(uint16_t& v, uint32_t bits) { v = static_cast<uint16_t>(bits); }
inline void set_bits(f16& v, uint32_t bits) { v.bits = static_cast<uint16_t>(bits); }
inline void set_bits(bf16& v, uint32_t bits) { v.bits = static_cast<uint16_t>(bits); }

// ---- words of one memory access ----

template <int Words>
struct WordAccess;
template <>
struct WordAccess<1> {
  static void load(const void* p, uint32_t (&w)[1]) { w[0] = *static_cast<const uint32_t*>(p); }
  static void store(void* p, const uint32_t (&w)[1]) { store_whole(static_cast<uint32_t*>(p), w[0]); }
};
template <>
struct WordAccess<2> {
  static void load(const void* p, uint32_t (&w)[2]) {
    const u32x2 v = *static_cast<const u32x2*>(p);
    w[0] = v.x;
    w[1] = v.y;
  }
  static void store(void* p, const uint32_t (&w)[2]) { store_whole(static_cast<u32x2*>(p), u32x2{w[0], w[1]}); }
};
template <>
struct WordAccess<4> {
  static void load(const void* p, uint32_t (&w)[4]) {
    const u32x4 v = *static_cast<const u32x4*>(p);
    w[0] = v.x;
    w[1] = v.y;
    w[2] = v.z;
    w[3] = v.w;
  }
  static void store(void* p, const uint32_t (&w)[4]) {
    store_whole(static_cast<u32x4*>(p), u32x4{w[0], w[1], w[2], w[3]});
  }
};

// Bytes of the pack are 4, 8 or 16 (N > 1); `p` is aligned to them. Plain accesses: source and destination may be the
// same memory.
template <class T, int N>
struct Pack {
  static constexpr int kWords = static_cast<int>(sizeof(T)) * N / 4;
  static constexpr int kPerWord = N / kWords;
  static_assert(kWords * 4 == static_cast<int>(sizeof(T)) * N, "a pack is a whole number of words");

  static void load(const T* p, T (&v)[N]) {
    uint32_t w[kWords];
    WordAccess<kWords>::load(p, w);
    for (int i = 0; i < N; ++i) {
      set_bits(v[i], kPerWord == 1 ? w[i / kPerWord] : (w[i / kPerWord] >> (i % kPerWord * 16)) & 0xffffu);
    }
  }
  static void store(T* p, const T (&v)[N]) {
    uint32_t w[kWords];
    for (int i = 0; i < kWords; ++i) {
      w[i] = kPerWord == 1 ? element_bits(v[i * kPerWord])
                           : element_bits(v[i * kPerWord]) | element_bits(v[i * kPerWord + kPerWord - 1]) << 16;
    }
    WordAccess<kWords>::store(p, w);
  }
};

template <class T>
struct Pack<T, 1> {
  static void load(const T* p, T (&v)[1]) { v[0] = *p; }
  static void store(T* p, const T (&v)[1]) { *p = v[0]; }
};

}  // namespace cudabk
