#include "tercel/nn/function_layers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tercel/core/generator.h"
#include "tercel/nn/losses.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::nn {
namespace {

using test::bytes_of;
using test::make;
using test::random;

void expect_layer(Module& layer, const char* name, const Tensor& x, const Tensor& want) {
  SCOPED_TRACE(name);
  EXPECT_STREQ(layer.name(), name);
  EXPECT_TRUE(layer.state_dict().empty());
  const Tensor got = layer(x);
  EXPECT_EQ(got.sizes(), want.sizes());
  EXPECT_EQ(bytes_of(got), bytes_of(want));
}

#define LAYER(Name, arguments, x, want)  \
  {                                      \
    Name layer arguments;                \
    expect_layer(layer, #Name, x, want); \
  }

TEST(FunctionLayers, Activations) {
  const Tensor x = random({3, 4}, kFloat32, -4, 4, 1);
  LAYER(Hardsigmoid, , x, hardsigmoid(x))
  LAYER(Hardswish, , x, hardswish(x))
  LAYER(LogSigmoid, , x, logsigmoid(x))
  LAYER(Mish, , x, mish(x))
  LAYER(ReLU6, , x, relu6(x))
  LAYER(SELU, , x, selu(x))
  LAYER(Softsign, , x, softsign(x))
  LAYER(Tanhshrink, , x, tanhshrink(x))
  LAYER(CELU, (2), x, celu(x, 2))
  LAYER(ELU, (2), x, elu(x, 2))
  LAYER(GLU, , x, glu(x, -1))
  LAYER(Hardshrink, (1), x, hardshrink(x, 1))
  LAYER(LeakyReLU, (0.2), x, leaky_relu(x, 0.2))
  LAYER(LogSoftmax, (1), x, log_softmax(x, 1))
  LAYER(Softmin, (1), x, softmax(neg(x), 1))
  LAYER(Softshrink, , x, softshrink(x))
  LAYER(Hardtanh, (-2, 1), x, hardtanh(x, -2, 1))
  LAYER(Softplus, (2, 3), x, softplus(x, 2, 3))
  LAYER(Threshold, (1, 7), x, threshold(x, 1, 7))
  const Tensor image = random({2, 4, 3, 3}, kFloat32, -1, 1, 3);
  LAYER(Softmax2d, , image, softmax(image, 1))
  TERCEL_EXPECT_THROW(Softmax2d()(x), ValueError, "Softmax2d: expected input to be 3D or 4D, got 2D instead");
  RReLU slopes(0.2, 0.4);
  manual_seed(3);
  const Tensor drawn = slopes(x);
  manual_seed(3);
  EXPECT_EQ(bytes_of(drawn), bytes_of(rrelu(x, 0.2, 0.4, true)));
  slopes.eval();
  expect_layer(slopes, "RReLU", x, rrelu(x, 0.2, 0.4));
}

TEST(FunctionLayers, Windows) {
  const Tensor line = random({2, 3, 8}, kFloat32, -1, 1, 1), volume = random({1, 2, 6, 6, 6}, kFloat32, -1, 1, 2);
  const Tensor image = random({2, 3, 6, 6}, kFloat32, -1, 1, 3);
  const WindowOptions options{.stride = {1}, .padding = {1}, .ceil_mode = true, .count_include_pad = false};
  LAYER(MaxPool1d, ({2}), line, max_pool1d(line, {2}))
  LAYER(MaxPool1d, ({3}, options), line, max_pool1d(line, {3}, {1}, {1}, {1}, true))
  LAYER(MaxPool3d, ({2, 2, 3}), volume, max_pool3d(volume, {2, 2, 3}))
  LAYER(AvgPool1d, ({3}, options), line, avg_pool1d(line, {3}, {1}, {1}, true, false))
  LAYER(AvgPool3d, ({2}), volume, avg_pool3d(volume, {2}))
  LAYER(LPPool1d, (3, {2}), line.abs(), pow(mul(avg_pool1d(pow(line.abs(), 3), {2}), 2), 1.0 / 3))
  LAYER(LPPool2d, (2, {2, 3}, {1}), image, pow(mul(avg_pool2d(square(image), {2, 3}, {1}), 6), 0.5))
  LAYER(LPPool3d, (1, {2}), volume.abs(), mul(avg_pool3d(volume.abs(), {2}), 8))
  LAYER(AdaptiveAvgPool1d, ({3}), line, adaptive_avg_pool1d(line, {3}))
  LAYER(AdaptiveAvgPool3d, ({2}), volume, adaptive_avg_pool3d(volume, {2}))
  LAYER(AdaptiveMaxPool1d, ({3}), line, adaptive_max_pool1d(line, {3}).values)
  LAYER(AdaptiveMaxPool2d, ({2, 3}), image, adaptive_max_pool2d(image, {2, 3}).values)
  LAYER(AdaptiveMaxPool3d, ({2}), volume, adaptive_max_pool3d(volume, {2}).values)
}

TEST(FunctionLayers, Borders) {
  const Tensor line = random({2, 3, 8}, kFloat32, -1, 1, 1), volume = random({1, 2, 4, 4, 4}, kFloat32, -1, 1, 2);
  const Tensor image = random({2, 3, 6, 6}, kFloat32, -1, 1, 3);
  LAYER(ZeroPad1d, ({2}), line, pad(line, {2, 2}))
  LAYER(ZeroPad2d, ({1, 2, 3, 0}), image, pad(image, {1, 2, 3, 0}))
  LAYER(ZeroPad3d, ({1}), volume, pad(volume, {1, 1, 1, 1, 1, 1}))
  LAYER(ReflectionPad1d, ({2, 1}), line, pad(line, {2, 1}, "reflect"))
  LAYER(ReflectionPad2d, ({2}), image, pad(image, {2, 2, 2, 2}, "reflect"))
  LAYER(ReflectionPad3d, ({1}), volume, pad(volume, {1, 1, 1, 1, 1, 1}, "reflect"))
  LAYER(ReplicationPad1d, ({2}), line, pad(line, {2, 2}, "replicate"))
  LAYER(ReplicationPad2d, ({2}), image, pad(image, {2, 2, 2, 2}, "replicate"))
  LAYER(ReplicationPad3d, ({1}), volume, pad(volume, {1, 1, 1, 1, 1, 1}, "replicate"))
  LAYER(CircularPad1d, ({2}), line, pad(line, {2, 2}, "circular"))
  LAYER(CircularPad2d, ({2}), image, pad(image, {2, 2, 2, 2}, "circular"))
  LAYER(CircularPad3d, ({1}), volume, pad(volume, {1, 1, 1, 1, 1, 1}, "circular"))
  LAYER(ConstantPad1d, ({2}, 7), line, pad(line, {2, 2}, "constant", 7))
  LAYER(ConstantPad2d, ({1}, 7), image, pad(image, {1, 1, 1, 1}, "constant", 7))
  LAYER(ConstantPad3d, ({1}, 7), volume, pad(volume, {1, 1, 1, 1, 1, 1}, "constant", 7))
  TERCEL_EXPECT_THROW(ZeroPad2d({1, 2}), ValueError, "ZeroPad2d: padding must be one number or 4 but got [1, 2]");
}

TEST(FunctionLayers, Places) {
  const Tensor image = random({2, 4, 6, 6}, kFloat32, -1, 1, 3);
  const InterpolateOptions twice{.size = {}, .scale_factor = {2}, .align_corners = {}};
  LAYER(Unflatten, (1, {2, 2}), image, unflatten(image, 1, {2, 2}))
  LAYER(Upsample, (twice), image, interpolate(image, twice))
  LAYER(PixelShuffle, (2), image, pixel_shuffle(image, 2))
  LAYER(PixelUnshuffle, (2), image, pixel_unshuffle(image, 2))
  LAYER(ChannelShuffle, (2), image, channel_shuffle(image, 2))
  LAYER(LocalResponseNorm, (3, 0.5), image, local_response_norm(image, 3, 0.5))
  CrossMapLRN2d across(3, 0.5, 0.75, 1.5);
  const std::vector<double> got = test::values_of(across(mul(make({1, 3, 1, 1}, kFloat64, {1, 2, 3}), 2)));
  // x / (1.5 + total / 6)^0.75, where the total of the last channel has the first one's square in it.
  EXPECT_NEAR(got[0], 2 / std::pow(1.5 + 20 / 6.0, 0.75), 1e-12);
  EXPECT_NEAR(got[1], 4 / std::pow(1.5 + 56 / 6.0, 0.75), 1e-12);
  EXPECT_NEAR(got[2], 6 / std::pow(1.5 + 56 / 6.0, 0.75), 1e-12);
  TERCEL_EXPECT_THROW(across(ones({2, 2})), ValueError, "CrossMapLRN2d: Expected input to be 4D, got 2D instead.");
  const PatchOptions apart{.padding = {1}, .stride = {2}};
  LAYER(Unfold, ({3}, apart), image, im2col(image, {3}, {1}, {1}, {2}))
  const Tensor patches = im2col(image, {2}, {1}, {0}, {2});
  LAYER(Fold, ({6, 6}, {2}, {.stride = {2}}), patches, image)
}

TEST(FunctionLayers, OfTwoTensors) {
  const Tensor x = random({3, 4}, kFloat32, -1, 1, 1), y = random({3, 4}, kFloat32, -1, 1, 2);
  EXPECT_EQ(bytes_of(CosineSimilarity(0)(x, y)), bytes_of(cosine_similarity(x, y, 0)));
  EXPECT_EQ(bytes_of(PairwiseDistance(1, 1e-3, true)(x, y)), bytes_of(pairwise_distance(x, y, 1, 1e-3, true)));
  EXPECT_STREQ(CosineSimilarity().name(), "CosineSimilarity");
  EXPECT_STREQ(PairwiseDistance().name(), "PairwiseDistance");
}

TEST(FunctionLayers, PoolingUndoneAndAtRandom) {
  const Tensor line = random({2, 3, 8}, kFloat32, -1, 1, 1), image = random({2, 3, 6, 6}, kFloat32, -1, 1, 2);
  const Tensor volume = random({1, 2, 6, 6, 6}, kFloat32, -1, 1, 3);
  const ValuesAndIndices one = max_pool1d_with_indices(line, {2}), two = max_pool2d_with_indices(image, {3}, {2});
  const ValuesAndIndices three = max_pool3d_with_indices(volume, {2});
  EXPECT_EQ(bytes_of(MaxUnpool1d({2})(one.values, one.indices)), bytes_of(max_unpool1d(one.values, one.indices, {2})));
  EXPECT_EQ(bytes_of(MaxUnpool2d({3}, {2})(two.values, two.indices, {6, 6})),
            bytes_of(max_unpool2d(two.values, two.indices, {3}, {2}, {0}, {6, 6})));
  EXPECT_EQ(bytes_of(MaxUnpool3d({2})(three.values, three.indices)),
            bytes_of(max_unpool3d(three.values, three.indices, {2})));
  EXPECT_STREQ(MaxUnpool2d({2}).name(), "MaxUnpool2d");
  FractionalMaxPool2d flat({2}, {3});
  FractionalMaxPool3d deep({2}, {3, 2, 2});
  manual_seed(1);
  const Tensor pooled = flat(image), boxes = deep(volume);
  manual_seed(1);
  EXPECT_EQ(bytes_of(pooled), bytes_of(fractional_max_pool2d(image, {2}, {3})));
  EXPECT_EQ(bytes_of(boxes), bytes_of(fractional_max_pool3d(volume, {2}, {3, 2, 2})));
}

#define LOSS(Name, arguments, x, target, want)                    \
  {                                                               \
    SCOPED_TRACE(#Name);                                          \
    Name loss arguments;                                          \
    EXPECT_STREQ(loss.name(), #Name);                             \
    EXPECT_EQ(bytes_of(loss(x, target)), bytes_of(want));         \
    EXPECT_EQ(bytes_of(loss.forward(x, target)), bytes_of(want)); \
  }

TEST(Losses, AreTheFunctions) {
  const Tensor x = random({3, 4}, kFloat32, 0.1, 0.9, 1), y = random({3, 4}, kFloat32, 0.1, 0.9, 2);
  const Tensor signs = make({3, 4}, kFloat32, {1, -1, 1, 1, -1, -1, 1, 1, -1, 1, -1, 1});
  const Tensor classes = make({3}, kInt64, {0, 3, 1}), weight = make({4}, kFloat32, {1, 2, 3, 4});
  const Tensor several = make({3, 4}, kInt64, {0, -1, 0, 0, 1, 2, -1, 0, 3, -1, 0, 0});
  constexpr Reduction kSum = Reduction::Sum, kNone = Reduction::None;
  LOSS(L1Loss, (kSum), x, y, l1_loss(x, y, kSum))
  LOSS(MSELoss, , x, y, mse_loss(x, y))
  LOSS(MultiLabelMarginLoss, , x, several, multilabel_margin_loss(x, several))
  LOSS(SoftMarginLoss, (kNone), x, signs, soft_margin_loss(x, signs, kNone))
  LOSS(SmoothL1Loss, (0.2), x, y, smooth_l1_loss(x, y, Reduction::Mean, 0.2))
  LOSS(HuberLoss, (0.2, kSum), x, y, huber_loss(x, y, kSum, 0.2))
  LOSS(HingeEmbeddingLoss, (2), x, signs, hinge_embedding_loss(x, signs, 2))
  LOSS(KLDivLoss, (true, kSum), x, y, kl_div(x, y, kSum, true))
  LOSS(PoissonNLLLoss, (false), x, y, poisson_nll_loss(x, y, false))
  LOSS(BCELoss, (weight), x, y, binary_cross_entropy(x, y, weight))
  LOSS(BCEWithLogitsLoss, , x, y, binary_cross_entropy_with_logits(x, y))
  LOSS(CrossEntropyLoss, (weight), x, classes, cross_entropy(x, classes, weight))
  LOSS(NLLLoss, (weight, kSum), x, classes, nll_loss(x, classes, weight, kSum))
  LOSS(MultiLabelSoftMarginLoss, (weight), x, y, multilabel_soft_margin_loss(x, y, weight))
  LOSS(MultiMarginLoss, (weight), x, classes, multi_margin_loss(x, classes, 1, 1, weight))
}

TEST(Losses, OfThreeTensors) {
  const Tensor a = random({3, 4}, kFloat32, -1, 1, 1), b = random({3, 4}, kFloat32, -1, 1, 2);
  const Tensor c = random({3, 4}, kFloat32, 0.5, 1, 3), signs = make({3}, kFloat32, {1, -1, 1});
  constexpr Reduction kSum = Reduction::Sum;
  EXPECT_EQ(bytes_of(CosineEmbeddingLoss(0.2)(a, b, signs)), bytes_of(cosine_embedding_loss(a, b, signs, 0.2)));
  EXPECT_EQ(bytes_of(MarginRankingLoss(0.2, kSum)(a, b, sign(a))),
            bytes_of(margin_ranking_loss(a, b, sign(a), 0.2, kSum)));
  EXPECT_EQ(bytes_of(TripletMarginLoss(2, 1, 1e-3, true)(a, b, c)),
            bytes_of(triplet_margin_loss(a, b, c, 2, 1, 1e-3, true)));
  EXPECT_EQ(bytes_of(GaussianNLLLoss(true)(a, b, c)), bytes_of(gaussian_nll_loss(a, b, c, true)));
  EXPECT_STREQ(TripletMarginLoss().name(), "TripletMarginLoss");
  const Tensor logs = log_softmax(random({5, 2, 4}, kFloat32, -1, 1, 4), 2),
               targets = make({2, 2}, kInt64, {1, 2, 3, 1});
  EXPECT_EQ(bytes_of(CTCLoss(0, kSum)(logs, targets, {5, 4}, {2, 1})),
            bytes_of(ctc_loss(logs, targets, {5, 4}, {2, 1}, 0, kSum)));
  EXPECT_STREQ(CTCLoss().name(), "CTCLoss");
}

TEST(Losses, WeightsFollowTheModule) {
  CrossEntropyLoss loss(ones({4})), without;
  EXPECT_EQ(loss.named_buffers().size(), 1u);
  EXPECT_TRUE(without.named_buffers().empty());
  loss.to(kFloat64);
  EXPECT_EQ(loss.weight.dtype(), kFloat64);
}

}  // namespace
}  // namespace tercel::nn
