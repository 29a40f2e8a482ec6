#include "tercel/ops/nn/pool.h"

#include <limits>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/interpolate.h"
#include "tercel/ops/reduce/reduce.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/pool_rows.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Pool, Conformance, ::testing::ValuesIn(pool_rows()), row_name);

TEST(Pool, ChannelsLastInAndOut) {
  const Tensor x = random({2, 5, 7, 8}, kFloat64, -1, 1, 1), last = clone(x, MemoryFormat::ChannelsLast);
  InterpolateOptions options;
  options.size = {5, 9};
  options.mode = InterpolateMode::Bilinear;
  const std::vector<Function> ops = {
      [](const std::vector<Tensor>& in) { return max_pool2d(in[0], {3}, {2}, {1}); },
      [](const std::vector<Tensor>& in) { return avg_pool2d(in[0], {3}, {2}, {1}, false, false); },
      [](const std::vector<Tensor>& in) {
        return adaptive_avg_pool2d(in[0], {3, 4});
      },
      [&](const std::vector<Tensor>& in) { return interpolate(in[0], options); }};
  for (const Function& op : ops) {
    const Tensor got = op({last});
    EXPECT_TRUE(got.is_contiguous(MemoryFormat::ChannelsLast));
    EXPECT_EQ(bytes_of(got), bytes_of(op({x})));
    Tensor leaf = last.detach().requires_grad_();
    EXPECT_TRUE(gradcheck(op, {leaf}));
  }
  EXPECT_EQ(values_of(max_pool2d_with_indices(last, {3}, {2}, {1}).indices),
            values_of(max_pool2d_with_indices(x, {3}, {2}, {1}).indices));
}

TEST(AvgPool, OfWholeImages) {
  for (const Sizes& sizes : {Sizes{2, 3, 7, 7}, Sizes{3, 70, 5, 20}, Sizes{1, 5, 1, 130}, Sizes{2, 1, 64, 1}}) {
    const Tensor x = random(sizes, kFloat32, -1, 1, 1), last = clone(x, MemoryFormat::ChannelsLast);
    const Tensor got = adaptive_avg_pool2d(x, {1});
    EXPECT_EQ(bytes_of(contiguous(adaptive_avg_pool2d(last, {1}))), bytes_of(got));
    EXPECT_EQ(bytes_of(avg_pool2d(x, {sizes[2], sizes[3]})), bytes_of(got));
    const std::vector<double> want = values_of(mean(to(x, kFloat64), {2, 3}));
    const std::vector<double> values = values_of(got);
    ASSERT_EQ(values.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(values[i], want[i], 1e-6);
  }
}

TEST(MaxPool, IndicesNanAndEqualNumbers) {
  const double nan = std::nan("");
  const Tensor x = make({1, 1, 2, 4}, kFloat32, {1, 1, 5, nan, 1, 1, 7, 6});
  const ValuesAndIndices out = max_pool2d_with_indices(x, {2});
  const std::vector<double> values = values_of(out.values);
  EXPECT_EQ(values[0], 1);
  EXPECT_TRUE(std::isnan(values[1]));
  EXPECT_EQ(values_of(out.indices), (std::vector<double>{0, 3}));
  // The first in row-major order, even if another one comes earlier in its column.
  const Tensor y = make({1, 2, 2}, kFloat32, {0, 3, 3, 0});
  EXPECT_EQ(values_of(max_pool2d_with_indices(y, {2}).indices), (std::vector<double>{1}));
  const double inf = std::numeric_limits<double>::infinity();
  const ValuesAndIndices low =
      max_pool2d_with_indices(make({1, 2, 2}, kFloat32, {-inf, -inf, -inf, -inf}), {2}, {2}, {1});
  EXPECT_EQ(values_of(low.indices), (std::vector<double>{0, 1, 2, 3}));
}

TEST(AvgPool, DivisorAndExactMeans) {
  const Tensor x = make({1, 1, 3, 3}, kFloat32, {7, 7, 7, 7, 7, 7, 7, 7, 7});
  EXPECT_EQ(values_of(avg_pool2d(x, {3})), (std::vector<double>{7}));
  EXPECT_EQ(values_of(avg_pool2d(x, {2}, {1}, {0}, false, true, 2)), (std::vector<double>{14, 14, 14, 14}));
  TERCEL_EXPECT_THROW(avg_pool2d(x, {2}, {}, {0}, false, true, 0), RuntimeError, "divisor must be not zero");
}

TEST(Pool, HugeWindowsAndSteps) {
  const Tensor x = ones({1, 1, 4, 4});
  constexpr int64_t kHuge = INT64_MAX;
  TERCEL_EXPECT_THROW(max_pool2d(x, {int64_t{1} << 31}, {kHuge}, {3}, {(int64_t{1} << 20) + 1}), RuntimeError,
                      "Output size is too small");
  TERCEL_EXPECT_THROW(avg_pool2d(x, {kHuge}, {int64_t{1} << 31}, {3}), RuntimeError, "Output size is too small");
  const int64_t half = (int64_t{1} << 62) - 50;
  TERCEL_EXPECT_THROW(max_pool2d(x, {2}, {1}, {half}, {2 * half}), RuntimeError,
                      "pad should be smaller than or equal to half of kernel size, but got padW = 46");
  TERCEL_EXPECT_THROW(max_pool3d(ones({1, 4, 4, 4}), {2}, {1}, {2}, {4}), RuntimeError,
                      "half of kernel size, but got kT: 2 kW: 2 kH: 2 padT: 2 padW: 2 padH: 2");
}

// For 3 pixels, a window of two with distance 4 covers padding before and after them.
TEST(MaxPool, WindowsThatSeePaddingAlone) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const Tensor& given : {ones({1, 2, 3, 3}), contiguous(ones({1, 2, 3, 3}), MemoryFormat::ChannelsLast)}) {
    Tensor x = given;
    x.requires_grad_();
    const ValuesAndIndices out = max_pool2d_with_indices(x, {2}, {1}, {1}, {4});
    EXPECT_EQ(values_of(out.values), (std::vector<double>{-inf, -inf}));
    for (const double index : values_of(out.indices)) EXPECT_TRUE(index >= 0 && index < 9);
    out.values.sum().backward();
    EXPECT_EQ(values_of(x.grad()), std::vector<double>(18, 0));
    EXPECT_EQ(values_of(max_pool2d(given.detach(), {2}, {1}, {1}, {4})), (std::vector<double>{-inf, -inf}));
  }
  // Windows along rows cover only padding, those along columns do not; the second of three outputs has a pixel on both
  // sides.
  const Tensor wide = make({1, 1, 2, 4}, kFloat32, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(values_of(max_pool2d(wide, {2, 1}, {1}, {1, 0}, {3, 1})), std::vector<double>(4, -inf));
  EXPECT_EQ(values_of(max_pool1d(make({1, 5}, kFloat32, {1, 2, 3, 4, 5}), {2}, {1}, {1}, {4})),
            (std::vector<double>{4, 5, 2}));
  EXPECT_EQ(values_of(max_pool2d(ones({1, 3, 3}, kInt16), {2}, {1}, {1}, {4})), (std::vector<double>{-32768}));
}

TEST(Pool, Errors) {
  const Tensor x = zeros({1, 3, 5, 5});
  TERCEL_EXPECT_THROW(
      max_pool2d(x, {3}, {}, {2}), RuntimeError,
      "pad should be at most half of effective kernel size, but got pad=2, kernel_size=3 and dilation=1");
  const Tensor line = zeros({3, 5});
  TERCEL_EXPECT_THROW(max_pool1d(line, {0}), RuntimeError,
                      "max_pool1d() kernel_size must be greater than zero, but got 0");
  TERCEL_EXPECT_THROW(max_pool1d(line, {2}, {0}), RuntimeError,
                      "max_pool1d() stride must be greater than zero, but got 0");
  TERCEL_EXPECT_THROW(max_pool1d(line, {2}, {}, {0}, {0}), RuntimeError,
                      "max_pool1d() dilation must be greater than zero, but got 0");
  TERCEL_EXPECT_THROW(max_pool1d(line, {2}, {}, {-1}), RuntimeError,
                      "max_pool1d() padding must be non-negative, but got -1");
  TERCEL_EXPECT_THROW(
      max_pool1d(line, {2}, {}, {2}), RuntimeError,
      "max_pool1d() padding should be at most half of kernel size, but got padding=2 and kernel_size=2");
  TERCEL_EXPECT_THROW(max_pool1d(line, {9}, {1}), RuntimeError, "max_pool1d() Invalid computed output size: -3");
  TERCEL_EXPECT_THROW(max_pool1d_with_indices(line, {9}, {1}), RuntimeError,
                      "Given input size: (3x1x5). Calculated output size: (3x1x-3). Output size is too small");
  TERCEL_EXPECT_THROW(max_pool3d(zeros({2, 3, 0, 4, 4}), {1}), RuntimeError,
                      "Expected input's non-batch dimensions to have positive length, but input has a shape of "
                      "[2, 3, 0, 4, 4] and non-batch dimension 2 has length zero!");
  TERCEL_EXPECT_THROW(avg_pool3d(zeros({0, 1, 4}), {1}), RuntimeError,
                      "non-empty 4D or 5D (batch mode) tensor expected for input, but got [0, 1, 4]");
  TERCEL_EXPECT_THROW(max_pool2d(x, {7}), RuntimeError,
                      "Given input size: (3x5x5). Calculated output size: (3x0x0). Output size is too small");
  TERCEL_EXPECT_THROW(max_pool2d(x, {2, 2, 2}), RuntimeError,
                      "max_pool2d: kernel_size must either be a single int, or a tuple of two ints");
  TERCEL_EXPECT_THROW(max_pool2d(x, {2}, {0}), RuntimeError, "stride should not be zero");
  TERCEL_EXPECT_THROW(max_pool2d(x, {2}, {}, {0}, {0}), RuntimeError, "dilation should be greater than zero, but got");
  TERCEL_EXPECT_THROW(max_pool2d(zeros({2, 0, 5, 5}), {2}), RuntimeError,
                      "tensor with optional 0 dim batch size for input, but got:[2, 0, 5, 5]");
  TERCEL_EXPECT_THROW(max_pool2d(x, {INT64_MAX}, {1}, {0}, {2}), RuntimeError, "too large");
  TERCEL_EXPECT_THROW(avg_pool2d(to(x, kInt32), {2}), NotImplementedError, "\"avg_pool2d\" not implemented for");
  TERCEL_EXPECT_THROW(adaptive_avg_pool2d(x, {-1, 2}), RuntimeError,
                      "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but received");
  TERCEL_EXPECT_THROW(adaptive_avg_pool2d(zeros({2, 2, 0, 2}), {1}), RuntimeError,
                      "Expected input to have non-zero size for non-batch dimensions, but input has sizes [2, 2, 0, 2] "
                      "with dimension 2 being empty");
  EXPECT_EQ(max_pool2d(zeros({0, 3, 4, 4}), {2}).sizes(), IntSpan({0, 3, 2, 2}));
  EXPECT_EQ(adaptive_avg_pool2d(x, {0, 2}).sizes(), IntSpan({1, 3, 0, 2}));
}

}  // namespace tercel::test
