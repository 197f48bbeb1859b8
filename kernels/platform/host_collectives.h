// Barriers, shuffles, votes and tensor-core instructions of the emulated GPU: a lane posts its operands, waits for the
// others, and takes its result.
#pragma once

#include <bit>
#include <cstring>

#include "platform/host_state.h"
#include "platform/types.h"

namespace cudabk {

inline void block_sync() { host::arrive_block(); }
inline void warp_sync() { host::arrive_warp(host::Collective::kWarpSync); }

namespace host {

template <class T>
inline T exchange_word(T value, Collective kind, int source) {
  static_assert(sizeof(T) == 4);
  Exchange& exchange = open_exchange();
  exchange.word[current->lane] = std::bit_cast<uint32_t>(value);
  arrive_warp(kind);
  return std::bit_cast<T>(exchange.word[source]);
}

inline bool vote(bool value, Collective kind) {
  Exchange& exchange = open_exchange();
  exchange.word[current->lane] = value ? 1 : 0;
  arrive_warp(kind);
  return exchange.out[0][0] != 0;
}

// Posts A (`na` words) and B (`nb` words) and returns this lane's part of the product.
inline const uint32_t* multiply(Collective kind, const uint32_t* a, int na, const uint32_t* b, int nb) {
  Exchange& exchange = open_exchange();
  uint32_t* in = exchange.in[current->lane];
  std::memcpy(in, a, sizeof(uint32_t) * na);
  std::memcpy(in + na, b, sizeof(uint32_t) * nb);
  arrive_warp(kind);
  return exchange.out[current->lane];
}

inline void accumulate(float (&d)[4], const uint32_t* product) {
  for (int i = 0; i < 4; ++i) {
    d[i] += std::bit_cast<float>(product[i]);
  }
}

template <int N>
inline void accumulate(int32_t (&d)[N], const uint32_t* product) {
  for (int i = 0; i < N; ++i) {
    d[i] = static_cast<int32_t>(static_cast<uint32_t>(d[i]) + product[i]);
  }
}

template <int N>
inline void load_matrices(uint32_t* r, const void* shared_row, Collective kind) {
  Exchange& exchange = open_exchange();
  const auto address = reinterpret_cast<uintptr_t>(shared_row);
  std::memcpy(exchange.in[current->lane], &address, sizeof(address));
  arrive_warp(kind);
  std::memcpy(r, exchange.out[current->lane], sizeof(uint32_t) * N);
}

}  // namespace host

template <class T>
inline T shuffle(T value, int source_lane) {
  return host::exchange_word(value, host::Collective::kShuffle, source_lane & 31);
}
template <class T>
inline T shuffle_xor(T value, int mask) {
  return host::exchange_word(value, host::Collective::kShuffleXor, (host::current->lane ^ mask) & 31);
}
template <class T>
inline T shuffle_down(T value, int delta) {
  const int source = host::current->lane + delta;
  return host::exchange_word(value, host::Collective::kShuffleDown, source < 32 ? source : host::current->lane);
}
inline bool warp_any(bool value) { return host::vote(value, host::Collective::kWarpAny); }
inline bool warp_all(bool value) { return host::vote(value, host::Collective::kWarpAll); }
inline uint32_t warp_max(uint32_t value) {
  for (int mask = 16; mask > 0; mask /= 2) {
    const uint32_t other = shuffle_xor(value, mask);
    value = other > value ? other : value;
  }
  return value;
}

inline void mma_f16_16816(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  host::accumulate(d, host::multiply(host::Collective::kMmaF16K16, a, 4, b, 2));
}
inline void mma_f16_16816(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], const float (&c)[4]) {
  for (int i = 0; i < 4; ++i) {
    d[i] = c[i];
  }
  mma_f16_16816(d, a, b);
}
inline void mma_bf16_16816(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  host::accumulate(d, host::multiply(host::Collective::kMmaBf16K16, a, 4, b, 2));
}
inline void mma_f16_1688(float (&d)[4], const uint32_t (&a)[2], uint32_t b) {
  host::accumulate(d, host::multiply(host::Collective::kMmaF16K8, a, 2, &b, 1));
}
inline void mma_s8_16832(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  host::accumulate(d, host::multiply(host::Collective::kMmaS8K32, a, 4, b, 2));
}
inline void mma_s8_16816(int32_t (&d)[4], const uint32_t (&a)[2], uint32_t b) {
  host::accumulate(d, host::multiply(host::Collective::kMmaS8K16, a, 2, &b, 1));
}
inline void mma_s8_8816(int32_t (&d)[2], uint32_t a, uint32_t b) {
  host::accumulate(d, host::multiply(host::Collective::kMmaS8M8K16, &a, 1, &b, 1));
}

inline void ldmatrix_x4(uint32_t (&r)[4], const void* shared_row) {
  host::load_matrices<4>(r, shared_row, host::Collective::kLdmatrix4);
}
inline void ldmatrix_x2(uint32_t (&r)[2], const void* shared_row) {
  host::load_matrices<2>(r, shared_row, host::Collective::kLdmatrix2);
}
inline void ldmatrix_x1(uint32_t& r, const void* shared_row) {
  host::load_matrices<1>(&r, shared_row, host::Collective::kLdmatrix1);
}
inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void* shared_row) {
  host::load_matrices<4>(r, shared_row, host::Collective::kLdmatrix4Trans);
}
inline void ldmatrix_x2_trans(uint32_t (&r)[2], const void* shared_row) {
  host::load_matrices<2>(r, shared_row, host::Collective::kLdmatrix2Trans);
}
inline void ldmatrix_x1_trans(uint32_t& r, const void* shared_row) {
  host::load_matrices<1>(&r, shared_row, host::Collective::kLdmatrix1Trans);
}

}  // namespace cudabk
