// Strides of results: examples taken from PyTorch.
#include <gtest/gtest.h>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel {
namespace {

using test::message_of;
using test::values_of;
using List = std::vector<int64_t>;

constexpr MemoryFormat kNhwc = MemoryFormat::ChannelsLast, kNdhwc = MemoryFormat::ChannelsLast3d;
constexpr MemoryFormat kNchw = MemoryFormat::Contiguous;

List strides(const Tensor& x) { return x.strides().to_vector(); }
Tensor range(IntSpan sizes) { return arange(numel_of(sizes)).to(kFloat32).view(sizes); }
Tensor nhwc(IntSpan sizes) { return clone(range(sizes), kNhwc); }

TEST(MemoryFormats, Empty) {
  EXPECT_EQ(strides(empty({2, 3, 4, 5}, {}, kNhwc)), (List{60, 1, 15, 3}));
  EXPECT_EQ(strides(empty({2, 3, 4, 5, 6}, {}, kNdhwc)), (List{360, 1, 90, 18, 3}));
  EXPECT_EQ(strides(empty({2, 3}, {}, kNchw)), (List{3, 1}));
  EXPECT_EQ(message_of<RuntimeError>([] {
              empty({2, 3}, {}, MemoryFormat::Preserve);
            }),
            "unsupported memory format Preserve");
  EXPECT_TRUE(message_of<RuntimeError>([] {
                empty({2, 3}, {}, kNhwc);
              }).starts_with("required rank 4 tensor to use channels_last format"));
  EXPECT_THROW(empty({2, 3, 4, 5}, {}, kNdhwc), RuntimeError);
  EXPECT_THROW(empty({int64_t{1} << 62, 3, 4, 5}, {}, kNhwc), RuntimeError);
}

TEST(MemoryFormats, LikeAnother) {
  const Tensor x = nhwc({2, 3, 4, 5});
  for (const Tensor& y : {empty_like(x), zeros_like(x), ones_like(x), full_like(x, 3)})
    EXPECT_EQ(strides(y), (List{60, 1, 15, 3}));
  for (const Tensor& y : {empty_like(x, kNchw), zeros_like(x, kNchw), ones_like(x, kNchw), full_like(x, 3, kNchw)})
    EXPECT_EQ(strides(y), (List{60, 20, 5, 1}));
  const Tensor plain = range({2, 3, 4, 5});
  EXPECT_EQ(strides(zeros_like(plain, kNhwc)), (List{60, 1, 15, 3}));
  EXPECT_EQ(values_of(full_like(plain, 3, kNhwc)), std::vector<double>(120, 3));
  EXPECT_EQ(ones_like(x, kInt32).dtype(), kInt32);
  EXPECT_EQ(strides(ones_like(x, kInt32)), (List{60, 1, 15, 3}));
  TensorOptions leaf;
  leaf.requires_grad = true;
  EXPECT_TRUE(zeros_like(x, leaf).requires_grad());
  EXPECT_FALSE(empty_like(x).requires_grad());
  EXPECT_THROW(empty_like(range({2, 3}), kNhwc), RuntimeError);
}

TEST(MemoryFormats, PreserveKeepsDenseStrides) {
  EXPECT_EQ(strides(clone(permute(range({2, 3, 4}), {2, 0, 1}))), (List{1, 12, 4}));
  EXPECT_EQ(strides(clone(slice(range({4, 6}), 1, 0, 6, 2))), (List{3, 1}));
  EXPECT_EQ(strides(clone(slice(t(range({6, 4})), 1, 0, 6, 2))), (List{1, 4}));
  EXPECT_EQ(strides(clone(expand(range({3, 1}), {3, 4}))), (List{4, 1}));
  // One channel: both formats apply, and the strides show in which one it was created.
  EXPECT_EQ(strides(clone(empty({2, 1, 4, 5}, {}, kNhwc))), (List{20, 1, 5, 1}));
  const Tensor flipped = slice(range({3, 1}), 1, INT64_MAX, INT64_MIN, -1);  // a size of 1 with a negative stride
  EXPECT_EQ(strides(clone(flipped)), (List{1, 1}));
}

TEST(MemoryFormats, Clone) {
  const Tensor x = range({2, 3, 4, 5});
  const Tensor y = clone(x, kNhwc);
  EXPECT_EQ(strides(y), (List{60, 1, 15, 3}));
  EXPECT_EQ(values_of(y), values_of(x));
  EXPECT_EQ(strides(clone(y)), (List{60, 1, 15, 3}));
  EXPECT_EQ(strides(y.clone(kNchw)), (List{60, 20, 5, 1}));
}

TEST(MemoryFormats, Contiguous) {
  const Tensor x = range({2, 3, 4, 5});
  const Tensor y = x.contiguous(kNhwc);
  EXPECT_EQ(strides(y), (List{60, 1, 15, 3}));
  EXPECT_TRUE(y.is_contiguous(kNhwc));
  EXPECT_FALSE(y.is_contiguous());
  EXPECT_TRUE(y.contiguous(kNhwc).is_same(y));
  EXPECT_EQ(values_of(y.contiguous()), values_of(x));
  EXPECT_EQ(message_of<RuntimeError>([&] { x.contiguous(MemoryFormat::Preserve); }),
            "preserve memory format is unsupported by the contiguous operator");
  EXPECT_THROW(range({2, 3}).contiguous(kNhwc), RuntimeError);
}

// contiguous() checks the order of elements, to() the strides.
TEST(MemoryFormats, ContiguousLeavesWhatToRewrites) {
  const Tensor one_channel = range({2, 1, 4, 5}), one_pixel = range({2, 3, 1, 1});
  EXPECT_TRUE(one_channel.contiguous(kNhwc).is_same(one_channel));
  EXPECT_TRUE(one_pixel.contiguous(kNhwc).is_same(one_pixel));
  EXPECT_EQ(strides(one_channel.to(kNhwc)), (List{20, 1, 5, 1}));
  EXPECT_EQ(strides(one_pixel.to(kNhwc)), (List{3, 1, 3, 3}));
  EXPECT_TRUE(one_channel.is_contiguous() && one_channel.is_contiguous(kNhwc));
}

TEST(MemoryFormats, To) {
  const Tensor x = range({2, 3, 4, 5}), y = x.to(kNhwc);
  EXPECT_EQ(strides(y), (List{60, 1, 15, 3}));
  EXPECT_TRUE(y.to(kNhwc).is_same(y));
  EXPECT_TRUE(x.to(kNchw).is_same(x));
  EXPECT_TRUE(y.to(MemoryFormat::Preserve).is_same(y));
  EXPECT_EQ(strides(y.to(kFloat64)), (List{60, 1, 15, 3}));
  EXPECT_EQ(strides(y.to(kFloat64, false, kNchw)), (List{60, 20, 5, 1}));
  const Tensor copy = x.to(kFloat32, true);
  EXPECT_FALSE(copy.is_alias_of(x));
  EXPECT_EQ(values_of(copy), values_of(x));
  // With gaps: the format stays.
  EXPECT_EQ(strides(slice(y, 0, 0, 2, 2).to(kFloat64)), (List{120, 1, 15, 3}));  // a single image is dense already
  EXPECT_EQ(strides(slice(nhwc({4, 3, 4, 5}), 0, 0, 4, 2).to(kFloat64)), (List{60, 1, 15, 3}));
}

TEST(MemoryFormats, ElementwiseResults) {
  const Tensor x = range({2, 3, 4, 5}), y = nhwc({2, 3, 4, 5});
  EXPECT_EQ(strides(relu(y)), (List{60, 1, 15, 3}));
  EXPECT_EQ(strides(add(y, y)), (List{60, 1, 15, 3}));
  EXPECT_EQ(strides(add(y, 1)), (List{60, 1, 15, 3}));
  // The first operand determines the format.
  EXPECT_EQ(strides(add(y, x)), (List{60, 1, 15, 3}));
  EXPECT_EQ(strides(add(x, y)), (List{60, 20, 5, 1}));
  EXPECT_EQ(strides(relu(empty({0, 3, 4, 5}, {}, kNhwc))), (List{60, 20, 5, 1}));
  EXPECT_EQ(strides(relu(clone(range({2, 3, 4, 5, 6}), kNdhwc))), (List{360, 1, 90, 18, 3}));
  EXPECT_EQ(strides(relu(permute(range({2, 3, 4}), {2, 0, 1}))), (List{1, 12, 4}));
}

TEST(MemoryFormats, SizesOfOneKeepTheFormat) {
  for (const List& sizes : {List{1, 3, 4, 5}, List{2, 3, 1, 5}, List{2, 3, 4, 1}}) {
    const Tensor x = nhwc(sizes);
    EXPECT_EQ(strides(relu(x)), strides(x));
    EXPECT_EQ(relu(x).suggest_memory_format(), kNhwc);
  }
}

TEST(MemoryFormats, CopyKeepsTheDestinations) {
  Tensor y = nhwc({2, 3, 4, 5});
  const Tensor x = mul(range({2, 3, 4, 5}), 2);
  y.copy_(x);
  EXPECT_EQ(strides(y), (List{60, 1, 15, 3}));
  EXPECT_EQ(values_of(y), values_of(x));
}

TEST(MemoryFormats, ViewsSeeTheStridesNotTheFormat) {
  const Tensor y = nhwc({2, 3, 4, 5});
  EXPECT_TRUE(message_of<RuntimeError>([&] { y.view({2, 60}); }).ends_with("Use .reshape(...) instead."));
  EXPECT_FALSE(y.reshape({2, 60}).is_alias_of(y));
  EXPECT_EQ(strides(y.view({2, 3, 20})), (List{60, 1, 3}));  // height and width are one chunk
  EXPECT_TRUE(permute(y, {0, 2, 3, 1}).is_contiguous());
  EXPECT_EQ(values_of(y.reshape({120})), values_of(range({120})));
}

TEST(MemoryFormats, Suggest) {
  EXPECT_EQ(nhwc({2, 3, 4, 5}).suggest_memory_format(), kNhwc);
  EXPECT_EQ(range({2, 3, 4, 5}).suggest_memory_format(), kNchw);
  EXPECT_EQ(clone(range({2, 3, 4, 5, 6}), kNdhwc).suggest_memory_format(), kNdhwc);
  EXPECT_EQ(range({2, 3}).suggest_memory_format(), kNchw);
  EXPECT_EQ(slice(nhwc({2, 3, 4, 5}), 2, 0, 4, 2).suggest_memory_format(), kNhwc);  // with gaps, too
}

TEST(MemoryFormats, GradientsFlowThroughThem) {
  Tensor x = range({1, 2, 2, 2});
  x.requires_grad_();
  mul(x.contiguous(kNhwc), x.to(kNhwc)).sum().backward();
  EXPECT_EQ(values_of(x.grad()), values_of(mul(x.detach(), 2)));
}

}  // namespace
}  // namespace tercel
