// Linear maps along the spatial dimensions of images: averages and interpolation.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/** Map along one dimension: output i is the sum of weight[t] * input[index[t]] for t in [begin[i], begin[i + 1]). */
struct Taps {
  int64_t in = 1;
  std::vector<int64_t> begin{0}, index;
  std::vector<double> weight;

  int64_t out() const { return static_cast<int64_t>(begin.size()) - 1; }
  void add(int64_t i, double w) {
    index.push_back(i);
    weight.push_back(w);
  }
  void end_output() { begin.push_back(static_cast<int64_t>(index.size())); }
  /** The identity. */
  static Taps identity(int64_t size);
  /** The transposed map, for the gradient. */
  Taps transposed() const;
};

/** The maps along depth, height and width, and a divisor of the results. */
struct SpatialMap {
  std::array<Taps, 3> taps;
  double divisor = 1;
};

/** Applies the map to the last `dims` dimensions of floating x [n, channels, ...]. Recorded as `backward_name`. */
Tensor separable_resize(const char* backward_name, const Tensor& x, size_t dims, SpatialMap map);

}  // namespace tercel
