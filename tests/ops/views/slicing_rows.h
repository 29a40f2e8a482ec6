// Conformance rows of slicing; see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/views/slicing.h"
#include "tests/ops/views/views_rows.h"

namespace tercel::test {

inline std::vector<Row> slicing_rows() {
  using Tensors = std::vector<Tensor>;
  return {
      view_row(
          "narrow", {5, 4}, {5, 2}, [](const Tensors& in) { return narrow(in[0], 1, 1, 2); },
          [](const Sizes& i) -> Sizes {
            return {i[0], i[1] + 1};
          }),
      view_row(
          "select", {5, 4}, {5}, [](const Tensors& in) { return select(in[0], 1, -2); },
          [](const Sizes& i) -> Sizes {
            return {i[0], 2};
          }),
      view_row(
          "slice", {9, 3}, {3, 3}, [](const Tensors& in) { return slice(in[0], 0, 1, 8, 3); },
          [](const Sizes& i) -> Sizes {
            return {1 + 3 * i[0], i[1]};
          }),
      view_row(
          "slice_backwards", {9, 3}, {4, 3}, [](const Tensors& in) { return slice(in[0], 0, -2, 0, -2); },
          [](const Sizes& i) -> Sizes {
            return {7 - 2 * i[0], i[1]};
          }),
      view_row(
          "split", {7, 3}, {1, 3}, [](const Tensors& in) { return split(in[0], 3).at(2); },
          [](const Sizes& i) -> Sizes {
            return {6 + i[0], i[1]};
          }),
      view_row(
          "split_sizes", {3, 7}, {3, 4},
          [](const Tensors& in) {
            return split(in[0], IntSpan{2, 4, 1}, 1).at(1);
          },
          [](const Sizes& i) -> Sizes {
            return {i[0], 2 + i[1]};
          }),
      view_row(
          "unbind", {3, 5}, {3}, [](const Tensors& in) { return unbind(in[0], 1).at(3); },
          [](const Sizes& i) -> Sizes {
            return {i[0], 3};
          }),
      view_row(
          "unfold", {7, 3}, {3, 3, 3}, [](const Tensors& in) { return unfold(in[0], 0, 3, 2); },
          [](const Sizes& i) -> Sizes {
            return {2 * i[0] + i[2], i[1]};
          }),
      view_row(
          "unfold_few", {9, 2}, {2, 2, 6}, [](const Tensors& in) { return unfold(in[0], 0, 6, 3); },
          [](const Sizes& i) -> Sizes {
            return {3 * i[0] + i[2], i[1]};
          }),
      view_row(
          "split_with_sizes", {3, 7}, {3, 4},
          [](const Tensors& in) {
            return split_with_sizes(in[0], {2, 4, 1}, -1).at(1);
          },
          [](const Sizes& i) -> Sizes {
            return {i[0], 2 + i[1]};
          }),
      view_row(
          "chunk", {7, 3}, {2, 3}, [](const Tensors& in) { return chunk(in[0], 3).at(1).slice(0, 0, 2); },
          [](const Sizes& i) -> Sizes {
            return {3 + i[0], i[1]};
          }),
      view_row(
          "tensor_split", {7, 3}, {2, 3}, [](const Tensors& in) { return tensor_split(in[0], 3).at(2); },
          [](const Sizes& i) -> Sizes {
            return {5 + i[0], i[1]};
          }),
      view_row(
          "tensor_split_indices", {3, 7}, {3, 3},
          [](const Tensors& in) {
            return tensor_split(in[0], IntSpan{1, 4}, 1).at(1);
          },
          [](const Sizes& i) -> Sizes {
            return {i[0], 1 + i[1]};
          }),
      view_row(
          "hsplit", {3, 6}, {3, 2}, [](const Tensors& in) { return hsplit(in[0], 3).at(1); },
          [](const Sizes& i) -> Sizes {
            return {i[0], 2 + i[1]};
          }),
      view_row(
          "vsplit", {6, 3}, {4, 3}, [](const Tensors& in) { return vsplit(in[0], IntSpan{2}).at(1); },
          [](const Sizes& i) -> Sizes {
            return {2 + i[0], i[1]};
          }),
      view_row(
          "dsplit", {2, 3, 4}, {2, 3, 2}, [](const Tensors& in) { return dsplit(in[0], 2).at(1); },
          [](const Sizes& i) -> Sizes {
            return {i[0], i[1], 2 + i[2]};
          }),
  };
}

}  // namespace tercel::test
