#include "tercel/recsys/hugectr/tensor2.h"

#include <gtest/gtest.h>

#include "tercel/recsys/hugectr/dimensions.h"
#include "tests/support/errors.h"

namespace tercel::recsys::hugectr {
namespace {

Tensor counted(IntSpan sizes) {
  Tensor t = empty(sizes, kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i);
  return t;
}

TEST(Tensor2, IsATensorOfAKnownType) {
  const Tensor t = counted({2, 3});
  const Tensor2<float> typed(t);
  EXPECT_TRUE(typed.tensor().is_same(t));  // no copy, and no other tensor
  EXPECT_TRUE(typed.allocated());
  EXPECT_EQ(typed.get_dimensions(), IntSpan({2, 3}));
  EXPECT_EQ(typed.get_num_elements(), 6);
  EXPECT_EQ(typed.get_size_in_bytes(), 24u);
  EXPECT_EQ(typed.get_ptr(), t.data<float>());
  const Tensor2<float> copy = typed;
  copy.get_ptr()[4] = -1;
  EXPECT_EQ(t.data<float>()[4], -1);
}

TEST(Tensor2, OwnsItsElements) {
  Tensor2<float> typed;
  {
    const Tensor t = counted({4});
    typed = Tensor2<float>(t);
  }
  EXPECT_EQ(typed.get_ptr()[3], 3);
}

TEST(Tensor2, EmptyAndScalar) {
  const Tensor2<float> none(empty({0, 3}, kFloat32));
  EXPECT_TRUE(none.allocated());
  EXPECT_EQ(none.get_num_elements(), 0);
  EXPECT_EQ(none.get_size_in_bytes(), 0u);
  EXPECT_EQ(none.get_ptr(), nullptr);
  const Tensor2<float> scalar(counted({}));
  EXPECT_EQ(scalar.get_dimensions(), IntSpan());
  EXPECT_EQ(scalar.get_num_elements(), 1);
  EXPECT_EQ(*scalar.get_ptr(), 0);
}

TEST(Tensor2, OfNoTensor) {
  const Tensor2<float> none;
  EXPECT_FALSE(none.allocated());
  EXPECT_EQ(none.get_dimensions(), IntSpan());
  EXPECT_EQ(none.get_num_elements(), 0);
  EXPECT_EQ(none.get_size_in_bytes(), 0u);
  TERCEL_EXPECT_THROW(none.get_ptr(), RuntimeError, "Tensor2: there is no tensor");
  TERCEL_EXPECT_THROW(none.tensor(), RuntimeError, "Tensor2: there is no tensor");
  TERCEL_EXPECT_THROW(Tensor2<float>::stretch_from(TensorBag2()), TypeError,
                      "Tensor2::stretch_from: expected elements of float32, but there is no tensor");
}

TEST(Tensor2, RefusesOtherTensors) {
  TERCEL_EXPECT_THROW(Tensor2<double>(counted({2})), TypeError, "Tensor2: expected elements of float64, found float32");
  TERCEL_EXPECT_THROW(Tensor2<float>{Tensor()}, RuntimeError, "Tensor2: expected a tensor");
  const Tensor transposed(make_intrusive<TensorImpl>(counted({2, 3}).impl(), IntSpan({3, 2}), IntSpan({1, 3}), 0));
  TERCEL_EXPECT_THROW(Tensor2<float>{transposed}, RuntimeError,
                      "Tensor2: expected a row-major tensor, such as contiguous() returns, but got one of sizes [3, 2] "
                      "with strides [1, 3]");
  const Tensor sparse(make_intrusive<TensorImpl>(kFloat32, kCpu, IntSpan({2, 2}), Layout::SparseCsr));
  EXPECT_THROW(Tensor2<float>{sparse}, NotImplementedError);
}

TEST(TensorBag2, ForgetsTheTypeAndGetsItBack) {
  const Tensor2<float> typed(counted({2, 2}));
  const TensorBag2 bag = typed.shrink();
  EXPECT_EQ(bag.dtype(), kFloat32);
  EXPECT_EQ(bag.get_dimensions(), IntSpan({2, 2}));
  EXPECT_EQ(bag.get_num_elements(), 4);
  EXPECT_EQ(bag.get_size_in_bytes(), 16u);
  EXPECT_EQ(bag.get_ptr(), typed.get_ptr());
  EXPECT_EQ(Tensor2<float>::stretch_from(bag).get_ptr(), typed.get_ptr());
  TERCEL_EXPECT_THROW(Tensor2<int32_t>::stretch_from(bag), TypeError,
                      "Tensor2::stretch_from: expected elements of int32, found float32");
}

TEST(TensorBag2, ListsOfBags) {
  const Tensors2<float> tensors{Tensor2<float>(counted({2})), Tensor2<float>(counted({3}))};
  TensorBags2 bags = tensors_to_bags(tensors);
  ASSERT_EQ(bags.size(), 2u);
  const Tensors2<float> again = bags_to_tensors<float>(bags);
  ASSERT_EQ(again.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(again[i].get_ptr(), tensors[i].get_ptr());
  bags.emplace_back(empty({1}, kInt64));
  EXPECT_THROW(bags_to_tensors<float>(bags), TypeError);
  EXPECT_TRUE(bags_to_tensors<float>({}).empty());
}

TEST(Dimensions, FromIntegersOfAnyType) {
  const size_t rows = 3;
  const std::vector<size_t> both{rows, 4};
  EXPECT_EQ(IntSpan(Dimensions{rows, 4}), IntSpan({3, 4}));
  EXPECT_EQ(IntSpan(Dimensions(both)), IntSpan({3, 4}));
  EXPECT_EQ(IntSpan(Dimensions{}), IntSpan());
  EXPECT_EQ(IntSpan(Dimensions(std::vector<int>{7})), IntSpan({7}));
  EXPECT_EQ(IntSpan(Dimensions(counted({2, 5}).sizes())), IntSpan({2, 5}));
}

}  // namespace
}  // namespace tercel::recsys::hugectr
