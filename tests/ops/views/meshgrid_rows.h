// Conformance rows of grids and combinations; see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/views/meshgrid.h"
#include "tests/ops/views/views_rows.h"

namespace tercel::test {

inline std::vector<Row> meshgrid_rows() {
  using Tensors = std::vector<Tensor>;
  std::vector<Row> rows = {
      view_row(
          "meshgrid", {3}, {2, 3},
          [](const Tensors& in) {
            return meshgrid({in[0], empty({2}, in[0].dtype())}, "xy")[0];
          },
          [](const Sizes& i) -> Sizes { return {i[1]}; }),
      view_row(
          "cartesian_prod", {3}, {9, 2},
          [](const Tensors& in) {
            return cartesian_prod({in[0], in[0]});
          },
          [](const Sizes& i) -> Sizes { return {i[1] == 0 ? i[0] / 3 : i[0] % 3}; }),
      view_row(
          "combinations", {3}, {3, 2}, [](const Tensors& in) { return combinations(in[0]); },
          [](const Sizes& i) -> Sizes { return {i[0] == 2 ? i[1] + 1 : i[1] * (i[0] + 1)}; }),
  };
  Row vandermonde;
  vandermonde.name = "vander";
  vandermonde.inputs = {{{4}, -2, 2}};
  vandermonde.run = [](const Tensors& in) { return vander(in[0], 3); };
  vandermonde.reference = [](const Tensors& in) {
    std::vector<double> out;
    for (const double x : values_of(in[0]))
      for (const double power : {x * x, x, 1.0}) out.push_back(power);
    return make({4, 3}, kFloat64, out);
  };
  rows.push_back(std::move(vandermonde));
  return rows;
}

}  // namespace tercel::test
