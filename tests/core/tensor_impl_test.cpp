#include "tercel/core/tensor_impl.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tercel/core/sparse_data.h"
#include "tercel/core/tensor.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/support/failing_allocator.h"

namespace tercel {
namespace {

using test::message_of;
using Impl = intrusive_ptr<TensorImpl>;

Storage storage_of(int64_t count) {
  return make_intrusive<StorageImpl>(static_cast<size_t>(count) * 4, &cpu_allocator(), true);
}
Impl make(IntSpan sizes, IntSpan strides, int64_t offset = 0) {
  return make_intrusive<TensorImpl>(storage_of(100), kFloat32, sizes, strides, offset);
}
Impl make(IntSpan sizes) { return make_intrusive<TensorImpl>(storage_of(100), kFloat32, sizes); }
std::vector<int64_t> sizes(const Impl& t) { return t->sizes().to_vector(); }
std::vector<int64_t> strides(const Impl& t) { return t->strides().to_vector(); }
using V = std::vector<int64_t>;

// ---- making

TEST(TensorImpl, IsSmall) {
  EXPECT_LE(sizeof(TensorImpl), 144u);
  static_assert(!std::is_copy_constructible_v<TensorImpl> && !std::is_move_constructible_v<TensorImpl>);
  static_assert(!std::is_copy_assignable_v<TensorImpl> && !std::is_move_assignable_v<TensorImpl>);
}

TEST(TensorImpl, RowMajor) {
  const Impl t = make({2, 3, 4});
  EXPECT_EQ(t->dim(), 3);
  EXPECT_EQ(sizes(t), (V{2, 3, 4}));
  EXPECT_EQ(strides(t), (V{12, 4, 1}));
  EXPECT_EQ(t->numel(), 24);
  EXPECT_EQ(t->dtype(), kFloat32);
  EXPECT_EQ(t->itemsize(), 4u);
  EXPECT_EQ(t->layout(), Layout::Strided);
  EXPECT_TRUE(t->is_contiguous());
  EXPECT_TRUE(t->is_non_overlapping_and_dense());
  EXPECT_TRUE(t->defined());
  EXPECT_EQ(t->data(), t->storage()->data());
}

TEST(TensorImpl, Scalar) {
  const Impl t = make(IntSpan{});
  EXPECT_EQ(t->dim(), 0);
  EXPECT_EQ(t->numel(), 1);
  EXPECT_TRUE(t->is_contiguous());
}

TEST(TensorImpl, ZeroSizesCountAsOneInStrides) {
  const Impl t = make({3, 0, 5});
  EXPECT_EQ(strides(t), (V{5, 5, 1}));
  EXPECT_EQ(t->numel(), 0);
  EXPECT_EQ(t->data(), nullptr);
  EXPECT_TRUE(t->is_contiguous());
}

TEST(TensorImpl, EveryNumberOfDimensions) {
  for (size_t ndim = 0; ndim <= 64; ++ndim) {
    V want_sizes(ndim, 1), want_strides(ndim, 1);
    if (ndim > 0) want_sizes.back() = 7;
    for (size_t d = 0; d + 1 < ndim; ++d) want_strides[d] = 7;
    const Impl t = make(want_sizes);
    EXPECT_EQ(sizes(t), want_sizes);
    EXPECT_EQ(strides(t), want_strides);
    const Impl same = make(want_sizes, want_strides);
    EXPECT_EQ(strides(same), want_strides);
    EXPECT_TRUE(same->is_contiguous());
  }
  EXPECT_EQ(message_of<RuntimeError>([] { make(V(128, 1)); }), "a tensor has at most 127 dimensions, not 128");
}

TEST(TensorImpl, RefusesSizesBeyond64Bits) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  for (const V& bad : {V{kHuge, kHuge}, V{kHuge, 0, kHuge}, V{2, -1}, V{1, 1, 1, 1, 1, kHuge, kHuge}}) {
    EXPECT_THROW(make(bad), RuntimeError);
    EXPECT_THROW(make(bad, V(bad.size(), 0)), RuntimeError);
  }
}

TEST(TensorImpl, OffsetCountsElements) {
  const Impl t = make({2}, {3}, 5);
  EXPECT_EQ(t->storage_offset(), 5);
  EXPECT_EQ(static_cast<char*>(t->data()) - static_cast<char*>(t->storage()->data()), 20);
}

TEST(TensorImpl, EmptyTensorHasNoAddressButAnOffset) {
  const Impl t = make({0}, {1}, 5);
  EXPECT_EQ(t->data(), nullptr);
  EXPECT_EQ(t->storage_offset(), 5);
}

TEST(TensorImpl, WithoutStorage) {
  const Impl t = make_intrusive<TensorImpl>(kInt64, kCpu, IntSpan{2, 3});
  EXPECT_FALSE(t->has_storage());
  EXPECT_EQ(t->numel(), 6);
  EXPECT_THROW(t->data(), RuntimeError);
  EXPECT_EQ(t->version(), 0u);
  t->bump_version();
  t->set_storage(storage_of(12));
  EXPECT_TRUE(t->has_storage());
  EXPECT_EQ(t->data(), t->storage()->data());
}

TEST(TensorImpl, OfAnotherLayoutHasNoAddress) {
  const Tensor t(make_intrusive<TensorImpl>(kInt64, kCpu, IntSpan{2, 3}, Layout::SparseCoo));
  EXPECT_EQ(t.layout(), Layout::SparseCoo);
  EXPECT_EQ(t.sizes(), (V{2, 3}));
  EXPECT_FALSE(t.has_storage());
  EXPECT_THROW(t.data_ptr(), NotImplementedError);
  EXPECT_THROW(t.data<int64_t>(), NotImplementedError);
  EXPECT_THROW(check_strided("op", t), NotImplementedError);
  EXPECT_EQ(t.impl().shallow_copy(false, true)->layout(), Layout::SparseCoo);
}

TEST(TensorImpl, CopiesShareThePartsOfASparseTensor) {
  const auto t = make_intrusive<TensorImpl>(kInt64, kCpu, IntSpan{2, 3}, Layout::SparseCoo);
  EXPECT_EQ(t->sparse(), nullptr);
  t->set_sparse(std::make_unique<SparseData>(
      SparseData{.indices = empty({2, 4}, kInt64), .values = empty({4}, kInt64), .sparse_dim = 2}));
  const auto copy = t->shallow_copy(true, true);
  ASSERT_NE(copy->sparse(), nullptr);
  EXPECT_NE(copy->sparse(), t->sparse());
  EXPECT_EQ(copy->sparse()->values.data_ptr(), t->sparse()->values.data_ptr());
  t->sparse()->coalesced = true;
  EXPECT_FALSE(copy->sparse()->coalesced);
  const auto other = make_intrusive<TensorImpl>(kFloat32, kCpu, IntSpan{1});
  copy->shallow_copy_from(*other);
  EXPECT_EQ(copy->sparse(), nullptr);
  copy->shallow_copy_from(*t);
  EXPECT_TRUE(copy->sparse()->coalesced);
}

TEST(TensorImpl, WeakHandleKeepsNoStorage) {
  test::FailingAllocator memory;
  auto t = make_intrusive<TensorImpl>(make_intrusive<StorageImpl>(size_t{16}, &memory, true), kFloat32, IntSpan{4});
  const weak_intrusive_ptr<TensorImpl> weak(t);
  t.reset();
  EXPECT_EQ(memory.alive(), 0);
  EXPECT_FALSE(weak.lock().defined());
}

// ---- contiguity (all values from PyTorch)

TEST(TensorImpl, ContiguityFlags) {
  struct Case {
    V sizes, strides;
    bool contiguous, dense;
  };
  const Case cases[] = {
      {{3, 1, 4}, {4, 99, 1}, true, true},   // the stride of a size 1 is free
      {{0, 3}, {1, 3}, true, true},          // transposed empty
      {{1, 4}, {0, 1}, true, true},          // expanded by one
      {{3, 4}, {0, 1}, false, false},        // expanded
      {{3, 4}, {1, 3}, false, true},         // transposed
      {{2, 3, 4}, {1, 8, 2}, false, true},   // permuted
      {{4, 3}, {6, 2}, false, false},        // every second column
      {{5}, {2}, false, false},              //
      {{5}, {-1}, false, false},             // reversed
      {{1}, {-7}, true, true},               //
      {{2, 2}, {1, 1}, false, false},        // overlapping
      {{2, 3, 4}, {4, 8, 1}, false, true},   //
      {{2, 3, 4}, {4, 9, 1}, false, false},  // a gap
  };
  for (const Case& c : cases) {
    const Impl t = make(c.sizes, c.strides, 50);
    EXPECT_EQ(t->is_contiguous(), c.contiguous) << str_cat({IntSpan(c.sizes), IntSpan(c.strides)});
    EXPECT_EQ(t->is_non_overlapping_and_dense(), c.dense) << str_cat({IntSpan(c.sizes), IntSpan(c.strides)});
  }
}

TEST(TensorImpl, MemoryFormats) {
  const Impl nchw = make({2, 3, 4, 5}), nhwc = make({2, 3, 4, 5}, {60, 1, 15, 3});
  EXPECT_TRUE(nchw->is_contiguous(MemoryFormat::Contiguous));
  EXPECT_FALSE(nchw->is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_FALSE(nhwc->is_contiguous());
  EXPECT_TRUE(nhwc->is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_FALSE(nhwc->is_contiguous(MemoryFormat::ChannelsLast3d));
  EXPECT_TRUE(nhwc->is_non_overlapping_and_dense());
  // Both at once: one channel, one pixel.
  for (const V& s : {V{2, 1, 4, 5}, V{2, 3, 1, 1}, V{1, 1, 1, 1}}) {
    EXPECT_TRUE(make(s)->is_contiguous(MemoryFormat::ChannelsLast));
    EXPECT_TRUE(make(s)->is_contiguous());
  }
  EXPECT_TRUE(make({1, 2, 2, 2, 2}, {16, 1, 8, 4, 2})->is_contiguous(MemoryFormat::ChannelsLast3d));
}

// ---- setters

TEST(TensorImpl, SetSizesAndStrides) {
  const Impl t = make({2, 3});
  t->set_sizes_and_strides({3, 2}, {1, 3}, 4);
  EXPECT_EQ(sizes(t), (V{3, 2}));
  EXPECT_EQ(strides(t), (V{1, 3}));
  EXPECT_EQ(t->storage_offset(), 4);
  EXPECT_FALSE(t->is_contiguous());
  t->set_sizes_and_strides({6}, {1});
  EXPECT_EQ(t->storage_offset(), 4);
  EXPECT_TRUE(t->is_contiguous());
  EXPECT_EQ(message_of<RuntimeError>([&] {
              t->set_sizes_and_strides({1, 2}, {1});
            }),
            "dimensionality of sizes (2) must match dimensionality of strides (1)");
}

TEST(TensorImpl, FillStride) {
  const Impl t = make({1});
  t->set_sizes_and_strides({2, 3, 4}, {kFillStride, kFillStride, kFillStride});
  EXPECT_EQ(strides(t), (V{12, 4, 1}));
  t->set_sizes_and_strides({2, 3, 4}, {kFillStride, 7, kFillStride});
  EXPECT_EQ(strides(t), (V{21, 7, 1}));
  t->set_sizes_and_strides({2, 0, 4}, {kFillStride, kFillStride, kFillStride});
  EXPECT_EQ(strides(t), (V{4, 4, 1}));
  t->set_sizes_and_strides({2, 3}, {-1, -2});  // negative strides are strides
  EXPECT_EQ(strides(t), (V{-1, -2}));
  EXPECT_THROW(t->set_sizes_and_strides({1, 5, 1}, {kFillStride, INT64_MAX / 2, 1}), RuntimeError);
  EXPECT_EQ(sizes(t), (V{2, 3}));
}

TEST(TensorImpl, SetSizesFromOwnSpans) {
  const Impl t = make({2, 3, 4, 1, 1});
  t->set_sizes_and_strides(t->sizes().subspan(1, 2), t->strides().subspan(1, 2));
  EXPECT_EQ(sizes(t), (V{3, 4}));
  EXPECT_EQ(strides(t), (V{4, 1}));
}

TEST(TensorImpl, GrowsBeyondInlineDimensionsAndBack) {
  const Impl t = make({2, 3});
  t->set_sizes_contiguous({1, 2, 1, 3, 1, 4, 1});
  EXPECT_EQ(strides(t), (V{24, 12, 12, 4, 4, 1, 1}));
  EXPECT_EQ(t->numel(), 24);
  t->set_sizes_contiguous({1, 2, 1, 3, 1, 4, 1, 1, 1});
  EXPECT_EQ(t->dim(), 9);
  t->set_sizes_contiguous({4, 6});
  EXPECT_EQ(strides(t), (V{6, 1}));
}

TEST(TensorImpl, SetSizeLeavesStrides) {
  const Impl t = make({2, 3});
  t->set_size(-1, 5);
  EXPECT_EQ(sizes(t), (V{2, 5}));
  EXPECT_EQ(strides(t), (V{3, 1}));
  EXPECT_EQ(t->numel(), 10);
  EXPECT_FALSE(t->is_contiguous());
  EXPECT_THROW(t->set_size(0, -1), RuntimeError);
  EXPECT_THROW(t->set_size(0, INT64_MAX), RuntimeError);
  EXPECT_THROW(t->set_size(2, 1), IndexError);
  EXPECT_EQ(sizes(t), (V{2, 5}));
  EXPECT_THROW(make(IntSpan{})->set_size(0, 1), IndexError);
}

TEST(TensorImpl, SetStrideAndOffset) {
  const Impl t = make({2, 3});
  t->set_stride(0, 1);
  t->set_stride(-1, 2);
  EXPECT_EQ(strides(t), (V{1, 2}));
  EXPECT_FALSE(t->is_contiguous());
  EXPECT_TRUE(t->is_non_overlapping_and_dense());
  t->set_storage_offset(9);
  EXPECT_EQ(t->storage_offset(), 9);
  EXPECT_THROW(make(IntSpan{})->set_stride(0, 1), IndexError);
}

TEST(TensorImpl, ResizeDim) {
  const Impl t = make({2, 3});
  t->resize_dim(3);
  EXPECT_EQ(sizes(t), (V{2, 3, 0}));
  EXPECT_EQ(strides(t), (V{3, 1, 0}));
  EXPECT_EQ(t->numel(), 0);
  t->resize_dim(7);
  EXPECT_EQ(sizes(t), (V{2, 3, 0, 0, 0, 0, 0}));
  t->resize_dim(1);
  EXPECT_EQ(sizes(t), (V{2}));
  EXPECT_EQ(t->numel(), 2);
  t->resize_dim(0);
  EXPECT_EQ(t->numel(), 1);
  EXPECT_THROW(t->resize_dim(-1), RuntimeError);
  EXPECT_THROW(t->resize_dim(128), RuntimeError);
}

TEST(TensorImpl, EmptyTensorRestride) {
  const Impl t = make({2, 3, 4, 5});
  t->empty_tensor_restride(MemoryFormat::ChannelsLast);
  EXPECT_EQ(strides(t), (V{60, 1, 15, 3}));
  t->empty_tensor_restride(MemoryFormat::Contiguous);
  EXPECT_EQ(strides(t), (V{60, 20, 5, 1}));
  EXPECT_EQ(message_of<RuntimeError>([&] { t->empty_tensor_restride(MemoryFormat::Preserve); }),
            "unsupported memory format Preserve");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              make({2, 3})->empty_tensor_restride(MemoryFormat::ChannelsLast);
            }),
            "required rank 4 tensor to use channels_last format, got sizes [2, 3]");
}

TEST(TensorImpl, FixedMetadataIsNotChanged) {
  const Impl t = make({2, 3});
  EXPECT_TRUE(t->allow_tensor_metadata_change());
  t->set_allow_tensor_metadata_change(false);
  const auto refused = [](const std::string& message) {
    return message.find(
               " is not allowed on a Tensor created from .data or .detach().\nIf your intent is to change the "
               "metadata of a Tensor") != std::string::npos;
  };
  EXPECT_TRUE(refused(message_of<RuntimeError>([&] { t->set_sizes_and_strides({1}, {1}); })));
  EXPECT_TRUE(refused(message_of<RuntimeError>([&] { t->set_sizes_contiguous({1}); })));
  EXPECT_TRUE(refused(message_of<RuntimeError>([&] { t->set_size(0, 1); })));
  EXPECT_TRUE(refused(message_of<RuntimeError>([&] { t->set_stride(0, 1); })));
  EXPECT_TRUE(refused(message_of<RuntimeError>([&] { t->set_storage_offset(1); })));
  EXPECT_TRUE(refused(message_of<RuntimeError>([&] { t->resize_dim(1); })));
  EXPECT_TRUE(refused(message_of<RuntimeError>([&] { t->set_storage(storage_of(1)); })));
  EXPECT_EQ(sizes(t), (V{2, 3}));
  t->shallow_copy_from(*make({4}));  // the only setter without a check
  EXPECT_EQ(sizes(t), V{4});
  EXPECT_FALSE(t->allow_tensor_metadata_change());
}

// ---- copies and versions

TEST(TensorImpl, ShallowCopySharesStorageAndCounter) {
  const Impl t = make({3, 2}, {1, 3}, 4);
  t->set_wrapped_number(true);
  t->set_requires_grad_flag(true);
  const Impl copy = t->shallow_copy(false, false);
  EXPECT_EQ(copy->storage(), t->storage());
  EXPECT_EQ(sizes(copy), sizes(t));
  EXPECT_EQ(strides(copy), strides(t));
  EXPECT_EQ(copy->storage_offset(), 4);
  EXPECT_EQ(copy->is_contiguous(), t->is_contiguous());
  EXPECT_TRUE(copy->is_wrapped_number());
  EXPECT_FALSE(copy->requires_grad());
  EXPECT_FALSE(copy->allow_tensor_metadata_change());
  copy->bump_version();
  EXPECT_EQ(t->version(), 1u);
  t->bump_version();
  EXPECT_EQ(copy->version(), 2u);
}

// x.add_, detach().add_, data.add_, view.mul_: the sequence of PyTorch's counters.
TEST(TensorImpl, OwnVersionIsNotShared) {
  const Impl x = make({4}), detached = x->shallow_copy(false, false), data = x->shallow_copy(true, false);
  const Impl view = make_intrusive<TensorImpl>(*x, IntSpan{2, 2}, IntSpan{2, 1}, 0);
  x->bump_version();
  EXPECT_EQ(detached->version(), 1u);
  EXPECT_EQ(view->version(), 1u);
  EXPECT_EQ(data->version(), 0u);
  detached->bump_version();
  EXPECT_EQ(x->version(), 2u);
  data->bump_version();
  EXPECT_EQ(x->version(), 2u);
  EXPECT_EQ(data->version(), 1u);
  view->bump_version();
  EXPECT_EQ(x->version(), 3u);
  EXPECT_EQ(data->version(), 1u);
}

TEST(TensorImpl, CopiesAndViewsOfAnOwnVersionShareIt) {
  const Impl x = make({4}), data = x->shallow_copy(true, true);
  data->bump_version();
  const Impl copy = data->shallow_copy(false, true);
  const Impl view = make_intrusive<TensorImpl>(*data, IntSpan{2}, IntSpan{2}, 1);
  const Impl view_of_view = make_intrusive<TensorImpl>(*view, IntSpan{1}, IntSpan{1}, 1);
  for (const Impl& t : {copy, view, view_of_view}) {
    EXPECT_EQ(t->version(), data->version());
    t->bump_version();
    EXPECT_EQ(t->version(), data->version());
  }
  EXPECT_EQ(data->version(), 4u);
  EXPECT_EQ(x->version(), 0u);
  EXPECT_EQ(data->shallow_copy(true, true)->version(), 0u);
}

TEST(TensorImpl, ViewTakesAfterItsBase) {
  const Impl x = make({4, 6});
  const Impl view = make_intrusive<TensorImpl>(*x, IntSpan{6, 4}, IntSpan{1, 6}, 3);
  EXPECT_EQ(view->storage(), x->storage());
  EXPECT_EQ(view->dtype(), x->dtype());
  EXPECT_EQ(view->layout(), x->layout());
  EXPECT_EQ(view->device(), x->device());
  EXPECT_EQ(view->storage_offset(), 3);
  EXPECT_EQ(x->storage().use_count(), 2u);
}

TEST(TensorImpl, ShallowCopyFromKeepsOwnCounterAndPermission) {
  const Impl x = make({4}), y = make({2, 3}, {1, 2}, 7);
  x->bump_version();
  y->set_dtype(kInt32);
  y->bump_version();
  y->bump_version();
  x->set_requires_grad_flag(true);
  x->shallow_copy_from(*y);
  EXPECT_EQ(x->storage(), y->storage());
  EXPECT_EQ(sizes(x), (V{2, 3}));
  EXPECT_EQ(strides(x), (V{1, 2}));
  EXPECT_EQ(x->storage_offset(), 7);
  EXPECT_EQ(x->dtype(), kInt32);
  EXPECT_EQ(x->version(), 1u);
  y->bump_version();
  EXPECT_EQ(x->version(), 1u);
  x->bump_version();
  EXPECT_EQ(x->version(), 2u);
  EXPECT_EQ(y->version(), 3u);
  EXPECT_TRUE(x->requires_grad());
  x->shallow_copy_from(*x);
  EXPECT_EQ(sizes(x), (V{2, 3}));
}

TEST(TensorImpl, SetStorageGoesOnCounting) {
  const Impl x = make({4});
  x->bump_version();
  x->set_storage(storage_of(10));
  EXPECT_EQ(x->version(), 1u);
  x->set_storage(x->storage());
  x->bump_version();
  EXPECT_EQ(x->version(), 2u);
}

// ---- autograd's slot

struct Meta final : AutogradMetaBase {
  explicit Meta(int& counter) : deleted(counter) {}
  ~Meta() override { ++deleted; }
  int& deleted;
};

TEST(TensorImpl, DataOfAStorageThatBecameTooSmall) {
  const Storage storage = storage_of(100);
  const TensorImpl whole(storage, kFloat32, {100}), head(storage, kFloat32, {2, 3}, {3, 1}, 4);
  const TensorImpl backwards(storage, kFloat32, {3}, {-1}, 9), none(storage, kFloat32, {0}, {1}, 99);
  EXPECT_EQ(whole.data(), storage->data());
  storage->resize_bytes(40);
  EXPECT_EQ(message_of<RuntimeError>([&] { whole.data(); }),
            "the storage of a tensor was made too small for it: sizes [100], strides [1] and storage offset 0 need "
            "elements of 4 bytes up to number 100, but the storage has 40 bytes");
  EXPECT_EQ(head.data(), storage->unsafe_data<float>() + 4);  // up to element 9, the last one
  EXPECT_EQ(backwards.data(), storage->unsafe_data<float>() + 9);
  EXPECT_EQ(none.data(), nullptr);
  storage->resize_bytes(39);  // not all of the tenth
  EXPECT_THROW(head.data(), RuntimeError);
  EXPECT_THROW(backwards.data(), RuntimeError);
  storage->resize_bytes(400);
  EXPECT_EQ(whole.data(), storage->data());
}

TEST(TensorImpl, EveryWayToShrinkAStorageIsSeen) {
  const auto refused = [](auto shrink) {
    const Storage storage = storage_of(100);
    const TensorImpl t(storage, kFloat32, {100});
    shrink(storage);
    return message_of<RuntimeError>([&] { t.data(); }).starts_with("the storage of a tensor was made too small");
  };
  EXPECT_TRUE(refused([](const Storage& s) { s->resize_bytes(0); }));
  EXPECT_TRUE(refused([](const Storage& s) { s->reset(); }));
  EXPECT_TRUE(refused([](const Storage& s) { s->set_nbytes(396); }));
  EXPECT_TRUE(refused([](const Storage& s) { s->swap(*storage_of(99)); }));
  EXPECT_TRUE(refused([](const Storage& s) { storage_of(99)->swap(*s); }));
  EXPECT_FALSE(refused([](const Storage& s) { s->swap(*storage_of(100)); }));
}

TEST(TensorImpl, AutogradMetaIsOwned) {
  int deleted = 0;
  {
    const Impl t = make({2});
    EXPECT_EQ(t->autograd_meta(), nullptr);
    t->set_autograd_meta(std::make_unique<Meta>(deleted));
    EXPECT_NE(t->autograd_meta(), nullptr);
    EXPECT_EQ(t->plain_view_base(), nullptr);
    t->set_autograd_meta(std::make_unique<Meta>(deleted));
    EXPECT_EQ(deleted, 1);
    t->set_autograd_meta(nullptr);
    EXPECT_EQ(deleted, 2);
    t->set_autograd_meta(std::make_unique<Meta>(deleted));
  }
  EXPECT_EQ(deleted, 3);
}

TEST(TensorImpl, PlainViewHoldsItsBase) {
  const Impl base = make({2});
  int deleted = 0;
  {
    const Impl view = make({1});
    view->set_plain_view_base(base, ViewOrigin::MultiOutput);
    EXPECT_EQ(view->plain_view_base(), base.get());
    EXPECT_EQ(view->autograd_meta(), nullptr);
    EXPECT_EQ(view->view_origin(), ViewOrigin::MultiOutput);
    EXPECT_EQ(base.use_count(), 2u);
    view->set_plain_view_base(base, ViewOrigin::NoGrad);
    EXPECT_EQ(base.use_count(), 2u);
    EXPECT_FALSE(view->requires_grad());
    base->set_history_flags();
    EXPECT_TRUE(view->requires_grad());
    view->set_autograd_meta(std::make_unique<Meta>(deleted));
    EXPECT_EQ(base.use_count(), 1u);
    EXPECT_EQ(view->plain_view_base(), nullptr);
    view->set_plain_view_base(base, ViewOrigin::Ordinary);
    EXPECT_EQ(deleted, 1);
  }
  EXPECT_EQ(base.use_count(), 1u);
}

TEST(TensorImpl, WeakHandleKeepsNoAutogradMeta) {
  int deleted = 0;
  Impl t = make({2});
  t->set_autograd_meta(std::make_unique<Meta>(deleted));
  const weak_intrusive_ptr<TensorImpl> weak(t);
  t.reset();
  EXPECT_EQ(deleted, 1);
}

// ---- the undefined tensor

TEST(TensorImpl, UndefinedIsThereFromTheStart) {
  EXPECT_FALSE(undefined_tensor_impl.defined());
  EXPECT_EQ(undefined_tensor_impl.dim(), 1);
  EXPECT_EQ(undefined_tensor_impl.numel(), 0);
  EXPECT_EQ(undefined_tensor_impl.sizes(), IntSpan{0});
  EXPECT_EQ(undefined_tensor_impl.strides(), IntSpan{1});
  EXPECT_EQ(undefined_tensor_impl.itemsize(), 0u);
  EXPECT_EQ(undefined_tensor_impl.data(), nullptr);
  EXPECT_FALSE(undefined_tensor_impl.has_storage());
  EXPECT_EQ(undefined_tensor_impl.version(), 0u);
}

}  // namespace
}  // namespace tercel
