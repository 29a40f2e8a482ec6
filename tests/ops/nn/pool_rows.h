// Conformance rows of pooling and interpolation; see Note [Conformance rows].
#pragma once

#include <cmath>
#include <vector>

#include "tercel/ops/nn/interpolate.h"
#include "tercel/ops/nn/pool.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** A window in one dimension: [begin, end) with the padding, and the step inside. */
struct PoolWindow {
  int64_t begin, end, step;
};
using PoolWindows = std::vector<PoolWindow>;

/** Windows of pooling. */
inline PoolWindows pool_windows(int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation = 1) {
  PoolWindows w;
  for (int64_t o = 0; o < out; ++o)
    w.push_back({o * stride - padding, o * stride - padding + dilation * (kernel - 1) + 1, dilation});
  return w;
}
/** Windows of adaptive pooling. */
inline PoolWindows adaptive_windows(int64_t in, int64_t out) {
  PoolWindows w;
  for (int64_t o = 0; o < out; ++o) w.push_back({o * in / out, ((o + 1) * in + out - 1) / out, 1});
  return w;
}

/** Maximum or mean of windows of the last three dimensions of x; the mean includes or excludes padding. */
inline Tensor pool_reference(const Tensor& x, const std::vector<PoolWindows>& windows, bool largest,
                             bool count_padding) {
  const size_t dims = windows.size();
  std::vector<PoolWindows> w(3 - dims, PoolWindows{{0, 1, 1}});
  w.insert(w.end(), windows.begin(), windows.end());
  int64_t in[3] = {1, 1, 1};
  Sizes sizes(x.sizes().begin(), x.sizes().end());
  for (size_t d = 0; d < dims; ++d) {
    in[3 - dims + d] = sizes[sizes.size() - dims + d];
    sizes[sizes.size() - dims + d] = static_cast<int64_t>(windows[d].size());
  }
  const std::vector<double> from = values_of(x);
  const int64_t pixels = in[0] * in[1] * in[2];
  std::vector<double> out;
  for (int64_t plane = 0; plane < x.numel() / pixels; ++plane)
    for (const PoolWindow& a : w[0])
      for (const PoolWindow& b : w[1])
        for (const PoolWindow& c : w[2]) {
          double best = -INFINITY, sum = 0, inside = 0;
          for (int64_t i = a.begin; i < a.end; i += a.step)
            for (int64_t j = b.begin; j < b.end; j += b.step)
              for (int64_t k = c.begin; k < c.end; k += c.step) {
                if (i < 0 || j < 0 || k < 0 || i >= in[0] || j >= in[1] || k >= in[2]) continue;
                const double v = from[static_cast<size_t>(plane * pixels + (i * in[1] + j) * in[2] + k)];
                best = std::max(best, v);
                sum += v;
                inside += 1;
              }
          const auto all = static_cast<double>((a.end - a.begin) * (b.end - b.begin) * (c.end - c.begin));
          out.push_back(largest ? best : sum / (count_padding ? all : inside));
        }
  return make(sizes, kFloat64, out);
}

inline Row pool_row(const std::string& name, const Sizes& x, const std::vector<PoolWindows>& windows, bool largest,
                    const Function& run, bool count_padding = true) {
  Row row;
  row.name = name;
  row.inputs = {{x}};
  row.run = run;
  row.reference = [=](const std::vector<Tensor>& in) { return pool_reference(in[0], windows, largest, count_padding); };
  row.ulps = 8;
  row.scale = largest ? 0 : 8;
  return row;
}

/** A linear map of each of the last dimensions, given by weight(out, in). */
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
/** Weight of input i in output o; weights of pixels outside go to the border. */
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

inline std::vector<Row> pool_rows() {
  using In = const std::vector<Tensor>&;
  InterpolateOptions nearest, exact, linear, bilinear, corners, cubic, area, trilinear, smooth, smooth_cubic;
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
      pool_row("max_pool1d", {2, 3, 9}, {pool_windows(5, 3, 2, 1)}, true,
               [](In in) { return max_pool1d(in[0], {3}, {2}, {1}, {1}, false); }),
      pool_row("max_pool2d", {2, 3, 6, 8}, {pool_windows(3, 2, 2, 0), pool_windows(4, 2, 2, 0)}, true,
               [](In in) { return max_pool2d(in[0], {2}); }),
      pool_row("max_pool2d_dilated", {2, 2, 7, 9}, {pool_windows(4, 3, 2, 1), pool_windows(7, 2, 1, 0, 2)}, true,
               [](In in) {
                 return max_pool2d(in[0], {3, 2}, {2, 1}, {1, 0}, {1, 2});
               }),
      pool_row("max_pool2d_ceil", {2, 2, 6, 7}, {pool_windows(3, 3, 2, 0), pool_windows(4, 3, 2, 1)}, true,
               [](In in) {
                 return max_pool2d_with_indices(in[0], {3}, {2}, {0, 1}, {1}, true).values;
               }),
      pool_row("max_pool3d", {2, 2, 4, 5, 6},
               {pool_windows(2, 2, 2, 0), pool_windows(4, 2, 1, 0), pool_windows(3, 3, 2, 1)}, true,
               [](In in) {
                 return max_pool3d(in[0], {2, 2, 3}, {2, 1, 2}, {0, 0, 1});
               }),
      pool_row("max_pool1d_with_indices", {2, 9}, {pool_windows(3, 3, 3, 0)}, true,
               [](In in) { return max_pool1d_with_indices(in[0], {3}).values; }),
      pool_row("max_pool3d_with_indices", {2, 4, 2, 2},
               {pool_windows(2, 2, 2, 0), pool_windows(1, 2, 2, 0), pool_windows(1, 2, 2, 0)}, true,
               [](In in) { return max_pool3d_with_indices(in[0], {2}).values; }),
      pool_row("avg_pool1d", {2, 3, 9}, {pool_windows(4, 3, 2, 0)}, false,
               [](In in) { return avg_pool1d(in[0], {3}, {2}); }),
      pool_row(
          "avg_pool2d", {2, 3, 6, 8}, {pool_windows(4, 3, 2, 1), pool_windows(4, 2, 2, 0)}, false,
          [](In in) {
            return avg_pool2d(in[0], {3, 2}, {2}, {1, 0}, true, false);
          },
          false),
      pool_row("avg_pool2d_padded", {2, 3, 6, 7}, {pool_windows(6, 3, 1, 1), pool_windows(7, 3, 1, 1)}, false,
               [](In in) { return avg_pool2d(in[0], {3}, {1}, {1}); }),
      pool_row(
          "avg_pool2d_inside", {2, 3, 6, 7}, {pool_windows(6, 3, 1, 1), pool_windows(7, 3, 1, 1)}, false,
          [](In in) { return avg_pool2d(in[0], {3}, {1}, {1}, false, false); }, false),
      pool_row("avg_pool3d", {2, 2, 4, 5, 6},
               {pool_windows(2, 2, 2, 0), pool_windows(2, 2, 2, 0), pool_windows(3, 2, 2, 0)}, false,
               [](In in) { return avg_pool3d(in[0], {2}); }),
      pool_row("adaptive_avg_pool1d", {2, 3, 10}, {adaptive_windows(10, 4)}, false,
               [](In in) { return adaptive_avg_pool1d(in[0], {4}); }),
      pool_row("adaptive_avg_pool2d", {2, 3, 7, 5}, {adaptive_windows(7, 3), adaptive_windows(5, 6)}, false,
               [](In in) {
                 return adaptive_avg_pool2d(in[0], {3, 6});
               }),
      pool_row("adaptive_avg_pool3d", {2, 2, 4, 5, 3},
               {adaptive_windows(4, 3), adaptive_windows(5, 2), adaptive_windows(3, 1)}, false,
               [](In in) {
                 return adaptive_avg_pool3d(in[0], {3, 2, 1});
               }),
      pool_row("adaptive_max_pool1d", {2, 3, 10}, {adaptive_windows(10, 4)}, true,
               [](In in) { return adaptive_max_pool1d(in[0], {4}).values; }),
      pool_row("adaptive_max_pool2d", {2, 3, 7, 5}, {adaptive_windows(7, 3), adaptive_windows(5, 6)}, true,
               [](In in) {
                 return adaptive_max_pool2d(in[0], {3, 6}).values;
               }),
      pool_row("adaptive_max_pool3d", {2, 2, 4, 5, 3},
               {adaptive_windows(4, 3), adaptive_windows(5, 2), adaptive_windows(3, 1)}, true,
               [](In in) {
                 return adaptive_max_pool3d(in[0], {3, 2, 1}).values;
               }),
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
