// The few best keys of short lines, one line per vector lane.
//
//   for element i of the lines:  if its key is less than the worst kept key in any line:
//     for position j from the last:  best[j] = key < best[j - 1] ? best[j - 1] : key < best[j] ? key : best[j]
#pragma once

#include "tercel/ops/common/cpu/transpose_to_lanes.h"
#include "tercel/ops/sort/cpu/order_statistics.h"

namespace tercel::TERCEL_ISA {
namespace {

/** Maximum number of keys kept in registers, and maximum length of a short line. */
constexpr int64_t kMaxInLanes = 10, kShortLine = 256;

/** Inserts key into `count` sorted keys, after equal ones; drops the last. */
template <class K>
TERCEL_ALWAYS_INLINE void insert_key(Simd<K>* best, Simd<K>* at, int count, Simd<K> key, Simd<K> position) {
  TERCEL_UNROLL
  for (int j = count - 1; j > 0; --j) {
    const auto here = key < best[j], above = key < best[j - 1];
    best[j] = above ? best[j - 1] : here ? key : best[j];
    at[j] = above ? at[j - 1] : here ? position : at[j];
  }
  const auto first = key < best[0];
  best[0] = first ? key : best[0];
  at[0] = first ? position : at[0];
}

/** keys[j], where[j] = the j-th key of kLanes<K> lines of n keys, and its position; equal keys keep their order. */
template <int kDepth, class K>
void best_in_lanes(const K* columns, int64_t n, K* keys, K* where) {
  Simd<K> best[kDepth], at[kDepth];
  // Starts without sentinels: keys may have any value.
  TERCEL_UNROLL
  for (int i = 0; i < kDepth; ++i) {
    const Simd<K> key = load(columns + i * kLanes<K>), position = broadcast(static_cast<K>(i));
    // Appends the key, then moves it before greater ones.
    best[i] = key;
    at[i] = position;
    if (i > 0) {
      const auto above = key < best[i - 1];
      best[i] = above ? best[i - 1] : key;
      at[i] = above ? at[i - 1] : position;
      insert_key<K>(best, at, i, key, position);
    }
  }
  for (int64_t i = kDepth; i < n; ++i) {
    const Simd<K> key = load(columns + i * kLanes<K>);
    if (less_bits<K>(key, best[kDepth - 1]) != 0) insert_key<K>(best, at, kDepth, key, broadcast(static_cast<K>(i)));
  }
  TERCEL_UNROLL
  for (int j = 0; j < kDepth; ++j) {
    store(keys + j * kLanes<K>, best[j]);
    store(where + j * kLanes<K>, at[j]);
  }
}

/** The smallest available depth for k. */
constexpr int64_t lanes_depth(int64_t k) { return k <= 3 ? k : k <= 5 ? 5 : kMaxInLanes; }

/** indices[line][j] = position of the j-th key, for kLanes<K> contiguous lines of lanes_depth(k) to kShortLine keys. */
template <class K>
void top_of_lanes(const K* lines, int64_t n, int64_t k, int64_t* indices) {
  constexpr int64_t kWidth = kLanes<K>;
  alignas(64) K columns[kShortLine * kWidth];
  alignas(64) K keys[kMaxInLanes * kWidth], where[kMaxInLanes * kWidth];
  transpose_to_lanes(reinterpret_cast<const char*>(lines), n * static_cast<int64_t>(sizeof(K)), n, columns);
  switch (lanes_depth(k)) {
    case 1: best_in_lanes<1>(columns, n, keys, where); break;
    case 2: best_in_lanes<2>(columns, n, keys, where); break;
    case 3: best_in_lanes<3>(columns, n, keys, where); break;
    case 5: best_in_lanes<5>(columns, n, keys, where); break;
    default: best_in_lanes<kMaxInLanes>(columns, n, keys, where); break;
  }
  for (int64_t line = 0; line < kWidth; ++line)
    for (int64_t j = 0; j < k; ++j) indices[line * k + j] = where[j * kWidth + line];
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
