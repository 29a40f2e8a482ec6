// Ops of COO operands against the same ops of strided ones, with their gradients.
#include "tercel/ops/sparse/sparse.h"

#include <gtest/gtest.h>

#include "tercel/autograd/gradcheck.h"
#include "tercel/ops/ops.h"
#include "tercel/util/parallel.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::test {
namespace {

/** About half of the elements are zero; integers, so that sums are exact. */
Tensor half_empty(const Sizes& sizes, ScalarType dtype = kFloat64, uint64_t seed = 1) {
  const Tensor whole = random(sizes, kInt64, -3, 3, seed);
  return to(mul(whole, gt(random(sizes, kFloat64, -1, 1, seed + 1), 0)), dtype);
}

/** The entries of a tensor in another order, some of them twice with half the value. */
Tensor shuffled(const Tensor& dense, int64_t sparse_dim) {
  const Tensor x = to_sparse(dense, sparse_dim);
  const Tensor halves = mul(_values(x), 0.5);
  return sparse_coo_tensor(cat({flip(_indices(x), {1}), _indices(x)}, 1), cat({flip(halves, {0}), halves}, 0),
                           dense.sizes());
}

testing::AssertionResult same(const Tensor& got, const Tensor& expected) {
  if (got.sizes() != expected.sizes()) return testing::AssertionFailure() << describe(got);
  const Tensor dense = to_dense(got);
  if (!allclose(dense, to(expected, dense.dtype()), 1e-6, 1e-6))
    return testing::AssertionFailure() << "got " << to_string(dense) << "\nexpected " << to_string(expected);
  return testing::AssertionSuccess();
}

/** f of COO tensors equals f of strided ones: coalesced or not, hybrid or not. */
template <class F>
void check(const Sizes& sizes, F&& f, bool hybrid = true) {
  const Tensor dense = half_empty(sizes);
  const Tensor expected = f(dense);
  for (int64_t sparse_dim = hybrid ? 1 : dense.dim(); sparse_dim <= dense.dim(); ++sparse_dim) {
    SCOPED_TRACE(sparse_dim);
    EXPECT_TRUE(same(f(to_sparse(dense, sparse_dim)), expected));
    EXPECT_TRUE(same(f(shuffled(dense, sparse_dim)), expected));
  }
}

/** The gradient with respect to a strided tensor that becomes sparse, by differences at elements that are not zero. */
template <class F>
void check_gradient(const Sizes& sizes, F&& f, int64_t sparse_dim = -1) {
  const Tensor leaf = add(half_empty(sizes), 5).requires_grad_();  // no zeros: the pattern does not change
  const int64_t dims = sparse_dim < 0 ? leaf.dim() : sparse_dim;
  EXPECT_TRUE(
      gradcheck([&](Span<Tensor> in) { return std::vector<Tensor>{to_dense(f(to_sparse(in[0], dims)))}; }, {leaf}));
}

TEST(Sparse, UnaryFunctionsThatKeepZero) {
  for (Tensor (*f)(const Tensor&) :
       {neg, abs, sin, tanh, relu, erf, floor, ceil, square, expm1, sinh, asinh, deg2rad, softsign})
    check({4, 3, 2}, [f](const Tensor& x) { return f(x); });
  check({4, 3}, [](const Tensor& x) { return leaky_relu(x, 0.1); });
  check({4, 3}, [](const Tensor& x) { return nan_to_num(x); });
  check_gradient({3, 2}, [](const Tensor& x) { return sin(x); });
  check_gradient(
      {3, 2}, [](const Tensor& x) { return mul(neg(x), x); }, 1);
}

TEST(Sparse, FunctionsThatDoNotKeepZeroAreRefused) {
  const Tensor x = to_sparse(half_empty({3, 2}));
  for (Tensor (*f)(const Tensor&) : {exp, cos, sigmoid, reciprocal, logical_not, log, rsqrt})
    TERCEL_EXPECT_THROW(f(x), NotImplementedError, "not implemented for layout sparse_coo");
  TERCEL_EXPECT_THROW(clamp(x, 1, 2), NotImplementedError, "clamp: not implemented for layout sparse_coo");
  TERCEL_EXPECT_THROW(pow(x, 0), RuntimeError, "pow: cannot raise to zeroth power on sparse tensor");
  EXPECT_EQ(message_of<NotImplementedError>([&] { eq(x, x); }), "eq: not implemented for layout sparse_coo");
}

TEST(Sparse, InPlaceFunctions) {
  const Tensor dense = half_empty({4, 3});
  const Tensor x = to_sparse(dense);
  const Tensor same_object = x;
  mul_(x, 2);
  abs_(x);
  neg_(x);
  add_(x, to_sparse(dense));
  sub_(x, to_sparse(dense), 3);
  div_(x, 4);
  mul_(x, to_sparse(ones({4, 3})));
  EXPECT_TRUE(same(same_object, div(sub(neg(abs(mul(dense, 2))), mul(dense, 2)), 4)));
  TERCEL_EXPECT_THROW(div_(to_sparse(ones({2}, kInt64)), 2), RuntimeError,
                      "result type Float can't be cast to the desired output type Long");
}

TEST(Sparse, Sums) {
  const Tensor b = half_empty({4, 3, 2}, kFloat64, 7);
  for (int64_t sparse_dim = 1; sparse_dim <= 3; ++sparse_dim) {
    const Tensor a = half_empty({4, 3, 2});
    for (const Tensor& x : {to_sparse(a, sparse_dim), shuffled(a, sparse_dim)})
      for (const Tensor& y : {to_sparse(b, sparse_dim), shuffled(b, sparse_dim)}) {
        EXPECT_TRUE(same(add(x, y), add(a, b)));
        EXPECT_TRUE(same(sub(x, y, 3), sub(a, b, 3)));
        EXPECT_TRUE(same(add(a, y, 2), add(a, b, 2)));
        EXPECT_TRUE(same(sub(transpose(contiguous(transpose(a, 0, 1)), 0, 1), y), sub(a, b)));
        const Tensor into = clone(a);
        add_(into, y, -2);
        EXPECT_TRUE(same(into, sub(a, b, 2)));
      }
  }
  const Tensor x = to_sparse(half_empty({2, 3}));
  const auto error = [](const Tensor& p, const Tensor& q) { return message_of<RuntimeError>([&] { add(p, q); }); };
  EXPECT_EQ(error(x, ones({2, 3}, kFloat64)), "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  EXPECT_EQ(message_of<RuntimeError>([&] { add(x, 1); }),
            "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  EXPECT_EQ(error(ones({2}, kFloat64), x),
            "add: expected 'self' and 'other' to have same size, but self has size [2] while other has size [2, 3] "
            "(FYI: dense-sparse addition does not currently support broadcasting)");
  EXPECT_EQ(error(x, to_sparse(half_empty({3, 2}))),
            "add: expected sizes of 'self' and 'other' to match, but [2, 3] != [3, 2]");
  EXPECT_EQ(error(x, to_sparse(half_empty({2, 3}), 1)),
            "add: expected 'self' and 'other' to have same density, but 'self' has 2 sparse dimensions while 'other' "
            "has 1 sparse dimensions");
  check_gradient({3, 2}, [](const Tensor& s) { return add(s, s, 3); });
  check_gradient({3, 2}, [](const Tensor& s) { return add(ones({3, 2}, kFloat64), s, 2); });
  EXPECT_EQ(add(to_sparse(ones({2}, kInt64)), to_sparse(ones({2}))).dtype(), kFloat32);
}

TEST(Sparse, Products) {
  const Tensor b = half_empty({4, 3}, kFloat64, 9), row = half_empty({3}, kFloat64, 11);
  check({4, 3}, [](const Tensor& x) { return mul(x, 3); });
  check({4, 3}, [](const Tensor& x) { return mul(3, x); });
  check({4, 3}, [](const Tensor& x) { return mul(x, full({}, 3.0, kFloat64)); });
  check({4, 3}, [](const Tensor& x) { return div(x, 4); });
  check({4, 3}, [](const Tensor& x) { return floor_divide(x, 2); });
  check({4, 3}, [](const Tensor& x) { return pow(x, 3); });
  check({4, 3}, [&](const Tensor& x) { return mul(x, b); });
  check({4, 3}, [&](const Tensor& x) { return mul(row, x); });
  check({1, 3}, [&](const Tensor& x) { return mul(x, b); });
  check({3}, [&](const Tensor& x) { return mul(b, x); });
  const Tensor a = half_empty({4, 3});
  EXPECT_TRUE(same(mul(shuffled(a, 2), shuffled(b, 2)), mul(a, b)));
  EXPECT_TRUE(same(mul(to_sparse(a, 1), to_sparse(b, 1)), mul(a, b)));
  EXPECT_EQ(message_of<RuntimeError>([&] { div(to_sparse(a), to_sparse(b)); }),
            "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape [4, 3] for divisor)");
  check_gradient({4, 3}, [&](const Tensor& x) { return mul(x, b); });
  check_gradient({4, 3}, [&](const Tensor& x) { return mul(mul(x, x), 2); });
  check_gradient(
      {4, 3}, [&](const Tensor& x) { return div(x, 2); }, 1);
}

TEST(Sparse, Comparison) {
  const Tensor a = half_empty({4, 3});
  EXPECT_TRUE(equal(to_sparse(a), shuffled(a, 2)));
  EXPECT_FALSE(equal(to_sparse(a), to_sparse(add(a, 1))));
  EXPECT_FALSE(equal(to_sparse(a), to_sparse(half_empty({3, 4}))));
  EXPECT_TRUE(allclose(to_sparse(a), to_sparse(mul(a, 1 + 1e-9))));
  EXPECT_FALSE(allclose(to_sparse(a), to_sparse(mul(a, 1.1))));
}

TEST(Sparse, Views) {
  check({4, 3, 2}, [](const Tensor& x) { return unsqueeze(x, 0); });
  check({4, 3, 2}, [](const Tensor& x) { return unsqueeze(x, 1); });
  check({4, 3, 2}, [](const Tensor& x) { return unsqueeze(x, -1); });
  check(
      {1, 3, 1}, [](const Tensor& x) { return squeeze(x); }, false);
  check({4, 1, 2}, [](const Tensor& x) { return squeeze(x, 1); });
  for (int64_t d = 0; d < 3; ++d) {
    check({4, 3, 2}, [d](const Tensor& x) { return select(x, d, 1); });
    check({4, 3, 2}, [d](const Tensor& x) { return select(x, d, -1); });
    check({4, 3, 2}, [d](const Tensor& x) { return narrow(x, d, 1, 1); });
    check({4, 3, 2}, [d](const Tensor& x) { return index_select(x, d, tensor({1, 0, 1, 1})); });
    check({4, 3, 2}, [d](const Tensor& x) { return cat({x, x, x}, d); });
  }
  check({4, 3}, [](const Tensor& x) { return stack({x, x}, 0); });
  check({4, 3}, [](const Tensor& x) { return stack({x, x}, 2); });
  check(
      {4, 3}, [](const Tensor& x) { return transpose(x, 0, 1); }, false);
  check(
      {4, 3}, [](const Tensor& x) { return t(x); }, false);
  check(
      {4, 3, 2},
      [](const Tensor& x) {
        return permute(x, {2, 0, 1});
      },
      false);
  const Tensor hybrid = to_sparse(half_empty({3, 2, 4}), 1);
  EXPECT_TRUE(same(transpose(hybrid, 1, 2), transpose(to_dense(hybrid), 1, 2)));
  EXPECT_EQ(message_of<RuntimeError>([&] { transpose(hybrid, 0, 1); }),
            "sparse transpose: transposed dimensions must be sparse Got sparse_dim: 1, d0: 0, d1: 1");
  TERCEL_EXPECT_THROW(index_select(hybrid, 0, tensor({5})), IndexError, "index_select(): index contains 5 that is out");
  TERCEL_EXPECT_THROW(cat({hybrid, ones({3, 2, 4}, kFloat64)}), RuntimeError,
                      "Concatenating sparse tensors, but a dense tensor was found at position 1.");
  check_gradient({3, 2}, [](const Tensor& x) { return mul(t(x), t(x)); });
  check_gradient({3, 2}, [](const Tensor& x) { return select(x, 0, 1); });
  check_gradient({3, 2}, [](const Tensor& x) { return index_select(x, 1, tensor({1, 1, 0})); });
  check_gradient({3, 2}, [](const Tensor& x) { return cat({x, mul(x, 2)}, 1); });
  check_gradient(
      {3, 2}, [](const Tensor& x) { return squeeze(unsqueeze(narrow(x, 0, 1, 2), 1), 1); }, 1);
}

TEST(Sparse, Subscripts) {
  const Tensor dense = half_empty({4, 3, 2});
  const Tensor x = shuffled(dense, 2);
  using indexing::None;
  using indexing::Slice;
  EXPECT_TRUE(same(x.index({1}), dense.index({1})));
  EXPECT_TRUE(same(x.index({Slice(), 2}), dense.index({Slice(), 2})));
  EXPECT_TRUE(same(x.index({1, 2}), dense.index({1, 2})));
  EXPECT_TRUE(same(x.index({None, "...", 1}), dense.index({None, "...", 1})));
  EXPECT_THROW(x.index({Slice(1, 2)}), NotImplementedError);
  EXPECT_THROW(x.index({tensor({0, 1})}), NotImplementedError);
  EXPECT_EQ(message_of<TypeError>([&] { set_item(x, {1}, 0); }), "Cannot assign to a sparse tensor");
}

TEST(Sparse, Reductions) {
  for (const std::vector<int64_t>& dims :
       {Sizes{}, Sizes{0}, Sizes{1}, Sizes{-1}, Sizes{0, 1}, Sizes{0, 2}, Sizes{2, 1, 0}})
    for (const bool keepdim : {false, true}) {
      check({4, 3, 2}, [&](const Tensor& x) { return sum(x, dims, keepdim); });
      if (!keepdim)
        check({4, 3, 2}, [&](const Tensor& x) { return is_sparse(x.layout()) ? sparse::sum(x, dims) : sum(x, dims); });
    }
  check({4, 3}, [](const Tensor& x) { return norm(x); });
  check({4, 3}, [](const Tensor& x) { return norm(x, 1); });
  check({4, 3}, [](const Tensor& x) { return any(x); });
  EXPECT_EQ(sum(to_sparse(ones({2, 2}, kInt32)), {0}).dtype(), kInt64);
  EXPECT_EQ(sum(to_sparse(ones({2, 2}, kInt32))).dtype(), kInt64);
  check_gradient({4, 3}, [](const Tensor& x) { return sum(mul(x, x), {0}); });
  check_gradient({4, 3}, [](const Tensor& x) { return sparse::sum(mul(x, x), {1}); });
  check_gradient(
      {4, 3}, [](const Tensor& x) { return sparse::sum(x); }, 1);
}

TEST(Sparse, Softmax) {
  const double infinite = std::numeric_limits<double>::infinity();
  const Tensor dense = half_empty({4, 3, 2});
  for (int64_t d = 0; d < 3; ++d) {
    // What has no entry counts as minus infinity; of an entry, all dense elements count.
    const Tensor x = to_sparse(dense);
    const Tensor filled = where(eq(dense, 0), -infinite, dense);
    const Tensor expected = where(eq(dense, 0), 0, softmax(filled, d));
    EXPECT_TRUE(same(sparse::softmax(x, d), expected));
    EXPECT_TRUE(same(sparse::softmax(shuffled(dense, 3), d), expected));
    EXPECT_TRUE(same(sparse::log_softmax(x, d), where(eq(dense, 0), 0, log_softmax(filled, d))));
    check_gradient({4, 3, 2}, [d](const Tensor& s) { return sparse::softmax(s, d); });
    check_gradient(
        {4, 3, 2}, [d](const Tensor& s) { return sparse::log_softmax(s, d); }, 2);
  }
  EXPECT_THROW(sparse::softmax(to_sparse(ones({2}, kInt64)), 0), NotImplementedError);
  EXPECT_THROW(sparse::softmax(to_sparse(dense), 3), IndexError);
}

TEST(Sparse, MatrixProducts) {
  for (const int64_t n : {1, 3, 32, 37, 70}) {
    SCOPED_TRACE(n);
    const Tensor b = half_empty({5, n}, kFloat64, 21);
    check(
        {4, 5}, [&](const Tensor& x) { return mm(x, b); }, false);
    check(
        {4, 5}, [&](const Tensor& x) { return matmul(t(b), t(x)); }, false);
    EXPECT_TRUE(same(mm(shuffled(half_empty({4, 5}), 2), shuffled(b, 2)), mm(half_empty({4, 5}), b)));
  }
  const Tensor v = half_empty({5}, kFloat64, 23), batch = half_empty({2, 5, 3}, kFloat64, 25);
  check(
      {4, 5}, [&](const Tensor& x) { return mv(x, v); }, false);
  check(
      {4, 5}, [&](const Tensor& x) { return matmul(x, v); }, false);
  check(
      {5, 4}, [&](const Tensor& x) { return matmul(v, x); }, false);
  check(
      {2, 4, 5}, [&](const Tensor& x) { return bmm(x, batch); }, false);
  const Tensor input = half_empty({4, 3}, kFloat64, 27), b = half_empty({5, 3}, kFloat64, 29);
  check(
      {4, 5}, [&](const Tensor& x) { return addmm(input, x, b, 2, 3); }, false);
  check(
      {4, 5}, [&](const Tensor& x) { return sparse::addmm(input, x, b, 2, 3); }, false);
  check(
      {4, 5}, [&](const Tensor& x) { return linear(t(b), x); }, false);
  for (const ScalarType dtype : {kFloat16, kBFloat16, kFloat32, kInt32, kInt64, kComplex64}) {
    const Tensor p = half_empty({4, 5}, dtype), q = half_empty({5, 3}, dtype, 31);
    EXPECT_TRUE(equal(to_dense(mm(to_sparse(p), q)), matmul(p, q))) << to_string(dtype);
    EXPECT_TRUE(equal(to_dense(mm(to_sparse(p), to_sparse(q))), matmul(p, q))) << to_string(dtype);
  }
  EXPECT_TRUE(same(mm(sparse_coo_tensor({4, 5}), ones({5, 2})), zeros({4, 2})));
  EXPECT_TRUE(same(mm(sparse_coo_tensor({0, 5}), ones({5, 2})), zeros({0, 2})));
}

TEST(Sparse, MatrixProductsRefuseWhatDoesNotFit) {
  const Tensor x = to_sparse(half_empty({2, 3}));
  const auto error = [&](const Tensor& a, const Tensor& b) { return message_of<RuntimeError>([&] { mm(a, b); }); };
  EXPECT_EQ(error(x, ones({2, 2}, kFloat64)), "addmm: Argument #3 (dense): Expected dim 0 size 3, got 2");
  EXPECT_EQ(error(to_sparse(half_empty({2, 3}), 1), ones({3, 2}, kFloat64)), "addmm: matrices expected, got 1D tensor");
  EXPECT_EQ(error(x, ones({3, 2})), "mm: expected scalar type Double but found Float");
  EXPECT_EQ(message_of<RuntimeError>([&] { mv(x, ones({2}, kFloat64)); }),
            "mv: expected self.size(-1) == vec.size(-1)");
}

TEST(Sparse, GradientsOfMatrixProducts) {
  const Tensor b = half_empty({3, 2}, kFloat64, 33);
  check_gradient({4, 3}, [&](const Tensor& x) { return mm(x, b); });
  check_gradient({4, 3}, [&](const Tensor& x) { return sparse::mm(x, b); });
  check_gradient({4, 3}, [&](const Tensor& x) { return sparse::mm(x, to_sparse(b)); });
  check_gradient({2, 4}, [&](const Tensor& x) { return mm(b, x); });
  check_gradient({2, 4}, [&](const Tensor& x) { return sparse::mm(b, x); });
  check_gradient({4, 3}, [&](const Tensor& x) { return sparse::addmm(ones({4, 2}, kFloat64), x, b, 2, 3); });
  check_gradient({2, 2, 3}, [&](const Tensor& x) { return bmm(x, stack({b, b})); });
  EXPECT_TRUE(gradcheck([&](Span<Tensor> in) { return std::vector<Tensor>{mm(to_sparse(t(b)), in[0])}; },
                        {half_empty({3, 5}).requires_grad_()}));

  // As in PyTorch: the gradient of mm() is strided, that of sparse::mm() has the pattern.
  const Tensor leaf = to_sparse(half_empty({4, 3})).requires_grad_();
  sum(mm(leaf, b)).backward();
  EXPECT_EQ(leaf.grad().layout(), Layout::Strided);
  const Tensor other = to_sparse(half_empty({4, 3})).requires_grad_();
  sum(sparse::mm(other, b)).backward();
  EXPECT_EQ(other.grad().layout(), Layout::SparseCoo);
  EXPECT_EQ(_nnz(other.grad()), _nnz(other));
  EXPECT_TRUE(same(other.grad(), mul(mm(ones({4, 2}, kFloat64), t(b)), ne(half_empty({4, 3}), 0))));
}

TEST(SparseThreads, ProductsHaveTheSameBits) {
  const Tensor a = to_sparse(half_empty({700, 300}, kFloat32)), b = half_empty({300, 40}, kFloat32, 35);
  const int64_t before = num_threads();
  set_num_threads(1);
  const Tensor one = mm(a, b), square = mm(a, transpose(a, 0, 1));
  for (const int64_t threads : {2, 5}) {
    set_num_threads(threads);
    EXPECT_EQ(bytes_of(mm(a, b)), bytes_of(one));
    EXPECT_EQ(bytes_of(_values(mm(a, transpose(a, 0, 1)))), bytes_of(_values(square)));
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace tercel::test
