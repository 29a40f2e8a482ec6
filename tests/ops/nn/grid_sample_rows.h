// Conformance rows of grid_sample(); see Note [Conformance rows].
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "tercel/ops/nn/grid_sample.h"
#include "tests/ops/rows.h"

namespace tercel::test {

struct GridCase {
  GridMode mode = GridMode::Bilinear;
  GridPadding padding = GridPadding::Zeros;
  bool align_corners = false;
};

/** The position mapped inside the image by the padding mode. */
inline double inside_of(const GridCase& c, double at, int64_t size) {
  const double last = static_cast<double>(size - 1), low = c.align_corners ? 0 : -0.5,
               high = c.align_corners ? last : last + 0.5;
  if (c.padding == GridPadding::Zeros) return at;
  if (c.padding == GridPadding::Reflection)
    while (at < low || at > high) at = at < low ? 2 * low - at : 2 * high - at;
  return std::min(std::max(at, 0.0), last);
}

/** Pixels and weights for position `at` (-1 to 1) of a dimension. */
inline std::vector<std::pair<int64_t, double>> grid_taps(const GridCase& c, double at, int64_t size) {
  const double n = static_cast<double>(size), pixel = c.align_corners ? (at + 1) / 2 * (n - 1) : ((at + 1) * n - 1) / 2;
  const auto keys = [](double d) {
    const double a = -0.75;
    d = std::abs(d);
    if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
    return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
  };
  std::vector<std::pair<int64_t, double>> out;
  if (c.mode == GridMode::Bicubic) {
    const double first = std::floor(pixel);
    for (double k = first - 1; k <= first + 2; ++k)
      out.emplace_back(static_cast<int64_t>(inside_of(c, k, size)), keys(pixel - k));
  } else if (c.mode == GridMode::Nearest) {
    out.emplace_back(static_cast<int64_t>(std::nearbyint(inside_of(c, pixel, size))), 1.0);
  } else {
    const double in = inside_of(c, pixel, size), first = std::floor(in);
    out.emplace_back(static_cast<int64_t>(first), first + 1 - in);
    out.emplace_back(static_cast<int64_t>(first) + 1, in - first);
  }
  return out;
}

inline Row grid_row(const std::string& name, const Sizes& x, const Sizes& grid, const GridCase& c) {
  Row row;
  row.name = name;
  row.inputs = {{x}, {grid, -1.6, 1.6, ScalarType::Undefined, c.mode != GridMode::Nearest}};
  row.run = [c](const std::vector<Tensor>& in) {
    return grid_sample(in[0], in[1], c.mode, c.padding, c.align_corners);
  };
  row.reference = [c, x, grid](const std::vector<Tensor>& in) {
    const std::vector<double> values = values_of(in[0]), at = values_of(in[1]);
    const size_t dims = x.size() - 2;
    size_t points = 1, pixels = 1;
    for (size_t d = 0; d < dims; ++d) {
      points *= static_cast<size_t>(grid[d + 1]);
      pixels *= static_cast<size_t>(x[d + 2]);
    }
    std::vector<double> out;
    for (size_t n = 0; n < static_cast<size_t>(x[0]); ++n) {
      for (size_t channel = 0; channel < static_cast<size_t>(x[1]); ++channel) {
        const double* image = &values[(n * static_cast<size_t>(x[1]) + channel) * pixels];
        for (size_t p = 0; p < points; ++p) {
          std::vector<std::pair<int64_t, double>> all = {{0, 1.0}};
          for (size_t d = 0; d < dims; ++d) {
            std::vector<std::pair<int64_t, double>> next;
            for (const auto& [index, weight] : all)
              for (const auto& [i, w] : grid_taps(c, at[(n * points + p) * dims + dims - 1 - d], x[d + 2]))
                if (i >= 0 && i < x[d + 2]) next.emplace_back(index * x[d + 2] + i, weight * w);
            all = next;
          }
          double sum = 0;
          for (const auto& [index, weight] : all) sum += image[index] * weight;
          out.push_back(sum);
        }
      }
    }
    Sizes sizes = {x[0], x[1]};
    for (size_t d = 0; d < dims; ++d) sizes.push_back(grid[d + 1]);
    return make(sizes, kFloat64, out);
  };
  row.dtypes = {kFloat32, kFloat64};
  row.ulps = 64;
  row.scale = 256;
  row.bitwise = false;
  return row;
}

inline Row affine_row(const std::string& name, const Sizes& size, bool align_corners) {
  const size_t dims = size.size() - 2;
  Row row;
  row.name = name;
  row.inputs = {{{size[0], static_cast<int64_t>(dims), static_cast<int64_t>(dims) + 1}}};
  row.run = [size, align_corners](const std::vector<Tensor>& in) { return affine_grid(in[0], size, align_corners); };
  row.reference = [size, align_corners, dims](const std::vector<Tensor>& in) {
    const std::vector<double> theta = values_of(in[0]);
    std::vector<double> out;
    int64_t points = 1;
    for (size_t d = 2; d < size.size(); ++d) points *= size[d];
    for (size_t n = 0; n < static_cast<size_t>(size[0]); ++n) {
      for (int64_t p = 0; p < points; ++p) {
        std::vector<double> at;  // x first
        int64_t rest = p;
        for (size_t d = size.size(); d-- > 2;) {
          const auto i = static_cast<double>(rest % size[d]), count = static_cast<double>(size[d]);
          rest /= size[d];
          at.push_back(align_corners ? 2 * i / (count - 1) - 1 : (2 * i + 1) / count - 1);
        }
        at.push_back(1);
        for (size_t r = 0; r < dims; ++r) {
          double sum = 0;
          for (size_t c = 0; c <= dims; ++c) sum += theta[(n * dims + r) * (dims + 1) + c] * at[c];
          out.push_back(sum);
        }
      }
    }
    Sizes sizes = {size[0]};
    sizes.insert(sizes.end(), size.begin() + 2, size.end());
    sizes.push_back(static_cast<int64_t>(dims));
    return make(sizes, kFloat64, out);
  };
  row.dtypes = {kFloat32, kFloat64};
  row.scale = 64;
  row.bitwise = false;
  return row;
}

inline std::vector<Row> grid_sample_rows() {
  const Sizes x = {2, 3, 4, 5}, grid = {2, 3, 4, 2};
  using M = GridMode;
  using P = GridPadding;
  return {
      grid_row("grid_sample", x, grid, {M::Bilinear, P::Zeros, false}),
      grid_row("grid_sample_corners", x, grid, {M::Bilinear, P::Zeros, true}),
      grid_row("grid_sample_border", x, grid, {M::Bilinear, P::Border, false}),
      grid_row("grid_sample_reflection", x, grid, {M::Bilinear, P::Reflection, false}),
      grid_row("grid_sample_reflection_corners", x, grid, {M::Bilinear, P::Reflection, true}),
      grid_row("grid_sample_nearest", x, grid, {M::Nearest, P::Zeros, false}),
      grid_row("grid_sample_nearest_border", x, grid, {M::Nearest, P::Border, true}),
      grid_row("grid_sample_bicubic", {1, 2, 4, 5}, {1, 2, 3, 2}, {M::Bicubic, P::Zeros, false}),
      grid_row("grid_sample_bicubic_reflection", {1, 2, 4, 5}, {1, 2, 3, 2}, {M::Bicubic, P::Reflection, false}),
      grid_row("grid_sample_3d", {1, 2, 3, 4, 2}, {1, 2, 2, 2, 3}, {M::Bilinear, P::Zeros, false}),
      grid_row("grid_sample_3d_nearest", {1, 2, 3, 4, 2}, {1, 2, 2, 2, 3}, {M::Nearest, P::Reflection, true}),
      affine_row("affine_grid", {2, 1, 3, 4}, false),
      affine_row("affine_grid_corners", {2, 1, 3, 4}, true),
      affine_row("affine_grid_3d", {1, 1, 2, 3, 2}, false),
  };
}

}  // namespace tercel::test
