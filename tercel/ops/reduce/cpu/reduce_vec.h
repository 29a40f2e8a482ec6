// Helpers of reductions: vectors of any compute type, and iteration over strided memory.
#pragma once

#include "tercel/ops/common/cpu/int_vec.h"
#include "tercel/ops/common/cpu/lanes.h"
#include "tercel/ops/common/cpu/tile_io.h"
#include "tercel/ops/common/cpu/vec.h"
#include "tercel/ops/reduce/reduce_kernels.h"
#include "tercel/util/complex.h"

namespace tercel::TERCEL_ISA {
namespace {

template <class T>
struct VectorFor {
  using type = IntVec<T>;
};
template <>
struct VectorFor<float> {
  using type = Vec<float>;
};
template <>
struct VectorFor<double> {
  using type = Vec<double>;
};
/** A complex number as a vector of one lane. */
template <class T>
struct ComplexVec {
  static constexpr int64_t kSize = 1;
  T v;

  ComplexVec() = default;
  ComplexVec(T value) : v(value) {}
  static ComplexVec load(const T* p) { return *p; }
  void store(T* p) const { *p = v; }
  friend ComplexVec operator+(ComplexVec a, ComplexVec b) { return a.v + b.v; }
  friend ComplexVec operator*(ComplexVec a, ComplexVec b) { return a.v * b.v; }
};
template <class T>
struct VectorFor<Complex<T>> {
  using type = ComplexVec<Complex<T>>;
};
template <class T>
using AnyVec = typename VectorFor<T>::type;

/** Combines all lanes of integers; the result is in all lanes. */
template <class Op, int kHalf, class T, size_t... kLane>
TERCEL_ALWAYS_INLINE IntVec<T> fold_lanes(IntVec<T> x, std::index_sequence<kLane...> lanes) {
  if constexpr (kHalf == 0)
    return x;
  else
    return fold_lanes<Op, kHalf / 2>(
        Op::combine(x, IntVec<T>(Simd<T>(__builtin_shufflevector(x.v, x.v, (kLane ^ kHalf)...)))), lanes);
}

/** Combines the lanes of a vector to one number. */
template <class Op, class T>
T combine_lanes(AnyVec<T> x) {
  using V = AnyVec<T>;
  if constexpr (std::is_floating_point_v<T>) {
    return first_lane(combine_all_lanes(x, [](V a, V b) { return Op::combine(a, b); }));
  } else if constexpr (std::is_integral_v<T>) {
    constexpr int kSize = static_cast<int>(V::kSize);
    return fold_lanes<Op, kSize / 2>(x, std::make_index_sequence<static_cast<size_t>(kSize)>()).v[0];
  }
  T lanes[2 * V::kSize] = {};
  x.store(lanes);
  for (int64_t half = V::kSize / 2; half > 0; half /= 2)
    Op::combine(V::load(lanes), V::load(lanes + half)).store(lanes);
  return lanes[0];
}
template <class Op, class T>
T combine_numbers(T a, T b) {
  using V = AnyVec<T>;
  T lanes[V::kSize];
  Op::combine(V(a), V(b)).store(lanes);
  return lanes[0];
}

/** A position in several dimensions, the first one fastest. */
struct Odometer {
  static constexpr int kMaxDims = 64;
  int dims;
  const int64_t* sizes;
  int64_t index[kMaxDims];

  Odometer(int num_dims, const int64_t* dim_sizes, int64_t position) : dims(num_dims), sizes(dim_sizes) {
    for (int d = 0; d < dims; ++d) {
      index[d] = position % sizes[d];
      position /= sizes[d];
    }
  }
  int64_t offset(const int64_t* strides) const {
    int64_t sum = 0;
    for (int d = 0; d < dims; ++d) sum += index[d] * strides[d];
    return sum;
  }
  void advance() {
    for (int d = 0; d < dims; ++d) {
      if (++index[d] < sizes[d]) return;
      index[d] = 0;
    }
  }
};

/** Calls fn.template operator()<T>() with the C++ type of a real compute type; the op has rejected complex ones. */
template <class Fn>
void visit_real_compute(Compute compute, Fn fn) {
  switch (compute) {
    case Compute::I32: return fn.template operator()<int32_t>();
    case Compute::I64: return fn.template operator()<int64_t>();
    case Compute::F32: return fn.template operator()<float>();
    case Compute::F64: return fn.template operator()<double>();
    case Compute::U64: return fn.template operator()<uint64_t>();
    case Compute::C64:
    case Compute::C128: break;
  }
}

/** Reads elements of any dtype and stride as a row of T. */
template <class T>
struct RowReader {
  static constexpr int64_t kMax = 4096 / static_cast<int64_t>(sizeof(T));
  int64_t item;
  ConvertFn convert;

  RowReader(ScalarType dtype, Compute compute)
      : item(static_cast<int64_t>(item_size(dtype))),
        convert(dtype == native_dtype(compute) ? nullptr : load_conversion(dtype, compute)) {}
  /** Whether the elements are already a contiguous row of T in memory. */
  bool direct(int64_t stride) const { return !convert && stride == item; }
  /** Reads n <= kMax elements into the tile. */
  void read(T* tile, const char* in, int64_t stride, int64_t n) const {
    if (!convert) return gather(tile, in, stride, n, sizeof(T));
    if (stride == item) return convert(tile, in, n);
    alignas(64) char raw[kMax * 16];
    gather(raw, in, stride, n, static_cast<size_t>(item));
    convert(tile, raw, n);
  }
};

}  // namespace
}  // namespace tercel::TERCEL_ISA
