#include "tercel/ops/common/promotion.h"

#include <gtest/gtest.h>

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"

namespace tercel::test {

TEST(ResultType, IsThatOfAnOperationOnBoth) {
  for (const ScalarType a : {kBool, kUInt8, kInt64, kFloat16, kFloat32, kComplex64})
    for (const ScalarType b : {kBool, kUInt8, kInt64, kFloat16, kFloat32, kComplex64})
      for (const bool dims : {false, true}) {
        const Tensor x = ones({2}, a), y = dims ? ones({2}, b) : ones({}, b);
        EXPECT_EQ(result_type(x, y), add(x, y).dtype());
      }
  EXPECT_EQ(result_type(ones({2}, kUInt8), 3), kUInt8);
  EXPECT_EQ(result_type(ones({2}, kUInt8), 3.5), kFloat32);
  EXPECT_EQ(result_type(2.5, ones({}, kInt32)), kFloat32);
  EXPECT_EQ(result_type(1, 2.5), kFloat32);
  EXPECT_EQ(result_type(1, 2), kInt64);
  EXPECT_EQ(promote_types(kUInt8, kInt8), kInt16);
  EXPECT_FALSE(can_cast(kFloat32, kInt64));
}

TEST(ResultType, OperandsMayHaveAnyLayout) {
  const Tensor opaque(make_intrusive<TensorImpl>(kFloat16, kCpu, IntSpan{2, 3}, Layout::Opaque));
  EXPECT_EQ(result_type(opaque, ones({2, 3}, kFloat32)), kFloat32);
  EXPECT_EQ(result_type(opaque, 2.5), kFloat16);
  EXPECT_EQ(result_type(2.5, opaque), kFloat16);
}

}  // namespace tercel::test
