#include "tercel/ops/nn/conv.h"

#include <limits>
#include <random>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/conv_rows.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Conv, Conformance, ::testing::ValuesIn(conv_rows()), row_name);

namespace {

void expect_near(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(got.sizes(), want.sizes());
  const std::vector<double> a = values_of(got), b = values_of(want);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << i;
}

}  // namespace

TEST(Conv, ChannelsLastInAndOut) {
  for (const int64_t groups : {1, 2}) {
    const Tensor x = random({2, 4, 9, 8}, kFloat64, -1, 1, 1), w = random({6, 4 / groups, 3, 3}, kFloat64, -1, 1, 2),
                 b = random({6}, kFloat64, -1, 1, 3);
    const Tensor last = clone(x, MemoryFormat::ChannelsLast);
    const Tensor want = conv2d(x, w, b, {2}, {1}, {1}, groups);
    EXPECT_TRUE(want.is_contiguous());
    const Tensor got = conv2d(last, w, b, {2}, {1}, {1}, groups);
    EXPECT_TRUE(got.is_contiguous(MemoryFormat::ChannelsLast));
    expect_near(got, want, 1e-12);
    const Tensor by_weight = conv2d(x, clone(w, MemoryFormat::ChannelsLast), b, {2}, {1}, {1}, groups);
    EXPECT_TRUE(by_weight.is_contiguous(MemoryFormat::ChannelsLast));
    expect_near(by_weight, want, 1e-12);
    Tensor leaf = last.detach(), weight = w.detach(), bias = b.detach();
    for (Tensor* t : {&leaf, &weight, &bias}) t->requires_grad_();
    EXPECT_TRUE(
        gradcheck([&](const std::vector<Tensor>& in) { return conv2d(in[0], in[1], in[2], {2}, {1}, {1}, groups); },
                  {leaf, weight, bias}));
  }
}

// Depthwise: channels-last uses vectors of channels, channels-first uses patches.
TEST(Conv, DepthwiseWithChannelsLast) {
  const auto gradients = [](Tensor x, Tensor w, const Tensor& b, IntSpan stride, IntSpan padding, IntSpan dilation) {
    x = x.detach(), w = w.detach();
    x.requires_grad_();
    w.requires_grad_();
    const int64_t channels = x.size(1);
    const Tensor y = x.dim() == 4 ? conv2d(x, w, b, stride, padding, dilation, channels)
                                  : conv3d(x, w, b, stride, padding, dilation, channels);
    sum(mul(y, y)).backward();
    return std::vector<Tensor>{y.detach(), x.grad(), w.grad()};
  };
  for (const int64_t channels : {2, 5, 16, 37, 70, 130})
    for (const ScalarType type : {kFloat32, kFloat64})
      for (const auto& [stride, padding, dilation] :
           {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {2, 0, 1}, {1, 2, 2}, {3, 4, 2}, {2, 1, 3}}) {
        SCOPED_TRACE(str_cat({channels, " channels, stride ", stride, ", padding ", padding, ", dilation ", dilation}));
        const double tolerance = type == kFloat32 ? 2e-3 : 1e-11;
        for (const Sizes& sizes : {Sizes{3, channels, 11, 9}, Sizes{1, channels, 5, 47}, Sizes{2, channels, 5, 7, 8}}) {
          Sizes window{channels, 1, 3, 2};
          if (sizes.size() == 5) window = {channels, 1, 2, 3, 2};
          const MemoryFormat last = sizes.size() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
          const Tensor x = random(sizes, type, -1, 1, 1), w = random(window, type, -1, 1, 2),
                       b = random({channels}, type, -1, 1, 3);
          const std::vector<Tensor> want = gradients(x, w, b, {stride}, {padding}, {dilation}),
                                    got = gradients(clone(x, last), w, b, {stride}, {padding}, {dilation});
          EXPECT_TRUE(got[0].is_contiguous(last));
          for (size_t i = 0; i < want.size(); ++i) expect_near(got[i], want[i], tolerance);
        }
      }
}

// Among them results of one position with large strides, and transposed ones with pixels that no position sees.
TEST(Conv, RandomShapesAndGradientsAgreeWithLoops) {
  std::mt19937 bits(7);
  const auto draw = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(bits() % static_cast<uint32_t>(most - least + 1));
  };
  for (int i = 0; i < 600; ++i) {
    const bool transposed = draw(0, 2) == 0;
    const auto dims = static_cast<size_t>(draw(1, 3));
    ConvCase c;
    c.groups = draw(0, 2) == 0 ? draw(2, 3) : 1;
    // Depthwise, a few channels, or so many that other loops take over.
    const int64_t kind = draw(0, 3),
                  channels = kind == 0   ? 1
                             : kind == 1 ? 40 / c.groups
                                         : draw(1, 4),
                  outputs = kind == 0         ? 1
                            : draw(0, 3) == 0 ? 40
                                              : draw(1, 4);
    if (kind == 0) c.groups = draw(1, 20);
    Sizes x{draw(1, 3), channels * c.groups};
    Sizes w = transposed ? Sizes{channels * c.groups, outputs} : Sizes{outputs * c.groups, channels};
    for (size_t d = 0; d < dims; ++d) {
      const int64_t kernel = draw(0, 1) == 0 ? 1 : draw(2, 3);
      c.stride.push_back(draw(0, 1) == 0 ? 1 : draw(2, 6));
      c.padding.push_back(draw(0, 2) == 0 ? draw(1, kernel) : 0);
      c.dilation.push_back(draw(0, 2) == 0 ? draw(2, 3) : 1);
      c.output_padding.push_back(transposed ? draw(0, std::max(c.stride[d], c.dilation[d]) - 1) : 0);
      const int64_t reach = c.dilation[d] * (kernel - 1);
      int64_t least = reach + 1 - 2 * c.padding[d];
      if (transposed) least = 1 + (2 * c.padding[d] > reach + c.output_padding[d] ? 2 * c.padding[d] : 0);
      x.push_back(std::max<int64_t>(1, least) + (draw(0, 1) == 0 ? 0 : draw(0, 5)));
      w.push_back(kernel);
    }
    const ScalarType dtype = draw(0, 1) == 0 ? kFloat32 : kFloat64;
    const auto [s, y] = conv_sizes(x, w, c, transposed);
    SCOPED_TRACE(str_cat({i, transposed ? " transposed x=" : " x=", IntSpan(x), " w=", IntSpan(w), " stride=",
                          IntSpan(c.stride), " padding=", IntSpan(c.padding), " dilation=", IntSpan(c.dilation),
                          " output_padding=", IntSpan(c.output_padding), " groups=", c.groups}));
    const Row row = conv_row("random", x, w, false, c, transposed);
    const auto seed = static_cast<uint64_t>(i);
    Tensor image = random(x, dtype, -1, 1, seed), weight = random(w, dtype, -1, 1, seed + 1000);
    const Tensor ys = random(y, dtype, -1, 1, seed + 2000);
    if (dims > 1 && draw(0, 1) == 0)
      image = clone(image, dims == 2 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d);
    image.requires_grad_();
    weight.requires_grad_();
    const Tensor out = row.run({image, weight});
    const double tolerance = dtype == kFloat32 ? 2e-4 : 1e-12;
    expect_near(out.detach(), row.reference({image.detach(), weight.detach()}), tolerance);
    out.backward(ys);
    const std::vector<double> xs = values_of(image.detach()), ws = values_of(weight.detach()), gs = values_of(ys);
    std::vector<double> of_x(xs.size(), 0), of_w(ws.size(), 0);
    const auto n = static_cast<size_t>(x[0]), first = static_cast<size_t>(transposed ? y[1] : x[1]),
               second = static_cast<size_t>(transposed ? x[1] : y[1]);
    for_each_product(n, first, second, static_cast<size_t>(c.groups), s, [&](size_t in, size_t k, size_t to) {
      if (transposed) std::swap(in, to);
      of_x[in] += gs[to] * ws[k];
      of_w[k] += gs[to] * xs[in];
    });
    expect_near(image.grad(), make(x, kFloat64, of_x), tolerance);
    expect_near(weight.grad(), make(w, kFloat64, of_w), tolerance * 8);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Conv, StepsThatAreNeverMadeMayBeAnyNumber) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (const int64_t channels : {1, 16}) {
    const Tensor x = random({1, channels, 4, 4}, kFloat32, -1, 1, 1),
                 dot = random({channels, 1, 1, 1}, kFloat32, -1, 1, 2),
                 window = random({channels, 1, 3, 3}, kFloat32, -1, 1, 3);
    const auto both = [&](const Tensor& w, int64_t stride, int64_t padding, int64_t dilation) {
      Tensor leaf = w.detach();
      leaf.requires_grad_();
      const Tensor y = conv2d(x, leaf, {}, {stride}, {padding}, {dilation}, channels);
      y.sum().backward();
      return std::vector<Tensor>{y.detach(), leaf.grad()};
    };
    const auto expect_same = [](const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
      for (size_t i = 0; i < want.size(); ++i) expect_near(got[i], want[i], 1e-6);
    };
    expect_same(both(dot, 1, 2, kHuge), both(dot, 1, 2, 1));
    expect_same(both(window, kHuge, 0, 1), both(window, 5, 0, 1));
    expect_same(both(window, kHuge, 1, 1), both(window, 5, 1, 1));
    // Two positions with an almost maximal distance: one covers the image, the other none of it.
    const int64_t far = int64_t{1} << 61;
    const Tensor y = conv2d(x, dot, {}, {2 * far}, {far}, {1}, channels);
    EXPECT_EQ(y.sizes(), (IntSpan{1, channels, 2, 2}));
    expect_near(y, zeros({1, channels, 2, 2}), 0);
  }
}

// Large enough for several tiles of positions, in both orders.
TEST(Conv, ManyTilesAgreeWithSmallPieces) {
  const Tensor x = random({3, 40, 40, 33}, kFloat32, -1, 1, 1), w = random({9, 40, 3, 3}, kFloat32, -1, 1, 2);
  Sizes sizes{3, 9, 40, 33};
  ConvSizes s;
  s.in = {1, 40, 33};
  s.out = {1, 40, 33};
  s.kernel = {1, 3, 3};
  s.padding = {0, 1, 1};
  std::vector<double> want(3 * 9 * 40 * 33, 0);
  const std::vector<double> image = values_of(x), weights = values_of(w);
  for_each_product(3, 40, 9, 1, s, [&](size_t from, size_t k, size_t to) { want[to] += image[from] * weights[k]; });
  const Tensor expected = make(sizes, kFloat64, want);
  expect_near(conv2d(x, w, {}, {1}, {1}), expected, 2e-4);
  expect_near(conv2d(clone(x, MemoryFormat::ChannelsLast), w, {}, {1}, {1}), expected, 2e-4);
}

TEST(Conv, PaddingByName) {
  const Tensor x = random({1, 2, 6, 7}, kFloat64, -1, 1, 1), w = random({3, 2, 3, 4}, kFloat64, -1, 1, 2);
  EXPECT_EQ(conv2d(x, w, {}, {1}, NamedPadding::Same).sizes(), IntSpan({1, 3, 6, 7}));
  EXPECT_EQ(bytes_of(conv2d(x, w, {}, {1}, NamedPadding::Valid)), bytes_of(conv2d(x, w)));
  // One more at the end than at the start: the last four columns of a result padded by two on both sides.
  const Tensor wide = conv2d(x, w, {}, {1}, {1, 2});
  const Tensor same = conv2d(x, w, {}, {1}, NamedPadding::Same);
  for (int64_t c = 0; c < 7; ++c) expect_near(same.select(3, c), wide.select(3, c + 1), 1e-12);
  TERCEL_EXPECT_THROW(conv2d(x, w, {}, {2}, NamedPadding::Same), RuntimeError,
                      "padding='same' is not supported for strided convolutions");
}

TEST(Conv, OfAnEmptyImageIsTheBias) {
  const Tensor bias = arange(3).to(kFloat32);
  for (const Tensor& x : {ones({2, 2, 0}), ones({2, 40, 0})}) {
    const Tensor of = conv1d(x, ones({3, x.size(1), 1}), bias, {1}, {1});
    EXPECT_EQ(of.sizes(), IntSpan({2, 3, 2}));
    EXPECT_EQ(values_of(of), (std::vector<double>{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}));
    EXPECT_EQ(values_of(conv1d(x, ones({3, x.size(1), 1}), {}, {1}, {1})), std::vector<double>(12, 0));
  }
}

TEST(Conv, EmptyBatchAndWithoutBatch) {
  const Tensor w = random({3, 2, 3, 3}, kFloat32, -1, 1, 2).requires_grad_();
  const Tensor out = conv2d(empty({0, 2, 5, 5}), w);
  EXPECT_EQ(out.sizes(), IntSpan({0, 3, 3, 3}));
  out.sum().backward();
  for (const double v : values_of(w.grad())) EXPECT_EQ(v, 0);
  const Tensor x = random({2, 5, 5}, kFloat32, -1, 1, 1);
  EXPECT_EQ(conv2d(x, w).sizes(), IntSpan({3, 3, 3}));
  EXPECT_EQ(conv1d(empty({2, 5}), empty({3, 2, 3})).sizes(), IntSpan({3, 3}));
  EXPECT_EQ(values_of(conv2d(empty({1, 0, 3, 3}), empty({2, 0, 1, 1}), make({2}, kFloat32, {1, 2}))),
            (std::vector<double>{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2}));
}

TEST(Conv, Errors) {
  const Tensor x = zeros({1, 3, 5, 5}), w = zeros({4, 3, 3, 3});
  TERCEL_EXPECT_THROW(conv2d(x, zeros({4, 2, 3, 3})), RuntimeError,
                      "Given groups=1, weight of size [4, 2, 3, 3], expected input[1, 3, 5, 5] to have 2 channels, but "
                      "got 3 channels instead");
  TERCEL_EXPECT_THROW(conv2d(zeros({3, 3}), w), RuntimeError,
                      "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [3, 3]");
  TERCEL_EXPECT_THROW(conv2d(zeros({1, 3, 2, 2}), w), RuntimeError,
                      "Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 3). Kernel size can't be "
                      "greater than actual input size");
  TERCEL_EXPECT_THROW(conv2d(x, w, zeros({3})), RuntimeError, "expected bias to be 1-dimensional with 4 elements");
  TERCEL_EXPECT_THROW(conv2d(x, w, zeros({4}, kFloat64)), RuntimeError,
                      "Input type (Float) and bias type (Double) should be the same");
  TERCEL_EXPECT_THROW(conv2d(x, w, {}, {0}), RuntimeError, "non-positive stride is not supported");
  TERCEL_EXPECT_THROW(conv2d(x, w, {}, {1}, {-1}), RuntimeError, "negative padding is not supported");
  TERCEL_EXPECT_THROW(conv2d(x, w, {}, {1}, {0}, {0}), RuntimeError, "dilation should be greater than zero");
  TERCEL_EXPECT_THROW(conv2d(x, w, {}, {1}, {0}, {1}, 0), RuntimeError, "non-positive groups is not supported");
  TERCEL_EXPECT_THROW(conv2d(x, w, {}, {1, 1, 1}), RuntimeError,
                      "expected stride to be a single integer value or a list of 2 values to match the convolution "
                      "dimensions, but got stride=[1, 1, 1]");
  TERCEL_EXPECT_THROW(conv2d(x, w, {}, {1}, {INT64_MAX / 2}), RuntimeError, "too large");
  TERCEL_EXPECT_THROW(conv2d(to(x, kBool), to(w, kBool)), NotImplementedError, "not implemented");
  TERCEL_EXPECT_THROW(conv_transpose2d(x, w), RuntimeError, "Given transposed=1, weight of size [4, 3, 3, 3]");
  TERCEL_EXPECT_THROW(im2col(x, {7}), RuntimeError, "calculated shape of the array of sliding blocks as (-1, -1)");
  TERCEL_EXPECT_THROW(col2im(zeros({1, 4, 4}), {4}, {2}), RuntimeError, "3 * 3 = 9, but got input.size(2)=4.");
}

TEST(Conv, ManyOutputsAgreeWithChannelsLast) {
  // Several tiles of positions; channels-last uses another algorithm.
  struct Case {
    Sizes image, kernel, stride, padding, dilation;
    int64_t groups;
  };
  const std::vector<Case> cases = {
      {{40, 40}, {3, 3}, {1}, {1}, {1}, 1},       {{33, 47}, {3, 5}, {2}, {2, 1}, {1}, 1},
      {{40, 41}, {3, 3}, {3}, {0}, {1}, 1},       {{25, 31}, {3, 3}, {1}, {2}, {2}, 1},
      {{30, 31}, {2, 3}, {2, 3}, {1, 2}, {1}, 2}, {{1, 300}, {1, 3}, {1, 2}, {0, 1}, {1}, 1},
      {{60, 3}, {3, 3}, {1}, {1}, {1, 2}, 1}};
  for (const ScalarType dtype : {kFloat32, kFloat64})
    for (size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(i);
      const Case& c = cases[i];
      const Tensor x = random({2, 40, c.image[0], c.image[1]}, dtype, -1, 1, 1),
                   w = random({70, 40 / c.groups, c.kernel[0], c.kernel[1]}, dtype, -1, 1, 2),
                   b = random({70}, dtype, -1, 1, 3);
      const auto run = [&](const Tensor& of) { return conv2d(of, w, b, c.stride, c.padding, c.dilation, c.groups); };
      const Tensor got = run(x);
      EXPECT_TRUE(got.is_contiguous());
      expect_near(got, run(clone(x, MemoryFormat::ChannelsLast)), dtype == kFloat32 ? 2e-4 : 1e-12);
    }
}

TEST(Conv, HugeStepsAndPadding) {
  const Tensor x = ones({1, 1, 4, 4}), w = ones({40, 1, 2, 2});
  for (const int64_t huge : {int64_t{1} << 33, int64_t{1} << 40}) {
    // The middle one of nine windows begins at the first pixel, the others are far away.
    const Tensor out = conv2d(x, w, {}, {huge}, {huge});
    ASSERT_EQ(out.sizes(), IntSpan({1, 40, 3, 3}));
    const std::vector<double> values = values_of(out);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i % 9 == 4 ? 4 : 0);
  }
  const Tensor nothing = conv2d(x, w, {}, {int64_t{1} << 61}, {int64_t{1} << 60});
  EXPECT_EQ(nothing.sizes(), IntSpan({1, 40, 2, 2}));
  for (const double value : values_of(nothing)) EXPECT_EQ(value, 0);
}

TEST(Conv, PatchesOfHugeWindows) {
  // 3 * kWidth and (2^32)^2 are 2 and 0 in 64 bits.
  constexpr int64_t kWidth = 6148914691236517206;
  TERCEL_EXPECT_THROW(im2col(ones({1, 1, 4, 4}), {3, kWidth}, {1}, {1, kWidth / 2}, {1}), RuntimeError, "overflow");
  constexpr int64_t kSide = int64_t{1} << 32;
  TERCEL_EXPECT_THROW(col2im(ones({1, 8, 25}), {4}, {kSide}, {1}, {kSide / 2}, {1}), RuntimeError, "overflow");
  TERCEL_EXPECT_THROW(col2im(ones({1, 8, 9}), {-(int64_t{1} << 62)}, {int64_t{1} << 61}, {3}, {1 << 20}, {1}),
                      RuntimeError, "too large");
}

TEST(Conv, EachChannelByItselfKeepsTheOrder) {
  const Tensor x = random({2, 20, 9, 8}, kFloat64, -1, 1, 1), w = random({20, 1, 3, 3}, kFloat64, -1, 1, 2);
  const Tensor got = conv2d(x, w, {}, {1}, {1}, {1}, 20);
  EXPECT_TRUE(got.is_contiguous());
  for (const int64_t c : {0, 13})
    expect_near(narrow(got, 1, c, 1), conv2d(narrow(x, 1, c, 1), narrow(w, 0, c, 1), {}, {1}, {1}), 1e-12);
}

TEST(ConvThreads, SameBitsForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  const Tensor x = random({4, 8, 30, 30}, kFloat32, -1, 1, 1), w = random({8, 8, 3, 3}, kFloat32, -1, 1, 2);
  set_num_threads(1);
  const std::string want = bytes_of(conv2d(x, w));
  set_num_threads(3);
  EXPECT_EQ(bytes_of(conv2d(x, w)), want);
  const Tensor wide = random({3, 40, 30, 31}, kFloat32, -1, 1, 3), many = random({40, 40, 3, 3}, kFloat32, -1, 1, 4);
  const std::string of_three = bytes_of(conv2d(wide, many));
  set_num_threads(1);
  EXPECT_EQ(bytes_of(conv2d(wide, many)), of_three);
  set_num_threads(3);
  Tensor leaf = w.detach().requires_grad_();
  conv2d(x, leaf).sum().backward();
  const std::vector<double> several = values_of(leaf.grad());
  set_num_threads(1);
  leaf.set_grad(Tensor());
  conv2d(x, leaf).sum().backward();
  const std::vector<double> one = values_of(leaf.grad());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(several[i], one[i], 1e-3);
  set_num_threads(before);
}

}  // namespace tercel::test
