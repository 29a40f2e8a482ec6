#include "tercel/ops/linalg/matmul.h"

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/linalg/matmul_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Matmul, Conformance, ::testing::ValuesIn(matmul_rows()), row_name);

TEST(Matmul, NothingToAddUpGivesZeros) {
  EXPECT_EQ(values_of(mm(empty({2, 0}), empty({0, 3}))), std::vector<double>(6, 0));
  EXPECT_EQ(values_of(bmm(empty({2, 1, 0}), empty({2, 0, 2}))), std::vector<double>(4, 0));
  EXPECT_EQ(values_of(matmul(empty({0}), empty({0}))), std::vector<double>(1, 0));
  EXPECT_EQ(values_of(matmul(empty({2, 2, 0}), empty({0, 1}))), std::vector<double>(4, 0));
}

TEST(Matmul, EmptyResults) {
  EXPECT_EQ(mm(empty({0, 4}), empty({4, 3})).sizes(), IntSpan({0, 3}));
  EXPECT_EQ(bmm(empty({0, 2, 4}), empty({0, 4, 3})).sizes(), IntSpan({0, 2, 3}));
  EXPECT_EQ(matmul(empty({0, 1, 2, 4}), empty({5, 4, 3})).sizes(), IntSpan({0, 5, 2, 3}));
  EXPECT_EQ(matmul(empty({0, 2, 4}), empty({4, 3})).sizes(), IntSpan({0, 2, 3}));
  Tensor a = empty({0, 4}, kFloat64), b = random({4, 3}, kFloat64, -1, 1, 1);
  a.requires_grad_();
  b.requires_grad_();
  const Tensor out = mm(a, b), incoming = empty({0, 3}, kFloat64);
  backward(Span<Tensor>(&out, 1), Span<Tensor>(&incoming, 1));
  EXPECT_EQ(values_of(b.grad()), std::vector<double>(12, 0));
  EXPECT_EQ(a.grad().sizes(), IntSpan({0, 4}));
}

TEST(Matmul, SubmatricesAreReadInPlace) {
  // Rows of a wider matrix, and columns of its transpose.
  const Tensor wide = random({6, 30}, kFloat64, -1, 1, 2);
  const Tensor a = narrow(wide, 1, 3, 11), b = t(narrow(wide, 1, 8, 11));
  const Tensor want = matmul_reference(as_double(a), as_double(b), {6, 6});
  const std::vector<double> got = values_of(mm(a, b)), expected = values_of(want);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-14);
  // One row expanded to many has a stride of zero.
  const Tensor row = expand(narrow(wide, 0, 0, 1), {4, 30});
  EXPECT_EQ(values_of(mm(row, t(wide))), values_of(mm(placed(row, Placement::Contiguous), t(wide))));
}

TEST(Matmul, NanAndInfinityGoThrough) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> got =
      values_of(mm(make({2, 2}, kFloat32, {0, 1, inf, 1}), make({2, 1}, kFloat32, {std::nan(""), 1})));
  EXPECT_TRUE(std::isnan(got[0]) && std::isnan(got[1]));
  EXPECT_EQ(values_of(mm(make({1, 2}, kFloat32, {inf, 1}), make({2, 1}, kFloat32, {2, 1}))),
            (std::vector<double>{inf}));
}

TEST(Matmul, AddmmWithoutBetaDoesNotReadX) {
  const Tensor x = make({1}, kFloat32, {std::nan("")}), a = make({1, 1}, kFloat32, {2}),
               b = make({1, 1}, kFloat32, {3});
  EXPECT_EQ(values_of(addmm(x, a, b, 0)), (std::vector<double>{6}));
  EXPECT_EQ(values_of(addmm(a, a, b)), (std::vector<double>{8}));
}

TEST(Matmul, WrongOperands) {
  const Tensor a = empty({2, 3}), b = empty({4, 5});
  EXPECT_EQ(message_of<RuntimeError>([&] { mm(a, b); }), "mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)");
  EXPECT_THROW(mm(a, empty({3})), RuntimeError);
  EXPECT_THROW(mm(a, Tensor()), RuntimeError);
  EXPECT_EQ(message_of<RuntimeError>([&] {
              mm(a, empty({3, 2}, kFloat64));
            }),
            "mm: expected scalar type Float but found Double");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              bmm(empty({2, 3, 4}), empty({2, 5, 6}));
            }),
            "bmm: Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5].");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              addmm_(empty({1, 2}), a, empty({3, 2}));
            }),
            "addmm_: Bad in-place call: input tensor size [1, 2] and output tensor size [2, 2] should match");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              addmm(empty({2}, kFloat64), a, empty({3, 2}));
            }),
            "addmm: self and mat2 must have the same dtype, but got Double and Float");
  EXPECT_EQ(mm_out(empty({2, 3}), a, empty({3, 2})).sizes(), IntSpan({2, 2}));
  EXPECT_THROW(mm_out(empty({2, 2}, kInt64), a, empty({3, 2})), RuntimeError);
  EXPECT_THROW(mm(empty({2, 3}, kBool), empty({3, 2}, kBool)), Error);
  EXPECT_THROW(bmm(empty({2, 2, 3}), empty({3, 3, 2})), RuntimeError);
  EXPECT_THROW(bmm(a, a), RuntimeError);
  EXPECT_THROW(addmm(empty({7}), a, empty({3, 2})), RuntimeError);
  EXPECT_THROW(addmm(empty({2}, kFloat64), a, empty({3, 2})), RuntimeError);
  EXPECT_THROW(matmul(empty({}), a), RuntimeError);
  EXPECT_THROW(matmul(empty({2, 2, 3}), empty({3, 3, 2})), RuntimeError);
  EXPECT_THROW(matmul(empty({3}), empty({4})), RuntimeError);
}

TEST(Matmul, OperandChangedBeforeBackwardIsRefused) {
  Tensor a = random({2, 3}, kFloat32, -1, 1, 1);
  const Tensor b = random({3, 2}, kFloat32, -1, 1, 2);
  a.requires_grad_();
  const Tensor out = mm(a, b), incoming = random({2, 2}, kFloat32, -1, 1, 3);
  zero_(b);
  EXPECT_THROW(backward(Span<Tensor>(&out, 1), Span<Tensor>(&incoming, 1)), RuntimeError);
}

TEST(MatmulThreads, SameBitsForTheSameNumberOfThreads) {
  const int64_t before = num_threads();
  const Tensor a = random({150, 200}, kFloat32, -1, 1, 3), b = random({200, 170}, kFloat32, -1, 1, 4);
  const std::vector<double> want = values_of(matmul_reference(as_double(a), as_double(b), {150, 170}));
  for (const int64_t threads : {1, 2, 5}) {
    set_num_threads(threads);
    const Tensor got = mm(a, b);
    EXPECT_TRUE(bytes_of(mm(a, b)) == bytes_of(got));
    const std::vector<double> values = values_of(got);
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(values[i], want[i], 1e-4);
  }
  set_num_threads(before);
}

}  // namespace tercel::test
