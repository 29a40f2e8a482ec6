// Transposes short rows into the lanes of vectors.
#pragma once

#include <type_traits>

#include "tercel/ops/common/cpu/simd.h"
#include "tercel/ops/common/cpu/tile_io.h"

namespace tercel::TERCEL_ISA {
namespace {

/** columns[i][row] = element i of row `row`, for kLanes<T> rows of n elements, `stride` bytes apart. */
template <class T>
void transpose_to_lanes(const char* rows, int64_t stride, int64_t n, T* columns) {
  using Square = Transpose<std::conditional_t<sizeof(T) == 8, Item8, Item4>>;
  constexpr int64_t kItem = static_cast<int64_t>(sizeof(T)), kWidth = kLanes<T>, kStep = Square::kStep;
  static_assert(kWidth % kStep == 0);
  for (int64_t first = 0; first < kWidth; first += kStep) {
    const char* in = rows + first * stride;
    T* out = columns + first;
    int64_t i = 0;
    for (; i + kStep <= n; i += kStep)
      Square::square(reinterpret_cast<char*>(out + i * kWidth), kSimdBytes, in + i * kItem, stride);
    for (; i < n; ++i)
      for (int64_t row = 0; row < kStep; ++row) out[i * kWidth + row] = read_as<T>(in + row * stride + i * kItem);
  }
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
