// Conformance rows of convolutions; see Note [Conformance rows].
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "tercel/ops/nn/conv.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** A convolution's numbers, for each of up to three spatial dimensions; missing ones come first. */
struct ConvCase {
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups = 1;
  std::vector<int64_t> output_padding = {};  ///< of a transposed one
};

struct ConvSizes {
  std::array<size_t, 3> in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1};
  std::array<int64_t, 3> stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
};

/** Visits (image, group, output in the group, channel in the group, offset in x, offset in weight, offset in y). */
template <class Visit>
void for_each_product(size_t n, size_t channels, size_t outputs, size_t groups, const ConvSizes& s, Visit visit) {
  const size_t gc = channels / groups, go = outputs / groups;
  const size_t in_pixels = s.in[0] * s.in[1] * s.in[2], out_pixels = s.out[0] * s.out[1] * s.out[2],
               window = s.kernel[0] * s.kernel[1] * s.kernel[2];
  for (size_t i = 0; i < n; ++i)
    for (size_t o = 0; o < outputs; ++o)
      for (size_t c = 0; c < gc; ++c)
        for (size_t p = 0; p < out_pixels; ++p)
          for (size_t k = 0; k < window; ++k) {
            const std::array<size_t, 3> at{p / s.out[2] / s.out[1], p / s.out[2] % s.out[1], p % s.out[2]},
                tap{k / s.kernel[2] / s.kernel[1], k / s.kernel[2] % s.kernel[1], k % s.kernel[2]};
            size_t pixel = 0;
            bool inside = true;
            for (size_t d = 0; d < 3; ++d) {
              const int64_t x = static_cast<int64_t>(at[d]) * s.stride[d] +
                                static_cast<int64_t>(tap[d]) * s.dilation[d] - s.padding[d];
              inside = inside && x >= 0 && x < static_cast<int64_t>(s.in[d]);
              pixel = pixel * s.in[d] + static_cast<size_t>(std::max<int64_t>(x, 0));
            }
            if (inside)
              visit((i * channels + o / go * gc + c) * in_pixels + pixel, (o * gc + c) * window + k,
                    (i * outputs + o) * out_pixels + p);
          }
}

/** The numbers of a convolution, from its image to its result also where it is transposed, and the result's sizes. */
inline std::pair<ConvSizes, Sizes> conv_sizes(IntSpan x, IntSpan weight, const ConvCase& c, bool transposed) {
  const size_t dims = x.size() - 2;
  ConvSizes s;
  Sizes out_sizes{x[0], transposed ? weight[1] * c.groups : weight[0]};
  for (size_t d = 0; d < dims; ++d) {
    const size_t at = 3 - dims + d;
    const int64_t size = x[d + 2], kernel = weight[d + 2];
    s.kernel[at] = static_cast<size_t>(kernel);
    s.stride[at] = c.stride[d];
    s.padding[at] = c.padding[d];
    s.dilation[at] = c.dilation[d];
    const int64_t reach = c.dilation[d] * (kernel - 1);
    const int64_t out = transposed ? (size - 1) * c.stride[d] - 2 * c.padding[d] + reach + 1 + c.output_padding[d]
                                   : (size + 2 * c.padding[d] - reach - 1) / c.stride[d] + 1;
    out_sizes.push_back(out);
    // A transposed convolution is one from its result to its input.
    s.in[at] = static_cast<size_t>(transposed ? out : size);
    s.out[at] = static_cast<size_t>(transposed ? size : out);
  }
  return {s, out_sizes};
}

inline Row conv_row(const std::string& name, const Sizes& x, const Sizes& weight, bool bias, const ConvCase& c,
                    bool transposed = false) {
  const size_t dims = x.size() - 2;
  Row row;
  row.name = name;
  row.inputs = {{x, -1, 1}, {weight, -1, 1}};
  if (bias) row.inputs.push_back({{transposed ? weight[1] * c.groups : weight[0]}, -1, 1});
  row.run = [=](const std::vector<Tensor>& in) {
    const Tensor b = bias ? in[2] : Tensor();
    if (transposed) {
      if (dims == 1)
        return conv_transpose1d(in[0], in[1], b, c.stride, c.padding, c.output_padding, c.groups, c.dilation);
      if (dims == 2)
        return conv_transpose2d(in[0], in[1], b, c.stride, c.padding, c.output_padding, c.groups, c.dilation);
      return conv_transpose3d(in[0], in[1], b, c.stride, c.padding, c.output_padding, c.groups, c.dilation);
    }
    if (dims == 1) return conv1d(in[0], in[1], b, c.stride, c.padding, c.dilation, c.groups);
    if (dims == 2) return conv2d(in[0], in[1], b, c.stride, c.padding, c.dilation, c.groups);
    return conv3d(in[0], in[1], b, c.stride, c.padding, c.dilation, c.groups);
  };
  row.reference = [=](const std::vector<Tensor>& in) {
    const auto [s, out_sizes] = conv_sizes(in[0].sizes(), in[1].sizes(), c, transposed);
    const std::vector<double> image = values_of(in[0]), weights = values_of(in[1]);
    size_t count = 1;
    for (const int64_t v : out_sizes) count *= static_cast<size_t>(v);
    std::vector<double> out(count, 0);
    const auto n = static_cast<size_t>(in[0].size(0)), first = static_cast<size_t>(in[0].size(1)),
               second = static_cast<size_t>(out_sizes[1]), groups = static_cast<size_t>(c.groups);
    if (transposed)
      for_each_product(n, second, first, groups, s,
                       [&](size_t to, size_t w, size_t from) { out[to] += image[from] * weights[w]; });
    else
      for_each_product(n, first, second, groups, s,
                       [&](size_t from, size_t w, size_t to) { out[to] += image[from] * weights[w]; });
    if (bias) {
      const std::vector<double> b = values_of(in[2]);
      const size_t pixels = count / n / second;
      for (size_t i = 0; i < count; ++i) out[i] += b[i / pixels % second];
    }
    return make(out_sizes, kFloat64, out);
  };
  row.ulps = 16;
  row.scale = 64;
  row.bitwise = false;
  return row;
}

inline Row patches_row(const std::string& name, bool back) {
  Row row;
  row.name = name;
  row.inputs = {back ? Input{{2, 12, 6}} : Input{{2, 2, 5, 6}}};
  // 2 x 3 windows, every second one, one pixel of padding on both sides of the height.
  row.run = [back](const std::vector<Tensor>& in) {
    if (back) return col2im(in[0], {5, 6}, {2, 3}, {1, 2}, {1, 0}, {2, 1});
    return im2col(in[0], {2, 3}, {1, 2}, {1, 0}, {2, 1});
  };
  row.reference = [back](const std::vector<Tensor>& in) {
    const std::vector<double> from = values_of(in[0]);
    std::vector<double> out(back ? 2 * 2 * 30 : 2 * 12 * 6, 0);
    for (int64_t plane = 0; plane < 4; ++plane)
      for (int64_t k = 0; k < 6; ++k)
        for (int64_t p = 0; p < 6; ++p) {
          const int64_t h = p / 2 * 2 + k / 3 - 1, w = p % 2 + k % 3 * 2;
          if (h < 0 || h >= 5) continue;
          const auto pixel = static_cast<size_t>(plane * 30 + h * 6 + w),
                     entry = static_cast<size_t>((plane * 6 + k) * 6 + p);
          if (back)
            out[pixel] += from[entry];
          else
            out[entry] = from[pixel];
        }
    return make(back ? Sizes{2, 2, 5, 6} : Sizes{2, 12, 6}, kFloat64, out);
  };
  row.dtypes = {kFloat32, kFloat64};
  return row;
}

inline std::vector<Row> conv_rows() {
  const ConvCase plain1{{1}, {0}, {1}}, strided1{{2}, {1}, {1}, 2};
  return {
      conv_row("conv1d", {2, 3, 9}, {4, 3, 3}, true, plain1),
      conv_row("conv1d_groups", {2, 4, 9}, {6, 2, 3}, false, strided1),
      conv_row("conv2d", {2, 3, 6, 5}, {4, 3, 3, 3}, true, {{1, 1}, {1, 1}, {1, 1}}),
      conv_row("conv2d_large", {1, 3, 20, 18}, {5, 3, 3, 2}, true, {{1, 1}, {1, 1}, {1, 1}}),
      conv_row("conv2d_strided", {2, 2, 7, 8}, {3, 2, 3, 2}, false, {{2, 3}, {1, 0}, {2, 1}}),
      conv_row("conv2d_depthwise", {2, 4, 6, 5}, {4, 1, 3, 3}, true, {{1, 1}, {1, 1}, {1, 1}, 4}),
      conv_row("conv2d_columns", {3, 1, 9, 4}, {4, 1, 3, 1}, true, {{1, 1}, {2, 0}, {2, 1}}),
      conv_row("conv2d_columns_groups", {2, 4, 7, 3}, {4, 2, 3, 1}, false, {{1, 1}, {1, 0}, {1, 3}, 2}),
      conv_row("conv2d_columns_depthwise", {2, 17, 6, 3}, {17, 1, 3, 1}, true, {{1, 1}, {1, 0}, {1, 1}, 17}),
      conv_row("conv3d_columns", {2, 2, 5, 3, 4}, {3, 2, 3, 1, 1}, true, {{1, 1, 1}, {1, 0, 0}, {2, 1, 1}}),
      conv_row("conv2d_pixels", {2, 5, 4, 5}, {6, 5, 1, 1}, true, {{1, 1}, {0, 0}, {1, 1}}),
      conv_row("conv3d", {2, 2, 4, 3, 5}, {3, 2, 2, 2, 3}, true, {{1, 2, 1}, {0, 1, 1}, {1, 1, 2}}),
      conv_row("conv_transpose1d", {2, 3, 5}, {3, 2, 3}, true, {{2}, {1}, {1}, 1, {1}}, true),
      conv_row("conv_transpose2d", {2, 4, 3, 4}, {4, 3, 3, 2}, true, {{2, 1}, {1, 0}, {1, 2}, 2, {1, 0}}, true),
      conv_row("conv_transpose3d", {1, 2, 2, 3, 2}, {2, 2, 2, 1, 3}, false,
               {{1, 2, 1}, {0, 0, 1}, {1, 1, 1}, 1, {0, 1, 0}}, true),
      patches_row("im2col", false),
      patches_row("col2im", true),
  };
}

}  // namespace tercel::test
