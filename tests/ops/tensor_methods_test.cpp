#include <gtest/gtest.h>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/ops.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

// Methods are generated from the table of ops (tests/build/make_ops_test.py): this tests one of each kind, and those
// written by hand.

namespace tercel::test {

namespace {

using indexing::Slice;
using Tensors = std::vector<Tensor>;

Tensors flat(const Tensor& t) { return {t}; }
Tensors flat(const std::vector<Tensor>& list) { return list; }
/** A struct of two tensors. */
template <class Result>
Tensors flat(const Result& result) {
  const auto& [first, second] = result;
  return {first, second};
}

void expect_same(const Tensors& got, const Tensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].sizes(), want[i].sizes());
    EXPECT_EQ(got[i].strides(), want[i].strides());
    EXPECT_EQ(got[i].dtype(), want[i].dtype());
    EXPECT_EQ(bytes_of(got[i]), bytes_of(want[i])) << "result " << i;
  }
}

// A method of the tensor x with its arguments.
#define SAME(name, ...)                                                                       \
  {                                                                                           \
    SCOPED_TRACE(#name "(" #__VA_ARGS__ ")");                                                 \
    expect_same(flat(x.name(__VA_ARGS__)), flat(tercel::name(x __VA_OPT__(, ) __VA_ARGS__))); \
  }
#define SAME_INPLACE(name, ...)                          \
  {                                                      \
    SCOPED_TRACE(#name "(" #__VA_ARGS__ ")");            \
    const Tensor method = clone(x), function = clone(x); \
    EXPECT_EQ(&method.name(__VA_ARGS__), &method);       \
    tercel::name(function __VA_OPT__(, ) __VA_ARGS__);   \
    expect_same({method}, {function});                   \
  }

class TensorMethods : public ::testing::Test {
 public:
  Tensor x = random({3, 4}, kFloat64, 0.1, 0.9, 1), y = random({3, 4}, kFloat64, 0.1, 0.9, 2);
  Tensor mask = make({3, 4}, kBool, {1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1});
  Tensor places = make({2}, kInt64, {2, 0});
};

}  // namespace

TEST_F(TensorMethods, OfTheTable) {
  // families, and aliases of ops
  SAME(exp)
  SAME_INPLACE(exp_)
  SAME(isnan)
  SAME(arccos)
  SAME_INPLACE(arccos_)
  SAME(add, y)
  SAME(add, 2)
  SAME_INPLACE(add_, y)
  SAME_INPLACE(add_, 2)
  SAME(maximum, y)
  SAME(greater_equal, 0.5)
  // numbers, braces, defaults, omitted tensors
  SAME(add, y, 3)
  SAME(sum, {1}, true, kFloat32)
  SAME(sum, 1)
  SAME(cov)
  SAME(nan_to_num)
  SAME(clamp, std::nullopt, y)
  // several results, and lists of them
  SAME(max, 1)
  SAME(aminmax, 1)
  SAME(split, 2, 1)
  // the tensor is not the first parameter; of a namespace below tercel
  expect_same({x.polygamma(2)}, {polygamma(2, x)});
  x = add(matmul(x, transpose(x, 0, 1)), eye(3, 3, kFloat64));
  expect_same({x.cholesky()}, {linalg::cholesky(x)});
}

TEST_F(TensorMethods, ViewsByHand) {
  expect_same({x[1]}, {select(x, 0, 1)});
  SAME(view, kInt64)
  SAME(view, {4, 3})
  SAME(index, {Slice(1, 3), 2})
  SAME_INPLACE(index_put_, {{places}}, y[0])
  const Tensor changed = x.clone();
  changed.index_put_({0, Slice(1, 3)}, 3);
  expect_same({changed[0]}, {stack({x[0][0], full({}, 3, kFloat64), full({}, 3, kFloat64), x[0][3]})});
  x = random({1, 3, 1, 4}, kFloat64, 0, 1, 1);
  SAME(squeeze)
  SAME(squeeze, 0)
  SAME(squeeze, {0, 2})
  SAME_INPLACE(squeeze_, {0, 2})
}

TEST_F(TensorMethods, ChoicesAndFactorsByHand) {
  expect_same({x.where(mask, y)}, {where(mask, x, y)});
  expect_same({x.type_as(places)}, {to(x, kInt64)});
  expect_same(flat(x.qr()), flat(linalg::qr(x)));
  expect_same(flat(x.qr(false)), flat(linalg::qr(x, "complete")));
  const Tensor square = add(matmul(x, transpose(x, 0, 1)), eye(3, 3, kFloat64));
  const auto [lu, pivots] = linalg::lu_factor(square);
  expect_same({y.lu_solve(lu, pivots)}, {linalg::lu_solve(lu, pivots, y)});
}

TEST_F(TensorMethods, NewTensors) {
  x.requires_grad_();
  EXPECT_EQ(x.new_empty({2, 3}).dtype(), kFloat64);
  EXPECT_FALSE(x.new_empty({2, 3}).requires_grad());
  EXPECT_EQ(x.new_empty({2, 3}, kInt8).dtype(), kInt8);
  expect_same({x.new_zeros({2}), x.new_zeros({2}, kBool)}, {zeros({2}, kFloat64), zeros({2}, kBool)});
  expect_same({x.new_ones({2}), x.new_ones({2}, kInt8)}, {ones({2}, kFloat64), ones({2}, kInt8)});
  expect_same({x.new_full({2}, 3), x.new_full({2}, 3, kInt8)}, {full({2}, 3, kFloat64), full({2}, 3, kInt8)});
  EXPECT_EQ(x.new_empty_strided({2, 3}, {1, 2}).strides(), IntSpan({1, 2}));
}

TEST_F(TensorMethods, Gradients) {
  x.requires_grad_();
  const Tensor twice = x.mul(2);
  EXPECT_FALSE(twice.retains_grad());
  twice.retain_grad();
  EXPECT_TRUE(twice.retains_grad());
  EXPECT_EQ(twice.output_nr(), 0u);
  EXPECT_EQ(x.unbind()[2].output_nr(), 2u);
  twice.sum().backward();
  expect_same({x.grad(), twice.grad()}, {full({3, 4}, 2, kFloat64), ones({3, 4}, kFloat64)});
  x.set_data(y);
  EXPECT_EQ(bytes_of(x), bytes_of(y));
  EXPECT_TRUE(x.requires_grad());
  const Tensor other = x.mul(2);
  EXPECT_EQ(&other.detach_(), &other);
  EXPECT_TRUE(other.is_leaf());
}

TEST_F(TensorMethods, InPlaceVariantsAreRecorded) {
  x.requires_grad_();
  const Tensor z = x.clone();
  z.mul_(3).add_(1).clamp_max_(2);
  z.sum().backward();
  expect_same({x.grad()}, {where(le(add(mul(x.detach(), 3), 1), 2), 3.0, 0.0).to(kFloat64)});
}

#undef SAME
#undef SAME_INPLACE

}  // namespace tercel::test
