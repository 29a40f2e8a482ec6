// Tensors of compressed layouts; python/tests/test_sparse_compressed.py compares them with PyTorch.
#include "tercel/ops/sparse/compressed.h"

#include <gtest/gtest.h>

#include "tercel/autograd/gradcheck.h"
#include "tercel/core/sparse_data.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/views/views.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::test {
namespace {

constexpr Layout kLayouts[] = {Layout::SparseCsr, Layout::SparseCsc, Layout::SparseBsr, Layout::SparseBsc};

Tensor elements() { return make({2, 4}, kFloat64, {1, 5, 2, 6, 0, 0, 3, 4}); }

Tensor in_layout(const Tensor& x, Layout layout) {
  const bool blocked = layout == Layout::SparseBsr || layout == Layout::SparseBsc;
  const int64_t block[] = {1, 2};
  return to_sparse(x, layout, blocked ? IntSpan(block) : IntSpan());
}

TEST(Compressed, ScalesTheSecondOperand) {
  const Tensor dense = make({2, 2}, kFloat64, {1, 2, 3, 4}), x = to_sparse_csr(make({2, 2}, kFloat64, {0, 5, 0, 0}));
  EXPECT_EQ(values_of(add(x, dense, 10)), (std::vector<double>{10, 25, 30, 40}));
  EXPECT_EQ(values_of(add(dense, x, 10)), (std::vector<double>{1, 52, 3, 4}));
}

TEST(Compressed, PartsAreShared) {
  const Tensor offsets = make({3}, kInt32, {0, 2, 3}), columns = make({3}, kInt32, {0, 1, 1});
  const Tensor values = make({3}, kFloat32, {1, 2, 3});
  const Tensor x = sparse_csr_tensor(offsets, columns, values, {2, 2});
  EXPECT_EQ(x.layout(), Layout::SparseCsr);
  EXPECT_EQ(crow_indices(x).data_ptr(), offsets.data_ptr());
  EXPECT_EQ(col_indices(x).data_ptr(), columns.data_ptr());
  EXPECT_EQ(tercel::values(x).data_ptr(), values.data_ptr());
  const Tensor turned = transpose(x, 0, 1);
  EXPECT_EQ(turned.layout(), Layout::SparseCsc);
  EXPECT_EQ(ccol_indices(turned).data_ptr(), offsets.data_ptr());
  EXPECT_EQ(values_of(to_dense(turned)), (std::vector<double>{1, 0, 2, 3}));
  TERCEL_EXPECT_THROW(ccol_indices(x), RuntimeError,
                      "ccol_indices expected sparse column compressed tensor layout but got SparseCsr");
  TERCEL_EXPECT_THROW(crow_indices(turned), RuntimeError,
                      "crow_indices expected sparse row compressed tensor layout but got SparseCsc");
}

TEST(Compressed, IndicesAreCheckedUnlessSwitchedOff) {
  const Tensor offsets = make({3}, kInt64, {0, 2, 3}), columns = make({3}, kInt64, {0, 7, 1});
  const Tensor values = make({3}, kFloat32, {1, 2, 3});
  TERCEL_EXPECT_THROW(sparse_csr_tensor(offsets, columns, values, {2, 2}), RuntimeError,
                      "`0 <= col_indices < ncols` is not satisfied.");
  const Tensor x = sparse_csr_tensor(offsets, columns, values, {2, 2}, false);
  TERCEL_EXPECT_THROW(to_dense(x), IndexError, "index outside of size 2");
  TERCEL_EXPECT_THROW(mm(x, make({2, 1}, kFloat32, {1, 1})), IndexError, "index outside of size 2");
}

TEST(Compressed, ManyRowsAreCheckedOnSeveralThreads) {
  std::vector<double> offsets, columns;
  for (int64_t r = 0; r <= 50000; ++r) offsets.push_back(static_cast<double>(r));
  for (int64_t r = 0; r < 50000; ++r) columns.push_back(static_cast<double>(r % 10));
  const Tensor values = make({50000}, kFloat32, std::vector<double>(50000, 1));
  const auto build = [&] {
    return sparse_csr_tensor(make({50001}, kInt64, offsets), make({50000}, kInt64, columns), values, {50000, 10});
  };
  EXPECT_NO_THROW(build());
  columns[49999] = 10;
  TERCEL_EXPECT_THROW(build(), RuntimeError, "`0 <= col_indices < ncols` is not satisfied.");
  columns[49999] = 9;
  offsets[40000] = 39998;
  TERCEL_EXPECT_THROW(build(), RuntimeError,
                      "`0 <= crow_indices[..., 1:] - crow_indices[..., :-1] <= ncols` is not satisfied.");
}

TEST(Compressed, GradientsOfProductsAndSums) {
  for (const Layout layout : kLayouts) {
    const Tensor pattern = in_layout(elements(), layout);
    // As functions of the values, which are strided.
    const Tensor values = pattern.impl().sparse()->values;
    const auto with = [&](const Tensor& v) {
      return sparse_compressed_tensor(pattern.impl().sparse()->indices, pattern.impl().sparse()->plain_indices, v,
                                      pattern.sizes(), layout);
    };
    const Tensor m = random({4, 3}, kFloat64, -1, 1, 1), left = random({3, 2}, kFloat64, -1, 1, 2);
    const std::vector<Tensor> inputs = {values.clone().requires_grad_(), m.clone().requires_grad_(),
                                        left.clone().requires_grad_()};
    const auto check = [&](const char* name, const Function& f) {
      SCOPED_TRACE(name);
      EXPECT_TRUE(gradcheck([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{f(in)}; }, inputs));
    };
    check("sparse @ dense", [&](const std::vector<Tensor>& in) { return mm(with(in[0]), in[1]); });
    check("dense @ sparse", [&](const std::vector<Tensor>& in) { return mm(in[2], with(in[0])); });
    check("sparse @ sparse", [&](const std::vector<Tensor>& in) {
      const Tensor x = with(in[0]);
      return to_dense(mm(x, transpose(x, 0, 1)));
    });
    check("to_dense", [&](const std::vector<Tensor>& in) { return to_dense(with(in[0])); });
    check("sum of patterns", [&](const std::vector<Tensor>& in) {
      const Tensor other = in_layout(make({2, 4}, kFloat64, {0, 0, 1, 2, 3, 4, 0, 0}), layout);
      return to_dense(add(with(in[0]), other, 2));
    });
    check("product of patterns", [&](const std::vector<Tensor>& in) {
      const Tensor other = in_layout(make({2, 4}, kFloat64, {0, 0, 1, 2, 3, 4, 0, 0}), layout);
      return to_dense(mul(with(in[0]), other));
    });
  }
}

TEST(Compressed, GradientsOfLeavesHaveTheirPattern) {
  for (const Layout layout : kLayouts) {
    const Tensor x = in_layout(elements(), layout).detach().requires_grad_();
    for (int i = 1; i <= 2; ++i) {
      mm(x, make({4, 1}, kFloat64, {1, 2, 3, 4})).sum().backward();
      ASSERT_EQ(x.grad().layout(), layout);
      const double n = i;
      EXPECT_EQ(values_of(to_dense(x.grad())), (std::vector<double>{n, 2 * n, 3 * n, 4 * n, 0, 0, 3 * n, 4 * n}));
    }
  }
}

TEST(Compressed, GradientsOfDifferentLayoutsAreAdded) {
  // Of one tensor through a CSR, a strided and a COO gradient.
  const Tensor x = in_layout(elements(), Layout::SparseCsr).detach().requires_grad_();
  add(to_dense(x).sum(), add(to_dense(to_sparse(x, Layout::SparseCsc)).sum(), x.sum())).backward();
  EXPECT_EQ(values_of(to_dense(x.grad())), (std::vector<double>{3, 3, 3, 3, 0, 0, 3, 3}));
}

TEST(Compressed, SecondDerivatives) {
  const Tensor pattern = in_layout(elements(), Layout::SparseCsr);
  const auto product = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{
        mm(sparse_csr_tensor(crow_indices(pattern), col_indices(pattern), in[0], pattern.sizes()), in[1])};
  };
  EXPECT_TRUE(gradgradcheck(product, {tercel::values(pattern).clone().requires_grad_(),
                                      random({4, 3}, kFloat64, -1, 1, 1).requires_grad_()}));
}

}  // namespace
}  // namespace tercel::test
