// Conformance rows of permutations of dimensions; see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/views/permute.h"
#include "tests/ops/views/views_rows.h"

namespace tercel::test {

inline std::vector<Row> permute_rows() {
  using Tensors = std::vector<Tensor>;
  std::vector<Row> rows = {
      view_row(
          "transpose", {2, 3, 4}, {4, 3, 2}, [](const Tensors& in) { return transpose(in[0], 0, -1); },
          [](const Sizes& i) -> Sizes {
            return {i[2], i[1], i[0]};
          }),
      view_row(
          "t", {3, 5}, {5, 3}, [](const Tensors& in) { return t(in[0]); },
          [](const Sizes& i) -> Sizes {
            return {i[1], i[0]};
          }),
      view_row(
          "permute", {2, 3, 4}, {4, 2, 3},
          [](const Tensors& in) {
            return permute(in[0], {2, 0, 1});
          },
          [](const Sizes& i) -> Sizes {
            return {i[1], i[2], i[0]};
          }),
      view_row(
          "swapaxes", {2, 3, 4}, {2, 4, 3}, [](const Tensors& in) { return swapaxes(in[0], 1, 2); },
          [](const Sizes& i) -> Sizes {
            return {i[0], i[2], i[1]};
          }),
      view_row(
          "swapdims", {2, 3, 4}, {3, 2, 4}, [](const Tensors& in) { return swapdims(in[0], -2, 0); },
          [](const Sizes& i) -> Sizes {
            return {i[1], i[0], i[2]};
          }),
      view_row(
          "movedim", {2, 3, 4}, {4, 3, 2},
          [](const Tensors& in) {
            return movedim(in[0], {0, 1}, {2, 1});
          },
          [](const Sizes& i) -> Sizes {
            return {i[2], i[1], i[0]};
          }),
      view_row(
          "movedim_one", {2, 3, 4}, {3, 4, 2}, [](const Tensors& in) { return movedim(in[0], 0, -1); },
          [](const Sizes& i) -> Sizes {
            return {i[2], i[0], i[1]};
          }),
      view_row(
          "moveaxis", {2, 3, 4}, {4, 2, 3}, [](const Tensors& in) { return moveaxis(in[0], -1, 0); },
          [](const Sizes& i) -> Sizes {
            return {i[1], i[2], i[0]};
          }),
      view_row(
          "numpy_T", {2, 3, 4}, {4, 3, 2}, [](const Tensors& in) { return numpy_T(in[0]); },
          [](const Sizes& i) -> Sizes {
            return {i[2], i[1], i[0]};
          }),
      view_row(
          "mT", {2, 3, 4}, {2, 4, 3}, [](const Tensors& in) { return mT(in[0]); },
          [](const Sizes& i) -> Sizes {
            return {i[0], i[2], i[1]};
          }),
      view_row(
          "matrix_H", {3, 4}, {4, 3}, [](const Tensors& in) { return matrix_H(in[0]); },
          [](const Sizes& i) -> Sizes {
            return {i[1], i[0]};
          }),
      view_row(
          "mH", {2, 3, 4}, {2, 4, 3}, [](const Tensors& in) { return mH(in[0]); },
          [](const Sizes& i) -> Sizes {
            return {i[0], i[2], i[1]};
          }),
      view_row(
          "adjoint", {2, 3, 4}, {2, 4, 3}, [](const Tensors& in) { return adjoint(in[0]); },
          [](const Sizes& i) -> Sizes {
            return {i[0], i[2], i[1]};
          }),
  };
  // The same elements, complex ones conjugated.
  for (Row& row : rows)
    if (row.name == "matrix_H" || row.name == "mH" || row.name == "adjoint") {
      const auto plain = row.complex_reference;
      row.complex_reference = [plain](const std::vector<Tensor>& in) { return conj(plain(in)); };
    }
  return rows;
}

}  // namespace tercel::test
