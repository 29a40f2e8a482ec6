#include "tercel/ops/reduce/array_reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tercel/ops/ops.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel {
namespace {

using test::message_of;

TEST(ArrayReduction, IsInTheOrderOfTheArrays) {
  const int64_t n = 100'003;  // more than a block
  std::vector<Tensor> parts;
  for (int i = 0; i < 5; ++i) parts.push_back(mul(randn({n}), std::pow(10.0, i)));
  Tensor expected = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) expected = add(expected, parts[i]);
  const Tensor out = empty({n});
  reduce_arrays(ArrayReduction::Sum, out, parts);
  EXPECT_TRUE(equal(out, expected));
  reduce_arrays(ArrayReduction::Mean, out, parts);
  EXPECT_TRUE(equal(out, div(expected, 5)));
  const Tensor last = parts[4].clone();
  parts[4] = last;
  reduce_arrays(ArrayReduction::Sum, last, parts);
  EXPECT_TRUE(equal(last, expected)) << "the result may be one of the arrays";
}

TEST(ArrayReduction, OfEachKind) {
  const auto reduced = [](ArrayReduction how, const Tensor& a, const Tensor& b) {
    const Tensor out = empty_like(a);
    reduce_arrays(how, out, {a, b});
    return out;
  };
  const Tensor a = tensor<int64_t>({1, 5, 6}), b = tensor<int64_t>({3, 2, -7});
  EXPECT_TRUE(equal(reduced(ArrayReduction::Sum, a, b), tensor<int64_t>({4, 7, -1})));
  EXPECT_TRUE(equal(reduced(ArrayReduction::Product, a, b), tensor<int64_t>({3, 10, -42})));
  EXPECT_TRUE(equal(reduced(ArrayReduction::Min, a, b), tensor<int64_t>({1, 2, -7})));
  EXPECT_TRUE(equal(reduced(ArrayReduction::Max, a, b), tensor<int64_t>({3, 5, 6})));
  EXPECT_TRUE(equal(reduced(ArrayReduction::BitwiseAnd, a, b), tensor<int64_t>({1, 0, 6 & -7})));
  EXPECT_TRUE(equal(reduced(ArrayReduction::BitwiseOr, a, b), tensor<int64_t>({3, 7, 6 | -7})));
  EXPECT_TRUE(equal(reduced(ArrayReduction::BitwiseXor, a, b), tensor<int64_t>({2, 7, 6 ^ -7})));
  const Tensor yes = to(tensor<int64_t>({1, 0, 1}), kBool), no = to(tensor<int64_t>({1, 0, 0}), kBool);
  EXPECT_TRUE(equal(reduced(ArrayReduction::Sum, yes, no), yes));
}

TEST(ArrayReduction, OfNarrowFloatsIsRoundedOnce) {
  const std::vector<Tensor> parts(300, ones({3}, kFloat16));
  const Tensor out = empty({3}, kFloat16), half = empty({3}, kBFloat16);
  reduce_arrays(ArrayReduction::Sum, out, parts);
  EXPECT_TRUE(equal(out, full({3}, 300, kFloat16)));
  reduce_arrays(ArrayReduction::Sum, half, std::vector<Tensor>(300, ones({3}, kBFloat16)));
  EXPECT_TRUE(equal(half, full({3}, 300, kBFloat16))) << "one after the other would end at 256";
}

TEST(ArrayReduction, RefusesWhatIsNotDefined) {
  const auto message = [](ArrayReduction how, ScalarType dtype) {
    const Tensor x = zeros({2}, dtype);
    return message_of<RuntimeError>([&] { reduce_arrays(how, x, {x}); });
  };
  EXPECT_EQ(message(ArrayReduction::BitwiseAnd, kFloat32),
            "reduction of arrays: bitwise_and is not defined for float32");
  EXPECT_EQ(message(ArrayReduction::Min, kComplex64), "reduction of arrays: min is not defined for complex64");
  EXPECT_EQ(message(ArrayReduction::Mean, kInt64), "reduction of arrays: mean is not defined for int64");
  EXPECT_EQ(message_of<RuntimeError>([] { reduce_arrays(ArrayReduction::Sum, zeros({2}), {zeros({3})}); }),
            "reduction of arrays: expected arrays of float32 and sizes [2], found float32 and [3]");
  EXPECT_EQ(message_of<RuntimeError>([] { reduce_arrays(ArrayReduction::Sum, zeros({2}), {}); }),
            "reduction of arrays: expected at least one");
}

}  // namespace
}  // namespace tercel
