// Caffe2's uninitialised states: see Note [Uninitialised tensors].
#include "tercel/core/deferred_tensor.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tercel/core/context.h"
#include "tests/support/errors.h"
#include "tests/support/failing_allocator.h"

namespace tercel {
namespace {

using test::FailingAllocator;
using test::message_of;
using V = std::vector<int64_t>;

V sizes(const DeferredTensor& x) { return x.sizes().to_vector(); }
constexpr int64_t kHuge = int64_t{1} << 62;

/** Sets the process's settings for a test. */
class DeferredTensorTest : public ::testing::Test {
 protected:
  void TearDown() override {
    set_keep_on_shrink(true);
    set_max_keep_on_shrink_memory(INT64_MAX);
  }
};
using DeferredTensorSettings = DeferredTensorTest;

/** Counts its objects; one construction can be made to fail. */
struct Object {
  static inline int alive = 0, fail_at = -1;
  int value = 7;
  Object() {
    if (alive == fail_at) throw 1;
    ++alive;
  }
  Object(const Object& other) : value(other.value) { ++alive; }
  Object& operator=(const Object&) = default;
  ~Object() { --alive; }
};

// ---- the states, as in Caffe2's documentation

TEST(DeferredTensor, TranscriptOfTheStates) {
  DeferredTensor x(kCpu);
  EXPECT_EQ(x.dim(), 1);
  EXPECT_EQ(sizes(x), V{0});
  EXPECT_EQ(x.numel(), 0);
  EXPECT_FALSE(x.dtype_initialized());
  EXPECT_TRUE(x.storage_initialized());  // no elements: nothing is missing

  EXPECT_TRUE(x.resize(4));
  EXPECT_FALSE(x.storage_initialized());
  EXPECT_FALSE(x.dtype_initialized());

  EXPECT_NE(x.mutable_data<float>(), nullptr);
  EXPECT_TRUE(x.storage_initialized());
  EXPECT_TRUE(x.dtype_initialized());
  EXPECT_EQ(x.storage()->nbytes(), 16u);

  x.free_memory();
  EXPECT_FALSE(x.storage_initialized());
  EXPECT_TRUE(x.dtype_initialized());
  EXPECT_EQ(x.numel(), 4);
}

TEST(DeferredTensor, ReadingWhatIsNotThere) {
  DeferredTensor x;
  const std::string no_dtype = "Cannot access data pointer of Tensor that doesn't have initialized dtype";
  EXPECT_TRUE(message_of<RuntimeError>([&] { x.raw_data(); }).starts_with(no_dtype));
  EXPECT_TRUE(message_of<RuntimeError>([&] { x.data<float>(); }).starts_with(no_dtype));
  EXPECT_TRUE(message_of<RuntimeError>([&] { x.itemsize(); }).starts_with("Cannot report itemsize of Tensor"));
  EXPECT_THROW(x.raw_mutable_data(), RuntimeError);
  EXPECT_THROW(x.tensor(), RuntimeError);
  x.resize(4);
  EXPECT_THROW(x.tensor(), RuntimeError);
  x.mutable_data<float>();
  EXPECT_EQ(message_of<RuntimeError>([&] { x.data<double>(); }),
            "Tensor type mismatch, caller expects elements to be double, while tensor contains float. ");
  x.free_memory();
  const std::string lazy = "The tensor has a non-zero number of elements, but its data is not allocated yet.";
  EXPECT_TRUE(message_of<RuntimeError>([&] { x.data<float>(); }).starts_with(lazy));
  EXPECT_TRUE(message_of<RuntimeError>([&] { x.tensor(); }).starts_with(lazy));
}

TEST(DeferredTensor, GivesAnOrdinaryTensorOnceBothAreThere) {
  DeferredTensor x;
  x.resize(2, 3);
  float* const data = x.mutable_data<float>();
  std::iota(data, data + 6, 0.0f);
  const Tensor t = x.tensor();
  EXPECT_EQ(t.sizes(), (IntSpan{2, 3}));
  EXPECT_EQ(t.dtype(), kFloat32);
  EXPECT_EQ(t.data<float>(), data);
  EXPECT_EQ(t.data<float>()[5], 5.0f);
  // Later changes of this one's memory do not affect the tensor.
  x.free_memory();
  EXPECT_EQ(t.data<float>()[5], 5.0f);
  const DeferredTensor back(t);
  EXPECT_EQ(back.data<float>(), data);
  EXPECT_EQ(back.element_type().name, "float");
}

TEST(DeferredTensor, FromATensorThatHasGaps) {
  const Tensor x = empty_strided({2, 2}, {3, 1});
  EXPECT_THROW(DeferredTensor{x}, RuntimeError);
  EXPECT_THROW(DeferredTensor{Tensor()}, RuntimeError);
}

// ---- resize

TEST(DeferredTensor, ResizeTakesIntegersOfEveryKind) {
  DeferredTensor x;
  EXPECT_TRUE(x.resize(2, 2));
  EXPECT_FALSE(x.resize({2, 2}));
  EXPECT_EQ(sizes(x), (V{2, 2}));
  EXPECT_FALSE(x.resize(std::vector<int>{4, 1}));
  EXPECT_TRUE(x.resize(std::vector<size_t>{2, 4}));
  EXPECT_FALSE(x.resize(std::vector<int64_t>{8}));
  const int32_t narrow[] = {2, 2, 2};
  EXPECT_FALSE(x.resize(Span<int32_t>(narrow)));
  EXPECT_EQ(sizes(x), (V{2, 2, 2}));
  EXPECT_TRUE(x.resize());
  EXPECT_EQ(x.numel(), 1);
  DeferredTensor y;
  y.resize(3, int64_t{0}, 2u);
  x.resize_like(y);
  EXPECT_EQ(sizes(x), (V{3, 0, 2}));
}

TEST(DeferredTensor, ResizeRefusesWhatDoesNotFit) {
  DeferredTensor x;
  x.resize(2);
  x.mutable_data<double>();
  EXPECT_THROW(x.resize(-1), RuntimeError);
  EXPECT_THROW(x.resize(UINT64_MAX), RuntimeError);
  EXPECT_THROW(x.resize(kHuge, 4), RuntimeError);
  EXPECT_THROW(x.resize(kHuge), RuntimeError);  // elements fit, bytes do not
  EXPECT_EQ(sizes(x), V{2});
  EXPECT_TRUE(x.storage_initialized());
  DeferredTensor untyped;
  untyped.resize(kHuge);
  EXPECT_THROW(untyped.mutable_data<double>(), RuntimeError);
  EXPECT_FALSE(untyped.dtype_initialized());
}

TEST(DeferredTensor, SameNumberOfElementsKeepsTheMemory) {
  DeferredTensor x;
  x.resize(2, 3);
  const float* const data = x.mutable_data<float>();
  EXPECT_FALSE(x.resize(6));
  EXPECT_EQ(x.data<float>(), data);
}

TEST(DeferredTensor, GrowingFreesAndMutableDataAllocates) {
  DeferredTensor x;
  x.resize(2);
  x.mutable_data<float>();
  x.resize(3);
  EXPECT_FALSE(x.storage_initialized());
  EXPECT_EQ(x.storage()->nbytes(), 0u);
  x.mutable_data<float>();
  EXPECT_EQ(x.storage()->nbytes(), 12u);
}

TEST_F(DeferredTensorSettings, ShrinkingKeepsByDefault) {
  EXPECT_TRUE(keep_on_shrink());
  EXPECT_EQ(max_keep_on_shrink_memory(), INT64_MAX);
  DeferredTensor x;
  x.resize(100);
  const float* const data = x.mutable_data<float>();
  x.resize(0);
  EXPECT_EQ(x.storage()->nbytes(), 400u);
  x.resize(100);
  EXPECT_EQ(x.mutable_data<float>(), data);
}

TEST_F(DeferredTensorSettings, KeepOnShrinkOff) {
  DeferredTensor x;
  x.resize(100);
  x.mutable_data<float>();
  set_keep_on_shrink(false);
  x.resize(100, 1);  // as many: nothing happens
  EXPECT_TRUE(x.storage_initialized());
  x.resize(99);
  EXPECT_FALSE(x.storage_initialized());
}

TEST_F(DeferredTensorSettings, MostThatIsKept) {
  DeferredTensor x;
  x.resize(100);
  x.mutable_data<float>();
  set_max_keep_on_shrink_memory(40);
  x.resize(90);
  EXPECT_TRUE(x.storage_initialized());
  x.resize(89);
  EXPECT_FALSE(x.storage_initialized());
  EXPECT_THROW(set_max_keep_on_shrink_memory(-1), RuntimeError);
  EXPECT_EQ(max_keep_on_shrink_memory(), 40);
}

TEST_F(DeferredTensorSettings, WithoutDtypeNothingIsFreed) {
  set_keep_on_shrink(false);
  DeferredTensor x;
  EXPECT_TRUE(x.resize(5));
  EXPECT_TRUE(x.resize(3));
  EXPECT_FALSE(x.storage_initialized());
}

// ---- dtypes

TEST(DeferredTensor, AnotherDtypeReusesMemoryThatIsLargeEnough) {
  DeferredTensor x;
  x.resize(4);
  void* const data = x.mutable_data<int>();
  EXPECT_EQ(x.mutable_data<float>(), data);
  EXPECT_EQ(x.storage()->nbytes(), 16u);
  EXPECT_NE(static_cast<void*>(x.mutable_data<double>()), nullptr);
  EXPECT_EQ(x.storage()->nbytes(), 32u);
  void* const large = x.mutable_data<double>();
  EXPECT_EQ(x.mutable_data<int8_t>(), large);
  EXPECT_EQ(x.element_type().dtype, kInt8);
  EXPECT_EQ(x.raw_mutable_data(), large);
}

TEST(DeferredTensor, NoElementsStillGetADtype) {
  DeferredTensor x;
  x.mutable_data<int64_t>();
  EXPECT_TRUE(x.dtype_initialized());
  EXPECT_EQ(x.itemsize(), 8u);
  EXPECT_EQ(x.raw_data(), nullptr);
  EXPECT_EQ(x.tensor().sizes(), IntSpan{0});
}

TEST(DeferredTensor, ObjectsAreConstructedAndDestroyed) {
  {
    DeferredTensor x;
    x.resize(5);
    const Object* const objects = x.mutable_data<Object>();
    EXPECT_EQ(Object::alive, 5);
    EXPECT_EQ(objects[4].value, 7);
    EXPECT_THROW(x.tensor(), RuntimeError);  // not supported by ops
    x.resize(2);                             // kept whole
    EXPECT_EQ(Object::alive, 5);
    x.mutable_data<int>();  // never the same memory, since it contains objects
    EXPECT_EQ(Object::alive, 0);
    x.mutable_data<Object>();
    EXPECT_EQ(Object::alive, 2);
    x.free_memory();
    EXPECT_EQ(Object::alive, 0);
    x.mutable_data<Object>();
  }
  EXPECT_EQ(Object::alive, 0);
}

TEST(DeferredTensor, StringsLiveInIt) {
  DeferredTensor x;
  x.resize(2, 2);
  x.mutable_data<std::string>()[3] = "longer than any string that is kept inside";
  EXPECT_EQ(x.data<std::string>()[3].size(), 42u);
  x.extend(3, 0);
  EXPECT_EQ(sizes(x), (V{5, 2}));
  EXPECT_EQ(x.data<std::string>()[3].size(), 42u);
  EXPECT_EQ(x.data<std::string>()[9], "");
}

TEST(DeferredTensor, ConstructorThatThrowsLeavesNothing) {
  DeferredTensor x;
  x.resize(5);
  x.mutable_data<int>();
  Object::fail_at = 3;
  EXPECT_THROW(x.mutable_data<Object>(), int);
  Object::fail_at = -1;
  EXPECT_EQ(Object::alive, 0);
  EXPECT_EQ(x.element_type().name, "int");
  EXPECT_TRUE(x.storage_initialized());
}

TEST(ElementType, KnowsScalarsAndObjects) {
  EXPECT_EQ(element_type_of<float>().dtype, kFloat32);
  EXPECT_EQ(element_type_of<float>().construct, nullptr);
  EXPECT_EQ(element_type_of<Half>().construct, nullptr);
  EXPECT_EQ(element_type_of<std::string>().dtype, ScalarType::Undefined);
  EXPECT_NE(element_type_of<std::string>().destroy, nullptr);
  EXPECT_TRUE(element_type_of(kInt16) == element_type_of<int16_t>());
  EXPECT_EQ(element_type_of(ScalarType::Undefined).itemsize, 0u);
  EXPECT_FALSE(element_type_of<int>() == element_type_of<float>());
}

// ---- reserve_space, extend, reshape

TEST(DeferredTensor, ReserveSpaceThenGrowInPlace) {
  DeferredTensor x;
  x.resize(30, 1);
  x.mutable_data<float>();
  x.reserve_space(100);
  EXPECT_EQ(x.storage()->nbytes(), 400u);
  EXPECT_EQ(sizes(x), (V{30, 1}));
  EXPECT_TRUE(x.reserved());
  const float* const data = x.data<float>();
  x.resize(100, 1);
  EXPECT_EQ(x.mutable_data<float>(), data);
  x.reserve_space(10);  // there is enough
  EXPECT_EQ(x.data<float>(), data);
}

TEST_F(DeferredTensorSettings, ReservedMemoryStaysWhateverTheSettings) {
  DeferredTensor x;
  x.resize(30);
  x.mutable_data<float>();
  x.reserve_space(100);
  set_keep_on_shrink(false);
  const float* const data = x.data<float>();
  x.resize(1);
  EXPECT_EQ(x.mutable_data<float>(), data);
  x.resize(101);
  EXPECT_FALSE(x.storage_initialized());
}

TEST(DeferredTensor, ReserveSpaceRefuses) {
  DeferredTensor x;
  x.resize(3);
  EXPECT_THROW(x.reserve_space(5), RuntimeError);  // no dtype
  x.mutable_data<float>();
  EXPECT_THROW(x.reserve_space(-5), RuntimeError);
  EXPECT_THROW(x.reserve_space(kHuge), RuntimeError);
  const DeferredTensor other = x;
  EXPECT_EQ(message_of<RuntimeError>([&] { x.reserve_space(5); }), "Can't call ReserveSpace on shared storage.");
  DeferredTensor scalar;
  scalar.resize();
  scalar.mutable_data<float>();
  EXPECT_THROW(scalar.reserve_space(5), RuntimeError);
}

TEST(DeferredTensor, ExtendKeepsTheElements) {
  DeferredTensor x;
  x.resize(4, 2);
  float* data = x.mutable_data<float>();
  std::iota(data, data + 8, 0.0f);
  x.extend(1, 50);
  EXPECT_EQ(sizes(x), (V{5, 2}));
  EXPECT_EQ(x.storage()->nbytes(), 6 * 2 * 4u);  // 4 rows and half as many again
  EXPECT_EQ(x.data<float>()[7], 7.0f);
  EXPECT_TRUE(x.reserved());
  const float* const there = x.data<float>();
  x.extend(1, 50);
  EXPECT_EQ(x.data<float>(), there);
  x.extend(10, 50);  // more than the percentage
  EXPECT_EQ(x.storage()->nbytes(), 16 * 2 * 4u);
  EXPECT_EQ(x.data<float>()[7], 7.0f);
}

TEST(DeferredTensor, ExtendOfNothingIsAResize) {
  DeferredTensor x;
  x.extend(3, 10);
  EXPECT_EQ(sizes(x), V{3});
  EXPECT_FALSE(x.storage_initialized());
  EXPECT_FALSE(x.reserved());
}

TEST(DeferredTensor, ExtendRefuses) {
  DeferredTensor x;
  x.resize(4);
  x.mutable_data<float>();
  EXPECT_EQ(message_of<RuntimeError>([&] { x.extend(-1, 0); }), "`num` must be non-negative for Extend");
  EXPECT_THROW(x.extend(1, -5), RuntimeError);
  EXPECT_THROW(x.extend(INT64_MAX, 0), RuntimeError);
  EXPECT_THROW(x.extend(kHuge, 0), RuntimeError);
  EXPECT_THROW(x.extend(1, 1e30), RuntimeError);
  EXPECT_EQ(sizes(x), V{4});
  DeferredTensor scalar;
  scalar.resize();
  EXPECT_THROW(scalar.extend(1, 0), RuntimeError);
}

TEST(DeferredTensor, ReshapeChangesSizesAlone) {
  DeferredTensor x;
  x.resize(2, 6);
  const float* const data = x.mutable_data<float>();
  x.reshape({3, 4});
  EXPECT_EQ(sizes(x), (V{3, 4}));
  EXPECT_EQ(x.data<float>(), data);
  EXPECT_TRUE(message_of<RuntimeError>([&] {
                x.reshape({5, 2});
              }).starts_with("New size and old size are not equal. You cannot use Reshape, but should use Resize."));
}

// ---- shared memory

TEST(DeferredTensor, ShareData) {
  DeferredTensor source, x;
  source.resize(6);
  x.resize(2, 3);
  EXPECT_THROW(x.share_data(source), RuntimeError);  // nothing there yet
  source.mutable_data<float>()[5] = 5;
  x.share_data(source);
  EXPECT_EQ(x.data<float>(), source.data<float>());
  EXPECT_EQ(sizes(x), (V{2, 3}));
  x.resize(7);
  EXPECT_THROW(x.share_data(source), RuntimeError);
}

TEST(DeferredTensor, NoAliasAfterTheNumberOfElementsChanges) {
  DeferredTensor source, x;
  source.resize(6);
  source.mutable_data<float>()[5] = 5;
  x.resize(6);
  x.share_data(source);
  x.resize(7);
  x.mutable_data<float>();
  EXPECT_NE(x.data<float>(), source.data<float>());
  EXPECT_EQ(source.data<float>()[5], 5);
}

TEST(DeferredTensor, FreeMemoryOfSharedStorageDetaches) {
  DeferredTensor source, x;
  source.resize(6);
  source.mutable_data<float>()[5] = 5;
  x.resize(6);
  x.share_data(source);
  x.free_memory();
  EXPECT_FALSE(x.storage_initialized());
  EXPECT_EQ(source.data<float>()[5], 5);
  EXPECT_FALSE(x.storage() == source.storage());
}

TEST(DeferredTensor, AnotherDtypeOfSharedStorageDetaches) {
  DeferredTensor source, x;
  source.resize(6);
  source.mutable_data<float>()[5] = 5;
  x.resize(6);
  x.share_data(source);
  x.mutable_data<int>()[5] = 77;
  EXPECT_EQ(source.data<float>()[5], 5);
}

TEST(DeferredTensor, OffsetGoesWhenTheMemoryDoes) {
  const Tensor whole = empty({10});
  const Tensor part(make_intrusive<TensorImpl>(whole.impl(), IntSpan{4}, IntSpan{1}, 3));
  DeferredTensor x(part);
  EXPECT_EQ(x.storage_offset(), 3);
  EXPECT_EQ(x.data<float>(), whole.data<float>() + 3);
  x.resize(7);  // still inside
  EXPECT_EQ(x.data<float>(), whole.data<float>() + 3);
  x.resize(8);
  EXPECT_EQ(x.storage_offset(), 0);
  EXPECT_FALSE(x.storage_initialized());
}

int g_freed = 0;

TEST(DeferredTensor, ShareExternalPointer) {
  g_freed = 0;
  float memory[6] = {0, 1, 2, 3, 4, 5};
  {
    DeferredTensor x;
    x.resize(6);
    x.share_external_pointer(memory, 0, memory, [](void*) { ++g_freed; });
    EXPECT_EQ(x.data<float>(), memory);
    EXPECT_EQ(x.storage()->nbytes(), 24u);
    EXPECT_FALSE(x.storage()->resizable());
    EXPECT_EQ(x.storage()->allocator(), nullptr);
    EXPECT_EQ(static_cast<void*>(x.mutable_data<int>()), memory);  // large enough, and not shared
    x.resize(7);                                                   // fixed memory is left, not resized
    EXPECT_EQ(g_freed, 1);
    x.mutable_data<int>();
    EXPECT_TRUE(x.storage()->resizable());
  }
  EXPECT_EQ(g_freed, 1);
}

TEST(DeferredTensor, ShareExternalPointerOnSharedStorage) {
  float memory[6] = {};
  DeferredTensor x;
  x.resize(6);
  x.mutable_data<float>();
  const DeferredTensor copy = x;
  x.share_external_pointer(memory);
  EXPECT_EQ(x.data<float>(), memory);
  EXPECT_NE(copy.data<float>(), memory);
  EXPECT_THROW(x.share_external_pointer(memory, 20), RuntimeError);
  EXPECT_THROW(x.share_external_pointer(DataPtr(memory, kCpu), kNoElementType), RuntimeError);
}

TEST(DeferredTensor, AllocationThatFailsChangesNothing) {
  FailingAllocator memory;
  {
    const test::ScopedAllocator scope(memory);
    DeferredTensor x;
    x.resize(4);
    x.mutable_data<float>()[3] = 3;
    memory.fail_call(1);
    EXPECT_THROW(x.extend(4, 0), OutOfMemoryError);
    EXPECT_EQ(sizes(x), V{4});
    EXPECT_EQ(x.data<float>()[3], 3);
    memory.fail_call(1);
    EXPECT_THROW(x.mutable_data<double>(), OutOfMemoryError);
    EXPECT_EQ(x.data<float>()[3], 3);
  }
  EXPECT_EQ(memory.alive(), 0);
}

}  // namespace
}  // namespace tercel
