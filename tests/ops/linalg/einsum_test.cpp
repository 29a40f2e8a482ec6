#include "tercel/ops/linalg/einsum.h"

#include "tercel/ops/linalg/matmul.h"
#include "tests/ops/conformance.h"
#include "tests/ops/linalg/products_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Einsum, Conformance, ::testing::ValuesIn(einsum_rows()), row_name);

TEST(Einsum, SpacesAreFree) {
  const Tensor a = random({2, 3}, kFloat64, -1, 1, 1), b = random({3, 4}, kFloat64, -1, 1, 2);
  EXPECT_EQ(values_of(einsum(" i j , jk ->  ik ", {a, b})), values_of(mm(a, b)));
}

TEST(Einsum, IntegersWithoutSums) {
  const Tensor a = make({2}, kInt32, {2, 3}), b = make({2}, kInt32, {5, 7});
  const Tensor out = einsum("i,j->ij", {a, b});
  EXPECT_EQ(out.dtype(), kInt32);
  EXPECT_EQ(values_of(out), (std::vector<double>{10, 14, 15, 21}));
  EXPECT_EQ(einsum("i->", {a}).dtype(), kInt32);
}

TEST(Einsum, EmptyDimensions) {
  EXPECT_EQ(values_of(einsum("ij,jk->ik", {empty({2, 0}), empty({0, 2})})), std::vector<double>(4, 0));
  EXPECT_EQ(einsum("ij,jk->ik", {empty({0, 3}), empty({3, 2})}).sizes(), IntSpan({0, 2}));
}

TEST(Einsum, ChainsAreMultipliedInTheCheapestOrder) {
  // From the left this would create a matrix of 10^8 elements; with the vector first, no intermediate is large.
  const Tensor a = random({10000, 1}, kFloat32, -1, 1, 1), b = random({1, 10000}, kFloat32, -1, 1, 2),
               v = random({10000}, kFloat32, -1, 1, 3);
  const Tensor out = einsum("ij,jk,k->i", {a, b, v});
  const std::vector<double> got = values_of(out), want = values_of(mv(a, mv(b, v)));
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-3);
}

TEST(Einsum, WrongEquations) {
  const Tensor a = random({2, 3}, kFloat32, -1, 1, 1), b = random({3, 4}, kFloat32, -1, 1, 2);
  const auto refuses = [](std::string_view equation, Span<Tensor> operands, const char* text) {
    TERCEL_EXPECT_THROW(einsum(equation, operands), RuntimeError, text);
  };
  refuses("", {}, "must provide at least one operand");
  refuses("ij,jk", {a}, "fewer operands were provided than specified in the equation");
  refuses("ij", {a, b}, "more operands were provided than specified in the equation");
  refuses("i2,jk", {a, b}, "invalid subscript given at index 1 in the equation string, subscripts must be in [a-zA-Z]");
  refuses("ij->i-", {a}, "invalid subscript given at index 5 in the equation string");
  refuses(
      "i,jk", {a, b},
      "the number of subscripts in the equation (1) does not match the number of dimensions (2) for operand 0 and no "
      "ellipsis was given");
  refuses("ijk,jk", {a, b},
          "the number of subscripts in the equation (3) does not match the number of dimensions (2) for operand 0");
  refuses("...ijk,jk", {a, b},
          "the number of subscripts in the equation (3) is more than the number of dimensions (2) for operand 0");
  refuses("ij,ik->jk", {a, b},
          "subscript i has size 3 for operand 1 which does not broadcast with previously seen size 2");
  refuses("ii->i", {a}, "subscript i is repeated for operand 0 but the sizes don't match, 3 != 2");
  refuses("ij->ik", {a}, "output subscript k does not appear in the equation for any input operand");
  refuses("ij->ii", {a}, "output subscript i appears more than once in the output");
  refuses("i..j", {a}, "found '.' for operand 0 that is not part of any ellipsis");
  refuses("ij->i.j", {a}, "found '.' for output that is not part of any ellipsis");
  refuses("i.j", {a}, "found '.' for operand 0 that is not part of any ellipsis");
  refuses("......", {a}, "found '.' for operand 0 for which an ellipsis was already found");
  refuses("ij,jk", {a, random({3, 4}, kFloat64, -1, 1, 2)}, "expected scalar type Float but found Double");
  const std::vector<int64_t> list[] = {{0, 52}};
  TERCEL_EXPECT_THROW(einsum({a}, list), ValueError, "is not within the valid range [0, 52)");
}

}  // namespace tercel::test
