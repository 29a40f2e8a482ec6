#include "tercel/ops/sparse/coo.h"

#include <gtest/gtest.h>

#include "tercel/autograd/autograd.h"
#include "tercel/core/sparse_data.h"
#include "tercel/ops/ops.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::test {
namespace {

using V = std::vector<double>;

/** The matrix [[1, 0, 2], [0, 3, 0]]. */
Tensor matrix() { return sparse_coo_tensor(tensor({{0, 0, 1}, {0, 2, 1}}), tensor({1.0, 2.0, 3.0}), {2, 3}); }
/** The example of document 004: entry 1 occurs twice. */
Tensor uncoalesced() { return sparse_coo_tensor(tensor({{0, 1, 1}}), tensor({3.0, 4.0, 5.0}), {3}); }

V dense_values(const Tensor& x) { return values_of(to_dense(x)); }

TEST(SparseCoo, PartsAndProperties) {
  const Tensor x = matrix();
  EXPECT_EQ(x.layout(), Layout::SparseCoo);
  EXPECT_EQ(x.sizes(), (Sizes{2, 3}));
  EXPECT_EQ(x.numel(), 6);
  EXPECT_EQ(sparse_dim(x), 2);
  EXPECT_EQ(dense_dim(x), 0);
  EXPECT_EQ(_nnz(x), 3);
  EXPECT_FALSE(is_coalesced(x));
  EXPECT_FALSE(x.is_contiguous());
  EXPECT_EQ(x.strides(), (Sizes{0, 0}));
  EXPECT_EQ(values_of(_indices(x)), (V{0, 0, 1, 0, 2, 1}));
  EXPECT_EQ(values_of(_values(x)), (V{1, 2, 3}));
  EXPECT_EQ(sparse_dim(ones({2, 3})), 0);
  EXPECT_EQ(dense_dim(ones({2, 3})), 2);
}

TEST(SparseCoo, Methods) {
  const Tensor x = uncoalesced(), dense = x.to_dense();
  EXPECT_EQ(values_of(dense), (V{3, 9, 0}));
  EXPECT_TRUE(is_coalesced(x.coalesce()));
  EXPECT_EQ(_nnz(dense.to_sparse()), 2);
  EXPECT_EQ(matrix().to_dense().to_sparse(Layout::SparseCsc).layout(), Layout::SparseCsc);
  EXPECT_EQ(dense_dim(matrix().to_dense().to_sparse(1)), 1);
  EXPECT_EQ(values_of(_values(ones({3}, kFloat64).sparse_mask(x.coalesce()))), (V{1, 1}));
}

TEST(SparseCoo, OutTensorsTakeResultsOn) {
  const Tensor out = sparse_coo_tensor({7}, kFloat64), x = uncoalesced();
  EXPECT_TRUE(sin_out(out, x).is_same(out));
  EXPECT_EQ(dense_values(out), values_of(sin(x.to_dense())));
  const Tensor strided = zeros({3}, kFloat64), integers = sparse_coo_tensor({3}, kInt64);
  EXPECT_THROW(sin_out(strided, x), RuntimeError);
  EXPECT_THROW(sin_out(integers, x), RuntimeError);
  EXPECT_THROW(sin_out(out, ones({3}, kFloat64)), RuntimeError);
}

TEST(SparseCoo, SharesItsParts) {
  const Tensor indices = tensor({{0, 2}}), values = tensor({1.0, 2.0});
  const Tensor x = sparse_coo_tensor(indices, values, {3});
  EXPECT_EQ(_indices(x).data_ptr(), indices.data_ptr());
  EXPECT_EQ(_values(x).data_ptr(), values.data_ptr());
  fill_(values, 5);
  EXPECT_EQ(dense_values(x), (V{5, 0, 5}));
}

TEST(SparseCoo, InfersTheSize) {
  EXPECT_EQ(sparse_coo_tensor(tensor({{0, 4}, {1, 2}}), ones({2, 7})).sizes(), (Sizes{5, 3, 7}));
  EXPECT_EQ(sparse_coo_tensor(empty({2, 0}, kInt64), empty({0, 3})).sizes(), (Sizes{0, 0, 3}));
  EXPECT_EQ(sparse_coo_tensor(to(tensor({{0, 4}}), kInt32), ones({2})).sizes(), (Sizes{5}));
}

TEST(SparseCoo, EmptyOnesAreCoalesced) {
  const Tensor x = sparse_coo_tensor({2, 3}, kFloat64);
  EXPECT_TRUE(is_coalesced(x));
  EXPECT_EQ(x.dtype(), kFloat64);
  EXPECT_EQ(dense_values(x), V(6, 0));
  EXPECT_EQ(dense_values(sparse_coo_tensor(empty({0, 1}, kInt64), tensor({5.0}), IntSpan())), (V{5}));
  EXPECT_EQ(dense_values(sparse_coo_tensor(empty({0, 2}, kInt64), tensor({5.0, 6.0}), IntSpan())), (V{11}));
}

TEST(SparseCoo, RefusesPartsThatDoNotFit) {
  const auto error = [](const Tensor& indices, const Tensor& values, IntSpan size) {
    return message_of<RuntimeError>([&] { sparse_coo_tensor(indices, values, size); });
  };
  EXPECT_EQ(error(tensor({0, 1}), ones({2}), {3}), "indices must be sparse_dim x nnz, but got: [2]");
  EXPECT_EQ(error(tensor({{0, 1}}), ones({3}), {3}),
            "indices and values must have same nnz, but got nnz from indices: 2, nnz from values: 3");
  EXPECT_EQ(error(tensor({{0, 1}}), ones({2}), {3, 3}),
            "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = 2, sparse_dim = 1, dense_dim = 0");
  EXPECT_EQ(error(tensor({{0, 1}}), ones({2, 1}), {3, 3}), "values has incorrect size, expected [2, 3], got [2, 1]");
  EXPECT_EQ(error(tensor({{0, 5}}), ones({2}), {3}),
            "size is inconsistent with indices: for dim 0, size is 3 but found index 5");
  EXPECT_EQ(error(tensor({{0, -1}}), ones({2}), {3}), "found negative index -1 for dim 0");
  EXPECT_EQ(message_of<TypeError>([] {
              sparse_coo_tensor(tensor({{0.0, 1.0}}), ones({2}), {3});
            }),
            "sparse_coo_tensor: expected indices of an integer dtype but got float32");
  EXPECT_EQ(message_of<RuntimeError>([] {
              sparse_coo_tensor(tensor({{1, 0}}), ones({2}), {3}, {}, true);
            }),
            "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor");
}

TEST(SparseCoo, UncheckedIndicesAreRefusedWhereTheyAreRead) {
  const Tensor wrong = sparse_coo_tensor(tensor({{0, 5}}), ones({2}), {3}, false);
  EXPECT_THROW(to_dense(wrong), IndexError);
  EXPECT_THROW(coalesce(wrong), IndexError);
  EXPECT_THROW(add(zeros({3}), wrong), IndexError);
  sparse::set_check_invariants(false);
  EXPECT_FALSE(sparse::check_invariants());
  EXPECT_NO_THROW(sparse_coo_tensor(tensor({{0, 5}}), ones({2}), {3}));
  sparse::set_check_invariants(true);
  // Also of a tensor that claims to be coalesced, and of indices that change later.
  const Tensor indices = tensor({{0, 1}, {0, 1}});
  const Tensor x = sparse_coo_tensor(indices, ones({2}), {2, 2}, {}, true);
  fill_(indices, 7);
  EXPECT_THROW(to_dense(x), IndexError);
  EXPECT_THROW(mm(x, ones({2, 2})), IndexError);
}

TEST(SparseCoo, IndicesAndValuesNeedACoalescedTensor) {
  EXPECT_EQ(message_of<RuntimeError>([] { indices(uncoalesced()); }),
            "Cannot get indices on an uncoalesced tensor, please call .coalesce() first");
  EXPECT_EQ(message_of<RuntimeError>([] { values(uncoalesced()); }),
            "Cannot get values on an uncoalesced tensor, please call .coalesce() first");
  EXPECT_EQ(message_of<RuntimeError>([] { indices(ones({2})); }),
            "indices expected sparse coordinate tensor layout but got Strided");
  EXPECT_EQ(values_of(values(coalesce(uncoalesced()))), (V{3, 9}));
}

TEST(SparseCoo, ToSparseKeepsNaNAndDropsZeros) {
  const double nan = std::nan("");
  const Tensor x = to_sparse(tensor({{0.0, nan}, {-0.0, 2.0}}));
  EXPECT_TRUE(is_coalesced(x));
  EXPECT_EQ(values_of(_indices(x)), (V{0, 1, 1, 1}));
  EXPECT_EQ(_nnz(x), 2);
}

TEST(SparseCoo, HybridTensors) {
  const Tensor dense = make({3, 2, 2}, kFloat32, {1, 0, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0});
  const Tensor x = to_sparse(dense, 1);
  EXPECT_EQ(_nnz(x), 2);
  EXPECT_EQ(dense_dim(x), 2);
  EXPECT_EQ(values_of(_indices(x)), (V{0, 2}));
  EXPECT_EQ(dense_values(x), values_of(dense));
  EXPECT_EQ(dense_values(to_sparse(dense, 2)), values_of(dense));
  EXPECT_EQ(message_of<RuntimeError>([&] { to_sparse(dense, 4); }),
            "dense_to_sparse: sparse_dim argument must be in [0,3] range, but 4 is given");
  EXPECT_EQ(message_of<RuntimeError>([&] { to_sparse(dense, 0); }),
            "dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0");
  // A dense size of 0.
  const Tensor none = to_sparse(zeros({2, 0}), 1);
  EXPECT_EQ(_nnz(none), 0);
  EXPECT_EQ(to_dense(none).sizes(), (Sizes{2, 0}));
}

TEST(SparseCoo, EveryDtypeConverts) {
  for (const ScalarType dtype : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kUInt16, kUInt32, kUInt64, kFloat16,
                                 kBFloat16, kFloat32, kFloat64, kComplex64, kComplex128}) {
    SCOPED_TRACE(to_string(dtype));
    const Tensor dense = make({2, 3}, dtype, {1, 0, 1, 0, 1, 0});
    const Tensor x = to_sparse(dense);
    EXPECT_EQ(_nnz(x), 3);
    EXPECT_TRUE(equal(to_dense(x), dense));
    EXPECT_TRUE(equal(to_dense(clone(x)), dense));
    EXPECT_EQ(to(x, kFloat64).dtype(), kFloat64);
  }
}

TEST(SparseCoo, Resizes) {
  Tensor x = uncoalesced();
  sparse_resize_(x, {5}, 1, 0);
  EXPECT_EQ(dense_values(x), (V{3, 9, 0, 0, 0}));
  TERCEL_EXPECT_THROW(sparse_resize_(x, {2}, 1, 0), RuntimeError,
                      "shrinking the size of sparse dimensions (from [5] to [2]) on a non-empty sparse tensor is not "
                      "supported.\nYou could try");
  TERCEL_EXPECT_THROW(sparse_resize_(x, {5, 2}, 1, 1), RuntimeError,
                      "changing the number of dense dimensions (from 0 to 1) on a non-empty");
  TERCEL_EXPECT_THROW(sparse_resize_(x, {5, 2}, 2, 0), RuntimeError,
                      "changing the number of sparse dimensions (from 1 to 2) on a non-empty");
  const Tensor hybrid = sparse_coo_tensor(tensor({{1}}), tensor({{1.0, 2.0}}), {2, 2});
  sparse_resize_(hybrid, {2, 3}, 1, 1);
  EXPECT_EQ(dense_values(hybrid), (V{0, 0, 0, 1, 2, 0}));
  sparse_resize_and_clear_(x, {2, 2}, 1, 1);
  EXPECT_EQ(_nnz(x), 0);
  EXPECT_EQ(dense_dim(x), 1);
}

TEST(SparseCoo, ChangesBumpItsOwnVersion) {
  const Tensor x = uncoalesced();
  const Tensor alias = x.detach(), apart = x.data();
  const uint32_t before = x.version();
  mul_(x, 2);
  EXPECT_GT(x.version(), before);
  EXPECT_EQ(alias.version(), x.version());
  EXPECT_EQ(apart.version(), 0u);
  // Copies share the parts they had.
  EXPECT_EQ(dense_values(alias), (V{3, 9, 0}));
  EXPECT_EQ(dense_values(x), (V{6, 18, 0}));
}

TEST(SparseCoo, CopiesAndFills) {
  const Tensor x = uncoalesced();
  const Tensor copy = clone(x);
  EXPECT_NE(_values(copy).data_ptr(), _values(x).data_ptr());
  zero_(x);
  EXPECT_EQ(_nnz(x), 0);
  EXPECT_EQ(dense_values(copy), (V{3, 9, 0}));
  copy_(x, copy);
  EXPECT_EQ(dense_values(x), (V{3, 9, 0}));
  TERCEL_EXPECT_THROW(copy_(ones({3}), x), RuntimeError,
                      "copy_() between dense and sparse Tensors is not implemented!");
  EXPECT_EQ(_nnz(zeros_like(copy)), 0);
  EXPECT_EQ(empty_like(copy).sizes(), (Sizes{3}));
}

TEST(SparseCoo, MasksKeepTheMaskPattern) {
  const Tensor mask = matrix(), dense = make({2, 3}, kFloat32, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values_of(_values(sparse_mask(dense, mask))), (V{1, 3, 5}));
  const Tensor other = sparse_coo_tensor(tensor({{0, 0}, {2, 2}}), tensor({1.0, 6.0}), {2, 3});
  EXPECT_EQ(values_of(_values(sparse_mask(other, mask))), (V{0, 7, 0}));
  EXPECT_EQ(message_of<RuntimeError>([&] { sparse_mask(ones({4}), mask); }),
            "sparse_mask(): operands have incompatible sizes; self has size [4] but mask has size [2, 3]");
}

// ---- gradients ----

TEST(SparseCooGradient, OfConversions) {
  const auto x = [] { return make({2, 3}, kFloat64, {1, 0, 2, 0, 3, 0}).requires_grad_(); };
  const Tensor dense = x();
  sum(mul(to_dense(to_sparse(dense)), 2)).backward();
  // The gradient of to_dense() has the pattern, that of to_sparse() is strided again.
  EXPECT_EQ(values_of(dense.grad()), (V{2, 0, 2, 0, 2, 0}));

  const Tensor leaf = to(matrix(), kFloat64).requires_grad_();
  sum(mul(to_dense(leaf), 2)).backward();
  EXPECT_EQ(leaf.grad().layout(), Layout::SparseCoo);
  EXPECT_EQ(dense_values(leaf.grad()), (V{2, 0, 2, 0, 2, 0}));
  sum(to_dense(leaf, {}, false)).backward();
  EXPECT_EQ(leaf.grad().layout(), Layout::Strided);
  EXPECT_EQ(values_of(leaf.grad()), (V{3, 1, 3, 1, 3, 1}));
}

TEST(SparseCooGradient, OfTheConstructorAndTheValues) {
  const Tensor values_leaf = tensor({3.0, 4.0, 5.0}).requires_grad_();
  const Tensor x = sparse_coo_tensor(tensor({{0, 1, 1}}), values_leaf, {3});
  sum(mul(to_dense(x), tensor({1.0, 10.0, 100.0}))).backward();
  EXPECT_EQ(values_of(values_leaf.grad()), (V{1, 10, 10}));

  const Tensor leaf = uncoalesced().requires_grad_();
  const Tensor v = values(coalesce(leaf));
  sum(mul(v, v)).backward();
  EXPECT_EQ(dense_values(leaf.grad()), (V{6, 18, 0}));
}

TEST(SparseCooGradient, RowsAndCooAreTheSame) {
  const Tensor rows = tensor({1, 3, 1}), values = make({3, 2}, kFloat32, {1, 2, 3, 4, 5, 6});
  const Gradient coo = to_coo({values, rows}, {5, 2});
  ASSERT_TRUE(coo.is_coo());
  EXPECT_EQ(_values(coo.values).data_ptr(), values.data_ptr());
  EXPECT_EQ(_indices(coo.values).data_ptr(), rows.data_ptr());
  const Gradient back = to_rows(coo);
  ASSERT_TRUE(back.is_rows());
  EXPECT_EQ(back.rows.data_ptr(), rows.data_ptr());
  EXPECT_EQ(back.values.data_ptr(), values.data_ptr());
  EXPECT_TRUE(equal(dense_gradient({values, rows}, {5, 2}), to_dense(coo.values)));
  // Values that several rows share are written out.
  const Gradient shared = to_coo({values, rows, tensor({0, 0, 2})}, {5, 2});
  EXPECT_EQ(values_of(_values(shared.values)), (V{1, 2, 1, 2, 5, 6}));
}

TEST(SparseCooGradient, OfAllKindsAreAdded) {
  const Tensor rows = tensor({1, 3}), values = ones({2, 2});
  const Gradient of_rows{values, rows}, coo = to_coo(of_rows, {4, 2}), dense{ones({4, 2}), {}};
  const V twice = {0, 0, 2, 2, 0, 0, 2, 2}, thrice = {1, 1, 2, 2, 1, 1, 2, 2};
  EXPECT_EQ(dense_values(add_gradients(of_rows, coo).values), twice);
  EXPECT_EQ(dense_values(add_gradients(coo, of_rows).values), twice);
  EXPECT_EQ(dense_values(add_gradients(coo, coo).values), twice);
  EXPECT_EQ(values_of(add_gradients(coo, {clone(dense.values), {}}).values), thrice);
  EXPECT_EQ(values_of(add_gradients({clone(dense.values), {}}, coo).values), thrice);
  const Gradient wide{sparse_coo_tensor(tensor({{0}, {1}}), ones({1}), {4, 2}), {}};
  EXPECT_THROW(add_gradients(coo, wide), RuntimeError);
  EXPECT_THROW(add_rows(ones({2, 2}), coo), RuntimeError);
  const Gradient outside{sparse_coo_tensor(tensor({{0, 5}}), ones({2, 2}), {4, 2}, false), {}};
  EXPECT_THROW(add_rows(ones({4, 2}), outside), IndexError);
}

TEST(SparseCooGradient, OfALeafIsItsOwn) {
  const Tensor leaf = matrix().requires_grad_();
  const Tensor given = matrix();
  mul(leaf, 1).backward(given);
  mul_(_values(given), 10);
  EXPECT_EQ(dense_values(leaf.grad()), (V{1, 0, 2, 0, 3, 0}));
  mul(leaf, 1).backward(matrix());
  EXPECT_EQ(dense_values(leaf.grad()), (V{2, 0, 4, 0, 6, 0}));
}

TEST(SparseCooGradient, InPlaceChangesAreRecorded) {
  const Tensor dense = to_dense(matrix());
  const auto gradient = [&](auto change) {
    const Tensor leaf = coalesce(matrix()).requires_grad_();
    const Tensor x = mul(leaf, 0.5);
    const Tensor same_object = x;
    change(x);
    EXPECT_TRUE(same_object.is_same(x) && x.requires_grad());
    sum(to_dense(x)).backward();
    return dense_values(leaf.grad());
  };
  EXPECT_EQ(gradient([](const Tensor& x) { mul_(mul_(x, 2), 3); }), (V{3, 0, 3, 0, 3, 0}));
  EXPECT_EQ(gradient([](const Tensor& x) { neg_(x); }), (V{-.5, 0, -.5, 0, -.5, 0}));
  EXPECT_EQ(gradient([](const Tensor& x) { div_(x, full({}, 4, kFloat64)); }), (V{.125, 0, .125, 0, .125, 0}));
  EXPECT_EQ(gradient([&](const Tensor& x) { mul_(x, dense); }), (V{.5, 0, 1, 0, 1.5, 0}));
  EXPECT_EQ(gradient([&](const Tensor& x) { square_(x); }), (V{.5, 0, 1, 0, 1.5, 0}));
  EXPECT_EQ(gradient([&](const Tensor& x) { sqrt_(square_(x)); }), (V{.5, 0, .5, 0, .5, 0}));  // saves its result
  EXPECT_EQ(gradient([&](const Tensor& x) { add_(x, matrix(), 3); }), (V{.5, 0, .5, 0, .5, 0}));
  EXPECT_EQ(gradient([&](const Tensor& x) { transpose_(x, 0, 1); }), (V{.5, 0, .5, 0, .5, 0}));
  EXPECT_EQ(gradient([&](const Tensor& x) { zero_(x); }), (V{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(gradient([&](const Tensor& x) { copy_(x, matrix()); }), (V{0, 0, 0, 0, 0, 0}));
  TERCEL_EXPECT_THROW(zero_(matrix().requires_grad_()), RuntimeError, "a leaf Variable that requires grad");
}

TEST(SparseCoo, InPlaceFunctionsOfUncoalescedTensors) {
  const Tensor x = uncoalesced();
  TERCEL_EXPECT_THROW(abs_(x), RuntimeError, "abs_ requires coalesced input");
  neg_(mul_(x, 2));
  EXPECT_FALSE(is_coalesced(x));
  EXPECT_EQ(dense_values(x), (V{-6, -18, 0}));
}

TEST(SparseCooGradient, OfTheOtherOperandOfAnInPlaceChange) {
  const auto gradient = [](auto change) {
    const Tensor leaf = mul(matrix(), 2).requires_grad_(), x = matrix();
    change(x, leaf);
    sum(to_dense(x)).backward();
    return dense_values(leaf.grad());
  };
  EXPECT_EQ(gradient([](const Tensor& x, const Tensor& y) { copy_(x, y); }), (V{1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(gradient([](const Tensor& x, const Tensor& y) { add_(x, y, 3); }), (V{3, 0, 3, 0, 3, 0}));
  EXPECT_EQ(gradient([](const Tensor& x, const Tensor& y) { mul_(x, y); }), (V{1, 0, 2, 0, 3, 0}));
}

TEST(SparseCooGradient, SavedTensorsKnowOfChanges) {
  const Tensor a = matrix(), b = ones({3, 2}).requires_grad_();
  const Tensor y = mm(a, b);
  mul_(a, 2);
  TERCEL_EXPECT_THROW(sum(y).backward(), RuntimeError, "modified by an inplace operation");
}

}  // namespace
}  // namespace tercel::test
