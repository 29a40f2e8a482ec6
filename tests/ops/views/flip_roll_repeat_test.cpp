#include "tercel/ops/views/flip_roll_repeat.h"

#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/pad.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/views/flip_roll_repeat_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(FlipRollRepeat, Conformance, ::testing::ValuesIn(flip_roll_repeat_rows()), row_name);

namespace {

using Values = std::vector<double>;
constexpr int64_t kHuge = int64_t{1} << 62;

TEST(FlipRollRepeat, EmptyAndWithoutDimensions) {
  const Tensor none = empty({0, 3}), scalar = scalar_tensor(2.0);
  EXPECT_EQ(flip(none, {0, 1}).sizes(), IntSpan({0, 3}));
  EXPECT_EQ(roll(none, {2}, {0}).sizes(), IntSpan({0, 3}));
  EXPECT_EQ(roll(none, {2}).sizes(), IntSpan({0, 3}));
  EXPECT_EQ(repeat(none, {2, 3}).sizes(), IntSpan({0, 9}));
  EXPECT_EQ(repeat(arange(3), {0}).sizes(), IntSpan({0}));
  EXPECT_EQ(values_of(flip(scalar, {0})), Values{2});
  EXPECT_EQ(values_of(repeat(scalar, {2})), (Values{2, 2}));
  EXPECT_EQ(repeat(scalar, {}).dim(), 0);
  EXPECT_EQ(values_of(roll(scalar, {3})), Values{2});
  EXPECT_EQ(values_of(repeat_interleave(scalar, 2)), (Values{2, 2}));
  EXPECT_EQ(values_of(roll(arange(3), {INT64_MAX}, {0})), (Values{2, 0, 1}));
  EXPECT_EQ(values_of(roll(arange(3), {INT64_MIN}, {0})), (Values{2, 0, 1}));
}

TEST(FlipRollRepeat, RepeatsByATensor) {
  EXPECT_EQ(values_of(repeat_interleave(tensor({2, 0, 1}))), (Values{0, 0, 2}));
  EXPECT_EQ(repeat_interleave(tensor({2}, kInt32)).dtype(), kInt32);
  EXPECT_EQ(values_of(repeat_interleave(arange(3), tensor({2}))), (Values{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(values_of(repeat_interleave(arange(2), tensor({1, 2}), 0, 3)), (Values{0, 1, 1}));
  TERCEL_EXPECT_THROW(repeat_interleave(tensor({{1}})), RuntimeError,
                      "repeat_interleave only accept 1D vector as repeat");
  TERCEL_EXPECT_THROW(repeat_interleave(tensor({1.0})), RuntimeError, "repeats has to be Long or Int tensor");
  TERCEL_EXPECT_THROW(repeat_interleave(tensor({1, -1})), RuntimeError, "repeats can not be negative");
  TERCEL_EXPECT_THROW(repeat_interleave(tensor({kHuge, kHuge})), RuntimeError, "does not fit 64 bits");
  TERCEL_EXPECT_THROW(repeat_interleave(tensor({1, 2}), std::optional<int64_t>(4)), RuntimeError,
                      "allocated size does not match required size");
  TERCEL_EXPECT_THROW(repeat_interleave(arange(3), tensor({1, 2}), 0), RuntimeError,
                      "repeats must have the same size as input along dim");
  TERCEL_EXPECT_THROW(repeat_interleave(arange(1), tensor({{1}}), 0), RuntimeError,
                      "repeats must be 0-dim or 1-dim tensor");
  TERCEL_EXPECT_THROW(repeat_interleave(arange(3), -1), RuntimeError, "Repeats must be non-negative");
  TERCEL_EXPECT_THROW(repeat_interleave(arange(3), kHuge, 0), RuntimeError, "does not fit 64 bits");
}

TEST(FlipRollRepeat, Errors) {
  const Tensor x = empty({2, 3});
  TERCEL_EXPECT_THROW(flip(x, {0, -2}), RuntimeError, "dim 0 appears multiple times in the list of dims");
  TERCEL_EXPECT_THROW(flip(x, {2}), IndexError,
                      "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
  TERCEL_EXPECT_THROW(fliplr(arange(3)), RuntimeError, "Input must be >= 2-d.");
  TERCEL_EXPECT_THROW(flipud(scalar_tensor(1)), RuntimeError, "Input must be >= 1-d.");
  TERCEL_EXPECT_THROW(roll(x, {}), RuntimeError, "`shifts` required");
  TERCEL_EXPECT_THROW(roll(x, {1, 2}, {0}), RuntimeError, "shifts and dimensions must align. shifts: 2, dims:1");
  TERCEL_EXPECT_THROW(roll(x, {1}, {2}), IndexError, "Dimension out of range");
  TERCEL_EXPECT_THROW(rot90(x, 1, {0}), RuntimeError, "expected total rotation dims == 2, but got dims = 1");
  TERCEL_EXPECT_THROW(rot90(arange(3)), RuntimeError, "expected total dims >= 2, but got total dims = 1");
  TERCEL_EXPECT_THROW(rot90(x, 1, {0, -2}), RuntimeError,
                      "expected rotation dims to be different, but got dim0 = 0 and dim1 = -2");
  TERCEL_EXPECT_THROW(rot90(x, 1, {0, 2}), RuntimeError, "Rotation dim1 out of range, dim1 = 2");
  TERCEL_EXPECT_THROW(repeat(x, {2}), RuntimeError,
                      "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  TERCEL_EXPECT_THROW(repeat(x, {1, -1}), RuntimeError, "Trying to create tensor with negative dimension");
  TERCEL_EXPECT_THROW(repeat(x, {1, kHuge}), RuntimeError, "does not fit 64 bits");
  TERCEL_EXPECT_THROW(repeat(x, {kHuge, 1, 1}), RuntimeError, "");
}

// Large enough for several threads, compared with one thread.
TEST(FlipRollRepeatThreads, LargeResults) {
  const Tensor x = random({700, 501}, kFloat32, -1, 1, 3);
  const auto all = [&] {
    std::vector<Values> out;
    for (const Tensor& y : {flip(x, {0, 1}), roll(x, {13, -7}, {0, 1}), repeat(x, {2, 2}), pad(x, {5, 3, 2, 9}),
                            pad(x, {5, 3}, "reflect"), repeat_interleave(x, 2, 1)})
      out.push_back(values_of(y));
    return out;
  };
  const int64_t before = num_threads();
  set_num_threads(1);
  const std::vector<Values> want = all();
  set_num_threads(3);
  EXPECT_EQ(all(), want);
  set_num_threads(before);
}

}  // namespace
}  // namespace tercel::test
