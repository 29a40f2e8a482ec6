// Conformance rows of interpolation and shuffled pixels; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tercel/ops/nn/interpolate.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** A map of each of the last dimensions given by weight(out, in). */
template <class Weight>
Row interpolate_row(const std::string& name, const Sizes& x, const Sizes& size, const InterpolateOptions& options,
                    Weight weight) {
  Row row;
  row.name = name;
  row.inputs = {{x}};
  row.run = [options](const std::vector<Tensor>& in) { return interpolate(in[0], options); };
  row.reference = [x, size, weight](const std::vector<Tensor>& in) {
    std::vector<double> values = values_of(in[0]);
    Sizes sizes = x;
    for (size_t d = 0; d < size.size(); ++d) {
      const size_t dim = x.size() - size.size() + d;
      int64_t outer = 1, inner = 1;
      for (size_t i = 0; i < dim; ++i) outer *= sizes[i];
      for (size_t i = dim + 1; i < sizes.size(); ++i) inner *= sizes[i];
      std::vector<double> out(static_cast<size_t>(outer * size[d] * inner), 0);
      for (int64_t a = 0; a < outer; ++a)
        for (int64_t o = 0; o < size[d]; ++o)
          for (int64_t i = 0; i < sizes[dim]; ++i)
            for (int64_t b = 0; b < inner; ++b)
              out[static_cast<size_t>((a * size[d] + o) * inner + b)] +=
                  weight(o, i, size[d], sizes[dim]) * values[static_cast<size_t>((a * sizes[dim] + i) * inner + b)];
      values = out;
      sizes[dim] = size[d];
    }
    return make(sizes, kFloat64, values);
  };
  row.ulps = 64;
  row.scale = 64;
  row.bitwise = false;
  return row;
}

inline double tent(double distance) { return std::max(0.0, 1 - std::abs(distance)); }
inline double keys_cubic(double distance) {
  const double d = std::abs(distance), a = -0.75;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}
/** Weight of input i in output o: the kernel's, those of outside pixels going to the border. */
template <class Kernel>
double bordered(Kernel kernel, double at, int64_t i, int64_t in) {
  double sum = kernel(at - static_cast<double>(i));
  for (int64_t outside = 1; outside <= 3; ++outside) {
    if (i == 0) sum += kernel(at + static_cast<double>(outside));
    if (i == in - 1) sum += kernel(at - static_cast<double>(in - 1 + outside));
  }
  return sum;
}

inline Row shuffle_row(const std::string& name, const Sizes& x, bool back) {
  Row row;
  row.name = name;
  row.inputs = {{x}};
  row.run = [back](const std::vector<Tensor>& in) {
    return back ? pixel_unshuffle(in[0], 2) : pixel_shuffle(in[0], 2);
  };
  row.reference = [back](const std::vector<Tensor>& in) {
    const std::vector<double> from = values_of(in[0]);
    // Many channels of h x w, or a quarter of them of 2 h x 2 w.
    const int64_t c = back ? in[0].size(1) : in[0].size(1) / 4, h = back ? in[0].size(2) / 2 : in[0].size(2),
                  w = back ? in[0].size(3) / 2 : in[0].size(3), n = in[0].size(0);
    std::vector<double> out(from.size());
    for (int64_t i = 0; i < n * c; ++i)
      for (int64_t b = 0; b < 4; ++b)
        for (int64_t y = 0; y < h; ++y)
          for (int64_t z = 0; z < w; ++z) {
            const auto deep = static_cast<size_t>(((i * 4 + b) * h + y) * w + z),
                       wide = static_cast<size_t>((i * 2 * h + 2 * y + b / 2) * 2 * w + 2 * z + b % 2);
            if (back)
              out[deep] = from[wide];
            else
              out[wide] = from[deep];
          }
    return make(back ? Sizes{n, 4 * c, h, w} : Sizes{n, c, 2 * h, 2 * w}, kFloat64, out);
  };
  return row;
}

inline std::vector<Row> interpolate_rows() {
  InterpolateOptions nearest, exact, linear, bilinear, corners, cubic, trilinear, smooth, smooth_cubic;
  nearest.size = {7, 3};
  exact.size = {7, 3};
  exact.mode = InterpolateMode::NearestExact;
  linear.size = {11};
  linear.mode = InterpolateMode::Linear;
  bilinear.scale_factor = {2, 0.5};
  bilinear.mode = InterpolateMode::Bilinear;
  corners.size = {3, 8};
  corners.mode = InterpolateMode::Bilinear;
  corners.align_corners = true;
  cubic.size = {7, 9};
  cubic.mode = InterpolateMode::Bicubic;
  trilinear.size = {3, 4, 5};
  trilinear.mode = InterpolateMode::Trilinear;
  const auto centre = [](int64_t o, int64_t out, int64_t in) {
    return (static_cast<double>(o) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5;
  };
  smooth.size = {4, 6};
  smooth.mode = InterpolateMode::Bilinear;
  smooth_cubic.size = {4, 7};
  smooth_cubic.mode = InterpolateMode::Bicubic;
  smooth.antialias = smooth_cubic.antialias = true;
  // A filter as wide as the pixels of the result, its weights with the sum 1.
  const auto smoothed = [centre](auto filter) {
    return [centre, filter](int64_t o, int64_t i, int64_t out, int64_t in) {
      const double width = std::max(static_cast<double>(in) / static_cast<double>(out), 1.0);
      const auto weight = [&](int64_t k) { return filter((centre(o, out, in) - static_cast<double>(k)) / width); };
      double total = 0;
      for (int64_t k = 0; k < in; ++k) total += weight(k);
      return weight(i) / total;
    };
  };
  const auto linear_weight = [centre](int64_t o, int64_t i, int64_t out, int64_t in) {
    return bordered(tent, centre(o, out, in), i, in);
  };
  return {
      interpolate_row("interpolate_nearest", {2, 3, 4, 5}, {7, 3}, nearest,
                      [](int64_t o, int64_t i, int64_t out, int64_t in) { return o * in / out == i ? 1.0 : 0.0; }),
      interpolate_row(
          "interpolate_nearest_exact", {2, 3, 4, 5}, {7, 3}, exact,
          [](int64_t o, int64_t i, int64_t out, int64_t in) { return (2 * o + 1) * in / (2 * out) == i ? 1.0 : 0.0; }),
      interpolate_row("interpolate_linear", {2, 3, 6}, {11}, linear, linear_weight),
      interpolate_row("interpolate_bilinear", {2, 3, 4, 6}, {8, 3}, bilinear, linear_weight),
      interpolate_row("interpolate_corners", {2, 3, 4, 5}, {3, 8}, corners,
                      [](int64_t o, int64_t i, int64_t out, int64_t in) {
                        return tent(static_cast<double>(o * (in - 1)) / static_cast<double>(out - 1) -
                                    static_cast<double>(i));
                      }),
      interpolate_row("interpolate_bicubic", {2, 2, 4, 5}, {7, 9}, cubic,
                      [centre](int64_t o, int64_t i, int64_t out, int64_t in) {
                        return bordered(keys_cubic, centre(o, out, in), i, in);
                      }),
      interpolate_row("interpolate_bilinear_antialias", {2, 2, 9, 4}, {4, 6}, smooth, smoothed(tent)),
      interpolate_row("interpolate_bicubic_antialias", {2, 2, 11, 5}, {4, 7}, smooth_cubic, smoothed([](double t) {
                        t = std::abs(t);
                        if (t < 1) return (1.5 * t - 2.5) * t * t + 1;
                        return t < 2 ? ((-0.5 * t + 2.5) * t - 4) * t + 2 : 0.0;
                      })),
      interpolate_row("interpolate_trilinear", {1, 2, 2, 3, 4}, {3, 4, 5}, trilinear, linear_weight),
      shuffle_row("pixel_shuffle", {2, 8, 3, 2}, false),
      shuffle_row("pixel_unshuffle", {2, 2, 6, 4}, true),
  };
}

}  // namespace tercel::test
