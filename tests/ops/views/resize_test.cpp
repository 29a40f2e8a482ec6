#include "tercel/ops/views/resize.h"

#include <gtest/gtest.h>

#include "tercel/autograd/grad_mode.h"
#include "tercel/core/context.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tests/support/errors.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/tensors.h"

namespace tercel {
namespace {

using test::message_of;
using test::values_of;
using Values = std::vector<double>;
using List = std::vector<int64_t>;
constexpr int64_t kHuge = int64_t{1} << 62;

List sizes(const Tensor& x) { return x.sizes().to_vector(); }
List strides(const Tensor& x) { return x.strides().to_vector(); }

// ---- resize_

TEST(Resize, GrowsTheStorageAndKeepsTheElements) {
  Tensor x = arange(4);
  const Tensor alias = view(x, {2, 2});
  x.resize_({3, 2});
  EXPECT_EQ(sizes(x), (List{3, 2}));
  EXPECT_EQ(x.storage()->nbytes(), 48u);
  EXPECT_EQ(values_of(narrow(x, 0, 0, 2)), (Values{0, 1, 2, 3}));
  // Other tensors over the storage see the new memory, with their old sizes.
  EXPECT_TRUE(alias.is_alias_of(x));
  EXPECT_EQ(values_of(alias), (Values{0, 1, 2, 3}));
  EXPECT_EQ(alias.data_ptr(), x.data_ptr());
}

TEST(Set, MemoryIsAligned) {
  alignas(16) char bytes[64] = {};
  const Tensor whole = from_blob(bytes, {64}, kUInt8), odd = from_blob(bytes + 1, {32}, kUInt8);
  const Tensor x = zeros({2});
  for (const int64_t wanted : {8, 0})
    TERCEL_EXPECT_THROW(set_(x, odd.storage(), 0, {wanted}), ValueError,
                        "set_: the memory is not aligned to elements of float32. Copy it first.");
  TERCEL_EXPECT_THROW(set_(x, odd.storage()), ValueError, "not aligned");
  EXPECT_EQ(x.sizes(), IntSpan({2}));
  set_(x, whole.storage());
  EXPECT_EQ(x.sizes(), IntSpan({16}));
  for (const ScalarType dtype : {kFloat32, kFloat16, kComplex64, kInt64})
    TERCEL_EXPECT_THROW(view(odd, dtype), ValueError, "view: the memory is not aligned to elements of");
  EXPECT_EQ(view(odd, kInt8).sizes(), IntSpan({32}));
  EXPECT_EQ(view(from_blob(bytes + 8, {32}, kUInt8), kComplex128).sizes(), IntSpan({2}));
}

TEST(Resize, NeverShrinks) {
  Tensor x = arange(6);
  const void* const data = x.data_ptr();
  set_keep_on_shrink(false);  // used only by DeferredTensor
  x.resize_({2});
  x.resize_({0});
  x.resize_({6});
  set_keep_on_shrink(true);
  EXPECT_EQ(x.data_ptr(), data);
  EXPECT_EQ(x.storage()->nbytes(), 48u);
  EXPECT_EQ(values_of(x), (Values{0, 1, 2, 3, 4, 5}));
}

TEST(Resize, SameSizesKeepTheStrides) {
  const Tensor x = t(arange(6).view({2, 3}));
  const uint32_t version = x.version();
  resize_(x, {3, 2});
  EXPECT_EQ(strides(x), (List{1, 3}));
  EXPECT_EQ(x.version(), version);
  resize_(x, {2, 3});
  EXPECT_EQ(strides(x), (List{3, 1}));
  EXPECT_EQ(x.version(), version + 1);
}

TEST(Resize, CountsFromTheOffset) {
  const Tensor x = slice(arange(6), 0, 4);
  resize_(x, {3});
  EXPECT_EQ(x.storage_offset(), 4);
  EXPECT_EQ(x.storage()->nbytes(), 7 * 8u);
  EXPECT_EQ(values_of(narrow(x, 0, 0, 2)), (Values{4, 5}));
}

TEST(Resize, InAMemoryFormat) {
  const Tensor x = zeros({2, 3, 4, 5});
  resize_(x, {2, 3, 4, 5}, MemoryFormat::ChannelsLast);
  EXPECT_EQ(strides(x), (List{60, 1, 15, 3}));
  resize_(x, {1, 2, 2, 2}, MemoryFormat::ChannelsLast);
  EXPECT_EQ(strides(x), (List{8, 1, 4, 2}));
  resize_(x, {1, 2, 2, 2});  // of these sizes already
  EXPECT_EQ(strides(x), (List{8, 1, 4, 2}));
  resize_(x, {1, 2, 2, 2}, MemoryFormat::Contiguous);
  EXPECT_EQ(strides(x), (List{8, 4, 2, 1}));
  EXPECT_THROW(resize_(x, {2, 2}, MemoryFormat::ChannelsLast), RuntimeError);
  EXPECT_THROW(resize_(x, {2, 2}, MemoryFormat::Preserve), RuntimeError);
  EXPECT_EQ(sizes(x), (List{1, 2, 2, 2}));
}

TEST(Resize, FormatOfAnExpandedTensorGetsTheMemory) {
  const Tensor x = expand(zeros({1, 3, 1, 1}), {2, 3, 4, 5});
  resize_(x, {2, 3, 4, 5}, MemoryFormat::ChannelsLast);
  EXPECT_EQ(x.storage()->nbytes(), 120 * 4u);
}

TEST(Resize, Refuses) {
  Tensor x = arange(4);
  for (const List& bad : {List{-1}, List{kHuge}, List{kHuge, 4}, List{kHuge, 0, kHuge}, List(128, 1)}) {
    EXPECT_THROW(resize_(x, bad), RuntimeError);
    EXPECT_EQ(sizes(x), List{4});
    EXPECT_EQ(x.storage()->nbytes(), 32u);
  }
  EXPECT_THROW(resize_(x, {kHuge / 128}), OutOfMemoryError);
  EXPECT_THROW(resize_(Tensor(), {1}), RuntimeError);
  Tensor leaf = zeros({2});
  leaf.requires_grad_();
  EXPECT_EQ(message_of<RuntimeError>([&] { resize_(leaf, {3}); }), "cannot resize variables that require grad");
  EXPECT_THROW(resize_(mul(leaf, 2), {3}), RuntimeError);
  float memory[2] = {};
  const Tensor fixed = from_blob(memory, {2});
  EXPECT_EQ(message_of<RuntimeError>([&] { resize_(fixed, {3}); }), "Trying to resize storage that is not resizable");
  EXPECT_EQ(sizes(fixed), List{2});
  resize_(fixed, {1});
}

TEST(Resize, MemoryThatRunsOut) {
  test::FailingAllocator memory;
  {
    const test::ScopedAllocator scope(memory);
    const Tensor x = arange(4);
    memory.fail_call(1);
    EXPECT_THROW(resize_(x, {8}), OutOfMemoryError);
    EXPECT_EQ(values_of(x), (Values{0, 1, 2, 3}));
  }
  EXPECT_EQ(memory.alive(), 0);
}

TEST(ResizeAs, TakesTheSizes) {
  const Tensor x = zeros({2}), nhwc = empty({2, 3, 4, 5}, {}, MemoryFormat::ChannelsLast);
  resize_as_(x, nhwc);
  EXPECT_EQ(strides(x), (List{60, 20, 5, 1}));
  resize_as_(x, nhwc, MemoryFormat::Preserve);
  EXPECT_EQ(strides(x), (List{60, 1, 15, 3}));
  EXPECT_THROW(resize_as_(x, Tensor()), RuntimeError);
}

// ---- detached tensors

TEST(Resize, DetachedTensorsChangeTheirMetadataAlone) {
  const Tensor x = zeros({2}), detached = x.detach(), data = x.data();
  resize_(detached, {5});
  set_(data, zeros({3}));
  EXPECT_EQ(sizes(detached), List{5});
  EXPECT_EQ(sizes(data), List{3});
  EXPECT_EQ(sizes(x), List{2});
}

TEST(Resize, DetachedTensorsKeepTheirMetadataIfAskedTo) {
  set_detach_allows_metadata_change(false);
  const Tensor x = zeros({2}), detached = x.detach(), data = x.data();
  set_detach_allows_metadata_change(true);
  const std::string refused =
      "resize_ is not allowed on a Tensor created from .data or .detach().\nIf your intent is to change the metadata";
  EXPECT_TRUE(message_of<RuntimeError>([&] { resize_(detached, {1}); }).starts_with(refused));
  EXPECT_THROW(resize_(data, {1}), RuntimeError);
  EXPECT_THROW(set_(detached, zeros({3})), RuntimeError);
  EXPECT_THROW(swap_data(detached, zeros({3})), RuntimeError);
  EXPECT_EQ(sizes(detached), List{2});
}

// ---- set_

TEST(Set, StorageOffsetSizesStrides) {
  const Tensor source = arange(10);
  Tensor x = zeros({2}, kInt64);
  x.set_(source.storage(), 1, {2, 3}, {4, 1});
  EXPECT_TRUE(x.is_alias_of(source));
  EXPECT_EQ(values_of(x), (Values{1, 2, 3, 5, 6, 7}));
  x.set_(source.storage(), 2, {2, 2});
  EXPECT_EQ(values_of(x), (Values{2, 3, 4, 5}));
  x.set_(source.storage(), 3, {3}, {-1});
  EXPECT_EQ(values_of(x), (Values{3, 2, 1}));
  x.set_(source.storage());
  EXPECT_EQ(x.storage_offset(), 0);
  EXPECT_TRUE(x.is_set_to(source));
  x.set_(source.storage(), 4, {});
  EXPECT_EQ(values_of(x), Values{4});
}

TEST(Set, CountsWholeElements) {
  const Tensor x = zeros({1}, kFloat64);
  set_(x, zeros({3}, kFloat32).storage());
  EXPECT_EQ(sizes(x), List{1});
}

TEST(Set, TensorBecomesTheOther) {
  const Tensor source = t(arange(6).view({2, 3})), x = zeros({1}, kInt64);
  set_(x, source);
  EXPECT_TRUE(x.is_set_to(source));
  EXPECT_EQ(strides(x), (List{1, 3}));
  set_(x, x);
  EXPECT_TRUE(x.is_set_to(source));
  EXPECT_EQ(message_of<RuntimeError>([&] { set_(x, zeros({2})); }),
            "Could not set tensor of type float32 to a tensor of type int64");
}

TEST(Set, IsSetToNeedsAllFour) {
  const Tensor x = arange(6);
  EXPECT_TRUE(x.is_set_to(view(x, {6})));
  EXPECT_FALSE(x.is_set_to(view(x, {2, 3})));
  EXPECT_FALSE(x.is_set_to(clone(x)));
  EXPECT_FALSE(slice(x, 0, 0, 3).is_set_to(slice(x, 0, 1, 4)));
  EXPECT_FALSE(zeros({0}).is_set_to(zeros({0})));
}

TEST(Set, GrowsAStorageThatCan) {
  const Tensor source = arange(3);
  const Tensor x = zeros({1}, kInt64);
  set_(x, source.storage(), 2, {4});
  EXPECT_EQ(source.storage()->nbytes(), 48u);
  EXPECT_EQ(values_of(source), (Values{0, 1, 2}));
  int64_t memory[2] = {};
  const Tensor fixed = from_blob(memory, {2}, kInt64);
  EXPECT_THROW(set_(x, fixed.storage(), 0, {3}), RuntimeError);
  EXPECT_TRUE(x.is_alias_of(source));
  EXPECT_EQ(x.storage_offset(), 2);
}

TEST(Set, Refuses) {
  const Tensor source = arange(4), x = zeros({1}, kInt64);
  EXPECT_EQ(message_of<RuntimeError>([&] { set_(x, source.storage(), -1, {1}); }), "Tensor: invalid storage offset -1");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              set_(x, source.storage(), 0, {1, 2}, {1});
            }),
            "unequal size length (2) and stride length (1)");
  EXPECT_THROW(set_(x, source.storage(), 1, {3}, {-1}), RuntimeError);  // before the beginning
  EXPECT_THROW(set_(x, source.storage(), 0, {-2}), RuntimeError);
  EXPECT_THROW(set_(x, source.storage(), 0, {kHuge}), RuntimeError);
  EXPECT_THROW(set_(x, source.storage(), 0, {2}, {kHuge}), RuntimeError);
  EXPECT_TRUE(message_of<RuntimeError>([&] {
                set_(x, source.storage(), kHuge, {2});
              }).starts_with("Storage size calculation overflowed with sizes=[2]"));
  EXPECT_THROW(set_(x, source.storage(), INT64_MAX, {1}), RuntimeError);
  EXPECT_THROW(set_(x, Storage()), RuntimeError);
  EXPECT_THROW(set_(x, Tensor()), RuntimeError);
  EXPECT_EQ(sizes(x), List{1});
  EXPECT_EQ(source.storage()->nbytes(), 32u);
}

TEST(Set, VersionGoesOn) {
  const Tensor x = zeros({2}), y = zeros({2});
  for (int i = 0; i < 3; ++i) fill_(y, 1);
  const uint32_t before = x.version();
  set_(x, y);
  EXPECT_EQ(x.version(), before + 1);
}

TEST(Set, WithGradients) {
  Tensor leaf = zeros({2});
  leaf.requires_grad_();
  EXPECT_THROW(set_(leaf, zeros({2})), RuntimeError);
  const Tensor result = mul(leaf, 2);
  EXPECT_THROW(set_(result, zeros({2})), RuntimeError);
  const NoGradGuard no_grad;
  const Tensor fresh = ones({3});
  set_(leaf, fresh);  // a parameter that gets new memory
  EXPECT_TRUE(leaf.is_alias_of(fresh));
  EXPECT_TRUE(leaf.requires_grad());
}

TEST(Set, IsNoViewAnyMore) {
  const Tensor base = zeros({4}), part = narrow(base, 0, 0, 2), fresh = zeros({2});
  EXPECT_EQ(part.impl().plain_view_base(), &base.impl());
  set_(part, fresh);
  EXPECT_EQ(part.impl().plain_view_base(), nullptr);
}

// ---- swap_data

TEST(SwapData, ExchangesWhatTensorsLookAt) {
  const Tensor a = arange(3), b = t(arange(0, 4, 1, kFloat32).view({2, 2}));
  const Tensor a_handle = a, a_view = view(a, {3, 1});
  const void* const a_data = a.data_ptr();
  swap_data(a, b);
  EXPECT_EQ(a.dtype(), kFloat32);
  EXPECT_EQ(strides(a), (List{1, 2}));
  EXPECT_TRUE(a_handle.is_same(a));
  EXPECT_EQ(b.data_ptr(), a_data);
  EXPECT_EQ(sizes(b), List{3});
  EXPECT_TRUE(a_view.is_alias_of(b));
  EXPECT_EQ(a.version(), 1u);
  swap_data(a, a);
  EXPECT_EQ(a.dtype(), kFloat32);
}

TEST(SwapData, Refuses) {
  const Tensor a = zeros({2});
  Tensor leaf = zeros({2});
  leaf.requires_grad_();
  EXPECT_THROW(swap_data(a, leaf), RuntimeError);
  EXPECT_THROW(swap_data(a, Tensor()), RuntimeError);
  const NoGradGuard no_grad;
  EXPECT_THROW(swap_data(leaf, arange(2)), RuntimeError);
  swap_data(leaf, a);
}

}  // namespace
}  // namespace tercel
