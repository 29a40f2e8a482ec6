// Strided geometries for property tests, and their elementwise definition.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <vector>

#include "tercel/util/span.h"

namespace tercel::test {

using Ints = std::vector<int64_t>;

struct Geometry {
  Ints sizes, strides;
};

inline void showValue(const Geometry& g, std::ostream& os) {  // NOLINT(readability-identifier-naming): RapidCheck's
  rc::show(g.sizes, os);
  os << " @ ";
  rc::show(g.strides, os);
}

/** A size of up to `most`; small and special ones are more frequent. */
inline rc::Gen<int64_t> any_size(int64_t most) {
  return rc::gen::weightedOneOf<int64_t>(
      {{1, rc::gen::just<int64_t>(0)}, {3, rc::gen::just<int64_t>(1)}, {8, rc::gen::inRange<int64_t>(1, most + 1)}});
}

/** Up to `most_dims` dimensions of up to `most_size`, strides in [-most_stride, most_stride], or those of some view. */
inline rc::Gen<Geometry> any_geometry(int64_t most_dims, int64_t most_size, int64_t most_stride) {
  return rc::gen::exec([=] {
    Geometry g;
    const auto ndim = *rc::gen::inRange<int64_t>(0, most_dims + 1);
    const bool view = *rc::gen::inRange(0, 3) > 0;
    int64_t step = 1;
    for (int64_t d = 0; d < ndim; ++d) {
      g.sizes.insert(g.sizes.begin(), *any_size(most_size));
      int64_t stride = *rc::gen::inRange<int64_t>(-most_stride, most_stride + 1);
      if (view) {  // row-major with some steps, gaps, flips and broadcasts
        const int kind = *rc::gen::inRange(0, 12);
        stride = kind == 0 ? 0 : kind == 1 ? -step : kind == 2 ? 2 * step : step;
        step = (kind == 3 ? 1 : 0) + (kind == 2 ? 2 : 1) * step * (g.sizes.front() > 1 ? g.sizes.front() : 1);
      }
      g.strides.insert(g.strides.begin(), stride);
    }
    if (view && ndim > 1 && *rc::gen::inRange(0, 3) == 0) {  // permuted
      const auto a = static_cast<size_t>(*rc::gen::inRange<int64_t>(0, ndim));
      const auto b = static_cast<size_t>(*rc::gen::inRange<int64_t>(0, ndim));
      std::swap(g.sizes[a], g.sizes[b]);
      std::swap(g.strides[a], g.strides[b]);
    }
    return g;
  });
}

inline int64_t count_of(const Ints& sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

/** The offset of every element, in row-major order of the indices. */
inline Ints offsets_of(const Ints& sizes, const Ints& strides) {
  Ints offsets;
  const int64_t n = count_of(sizes);
  offsets.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, offset = 0;
    for (size_t d = sizes.size(); d-- > 0;) {
      offset += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    offsets.push_back(offset);
  }
  return offsets;
}

/** RapidCheck tries a property 100 times; these are cheap, so they run more often. */
template <class Property>
void many_times(const Property& property) {
  for (int i = 0; i < 50; ++i) property();
}

}  // namespace tercel::test
