// What backward does when a sparse tensor that it needs was changed, and what reaches a leaf as a COO gradient.
#include <gtest/gtest.h>

#include <cmath>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/ops.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::test {
namespace {

using V = std::vector<double>;

Tensor dense_matrix() { return tensor({{1.0, 2.0}, {0.0, 3.0}}); }

TEST(SparseVersions, ChangedPartsAreErrors) {
  for (const Layout layout : {Layout::SparseCoo, Layout::SparseCsr, Layout::SparseCsc}) {
    const Tensor x = to_sparse(dense_matrix(), layout);
    const Tensor d = ones({2, 2}).requires_grad_();
    const Tensor y = sum(mm(x, d));
    mul_(layout == Layout::SparseCoo ? _values(x) : values(x), 10);
    EXPECT_EQ(x.version(), 1u) << to_string(layout);
    TERCEL_EXPECT_THROW(y.backward(), RuntimeError, "modified by an inplace operation");
  }
}

TEST(SparseVersions, PartsShareTheVersion) {
  const Tensor x = to_sparse(dense_matrix());
  add_(_indices(x), 0);
  mul_(_values(x.detach()), 2);
  EXPECT_EQ(x.version(), 2u);
  mul_(x, 2);
  EXPECT_EQ(x.version(), 3u);
  mul_(_values(x), 2);  // of the parts that took the place of the old ones
  EXPECT_EQ(x.version(), 4u);
  const Tensor apart = x.data();
  mul_(_values(apart), 2);
  EXPECT_EQ(x.version(), 4u);
  EXPECT_EQ(apart.version(), 1u);
}

TEST(SparseVersions, TransposesOfCompressedTensorsAreViews) {
  for (const Layout layout : {Layout::SparseCsr, Layout::SparseCsc}) {
    const Tensor x = to_sparse(dense_matrix(), layout), turned = transpose(x, 0, 1);
    const Tensor w = ones({2, 1}).requires_grad_();
    const Tensor y = sum(mm(turned, w));
    mul_(x, 2);
    EXPECT_TRUE(equal(to_dense(turned), transpose(mul(dense_matrix(), 2), 0, 1)));
    EXPECT_EQ(turned.version(), x.version());
    TERCEL_EXPECT_THROW(y.backward(), RuntimeError, "modified by an inplace operation");
    zero_(turned);
    EXPECT_EQ(item(sum(to_dense(x))).to_double(), 0);
    TERCEL_EXPECT_THROW(mul_(turned, select(select(w, 0, 0), 0, 0)), NotImplementedError, "are not recorded");
    mul_(x, select(select(w, 0, 0), 0, 0));
    TERCEL_EXPECT_THROW(mm(turned, w), NotImplementedError, "after a recorded in-place change of its base");
  }
}

TEST(SparseVersions, HooksTakeTheGradientOfAnEmbedding) {
  const Tensor weight = ones({4, 2}).requires_grad_();
  Layout seen = Layout::Strided;
  register_hook(weight, [&seen](const Tensor& g) {
    seen = g.layout();
    return mul(g, 3);
  });
  sum(embedding(weight, tensor({1, 1}), {}, true)).backward();
  EXPECT_EQ(seen, Layout::SparseCoo);
  EXPECT_EQ(values_of(to_dense(gradient_of(weight).values)), (V{0, 0, 6, 6, 0, 0, 0, 0}));
}

TEST(SparseVersions, AssignedGradientsFitTheLayout) {
  const Tensor strided = ones({2, 2}).requires_grad_();
  const Tensor coo = to_sparse(dense_matrix()).detach().requires_grad_();
  const Tensor csr = to_sparse_csr(dense_matrix());
  TERCEL_EXPECT_THROW(set_gradient(strided, {csr, {}}), RuntimeError, "data of a different type");
  TERCEL_EXPECT_THROW(set_gradient(coo, {dense_matrix(), {}}), RuntimeError, "data of a different type");
  set_gradient(strided, {to_sparse(dense_matrix()), {}});
  EXPECT_EQ(gradient_of(strided).values.layout(), Layout::SparseCoo);
}

TEST(SparseVersions, CooGradientsGoThroughOps) {
  const Tensor x = ones({2, 2}).requires_grad_();
  neg(mul(x, 2)).backward(to_sparse(dense_matrix()));
  ASSERT_TRUE(gradient_of(x).is_coo());
  EXPECT_EQ(values_of(to_dense(gradient_of(x).values)), (V{-2, -4, 0, -6}));
}

TEST(SparseProducts, AnInputTimesZeroIsNotRead) {
  const Tensor input = full({2, 2}, NAN), x = to_sparse(dense_matrix()), d = eye(2, 2);
  EXPECT_EQ(values_of(addmm(input, x, d, 0)), (V{1, 2, 0, 3}));
  EXPECT_EQ(values_of(sparse::addmm(input, x, d, 0)), (V{1, 2, 0, 3}));
}

TEST(SparseProducts, Reductions) {
  const Tensor x = to_sparse_csr(dense_matrix()), d = tensor({{1.0, 2.0}, {3.0, -4.0}});
  EXPECT_EQ(values_of(sparse::mm(x, d, "sum")), (V{7, -6, 9, -12}));
  EXPECT_EQ(values_of(sparse::mm(x, d, "mean")), (V{3.5, -3, 9, -12}));
  EXPECT_EQ(values_of(sparse::mm(x, d, "amax")), (V{6, 2, 9, -12}));
  EXPECT_EQ(values_of(sparse::mm(x, d, "amin")), (V{1, -8, 9, -12}));
  TERCEL_EXPECT_THROW(sparse::mm(to_sparse(x), d, "amin"), NotImplementedError, "sparse_csr");
}

}  // namespace
}  // namespace tercel::test
