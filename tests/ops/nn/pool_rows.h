// Conformance rows of pooling; see Note [Conformance rows].
#pragma once

#include <cmath>
#include <vector>

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

inline std::vector<Row> pool_rows() {
  using In = const std::vector<Tensor>&;
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
  };
}

}  // namespace tercel::test
