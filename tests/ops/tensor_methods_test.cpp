#include <gtest/gtest.h>

#include <functional>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/ops.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

// Note [Tensor methods]: a method is a spelling of the function of its name.

namespace tercel::test {

namespace {

using indexing::Slice;
using Tensors = std::vector<Tensor>;

Tensors flat(const Tensor& t) { return {t}; }
Tensors flat(const std::vector<Tensor>& list) { return list; }
Tensors flat(bool value) { return {full({}, value, kBool)}; }
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

Generator& seeded() {
  static Generator& generator = *new Generator;
  generator.set_seed(7);
  return generator;
}

// Each line: what a method is called with, besides the tensor x of float64 [3, 4].
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
  Tensor v = random({4}, kFloat64, 0.1, 0.9, 3), w = random({3}, kFloat64, 0.1, 0.9, 4);
  Tensor mask = make({3, 4}, kBool, {1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1});
  Tensor places = make({2}, kInt64, {2, 0}), along = make({3, 2}, kInt64, {0, 3, 1, 1, 2, 0});
  Tensor flat_places = make({3}, kInt64, {11, 0, 5});
  Tensor two_rows = random({2, 4}, kFloat64, 0.1, 0.9, 5), part = random({3, 2}, kFloat64, 0.1, 0.9, 6);
  Tensor number = full({}, 0.5, kFloat64);
};

/** What an elementwise op of this name is tried with. */
Tensor operand_for(std::string_view name, uint64_t seed) {
  const bool whole = name.starts_with("bitwise") || name == "gcd" || name == "lcm";
  return whole ? random({3, 4}, kInt64, 1, 9, seed) : random({3, 4}, kFloat64, 0.1, 0.9, seed);
}

}  // namespace

TEST_F(TensorMethods, ElementwiseOfOne) {
#define FRESH(name)          \
  x = operand_for(#name, 1); \
  SAME(name)
#define VARIANTS(name) FRESH(name) SAME_INPLACE(name##_)
  TERCEL_UNARY_METHODS(VARIANTS)
  TERCEL_UNARY_FRESH_METHODS(FRESH)
#undef FRESH
#undef VARIANTS
}

TEST_F(TensorMethods, ElementwiseOfTwo) {
#define FRESH(name)                                     \
  x = operand_for(#name, 1), y = operand_for(#name, 2); \
  SAME(name, y)                                         \
  SAME(name, Scalar(2))
#define VARIANTS(name) FRESH(name) SAME_INPLACE(name##_, y) SAME_INPLACE(name##_, Scalar(2))
  TERCEL_BINARY_METHODS(VARIANTS)
  TERCEL_BINARY_FRESH_METHODS(FRESH)
#undef FRESH
#undef VARIANTS
}

TEST_F(TensorMethods, ElementwiseWithParameters) {
  SAME(add, y, 3)
  SAME_INPLACE(add_, y, 3)
  SAME(sub, y, 3)
  SAME_INPLACE(sub_, y, 3)
  SAME(div, y, "floor")
  SAME(div, 0.25, "trunc")
  SAME_INPLACE(div_, y, "floor")
  SAME_INPLACE(div_, 0.25, "trunc")
  SAME(clamp, 0.3, 0.5)
  SAME(clamp, v, std::nullopt)
  SAME_INPLACE(clamp_, 0.3, 0.5)
  SAME_INPLACE(clamp_, std::nullopt, v)
  SAME(clamp_min, 0.5)
  SAME_INPLACE(clamp_min_, 0.5)
  SAME(clamp_max, 0.5)
  SAME_INPLACE(clamp_max_, 0.5)
  SAME(clip, 0.3, 0.5)
  SAME(clip, v, std::nullopt)
  SAME_INPLACE(clip_, 0.3, 0.5)
  SAME_INPLACE(clip_, v, std::nullopt)
  SAME(lerp, y, v)
  SAME(lerp, y, 0.25)
  SAME_INPLACE(lerp_, y, v)
  SAME_INPLACE(lerp_, y, 0.25)
  SAME(addcmul, y, v, 2)
  SAME_INPLACE(addcmul_, y, v, 2)
  SAME(addcdiv, y, v, 2)
  SAME_INPLACE(addcdiv_, y, v, 2)
  SAME(ldexp, places.slice(0, 0, 1))
  SAME_INPLACE(ldexp_, places.slice(0, 0, 1))
  SAME(logit, 0.3)
  SAME_INPLACE(logit_)
  SAME(nan_to_num, 1, 2, 3)
  SAME_INPLACE(nan_to_num_)
  SAME(round, 1)
  SAME_INPLACE(round_, 1)
  SAME_INPLACE(polygamma_, 1)
  expect_same({x.polygamma(2)}, {polygamma(2, x)});
  SAME(frexp)
  SAME(hardshrink, 0.3)
  SAME(prelu, full({1}, 0.2, kFloat64))
  SAME(masked_fill, mask, 7)
  SAME(masked_fill, mask, number)
  SAME_INPLACE(masked_fill_, mask, 7)
  SAME_INPLACE(masked_fill_, mask, number)
  SAME(isclose, y, 0.5)
  SAME(allclose, y, 100)
  SAME(equal, y)
  EXPECT_TRUE(x.equal(x.clone()));
  SAME(softmax, 1)
  SAME(log_softmax, 1, kFloat32)
  expect_same({x.where(mask, y)}, {where(mask, x, y)});
  x = add(x, 3);
  SAME(mvlgamma, 2)
  SAME_INPLACE(mvlgamma_, 2)
}

TEST_F(TensorMethods, Views) {
  SAME(view, {2, 6})
  SAME(view, kInt64)
  SAME(reshape, {4, 3})
  SAME(reshape_as, y.t())
  SAME(view_as, y.reshape({2, 6}))
  SAME(flatten, 0, 1)
  SAME(unflatten, 1, {2, 2})
  SAME(ravel)
  SAME(unsqueeze, 1)
  SAME_INPLACE(unsqueeze_, 1)
  SAME(expand, {2, 3, 4})
  SAME(expand_as, random({2, 3, 4}, kFloat64, 0, 1, 1))
  SAME(broadcast_to, {2, 3, 4})
  SAME(as_strided, {2, 2}, {1, 4}, 1)
  SAME_INPLACE(as_strided_, {2, 2}, {1, 4})
  SAME(transpose, 0, 1)
  SAME_INPLACE(transpose_, 0, 1)
  SAME(swapaxes, 0, 1)
  SAME_INPLACE(swapaxes_, 0, 1)
  SAME(swapdims, 0, 1)
  SAME_INPLACE(swapdims_, 0, 1)
  SAME(t)
  SAME_INPLACE(t_)
  SAME(permute, {1, 0})
  SAME(movedim, 0, 1)
  SAME(movedim, {0, 1}, {1, 0})
  SAME(moveaxis, 0, 1)
  SAME(moveaxis, {0, 1}, {1, 0})
  SAME(numpy_T)
  SAME(mT)
  SAME(mH)
  SAME(matrix_H)
  SAME(adjoint)
  SAME(narrow, 1, 1, 2)
  SAME(narrow, 1, full({}, 1, kInt64), 2)
  SAME(select, 0, 1)
  SAME(slice, 1, 0, 4, 2)
  SAME(unfold, 1, 2, 1)
  SAME(split, 2, 1)
  SAME(split, {1, 3}, 1)
  SAME(split_with_sizes, {1, 2})
  SAME(chunk, 2)
  SAME(tensor_split, 2, 1)
  SAME(tensor_split, {1, 2}, 1)
  SAME(tensor_split, full({}, 2, kInt64))
  SAME(hsplit, 2)
  SAME(hsplit, {1})
  SAME(vsplit, 3)
  SAME(vsplit, {1})
  SAME(unbind, 1)
  SAME(diagonal, 1)
  SAME(conj)
  expect_same({x[1]}, {select(x, 0, 1)});
  x = random({1, 3, 1, 4}, kFloat64, 0, 1, 1);
  SAME(squeeze)
  SAME(squeeze, 0)
  SAME(squeeze, {0, 2})
  SAME_INPLACE(squeeze_)
  SAME_INPLACE(squeeze_, 2)
  SAME_INPLACE(squeeze_, {0, 2})
  SAME(dsplit, 1)
  SAME(dsplit, {1})
}

TEST_F(TensorMethods, CopiesAndSizes) {
  SAME(clone)
  SAME(contiguous)
  SAME(to, kFloat32)
  SAME_INPLACE(copy_, y)
  SAME_INPLACE(fill_, 3)
  SAME_INPLACE(zero_)
  SAME_INPLACE(resize_, {2, 3})
  SAME_INPLACE(resize_as_, two_rows)
  SAME_INPLACE(set_, y)
  SAME_INPLACE(set_, y.storage())
  SAME_INPLACE(set_, y.storage(), 1, {2, 2}, {4, 1})
  SAME(narrow_copy, 1, 1, 2)
  SAME(sum_to_size, {1, 4})
  expect_same({x.type_as(places)}, {to(x, kInt64)});
  x = random({2, 3, 4, 5}, kFloat64, 0, 1, 1);
  SAME(to, MemoryFormat::ChannelsLast)
  SAME_INPLACE(resize_, {2, 3, 4, 4}, MemoryFormat::ChannelsLast)
  SAME_INPLACE(resize_as_, x, MemoryFormat::Preserve)
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

TEST_F(TensorMethods, Reductions){
    SAME(sum) SAME(sum, {1}, true, kFloat32) SAME(nansum, {0}) SAME(mean) SAME(mean, {1}, true) SAME(nanmean, {1})
        SAME(prod) SAME(prod, {1}) SAME(max) SAME(max, 1) SAME(max, y) SAME(min) SAME(min, 1, true) SAME(min, y)
            SAME(amax, {1}) SAME(amin, {0, 1}) SAME(aminmax, 1) SAME(argmax, 1) SAME(argmin) SAME(any) SAME(any, {1})
                SAME(all) SAME(all, {1}, true) SAME(count_nonzero, {1}) SAME(var, {1}, 0) SAME(std, {1}) SAME(median)
                    SAME(median, 1) SAME(nanmedian) SAME(nanmedian, 0) SAME(mode, 1) SAME(kthvalue, 2, 1)
                        SAME(quantile, 0.3, 1) SAME(quantile, v, 1) SAME(nanquantile, 0.3) SAME(nanquantile, v, 1)
                            SAME(norm) SAME(norm, 1, {1}) SAME(dist, y, 1) SAME(logsumexp, {1}) SAME(renorm, 2, 0, 0.5)
                                SAME_INPLACE(renorm_, 2, 0, 0.5) SAME(cov) SAME(corrcoef)}

TEST_F(TensorMethods, ScansAndSorts) {
  SAME(cumsum, 1)
  SAME_INPLACE(cumsum_, 1)
  SAME(cumprod, 1)
  SAME_INPLACE(cumprod_, 0)
  SAME(cummax, 1)
  SAME(cummin, 1)
  SAME(logcumsumexp, 0)
  SAME(diff, 2)
  SAME(sort, 1, true)
  SAME(argsort, 0)
  SAME(msort)
  SAME(topk, 2)
  SAME(histc, 5)
  SAME(histogram, 4)
  SAME(histogram, make({3}, kFloat64, {0, 0.5, 1}))
  x = make({3}, kInt64, {2, 0, 1});
  SAME(bincount)
}

TEST_F(TensorMethods, Indexing) {
  SAME(index, {places, Slice(1, 3)})
  SAME(index, std::vector<TensorIndex>{1, "..."})
  SAME(index_put, {places}, two_rows)
  SAME_INPLACE(index_put_, std::vector<TensorIndex>{places}, two_rows, true)
  x.clone().index_put_({0}, 3);
  SAME(index_select, 1, places)
  SAME(index_add, 0, places, two_rows, 2)
  SAME_INPLACE(index_add_, 0, places, two_rows)
  SAME(index_copy, 0, places, two_rows)
  SAME_INPLACE(index_copy_, 0, places, two_rows)
  SAME(index_fill, 0, places, 3)
  SAME(index_fill, 0, places, number)
  SAME_INPLACE(index_fill_, 0, places, 3)
  SAME_INPLACE(index_fill_, 0, places, number)
  SAME(index_reduce, 0, places, two_rows, ScatterReduction::Maximum)
  SAME_INPLACE(index_reduce_, 0, places, two_rows, ScatterReduction::Mean)
  SAME(gather, 1, along)
  SAME(scatter, 1, along, part)
  SAME(scatter, 1, along, 5)
  SAME_INPLACE(scatter_, 1, along, part)
  SAME_INPLACE(scatter_, 1, along, 5)
  SAME(scatter_add, 1, along, part)
  SAME_INPLACE(scatter_add_, 1, along, part)
  SAME(scatter_reduce, 1, along, part, ScatterReduction::Product)
  SAME_INPLACE(scatter_reduce_, 1, along, part, ScatterReduction::Sum, false)
  SAME(take, flat_places)
  SAME(take_along_dim, along, 1)
  SAME(take_along_dim, flat_places)
  SAME(put, flat_places, w)
  SAME_INPLACE(put_, flat_places, w, true)
  SAME(masked_select, mask)
  SAME(masked_scatter, mask, y)
  SAME_INPLACE(masked_scatter_, mask, y)
  SAME(nonzero)
  SAME(argwhere)
  SAME(select_scatter, v, 0, 1)
  SAME(slice_scatter, two_rows, 0, 1)
  SAME(diagonal_scatter, w)
  SAME(as_strided_scatter, part, {3, 2}, {2, 1})
}

TEST_F(TensorMethods, OtherPlaces) {
  SAME(flip, {0})
  SAME(fliplr)
  SAME(flipud)
  SAME(roll, {1}, {0})
  SAME(rot90)
  SAME(repeat, {2, 1})
  SAME(repeat_interleave, 2, 1)
  SAME(repeat_interleave, flat_places, 0)
  SAME(tile, {2})
  SAME(diag, 1)
  SAME(diag_embed)
  SAME(diagflat)
  SAME_INPLACE(fill_diagonal_, 7)
  SAME(trace)
  SAME(tril, 1)
  SAME_INPLACE(tril_)
  SAME(triu, 1)
  SAME_INPLACE(triu_)
  x = flat_places;
  SAME(repeat_interleave)
}

TEST_F(TensorMethods, Products) {
  const Tensor square = random({3, 3}, kFloat64, 0.1, 0.9, 5), three = random({2, 3}, kFloat64, 0, 1, 6);
  const Tensor batch = random({2, 3, 3}, kFloat64, 0, 1, 7), batch_of_x = random({2, 3, 4}, kFloat64, 0, 1, 8);
  SAME(matmul, y.t())
  SAME(mm, y.t())
  SAME(mv, v)
  SAME(inner, y)
  SAME(kron, w)
  SAME(addmm, square, y, 0.5, 2)
  SAME_INPLACE(addmm_, square, y)
  SAME(addr, w, v)
  SAME_INPLACE(addr_, w, v, 2)
  SAME(addbmm, batch, batch_of_x)
  SAME_INPLACE(addbmm_, batch, batch_of_x)
  x = batch_of_x;
  SAME(bmm, batch_of_x.mT())
  SAME(baddbmm, batch, batch_of_x)
  SAME_INPLACE(baddbmm_, batch, batch_of_x, 2)
  x = w;
  SAME(dot, w)
  SAME(vdot, w)
  SAME(outer, v)
  SAME(ger, v)
  SAME(addmv, y, v)
  SAME_INPLACE(addmv_, y, v)
  x = three;
  SAME(cross, three.flip({1}))
}

TEST_F(TensorMethods, LinearAlgebra) {
  const Tensor square = random({3, 3}, kFloat64, 0.1, 0.9, 5), b = random({3, 2}, kFloat64, 0.1, 0.9, 6);
  x = add(matmul(square, square.t()), eye(3, 3, kFloat64));
  SAME(matrix_power, 3)
  SAME(matrix_exp)
  SAME(det)
  SAME(logdet)
  SAME(slogdet)
  SAME(inverse)
  SAME(pinverse)
  SAME(geqrf)
  expect_same({x.cholesky()}, {linalg::cholesky(x)});
  expect_same(flat(x.qr()), flat(linalg::qr(x)));
  expect_same(flat(y.qr(false)), flat(linalg::qr(y, "complete")));
  const auto [lu, pivots] = linalg::lu_factor(x);
  expect_same({b.lu_solve(lu, pivots)}, {linalg::lu_solve(lu, pivots, b)});
  const GeqrfResult reflectors = geqrf(x);
  expect_same({reflectors.a.orgqr(reflectors.tau)}, {orgqr(reflectors.a, reflectors.tau)});
  x = linalg::cholesky(x);
  SAME(cholesky_inverse)
  const Tensor factor = x;
  x = b;
  SAME(cholesky_solve, factor)
  SAME(triangular_solve, factor, false)
}

TEST_F(TensorMethods,
       RandomNumbers){SAME(bernoulli, seeded()) SAME_INPLACE(bernoulli_, 0.3, seeded())
                          SAME_INPLACE(bernoulli_, y, seeded()) SAME_INPLACE(uniform_, 0, 2, seeded())
                              SAME_INPLACE(normal_, 1, 2, seeded()) SAME_INPLACE(log_normal_, 1, 2, seeded())
                                  SAME_INPLACE(exponential_, 2, seeded()) SAME_INPLACE(cauchy_, 0, 1, seeded())
                                      SAME_INPLACE(geometric_, 0.3, seeded()) SAME_INPLACE(random_, seeded())
                                          SAME_INPLACE(random_, 3, 9, seeded()) SAME(multinomial, 2, false, seeded())}

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

TEST_F(TensorMethods, InPlaceFormsAreRecorded) {
  x.requires_grad_();
  const Tensor z = x.clone();
  z.mul_(3).add_(1).clamp_max_(2);
  z.sum().backward();
  expect_same({x.grad()}, {where(le(add(mul(x.detach(), 3), 1), 2), 3.0, 0.0).to(kFloat64)});
}

#undef SAME
#undef SAME_INPLACE

}  // namespace tercel::test
