// Shared memory and loads or stores with a cache hint.
#pragma once

namespace cudabk {

extern __shared__ __align__(128) unsigned char block_shared_memory[];

// The block's dynamic shared memory, 128-byte aligned.
template <class T>
__forceinline__ T* shared_memory() {
  return reinterpret_cast<T*>(block_shared_memory);
}

// Address in the shared window, as PTX instructions take it.
__forceinline__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
// The word at an address of shared memory that no one writes any more.
__forceinline__ uint32_t shared_word(uint32_t address) {
  uint32_t v;
  asm("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address));
  return v;
}
__forceinline__ uint32_t shared_half(uint32_t address) {
  uint32_t v;
  asm("ld.shared.u16 %0, [%1];" : "=r"(v) : "r"(address));
  return v;
}

// *p in shared memory where `wanted`; else v stays as it is.
__forceinline__ void load_shared_if(bool wanted, const u32x2* p, u32x2& v) {
  asm volatile(
      "{\n"
      ".reg .pred wanted;\n"
      "setp.ne.s32 wanted, %2, 0;\n"
      "@wanted ld.shared.v2.u32 {%0, %1}, [%3];\n"
      "}"
      : "+r"(v.x), "+r"(v.y)
      : "r"(static_cast<int>(wanted)), "r"(shared_address(p)));
}
__forceinline__ void load_shared_if(bool wanted, const u32x4* p, u32x4& v) {
  asm volatile(
      "{\n"
      ".reg .pred wanted;\n"
      "setp.ne.s32 wanted, %4, 0;\n"
      "@wanted ld.shared.v4.u32 {%0, %1, %2, %3}, [%5];\n"
      "}"
      : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
      : "r"(static_cast<int>(wanted)), "r"(shared_address(p)));
}

// One overload per access width. The loads are volatile so that none moves above wait_for_previous_kernel().
namespace detail {

__forceinline__ void load_nc(uint16_t& v, const void* p) {
  asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(v) : "l"(p));
}
__forceinline__ void load_nc(uint32_t& v, const void* p) {
  asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(p));
}
__forceinline__ void load_nc(u32x2& v, const void* p) {
  asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
}
__forceinline__ void load_nc(u32x4& v, const void* p) {
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
}
__forceinline__ void load_nc(uint8_t& v, const void* p) {
  uint32_t wide;
  asm volatile("ld.global.nc.u8 %0, [%1];" : "=r"(wide) : "l"(p));
  v = static_cast<uint8_t>(wide);
}

__forceinline__ void load_plain(uint16_t& v, const void* p) {
  asm volatile("ld.global.u16 %0, [%1];" : "=h"(v) : "l"(p) : "memory");
}
__forceinline__ void load_plain(uint32_t& v, const void* p) {
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
}
__forceinline__ void load_plain(u32x2& v, const void* p) {
  asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p) : "memory");
}
__forceinline__ void load_plain(u32x4& v, const void* p) {
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p)
               : "memory");
}

__forceinline__ void load_no_l1(uint16_t& v, const void* p) {
  asm volatile("ld.global.nc.L1::no_allocate.u16 %0, [%1];" : "=h"(v) : "l"(p));
}
__forceinline__ void load_no_l1(uint32_t& v, const void* p) {
  asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(p));
}
__forceinline__ void load_no_l1(u32x2& v, const void* p) {
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
}
__forceinline__ void load_no_l1(u32x4& v, const void* p) {
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
}
__forceinline__ void load_no_l1(uint8_t& v, const void* p) {
  uint32_t wide;
  asm volatile("ld.global.nc.L1::no_allocate.u8 %0, [%1];" : "=r"(wide) : "l"(p));
  v = static_cast<uint8_t>(wide);
}

__forceinline__ void store_cs(void* p, uint16_t v) {
  asm volatile("st.global.cs.u16 [%0], %1;" ::"l"(p), "h"(v) : "memory");
}
__forceinline__ void store_cs(void* p, uint32_t v) {
  asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__forceinline__ void store_cs(void* p, u32x2 v) {
  asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(v.x), "r"(v.y) : "memory");
}
__forceinline__ void store_cs(void* p, u32x4 v) {
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
__forceinline__ void store_cs(void* p, uint8_t v) {
  asm volatile("st.global.cs.u8 [%0], %1;" ::"l"(p), "r"(static_cast<uint32_t>(v)) : "memory");
}

__forceinline__ void store_plain(void* p, uint32_t v) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__forceinline__ void store_plain(void* p, u32x2 v) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(v.x), "r"(v.y) : "memory");
}
__forceinline__ void store_plain(void* p, u32x4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// The register type that carries an aggregate of `Bytes` bytes.
template <int Bytes>
struct Carrier;
template <>
struct Carrier<1> {
  using Type = uint8_t;
};
template <>
struct Carrier<2> {
  using Type = uint16_t;
};
template <>
struct Carrier<4> {
  using Type = uint32_t;
};
template <>
struct Carrier<8> {
  using Type = u32x2;
};
template <>
struct Carrier<16> {
  using Type = u32x4;
};

}  // namespace detail

// Data that no one writes from the kernel's start on. With launch overlap a kernel starts before the one before it has
// ended: what that one writes must be read with load_fresh, or this SM's cache may still hold what was there before.
template <class T>
__forceinline__ T load_readonly(const T* p) {
  typename detail::Carrier<sizeof(T)>::Type raw;
  detail::load_nc(raw, p);
  return __builtin_bit_cast(T, raw);
}
// Data that an earlier kernel writes; after wait_for_previous_kernel().
template <class T>
__forceinline__ T load_fresh(const T* p) {
  typename detail::Carrier<sizeof(T)>::Type raw;
  detail::load_plain(raw, p);
  return __builtin_bit_cast(T, raw);
}
// Like load_readonly, for data used once: it takes no place in L1.
template <class T>
__forceinline__ T load_streaming(const T* p) {
  typename detail::Carrier<sizeof(T)>::Type raw;
  detail::load_no_l1(raw, p);
  return __builtin_bit_cast(T, raw);
}
// One access of 4, 8 or 16 bytes: the compiler splits a plain assignment where it cannot prove the alignment.
template <class T>
__forceinline__ void store_whole(T* p, T v) {
  detail::store_plain(p, __builtin_bit_cast(typename detail::Carrier<sizeof(T)>::Type, v));
}
// Results that this kernel does not read again: evicted first.
template <class T>
__forceinline__ void store_streaming(T* p, T v) {
  detail::store_cs(p, __builtin_bit_cast(typename detail::Carrier<sizeof(T)>::Type, v));
}

}  // namespace cudabk
