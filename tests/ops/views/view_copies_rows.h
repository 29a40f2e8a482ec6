// Conformance rows of copies of views; see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/views/view_copies.h"
#include "tests/ops/views/views_rows.h"

namespace tercel::test {

inline std::vector<Row> view_copies_rows() {
  using Tensors = std::vector<Tensor>;
  std::vector<Row> rows = {
      order_row("alias_copy", {4, 6}, {4, 6}, [](const Tensors& in) { return alias_copy(in[0]); }),
      view_row(
          "as_strided_copy", {4, 6}, {3, 2},
          [](const Tensors& in) {
            return as_strided_copy(contiguous(in[0]), {3, 2}, {7, 2});
          },
          [](const Sizes& i) -> Sizes {
            return {i[0], i[0] + 2 * i[1]};
          }),
      view_row(
          "diagonal_copy", {4, 6}, {3}, [](const Tensors& in) { return diagonal_copy(in[0], -1); },
          [](const Sizes& i) -> Sizes {
            return {1 + i[0], i[0]};
          }),
      view_row(
          "expand_copy", {3, 1}, {3, 4},
          [](const Tensors& in) {
            return expand_copy(in[0], {3, 4});
          },
          [](const Sizes& i) -> Sizes {
            return {i[0], 0};
          }),
      view_row(
          "narrow_copy", {5, 4}, {5, 2}, [](const Tensors& in) { return narrow_copy(in[0], 1, 1, 2); },
          [](const Sizes& i) -> Sizes {
            return {i[0], i[1] + 1};
          }),
      view_row(
          "permute_copy", {3, 4}, {4, 3},
          [](const Tensors& in) {
            return permute_copy(in[0], {1, 0});
          },
          [](const Sizes& i) -> Sizes {
            return {i[1], i[0]};
          }),
      view_row(
          "select_copy", {5, 4}, {5}, [](const Tensors& in) { return select_copy(in[0], 1, -2); },
          [](const Sizes& i) -> Sizes {
            return {i[0], 2};
          }),
      view_row(
          "slice_copy", {9, 3}, {3, 3}, [](const Tensors& in) { return slice_copy(in[0], 0, 1, 8, 3); },
          [](const Sizes& i) -> Sizes {
            return {1 + 3 * i[0], i[1]};
          }),
      order_row("squeeze_copy", {3, 1, 4}, {3, 4}, [](const Tensors& in) { return squeeze_copy(in[0], 1); }),
      view_row(
          "t_copy", {3, 5}, {5, 3}, [](const Tensors& in) { return t_copy(in[0]); },
          [](const Sizes& i) -> Sizes {
            return {i[1], i[0]};
          }),
      view_row(
          "transpose_copy", {3, 5}, {5, 3}, [](const Tensors& in) { return transpose_copy(in[0], 0, 1); },
          [](const Sizes& i) -> Sizes {
            return {i[1], i[0]};
          }),
      view_row(
          "unbind_copy", {3, 5}, {3}, [](const Tensors& in) { return unbind_copy(in[0], 1).at(3); },
          [](const Sizes& i) -> Sizes {
            return {i[0], 3};
          }),
      view_row(
          "unfold_copy", {7, 3}, {3, 3, 3}, [](const Tensors& in) { return unfold_copy(in[0], 0, 3, 2); },
          [](const Sizes& i) -> Sizes {
            return {2 * i[0] + i[2], i[1]};
          }),
      order_row("unsqueeze_copy", {3, 4}, {3, 1, 4}, [](const Tensors& in) { return unsqueeze_copy(in[0], 1); }),
      order_row("view_copy", {4, 6}, {2, 12},
                [](const Tensors& in) {
                  return view_copy(contiguous(in[0]), {2, 12});
                }),
      order_row("detach_copy", {3, 4}, {3, 4}, [](const Tensors& in) { return detach_copy(in[0]); }),
  };
  rows.back().differentiable = false;
  return rows;
}

}  // namespace tercel::test
