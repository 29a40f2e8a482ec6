// Conformance rows of padding; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <vector>

#include "tercel/ops/views/pad.h"
#include "tests/ops/views/views_rows.h"

namespace tercel::test {

inline std::vector<Row> pad_rows() {
  using Tensors = std::vector<Tensor>;
  const auto outside = [](int64_t i, int64_t size) { return i < 0 || i >= size; };
  const auto mirrored = [](int64_t i, int64_t size) { return i < 0 ? -i : (i >= size ? 2 * size - 2 - i : i); };
  return {
      view_row(
          "pad", {3, 4}, {6, 6},
          [](const Tensors& in) {
            return pad(in[0], {-1, 3, 2, 1});
          },
          [outside](const Sizes& i) -> Sizes {
            if (outside(i[0] - 2, 3) || outside(i[1] + 1, 4)) return {};
            return {i[0] - 2, i[1] + 1};
          }),
      view_row(
          "constant_pad_nd", {2, 3}, {2, 6},
          [](const Tensors& in) {
            return constant_pad_nd(in[0], {1, 2});
          },
          [outside](const Sizes& i) -> Sizes {
            if (outside(i[1] - 1, 3)) return {};
            return {i[0], i[1] - 1};
          }),
      view_row(
          "pad_reflect", {2, 4, 5}, {2, 7, 9},
          [](const Tensors& in) {
            return pad(in[0], {1, 3, 3, 0}, "reflect");
          },
          [mirrored](const Sizes& i) -> Sizes {
            return {i[0], mirrored(i[1] - 3, 4), mirrored(i[2] - 1, 5)};
          }),
      view_row(
          "pad_replicate", {2, 3, 4}, {2, 5, 9},
          [](const Tensors& in) {
            return pad(in[0], {5, 0, 1, 1}, "replicate");
          },
          [](const Sizes& i) -> Sizes {
            return {i[0], std::clamp<int64_t>(i[1] - 1, 0, 2), std::clamp<int64_t>(i[2] - 5, 0, 3)};
          }),
      view_row(
          "pad_circular", {2, 3, 4}, {2, 6, 9},
          [](const Tensors& in) {
            return pad(in[0], {4, 1, 0, 3}, "circular");
          },
          [](const Sizes& i) -> Sizes {
            return {i[0], i[1] % 3, i[2] % 4};
          }),
      view_row(
          "pad_reflect_less", {2, 6}, {2, 6},
          [](const Tensors& in) {
            return pad(in[0], {2, -2}, "reflect");
          },
          [mirrored](const Sizes& i) -> Sizes {
            return {i[0], mirrored(i[1] - 2, 6)};
          }),
  };
}

}  // namespace tercel::test
