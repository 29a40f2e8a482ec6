// Conformance rows of flip, roll and repeat; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <vector>

#include "tercel/ops/views/flip_roll_repeat.h"
#include "tercel/ops/views/meshgrid.h"
#include "tercel/ops/views/pad.h"
#include "tests/ops/views/views_rows.h"

namespace tercel::test {

inline std::vector<Row> flip_roll_repeat_rows() {
  using Tensors = std::vector<Tensor>;
  return {
      view_row(
          "flip", {3, 4, 5}, {3, 4, 5},
          [](const Tensors& in) {
            return flip(in[0], {0, -1});
          },
          [](const Sizes& i) -> Sizes {
            return {2 - i[0], i[1], 4 - i[2]};
          }),
      view_row(
          "flip_rows", {3, 70}, {3, 70}, [](const Tensors& in) { return flip(in[0], {1}); },
          [](const Sizes& i) -> Sizes {
            return {i[0], 69 - i[1]};
          }),
      view_row(
          "channel_shuffle", {2, 6, 3}, {2, 6, 3}, [](const Tensors& in) { return channel_shuffle(in[0], 2); },
          [](const Sizes& i) -> Sizes {
            return {i[0], i[1] % 2 * 3 + i[1] / 2, i[2]};
          }),
      view_row(
          "fliplr", {3, 4}, {3, 4}, [](const Tensors& in) { return fliplr(in[0]); },
          [](const Sizes& i) -> Sizes {
            return {i[0], 3 - i[1]};
          }),
      view_row(
          "flipud", {3, 4}, {3, 4}, [](const Tensors& in) { return flipud(in[0]); },
          [](const Sizes& i) -> Sizes {
            return {2 - i[0], i[1]};
          }),
      view_row(
          "roll", {3, 5, 2}, {3, 5, 2},
          [](const Tensors& in) {
            return roll(in[0], {1, -2, 5}, {0, 1, 0});
          },
          [](const Sizes& i) -> Sizes {
            return {i[0], (i[1] + 2) % 5, i[2]};
          }),
      view_row(
          "roll_two", {3, 5}, {3, 5},
          [](const Tensors& in) {
            return roll(in[0], {1, -2}, {0, 1});
          },
          [](const Sizes& i) -> Sizes {
            return {(i[0] + 2) % 3, (i[1] + 2) % 5};
          }),
      view_row(
          "roll_flat", {3, 4}, {3, 4}, [](const Tensors& in) { return roll(in[0], {5}); },
          [](const Sizes& i) -> Sizes {
            const int64_t from = (i[0] * 4 + i[1] + 7) % 12;
            return {from / 4, from % 4};
          }),
      view_row(
          "rot90", {3, 4}, {4, 3}, [](const Tensors& in) { return rot90(in[0]); },
          [](const Sizes& i) -> Sizes {
            return {i[1], 3 - i[0]};
          }),
      view_row(
          "rot90_back", {2, 3, 4}, {2, 4, 3},
          [](const Tensors& in) {
            return rot90(in[0], -1, {1, 2});
          },
          [](const Sizes& i) -> Sizes {
            return {i[0], 2 - i[2], i[1]};
          }),
      view_row(
          "rot90_twice", {3, 4}, {3, 4},
          [](const Tensors& in) {
            return rot90(in[0], 6, {0, 1});
          },
          [](const Sizes& i) -> Sizes {
            return {2 - i[0], 3 - i[1]};
          }),
      view_row(
          "repeat", {3, 2}, {2, 6, 6},
          [](const Tensors& in) {
            return repeat(in[0], {2, 2, 3});
          },
          [](const Sizes& i) -> Sizes {
            return {i[1] % 3, i[2] % 2};
          }),
      view_row(
          "tile", {3, 2, 2}, {3, 2, 6}, [](const Tensors& in) { return tile(in[0], {3}); },
          [](const Sizes& i) -> Sizes {
            return {i[0], i[1], i[2] % 2};
          }),
      view_row(
          "repeat_interleave", {3, 2}, {9, 2}, [](const Tensors& in) { return repeat_interleave(in[0], 3, 0); },
          [](const Sizes& i) -> Sizes {
            return {i[0] / 3, i[1]};
          }),
      view_row(
          "repeat_interleave_flat", {3, 2}, {12}, [](const Tensors& in) { return repeat_interleave(in[0], 2); },
          [](const Sizes& i) -> Sizes {
            return {i[0] / 4, i[0] / 2 % 2};
          }),
      view_row(
          "repeat_interleave_tensor", {2, 3}, {2, 4},
          [](const Tensors& in) {
            return repeat_interleave(in[0], make({3}, kInt64, {1, 0, 3}), -1);
          },
          [](const Sizes& i) -> Sizes {
            return {i[0], i[1] == 0 ? 0 : 2};
          }),
  };
}

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
