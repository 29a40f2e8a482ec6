// From columns to rows: squares of as many rows as columns are transposed in registers.
#include "tercel/data/column_kernels.h"

#include <algorithm>
#include <bit>

#include "tercel/data/cpu/lanes.h"

namespace tercel::TERCEL_ISA {

namespace {

template <class V>
TERCEL_ALWAYS_INLINE void transpose(V (&square)[4]) {
  for (int round = 0; round < 2; ++round) {
    const V a = square[0], b = square[1], c = square[2], d = square[3];
    square[0] = __builtin_shufflevector(a, c, 0, 4, 1, 5);
    square[1] = __builtin_shufflevector(a, c, 2, 6, 3, 7);
    square[2] = __builtin_shufflevector(b, d, 0, 4, 1, 5);
    square[3] = __builtin_shufflevector(b, d, 2, 6, 3, 7);
  }
}

template <class V>
TERCEL_ALWAYS_INLINE void transpose(V (&square)[8]) {
  for (int round = 0; round < 3; ++round) {
    V next[8];
    for (int i = 0; i < 4; ++i) {
      next[2 * i] = __builtin_shufflevector(square[i], square[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      next[2 * i + 1] = __builtin_shufflevector(square[i], square[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; ++i) square[i] = next[i];
  }
}

/**
 * load(column, row) gives the values of a column from a row on, load_one(column, row) one. Neither checks bounds.
 * See Note [Overlapping vectors].
 */
template <int Lanes, class T, class Load, class LoadOne>
TERCEL_ALWAYS_INLINE void interleave(const ColumnsLoop<T>& loop, int64_t begin, int64_t end, Load load,
                                     LoadOne load_one) {
  int64_t row = begin;
  if constexpr (Lanes > 1) {
    if (loop.count >= Lanes) {
      for (; row + Lanes <= end; row += Lanes) {
        for (int64_t at = 0; at < loop.count; at += Lanes) {
          const int64_t column = std::min(at, loop.count - Lanes);
          decltype(load(column, row)) square[Lanes];
          for (int i = 0; i < Lanes; ++i) square[i] = load(column + i, row);
          transpose(square);
          for (int i = 0; i < Lanes; ++i) store_as(loop.out + (row + i) * loop.stride + column, square[i]);
        }
      }
    }
  }
  for (int64_t column = 0; column < loop.count; ++column)
    for (int64_t r = row; r < end; ++r) loop.out[r * loop.stride + column] = load_one(column, r);
}

}  // namespace

bool interleave_keys(const KeyColumnsLoop& of, int64_t begin, int64_t end) {
  const KeyColumnsLoop loop = of;  // which no store can change
  using Keys = RowSimd<uint64_t, kKeyLanes>;
  Keys bad{};
  uint64_t bad_rest = 0;
  const auto load = [&](int64_t column, int64_t row) {
    const Keys keys = load_as<Keys>(loop.columns[column] + row) + static_cast<uint64_t>(loop.add[column]);
    bad |= greater(static_cast<Keys>(keys - loop.first_key[column]), Keys{} + loop.key_range[column]);
    return keys;
  };
  const auto load_one = [&](int64_t column, int64_t row) {
    const uint64_t key = static_cast<uint64_t>(loop.columns[column][row]) + static_cast<uint64_t>(loop.add[column]);
    bad_rest |= greater(key - loop.first_key[column], loop.key_range[column]);
    return static_cast<int64_t>(key);
  };
  interleave<kKeyLanes>(loop, begin, end, load, load_one);
  return bad_rest == 0 && !any_bit(bad);
}

bool interleave_floats(const ColumnsLoop<float>& of, int64_t begin, int64_t end) {
  const ColumnsLoop<float> loop = of;
  using Bits = RowSimd<uint32_t, kFloatLanes>;
  Bits bad{};
  uint32_t bad_rest = 0;
  const auto load = [&](int64_t column, int64_t row) {
    const auto bits = load_as<Bits>(loop.columns[column] + row);
    bad |= reinterpret_cast<Bits>((bits & kExponent) == kExponent);
    return bits;
  };
  const auto load_one = [&](int64_t column, int64_t row) {
    const float value = loop.columns[column][row];
    bad_rest |= (std::bit_cast<uint32_t>(value) & kExponent) == kExponent ? 1u : 0u;
    return value;
  };
  interleave<kFloatLanes>(loop, begin, end, load, load_one);
  return bad_rest == 0 && !any_bit(bad);
}

}  // namespace tercel::TERCEL_ISA
