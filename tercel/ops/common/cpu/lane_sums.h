// Sums of long arrays in enough lanes to keep the adders busy. The number of lanes does not depend on the vector width,
// so every instruction set gives the same bits.
#pragma once

#include "tercel/ops/common/cpu/lanes.h"
#include "tercel/ops/common/cpu/simd.h"
#include "tercel/ops/common/cpu/vec.h"

namespace tercel::TERCEL_ISA {
namespace {

template <class T>
constexpr int64_t kSumLanes = 128 / static_cast<int64_t>(sizeof(T));
template <class T>
constexpr int64_t kSumVectors = kSumLanes<T> / Vec<T>::kSize;

/** Loads and stores whole vectors; `fill` is for the lanes of partial ones. */
template <class T>
struct WholeVector {
  TERCEL_ALWAYS_INLINE Vec<T> load(const T* p, Vec<T> /*fill*/) const { return Vec<T>::load(p); }
  TERCEL_ALWAYS_INLINE Vec<T> load(const T* p) const { return Vec<T>::load(p); }
  TERCEL_ALWAYS_INLINE void store(T* p, Vec<T> v) const { v.store(p); }
};
template <class T>
struct PartialVector {
  int64_t n;
  TERCEL_ALWAYS_INLINE Vec<T> load(const T* p, Vec<T> fill) const { return load_partial(p, n, fill); }
  TERCEL_ALWAYS_INLINE Vec<T> load(const T* p) const { return load_partial(p, n); }
  TERCEL_ALWAYS_INLINE void store(T* p, Vec<T> v) const { store_partial(p, v, n); }
};

/** Calls step(i, vector) for each vector of [0, n); the last one loads and stores only the existing elements. */
template <class T, class Step>
TERCEL_ALWAYS_INLINE void for_vectors(int64_t n, Step step) {
  constexpr int64_t kSize = Vec<T>::kSize;
  int64_t i = 0;
  for (; i + kSize <= n; i += kSize) step(i, WholeVector<T>());
  if (i < n) step(i, PartialVector<T>{n - i});
}

/** Calls step(i, j, vector) like for_vectors(), where j < kSumVectors is the index of the vector of sums to use. */
template <class T, class Step>
TERCEL_ALWAYS_INLINE void for_lane_vectors(int64_t n, Step step) {
  constexpr int64_t kSize = Vec<T>::kSize;
  int64_t i = 0;
  for (; i + kSumLanes<T> <= n; i += kSumLanes<T>) {
    TERCEL_UNROLL
    for (int64_t j = 0; j < kSumVectors<T>; ++j) step(i + j * kSize, j, WholeVector<T>());
  }
  TERCEL_UNROLL
  for (int64_t j = 0; j < kSumVectors<T>; ++j, i += kSize) {
    if (i + kSize <= n) {
      step(i, j, WholeVector<T>());
    } else {
      if (i < n) step(i, j, PartialVector<T>{n - i});
      return;
    }
  }
}

template <class T>
struct LaneSums {
  Vec<T> part[kSumVectors<T>];

  LaneSums() { clear(); }
  TERCEL_ALWAYS_INLINE void clear() {
    TERCEL_UNROLL
    for (auto& p : part) p = Vec<T>(T(0));
  }
  TERCEL_ALWAYS_INLINE T total() const {
    Vec<T> v[kSumVectors<T>];
    TERCEL_UNROLL
    for (int64_t j = 0; j < kSumVectors<T>; ++j) v[j] = part[j];
    TERCEL_UNROLL
    for (int64_t width = kSumVectors<T> / 2; width > 0; width /= 2) {
      TERCEL_UNROLL
      for (int64_t j = 0; j < width; ++j) v[j] = v[j] + v[j + width];
    }
    return first_lane(combine_all_lanes(v[0], [](Vec<T> a, Vec<T> b) { return a + b; }));
  }
};

/** Sum of term(i, vector) over [0, n). */
template <class T, class Term>
TERCEL_ALWAYS_INLINE T lane_sum(int64_t n, Term term) {
  LaneSums<T> sums;
  for_lane_vectors<T>(n, [&](int64_t i, int64_t j, auto vector) { sums.part[j] = sums.part[j] + term(i, vector); });
  return sums.total();
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
