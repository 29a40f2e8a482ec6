// Conformance rows of flip, roll and repeat; see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/views/flip_roll_repeat.h"
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

}  // namespace tercel::test
