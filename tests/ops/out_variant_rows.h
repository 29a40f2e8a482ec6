// Note [Rows of out variants]
// A row is an op and what it is called with: its variant with an `out` is held to the fresh one, and to Note [Out
// variants].
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/out_variants.h"
#include "tercel/ops/views/slicing.h"
#include "tests/support/tensors.h"

namespace tercel::test {

namespace out_variants {

using Tensors = std::vector<Tensor>;

/** What ops are called with. */
struct Operands {
  Tensor x = random({3, 4}, kFloat64, 0.1, 0.9, 1), y = random({3, 4}, kFloat64, 0.1, 0.9, 2);
  Tensor v = random({4}, kFloat64, 0.1, 0.9, 3), w = random({3}, kFloat64, 0.1, 0.9, 4);
  Tensor square = random({3, 3}, kFloat64, 0.1, 0.9, 5), b = random({3, 2}, kFloat64, 0.1, 0.9, 6);
  Tensor positive = add(matmul(square, square.t()), eye(3, 3, kFloat64));
  Tensor three = random({2, 3}, kFloat64, 0.1, 0.9, 7), image = random({1, 2, 6, 6}, kFloat64, 0.1, 0.9, 8);
  Tensor volume = random({1, 1, 4, 4, 4}, kFloat64, 0.1, 0.9, 9);
  Tensor z = complex(random({3, 4}, kFloat64, -1, 1, 10), random({3, 4}, kFloat64, -1, 1, 11));
  Tensor whole = make({3, 4}, kInt64, {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8});
  Tensor mask = make({3, 4}, kBool, {1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1});
  Tensor places = make({2}, kInt64, {2, 0}), along = make({3, 2}, kInt64, {0, 3, 1, 1, 2, 0});
  Tensor targets = make({3}, kInt64, {0, 3, 1}), flat = make({3}, kInt64, {11, 0, 5});
  Tensor sorted = make({4}, kFloat64, {0.2, 0.4, 0.6, 0.8});
  Tensor counts = make({3}, kInt64, {2, 0, 1});
  linalg::LuFactorResult lu = linalg::lu_factor(positive);
  linalg::LdlFactorResult ldl = linalg::ldl_factor(positive);
  Tensor factor = linalg::cholesky(positive);
  GeqrfResult reflectors = geqrf(square);
};

inline const Operands& in() {
  static const Operands& operands = *new Operands;
  return operands;
}

inline Generator& seeded() {
  static Generator& generator = *new Generator;
  generator.set_seed(7);
  return generator;
}

struct Row {
  std::string name;
  std::function<Tensors()> fresh;
  std::function<void(const Tensors& out)> into;
  /** Calculated in the dtype of `out`, whatever that is. */
  bool any_dtype = false;
};

#define ROW(op, ...)                                                                                       \
  Row {                                                                                                    \
#op "(" #__VA_ARGS__ ")",                                                                              \
        [] { return Tensors{op(__VA_ARGS__)}; }, [](const Tensors& out) { op##_out(out[0], __VA_ARGS__); } \
  }
#define OF_OUT(op, ...)                                                                                          \
  Row {                                                                                                          \
#op "(" #__VA_ARGS__ ")",                                                                                    \
        [] { return Tensors{op(__VA_ARGS__)}; }, [](const Tensors& out) { op##_out(out[0], __VA_ARGS__); }, true \
  }
/** A factory: what is given to name() alone stands in parentheses. */
#define MADE(op, fresh_arguments, ...)                                                                              \
  Row {                                                                                                             \
#op "(" #__VA_ARGS__ ")",                                                                                       \
        [] { return Tensors{op fresh_arguments}; }, [](const Tensors& out) { op##_out(out[0], __VA_ARGS__); }, true \
  }
#define ROW2(op, ...)                             \
  Row {                                           \
#op "(" #__VA_ARGS__ ")",                       \
      [] {                                            \
        const auto [first, second] = op(__VA_ARGS__); \
        return Tensors{first, second};                \
      },                                              \
      [](const Tensors& out) { op##_out(out[0], out[1], __VA_ARGS__); } \
  }
#define ROW3(op, ...)                                    \
  Row {                                                  \
#op "(" #__VA_ARGS__ ")",                              \
      [] {                                                   \
        const auto [first, second, third] = op(__VA_ARGS__); \
        return Tensors{first, second, third};                \
      },                                                     \
      [](const Tensors& out) { op##_out(out[0], out[1], out[2], __VA_ARGS__); } \
  }
#define LIST(op, ...)                                                                                                \
  Row {                                                                                                              \
#op "(" #__VA_ARGS__ ")", [] { return op(__VA_ARGS__); }, [](const Tensors& out) { op##_out(out, __VA_ARGS__); } \
  }

class OutVariants : public ::testing::TestWithParam<Row> {};

/** op_number, for a suite's name. */
inline std::string name_of_row(const ::testing::TestParamInfo<Row>& info) {
  std::string name = info.param.name.substr(0, info.param.name.find('('));
  for (char& c : name)
    if (c == ':') c = '_';
  return name + "_" + std::to_string(info.index);
}

}  // namespace out_variants

}  // namespace tercel::test
