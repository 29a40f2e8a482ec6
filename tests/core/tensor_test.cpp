#include "tercel/core/tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/counting_new.h"
#include "tests/support/errors.h"
#include "tests/support/failing_allocator.h"

namespace tercel {
namespace {

using test::FailingAllocator;
using test::message_of;
using test::new_counts;
using test::ScopedAllocator;
using V = std::vector<int64_t>;

// ---- handles

// Defined before main(), and, as other constant initialisation, before any other file's constructors.
constinit Tensor g_undefined_tensor;
const bool kWasUndefinedEarly = !g_undefined_tensor.defined();

TEST(Tensor, UndefinedIsAConstant) {
  EXPECT_TRUE(kWasUndefinedEarly);
  const Tensor t;
  EXPECT_FALSE(t.defined());
  EXPECT_EQ(t.use_count(), 0u);
  EXPECT_EQ(t.numel(), 0);
  EXPECT_EQ(t.dtype(), ScalarType::Undefined);
  EXPECT_FALSE(t.has_storage());
  EXPECT_TRUE(t.is_same(g_undefined_tensor));
  EXPECT_FALSE(t.is_alias_of(g_undefined_tensor));
  EXPECT_EQ(t.data_ptr(), nullptr);
}

TEST(Tensor, UndefinedHasNoDevice) {
  EXPECT_EQ(message_of<RuntimeError>([] { static_cast<void>(Tensor().device()); }), "tensor does not have a device");
  EXPECT_EQ(empty({1}).device(), kCpu);
}

TEST(Tensor, UndefinedCostsNothing) {
  EXPECT_EQ(sizeof(Tensor), sizeof(void*));
  const int64_t allocations = cpu_allocator_stats().allocations, news = new_counts.news;
  for (int i = 0; i < 100; ++i) {
    Tensor a;
    Tensor b = a;
    a = std::move(b);
  }
  EXPECT_EQ(cpu_allocator_stats().allocations, allocations);
  EXPECT_EQ(new_counts.news, news);
}

TEST(Tensor, CheckDefinedNamesOpAndArgument) {
  EXPECT_EQ(message_of<RuntimeError>([] { check_defined("add", Tensor(), "other"); }),
            "add: expected a tensor for argument 'other' but got an undefined one");
  check_defined("add", empty({1}), "other");
}

TEST(Tensor, HandlesShareOneTensor) {
  Tensor a = empty({2});
  EXPECT_EQ(a.use_count(), 1u);
  Tensor b = a;
  EXPECT_TRUE(a.is_same(b));
  EXPECT_TRUE(a.impl_ptr() == b.impl_ptr());
  EXPECT_EQ(a.use_count(), 2u);
  const Tensor c = std::move(b);
  EXPECT_FALSE(b.defined());  // NOLINT(bugprone-use-after-move): the state is documented
  a.reset();
  EXPECT_FALSE(a.defined());
  EXPECT_EQ(c.use_count(), 1u);
  EXPECT_FALSE(c.is_same(empty({2})));
}

TEST(Tensor, FromImpl) {
  const Tensor t = empty({2, 3});
  EXPECT_EQ(t.impl().dim(), 2);
  const Tensor same(t.impl_ptr());
  EXPECT_TRUE(same.is_same(t));
  EXPECT_FALSE(Tensor(intrusive_ptr<TensorImpl>()).defined());
}

TEST(Tensor, SizesByIndex) {
  const Tensor t = empty({2, 3, 4});
  EXPECT_EQ(t.size(0), 2);
  EXPECT_EQ(t.size(-1), 4);
  EXPECT_EQ(t.stride(-2), 4);
  EXPECT_EQ(message_of<IndexError>([&] { t.size(3); }),
            "Dimension out of range (expected to be in range of [-3, 2], but got 3)");
  EXPECT_THROW(t.stride(-4), IndexError);
  EXPECT_EQ(message_of<IndexError>([] { empty({}).size(0); }), "Dimension specified as 0 but tensor has no dimensions");
  EXPECT_THROW(empty({}).stride(-1), IndexError);
}

TEST(Tensor, Options) {
  const Tensor t = empty({2}, kInt16);
  EXPECT_EQ(t.options().dtype, kInt16);
  EXPECT_EQ(t.options().device, kCpu);
  EXPECT_EQ(t.options().layout, Layout::Strided);
  EXPECT_EQ(t.nbytes(), 4u);
  EXPECT_EQ(describe(t), "[2] int16 on cpu");
  EXPECT_EQ(describe(Tensor()), "an undefined tensor");
}

TEST(Tensor, TypedDataChecksTheDtype) {
  const Tensor t = empty({2}, kFloat32);
  EXPECT_EQ(t.data<float>(), t.data_ptr());
  EXPECT_EQ(message_of<RuntimeError>([&] { t.data<double>(); }),
            "Tensor type mismatch, caller expects elements to be float64, while tensor contains float32. ");
  const Tensor bare(make_intrusive<TensorImpl>(kFloat32, kCpu, IntSpan{2}));
  EXPECT_EQ(message_of<RuntimeError>([&] { bare.data<float>(); }),
            "Cannot access data pointer of Tensor that doesn't have storage");
  EXPECT_THROW(Tensor().data<float>(), RuntimeError);
  EXPECT_EQ(empty({0, 3}).data<float>(), nullptr);
}

TEST(Tensor, AliasAndSet) {
  const Tensor a = empty({2, 3}), b(a.impl().shallow_copy(false, true)), c = empty({2, 3});
  EXPECT_TRUE(a.is_alias_of(b));
  EXPECT_TRUE(a.is_set_to(b));
  EXPECT_FALSE(a.is_alias_of(c));
  b.impl().set_sizes_contiguous({6});
  EXPECT_TRUE(a.is_alias_of(b));
  EXPECT_FALSE(a.is_set_to(b));
  EXPECT_FALSE(empty({0}).is_set_to(empty({0})));
}

// ---- empty

TEST(Empty, EveryDtype) {
  for (const ScalarType dtype :
       {kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kFloat32, kFloat64, kBool, kBFloat16}) {
    const Tensor t = empty({3, 5}, dtype);
    EXPECT_EQ(t.dtype(), dtype);
    EXPECT_EQ(t.storage()->nbytes(), 15 * item_size(dtype));
    EXPECT_TRUE(t.storage()->resizable());
    EXPECT_TRUE(t.is_contiguous());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data_ptr()) % 64, 0u);
    std::memset(t.data_ptr(), 1, t.nbytes());
  }
}

TEST(Empty, Shapes) {
  EXPECT_EQ(empty({}).numel(), 1);
  EXPECT_EQ(empty({0}).numel(), 0);
  EXPECT_EQ(empty({0}).storage()->nbytes(), 0u);
  EXPECT_EQ(empty({5, 0, 3}).strides(), (IntSpan{3, 3, 1}));
  EXPECT_EQ(empty({2, 3}).strides(), (IntSpan{3, 1}));
}

TEST(Empty, ManyDimensions) {
  for (const size_t ndim : {5u, 6u, 7u, 16u, 64u, 127u}) {
    V sizes(ndim, 1);
    sizes.front() = 2;
    sizes.back() = 3;
    const Tensor t = empty(IntSpan(sizes));
    EXPECT_EQ(t.sizes(), IntSpan(sizes));
    EXPECT_EQ(t.numel(), 6);
    const Tensor copy(t.impl().shallow_copy(false, true));
    EXPECT_EQ(copy.sizes(), IntSpan(sizes));
  }
  EXPECT_THROW(empty(IntSpan(V(128, 1))), RuntimeError);
}

TEST(Empty, RefusesSizes) {
  EXPECT_EQ(message_of<RuntimeError>([] {
              empty({2, -1});
            }),
            "Trying to create tensor with negative dimension -1: [2, -1]");
  EXPECT_EQ(message_of<RuntimeError>([] {
              empty({int64_t{1} << 32, int64_t{1} << 32});
            }),
            "Storage size calculation overflowed with sizes=[4294967296, 4294967296]");
  EXPECT_EQ(
      message_of<RuntimeError>([] { empty({int64_t{1} << 60}, kFloat64); }),
      "empty: Storage size calculation overflowed with sizes=[1152921504606846976] of float64 does not fit 64 bits");
  EXPECT_THROW(empty({INT64_MAX, 0, INT64_MAX}), RuntimeError);
  EXPECT_THROW(empty({INT64_MIN}), RuntimeError);
}

TEST(Empty, OutOfMemorySaysWhatFor) {
  const std::string message = message_of<OutOfMemoryError>([] { empty({1 << 20, 1 << 22}, kFloat64); });
  EXPECT_EQ(message.find("empty: [1048576, 4194304] float64: out of memory: cannot allocate 32.0 TiB"), 0u) << message;
  EXPECT_EQ(message_of<OutOfMemoryError>([] {
              empty_strided({2, 2}, {int64_t{1} << 45, 1});
            }).find("empty_strided: [2, 2] float32: out of memory"),
            0u);
}

TEST(Empty, RefusesOptions) {
  TensorOptions options;
  options.layout = Layout::SparseCoo;
  EXPECT_EQ(message_of<NotImplementedError>([&] { empty({1}, options); }),
            "empty: a tensor of layout sparse_coo cannot be created this way");
  EXPECT_EQ(message_of<RuntimeError>([] { empty({1}, ScalarType::Undefined); }), "empty: dtype is undefined");
  options = TensorOptions(kInt64);
  options.requires_grad = true;
  EXPECT_EQ(message_of<RuntimeError>([&] { empty({1}, options); }),
            "empty: only tensors of floating point and complex dtype can require gradients, not int64");
  options.dtype = kFloat32;
  EXPECT_TRUE(empty({1}, options).requires_grad());
  EXPECT_TRUE(empty_strided({1}, {1}, options).requires_grad());
  EXPECT_FALSE(empty({1}).requires_grad());
}

TEST(Empty, WithoutAnAllocatorForTheDevice) {
  if (set_allocator(DeviceType::Cuda, nullptr)) GTEST_SKIP() << "a build with CUDA";
  EXPECT_EQ(message_of<NotImplementedError>([] { empty({1}, kCuda); }), "no allocator for device cuda in this build");
}

TEST(Empty, SmallOnesComeFromCaches) {
  { const Tensor warm = empty({2, 3}); }
  const int64_t misses = cpu_allocator_stats().misses, news = new_counts.news;
  for (int i = 0; i < 1000; ++i) const Tensor t = empty({2, 3});
  if (cpu_allocator_stats().allocations == 0) GTEST_SKIP() << "nothing is cached under AddressSanitizer";
  EXPECT_EQ(cpu_allocator_stats().misses, misses);
  EXPECT_EQ(new_counts.news, news);
}

TEST(EmptyStrided, StorageIsJustLargeEnough) {
  const Tensor t = empty_strided({2, 2}, {3, 1});
  EXPECT_EQ(t.strides(), (IntSpan{3, 1}));
  EXPECT_EQ(t.storage()->nbytes(), 20u);
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_EQ(empty_strided({3, 4}, {0, 1}).storage()->nbytes(), 16u);
  EXPECT_EQ(empty_strided({3, 0}, {7, 7}).storage()->nbytes(), 0u);
  EXPECT_EQ(empty_strided({}, {}).storage()->nbytes(), 4u);
}

TEST(EmptyStrided, Refuses) {
  EXPECT_EQ(message_of<RuntimeError>([] {
              empty_strided({2, 2}, {1});
            }),
            "empty_strided: dimensionality of sizes (2) must match dimensionality of strides (1)");
  EXPECT_EQ(message_of<RuntimeError>([] { empty_strided({2}, {-1}); }),
            "empty_strided: strides [-1] have a negative one");
  EXPECT_THROW(empty_strided({-2}, {1}), RuntimeError);
  EXPECT_THROW(empty_strided({3}, {INT64_MAX / 2}), RuntimeError);
  EXPECT_THROW(empty_strided({1}, {1}, ScalarType::Undefined), RuntimeError);
}

TEST(Tensor, FromBlobInLibtorchsOrder) {
  int64_t values[] = {1, 2, 3};
  int freed = 0;
  {
    const Tensor x = from_blob(
        values, {3}, [&freed](void*) { ++freed; }, kInt64);
    EXPECT_EQ(x.data<int64_t>(), values);
    EXPECT_EQ(freed, 0);
  }
  EXPECT_EQ(freed, 1);
}

// ---- accessors

TEST(TensorAccessor, ReadsAndWritesElementsByTheirIndices) {
  float values[24];
  for (int i = 0; i < 24; ++i) values[i] = static_cast<float>(i);
  const Tensor x = from_blob(values, {2, 3, 2}, {12, 4, 2});
  const auto a = x.accessor<float, 3>();
  EXPECT_EQ(a.sizes(), x.sizes());
  EXPECT_EQ(a[1].strides(), IntSpan({4, 2}));
  EXPECT_EQ(a[1].size(0), 3);
  EXPECT_EQ(a.stride(2), 2);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t k = 0; k < 2; ++k) EXPECT_EQ(a[i][j][k], static_cast<float>(12 * i + 4 * j + 2 * k));
  a[0][2][1] = -1;
  EXPECT_EQ(values[10], -1);
  EXPECT_EQ(a[1][0].data(), values + 12);
  const auto read_only = x.accessor<const float, 3>();
  static_assert(std::is_same_v<decltype(read_only[0][0][0]), const float&>);
  EXPECT_EQ(read_only[0][2][1], -1);
}

TEST(TensorAccessor, RefusesAnotherDtypeOrRank) {
  const Tensor x = empty({2, 3});
  EXPECT_EQ(test::message_of<RuntimeError>([&] { x.accessor<float, 3>(); }),
            "TensorAccessor expected 3 dims but tensor has 2");
  EXPECT_EQ(test::message_of<RuntimeError>([&] { x.accessor<double, 2>(); }),
            "Tensor type mismatch, caller expects elements to be float64, while tensor contains float32. ");
}

TEST(Tensor, LibtorchsOtherNames) {
  const Tensor x = empty({2, 3});
  EXPECT_EQ(x.scalar_type(), kFloat32);
  EXPECT_EQ(x.ndimension(), 2);
  EXPECT_EQ(x.element_size(), 4u);
  EXPECT_TRUE(x.is_cpu());
  EXPECT_EQ(x.data_ptr<float>(), x.data_ptr());
  EXPECT_EQ(x.mutable_data_ptr<float>(), x.data_ptr());
  EXPECT_EQ(x.const_data_ptr<float>(), x.data_ptr());
  EXPECT_THROW(x.data_ptr<int64_t>(), RuntimeError);
}

// ---- from_blob

int g_given_back = 0;
void give_back(void* context) { g_given_back += *static_cast<int*>(context); }

class FromBlob : public ::testing::Test {
 protected:
  void SetUp() override { g_given_back = 0; }
  float data_[6] = {1, 2, 3, 4, 5, 6};
  int one_ = 1;
};

TEST_F(FromBlob, SeesTheMemory) {
  const Tensor t = from_blob(data_, {2, 3});
  EXPECT_EQ(t.data<float>(), data_);
  EXPECT_EQ(t.storage()->nbytes(), 24u);
  EXPECT_FALSE(t.storage()->resizable());
  EXPECT_EQ(t.storage()->allocator(), nullptr);
  EXPECT_TRUE(t.is_contiguous());
  const Tensor strided = from_blob(data_, {2, 2}, {3, 1});
  EXPECT_EQ(strided.storage()->nbytes(), 20u);
}

TEST_F(FromBlob, GivesBackOnceWithTheLastUser) {
  Tensor view;
  {
    const Tensor t = from_blob(data_, {2, 3}, {}, &one_, &give_back);
    view = Tensor(make_intrusive<TensorImpl>(t.impl(), IntSpan{2}, IntSpan{1}, 1));
  }
  EXPECT_EQ(g_given_back, 0);
  EXPECT_EQ(view.data<float>()[0], 2.0f);
  view.reset();
  EXPECT_EQ(g_given_back, 1);
}

TEST_F(FromBlob, BorrowsWithoutADeleter) {
  { const Tensor t = from_blob(data_, {2, 3}); }
  { const Tensor t = from_blob(data_, {2, 3}, {}, nullptr, &give_back); }
  EXPECT_EQ(g_given_back, 0);
}

TEST_F(FromBlob, EmptyNeedsNoData) {
  { const Tensor t = from_blob(nullptr, {0, 3}, {}, &one_, &give_back); }
  EXPECT_EQ(g_given_back, 1);  // a context without data is also released
}

TEST_F(FromBlob, GivesBackWhateverIsWrong) {
  EXPECT_EQ(message_of<RuntimeError>([&] { from_blob(nullptr, {2}, {}, &one_, &give_back); }),
            "from_blob: no data for sizes [2]");
  EXPECT_THROW(from_blob(data_, {-1}, {}, &one_, &give_back), RuntimeError);
  EXPECT_THROW(from_blob(data_, V(128, 1), {}, &one_, &give_back), RuntimeError);
  EXPECT_THROW(from_blob(data_, {2, 3}, {1}, {}, &one_, &give_back), RuntimeError);
  EXPECT_THROW(from_blob(data_, {2}, {-1}, {}, &one_, &give_back), RuntimeError);
  EXPECT_THROW(from_blob(data_, {2}, {INT64_MAX}, {}, &one_, &give_back), RuntimeError);
  EXPECT_THROW(from_blob(data_, {2}, ScalarType::Undefined, &one_, &give_back), RuntimeError);
  EXPECT_EQ(g_given_back, 7);
}

TEST_F(FromBlob, TakesAnyCallable) {
  int calls = 0;
  void* freed = nullptr;
  const std::function<void(void*)> deleter = [&](void* data) {
    ++calls;
    freed = data;
  };
  Tensor view;
  {
    const Tensor t = from_blob(data_, {2, 3}, {}, deleter);
    view = Tensor(make_intrusive<TensorImpl>(t.impl(), IntSpan{2}, IntSpan{1}, 1));
  }
  EXPECT_EQ(calls, 0);
  view.reset();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(freed, data_);  // the data, not a context
  {
    const Tensor strided = from_blob(data_, {2, 2}, {3, 1}, {}, [&calls](void*) { ++calls; });
  }
  EXPECT_EQ(calls, 2);
  const Tensor borrowed = from_blob(data_, {2}, {}, std::function<void(void*)>());
  EXPECT_EQ(borrowed.storage()->data_ptr().context(), nullptr);
  EXPECT_THROW(from_blob(data_, {-2}, {}, deleter), RuntimeError);
  EXPECT_EQ(calls, 3);
}

TEST_F(FromBlob, IsAlignedToElements) {
  alignas(8) char bytes[17] = {};
  TERCEL_EXPECT_THROW(from_blob(bytes + 1, {2}), ValueError,
                      "from_blob: the memory is not aligned to elements of float32");
  TERCEL_EXPECT_THROW(from_blob(bytes + 2, {1}, kComplex64), ValueError, "not aligned to elements of complex64");
  // Of complex numbers the parts are.
  EXPECT_EQ(static_cast<char*>(from_blob(bytes + 4, {1}, kComplex64).data_ptr()), bytes + 4);
  EXPECT_EQ(from_blob(bytes + 1, {0}).numel(), 0);
  EXPECT_EQ(from_blob(bytes + 1, {16}, kUInt8).numel(), 16);
}

TEST_F(FromBlob, IsNotResized) { EXPECT_THROW(from_blob(data_, {2}).storage()->resize_bytes(100), RuntimeError); }

// ---- out of memory at every point

/** Runs make with the n-th allocation failing, for n = 1, 2 ... until it succeeds; nothing may leak. */
template <class Make>
int64_t fail_everywhere(const Make& make) {
  FailingAllocator memory;
  const ScopedAllocator scope(memory);
  for (int64_t n = 1;; ++n) {
    memory.fail_call(n);
    bool failed = false;
    try {
      const Tensor t = make();
      EXPECT_TRUE(t.defined());
    } catch (const OutOfMemoryError&) {
      failed = true;
    }
    EXPECT_EQ(memory.alive(), 0);
    if (!failed) return n - 1;
  }
}

/** The same for operator new; headers come from it under AddressSanitizer, and beyond 5 dimensions sizes always do. */
template <class Make>
int64_t fail_every_new(const Make& make) {
  for (int i = 0; i < 3; ++i) make();  // fills caches
  for (int64_t n = 1;; ++n) {
    const int64_t alive = new_counts.alive;
    bool failed = false;
    new_counts.fail_in = n;
    try {
      const Tensor t = make();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    new_counts.fail_in = 0;
    EXPECT_EQ(new_counts.alive, alive) << n;
    if (!failed) return n - 1;
  }
}

TEST(OutOfMemory, AllocatorFailsAtEveryCall) {
  EXPECT_EQ(fail_everywhere([] { return empty({2, 3}); }), 1);
  EXPECT_EQ(fail_everywhere([] { return empty({1, 1, 1, 1, 1, 1, 5}); }), 1);
  EXPECT_EQ(fail_everywhere([] { return empty({1000, 1000}); }), 1);
  EXPECT_EQ(fail_everywhere([] { return empty_strided({2, 3}, {1, 2}); }), 1);
  EXPECT_EQ(fail_everywhere([] {
              static float data[6];
              return from_blob(data, {2, 3});
            }),
            0);
}

TEST(OutOfMemory, MessageOfAFailedCallSaysWhatFor) {
  FailingAllocator memory;
  const ScopedAllocator scope(memory);
  memory.fail_call(1);
  const std::string message = message_of<OutOfMemoryError>([] { empty({2, 3}); });
  EXPECT_EQ(message.find("empty: [2, 3] float32: out of memory: "), 0u) << message;
}

TEST(OutOfMemory, OperatorNewFailsAtEveryCall) {
  EXPECT_GE(fail_every_new([] { return empty({1, 1, 1, 1, 1, 1, 5}); }), 1);
  EXPECT_GE(fail_every_new([] { return empty_strided({1, 1, 1, 1, 1, 5}, {1, 1, 1, 1, 1, 1}); }), 1);
  int given_back_per_call = 1;
  g_given_back = 0;
  int64_t calls = 0;
  static float data[6];
  EXPECT_GE(fail_every_new([&] {
              ++calls;
              return from_blob(data, {1, 1, 1, 1, 1, 6}, {}, &given_back_per_call, &give_back);
            }),
            1);
  EXPECT_EQ(g_given_back, calls);
  EXPECT_GE(fail_every_new([] {
              const Tensor t = empty({2, 3});
              return Tensor(t.impl().shallow_copy(true, true));
            }),
            1);
}

TEST(TensorThreads, AreMadeSharedAndDroppedAnywhere) {
  const Tensor shared = empty({4});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([shared] {
      for (int i = 0; i < 3000; ++i) {
        const Tensor own = empty({3, i % 50});
        const Tensor view(make_intrusive<TensorImpl>(shared.impl(), IntSpan{2}, IntSpan{1}, 1));
        view.impl().bump_version();
        ASSERT_EQ(own.size(1), i % 50);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared.version(), 12'000u);
  EXPECT_EQ(shared.use_count(), 1u);
}

}  // namespace
}  // namespace tercel
