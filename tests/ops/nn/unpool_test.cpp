#include "tercel/ops/nn/unpool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/nn/pool.h"
#include "tercel/ops/views/views.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

namespace tercel::test {

TEST(MaxUnpool, PutsElementsBackWhereTheyStood) {
  const Tensor line = make({1, 1, 8}, kFloat32, {1, 2, 8, 4, 5, 6, 3, 7});
  const auto [values, indices] = max_pool1d_with_indices(line, {2});
  EXPECT_EQ(values_of(max_unpool1d(values, indices, {2})), (std::vector<double>{0, 2, 8, 0, 0, 6, 0, 7}));
  EXPECT_EQ(max_unpool1d(values, indices, {2}, {}, {0}, {1, 1, 9}).sizes(), IntSpan({1, 1, 9}));
  EXPECT_EQ(max_unpool1d(values, indices, {2}, {}, {0}, {9}).sizes(), IntSpan({1, 1, 9}));

  const Tensor image = random({2, 3, 7, 6}, kFloat64, 1, 2, 1);
  const ValuesAndIndices pooled = max_pool2d_with_indices(image, {3, 2}, {2, 2}, {1, 0});
  const Tensor back = max_unpool2d(pooled.values, pooled.indices, {3, 2}, {2, 2}, {1, 0});
  EXPECT_EQ(back.sizes(), image.sizes());
  EXPECT_EQ(bytes_of(gather(flatten(back, 2), 2, flatten(pooled.indices, 2))), bytes_of(flatten(pooled.values, 2)));

  const Tensor volume = random({3, 4, 4, 6}, kFloat64, -1, 1, 2);
  const ValuesAndIndices boxes = max_pool3d_with_indices(volume, {2});
  const Tensor full = max_unpool3d(boxes.values, boxes.indices, {2});
  EXPECT_EQ(full.sizes(), volume.sizes());
  for (int64_t i = 0; i < full.numel(); ++i) {
    const double got = full.data<double>()[i];
    EXPECT_TRUE(got == 0 || got == volume.data<double>()[i]);
  }
}

TEST(MaxUnpool, Gradient) {
  const Tensor x = random({2, 3, 4}, kFloat64, -1, 1, 1).requires_grad_();
  const Tensor indices = max_pool1d_with_indices(random({2, 3, 8}, kFloat64, -1, 1, 2), {2}).indices;
  EXPECT_TRUE(gradcheck([&](const std::vector<Tensor>& in) { return max_unpool1d(in[0], indices, {2}); }, {x}));
}

TEST(MaxUnpool, Errors) {
  const Tensor x = ones({1, 1, 4}), at = make({1, 1, 4}, kInt64, {1, 3, 5, 12});
  TERCEL_EXPECT_THROW(max_unpool1d(x, at, {2}), RuntimeError,
                      "Found an invalid max index: 12 (output volumes are of size 8)");
  TERCEL_EXPECT_THROW(max_unpool1d(x, at, {2}, {0}), RuntimeError, "strides should be greater than zero");
  TERCEL_EXPECT_THROW(max_unpool1d(x, x, {2}), RuntimeError, "should be type int64 but got: Float");
  TERCEL_EXPECT_THROW(max_unpool2d(x, at, {2}, {}, {0}, {1, 2, 3}), ValueError, "has a length of '3'");
  TERCEL_EXPECT_THROW(max_unpool1d(x, at, {2}, {}, {0}, {11}), ValueError,
                      "invalid output_size \"[11]\" (dim 0 must be between 6 and 10)");
  TERCEL_EXPECT_THROW(max_unpool3d(x, at, {2}), RuntimeError, "should be a 4d or 5d Tensor");
  TERCEL_EXPECT_THROW(max_unpool1d(x, at, {2, 2}), RuntimeError, "kernel_size must be one number or 1");
}

TEST(FractionalMaxPool, TakesTheLargestOfEachWindow) {
  for (const bool batch : {false, true}) {
    Sizes sizes{3, 9, 7}, samples{1, 3, 2};
    if (batch) {
      sizes.insert(sizes.begin(), 2);
      samples[0] = 2;
    }
    const Tensor x = random(sizes, kFloat64, -1, 1, 1), u = random(samples, kFloat64, 0, 1, 2);
    const auto [values, indices] = fractional_max_pool2d_with_indices(x, {2, 3}, {4, 3}, u);
    EXPECT_EQ(bytes_of(fractional_max_pool2d(x, {2, 3}, {4, 3}, u)), bytes_of(values));
    EXPECT_EQ(bytes_of(gather(flatten(x, -2), -1, flatten(indices, -2))), bytes_of(flatten(values, -2)));
    // By hand: window i of a side begins at int((i + u) * step) - int(u * step), the last one at its end.
    const auto start = [](double s, int64_t i, int64_t in, int64_t out, int64_t width) {
      const double step = static_cast<double>(in - width) / static_cast<double>(out - 1);
      return i == out - 1 ? in - width
                          : static_cast<int64_t>((static_cast<double>(i) + s) * step) - static_cast<int64_t>(s * step);
    };
    const auto all = values_of(x), got = values_of(values), s = values_of(u);
    for (size_t plane = 0; plane < all.size() / 63; ++plane)
      for (int64_t i = 0; i < 4; ++i)
        for (int64_t j = 0; j < 3; ++j) {
          double most = -2;
          for (int64_t a = 0; a < 2; ++a)
            for (int64_t b = 0; b < 3; ++b) {
              const int64_t row = start(s[2 * plane + 1], i, 9, 4, 2) + a, col = start(s[2 * plane], j, 7, 3, 3) + b;
              most = std::max(most, all[plane * 63 + static_cast<size_t>(row * 7 + col)]);
            }
          EXPECT_EQ(got[plane * 12 + static_cast<size_t>(i * 3 + j)], most);
        }
  }
}

TEST(FractionalMaxPool, DrawsItsWindowsAndHasAGradient) {
  const Tensor x = random({2, 2, 7, 7, 7}, kFloat64, -1, 1, 1);
  std::set<std::string> seen;
  for (int i = 0; i < 5; ++i) seen.insert(bytes_of(fractional_max_pool3d(x, {2}, {3})));
  EXPECT_GT(seen.size(), 1U);
  const Tensor u = random({1, 2, 3}, kFloat64, 0, 1, 2), leaf = random({2, 4, 4, 4}, kFloat64, -1, 1, 3);
  EXPECT_TRUE(gradcheck([&](const std::vector<Tensor>& in) { return fractional_max_pool3d(in[0], {2}, {2}, u); },
                        {leaf.detach().requires_grad_()}));
  EXPECT_EQ(fractional_max_pool2d(empty({0, 3, 4, 4}), {2}, {2}).sizes(), IntSpan({0, 3, 2, 2}));
  EXPECT_EQ(fractional_max_pool2d(ones({1, 5, 5}), {2}, {1}).sizes(), IntSpan({1, 1, 1}));
}

TEST(FractionalMaxPool, Errors) {
  const Tensor x = ones({1, 2, 4, 4});
  TERCEL_EXPECT_THROW(fractional_max_pool2d(x, {2}, {9}), RuntimeError,
                      "fractional_max_pool2d(): pool height 2 too large relative to input height 4");
  TERCEL_EXPECT_THROW(fractional_max_pool2d(x, {0}, {2}), RuntimeError, "kernel size should be greater than zero");
  TERCEL_EXPECT_THROW(fractional_max_pool2d(x, {2}, {0}), RuntimeError, "output size should be greater than zero");
  TERCEL_EXPECT_THROW(fractional_max_pool3d(x, {2}, {9}), RuntimeError, "pool time 2 too large");
  TERCEL_EXPECT_THROW(fractional_max_pool2d(x, {2}, {2}, ones({1, 2, 3})), RuntimeError,
                      "Expect _random_samples.size(2) equals to 2; got 3.");
  TERCEL_EXPECT_THROW(fractional_max_pool2d(ones({2, 4}), {2}, {2}), RuntimeError, "Expected 3D or 4D tensor");
}

}  // namespace tercel::test
