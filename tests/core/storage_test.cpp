#include "tercel/core/storage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/support/failing_allocator.h"

namespace tercel {
namespace {

using test::FailingAllocator;

char* bytes(const StorageImpl& s) { return static_cast<char*>(s.data()); }

TEST(Storage, IsSmall) {
  EXPECT_LE(sizeof(StorageImpl), 80u);
  EXPECT_EQ(sizeof(Storage), sizeof(void*));
}

TEST(Storage, AllocatesAtOnce) {
  FailingAllocator memory;
  {
    const StorageImpl s(100, &memory, true);
    EXPECT_EQ(s.nbytes(), 100u);
    EXPECT_NE(s.data(), nullptr);
    EXPECT_EQ(s.allocator(), &memory);
    EXPECT_TRUE(s.resizable());
    EXPECT_EQ(s.device(), kCpu);
    EXPECT_EQ(memory.alive(), 1);
  }
  EXPECT_EQ(memory.alive(), 0);
}

TEST(Storage, AdoptsABlock) {
  FailingAllocator memory;
  {
    const StorageImpl s(50, memory.allocate(100), nullptr, false);
    EXPECT_EQ(s.nbytes(), 50u);
    EXPECT_EQ(s.allocator(), nullptr);
    EXPECT_FALSE(s.resizable());
  }
  EXPECT_EQ(memory.alive(), 0);
}

TEST(Storage, ResizableNeedsAnAllocator) {
  EXPECT_THROW(StorageImpl(0, DataPtr(), nullptr, true), RuntimeError);
  StorageImpl s(0, DataPtr(), nullptr, false);
  EXPECT_THROW(s.set_resizable(true), RuntimeError);
  s.set_resizable(false);
  s.set_allocator(&cpu_allocator());
  s.set_resizable(true);
  EXPECT_TRUE(s.resizable());
  EXPECT_THROW(s.set_allocator(nullptr), RuntimeError);
  s.set_resizable(false);
  s.set_allocator(nullptr);
}

TEST(Storage, RefusedBlockIsGivenBack) {
  FailingAllocator memory;
  EXPECT_THROW(StorageImpl(10, memory.allocate(10), nullptr, true), RuntimeError);
  EXPECT_EQ(memory.alive(), 0);
}

TEST(Storage, ResizeKeepsTheCommonBytes) {
  FailingAllocator memory;
  StorageImpl s(4, &memory, true);
  std::memcpy(s.data(), "abcd", 4);
  s.resize_bytes(8);
  EXPECT_EQ(s.nbytes(), 8u);
  EXPECT_EQ(std::memcmp(s.data(), "abcd", 4), 0);
  std::memcpy(bytes(s) + 4, "efgh", 4);
  s.resize_bytes(6);
  EXPECT_EQ(std::memcmp(s.data(), "abcdef", 6), 0);
  s.resize_bytes(0);
  EXPECT_EQ(s.nbytes(), 0u);
  EXPECT_EQ(s.data(), nullptr);
  s.resize_bytes(3);
  EXPECT_NE(s.data(), nullptr);
  EXPECT_EQ(memory.alive(), 1);
}

TEST(Storage, ResizeIsSeenByAllHandles) {
  const Storage a = create_storage(kCpu);
  const Storage b = a;
  a->resize_bytes(16);
  EXPECT_EQ(b->nbytes(), 16u);
  EXPECT_EQ(b->data(), a->data());
}

TEST(Storage, FailedResizeChangesNothing) {
  FailingAllocator memory;
  StorageImpl s(4, &memory, true);
  std::memcpy(s.data(), "abcd", 4);
  memory.fail_call(1);
  EXPECT_THROW(s.resize_bytes(8), OutOfMemoryError);
  EXPECT_EQ(s.nbytes(), 4u);
  EXPECT_EQ(std::memcmp(s.data(), "abcd", 4), 0);
}

TEST(Storage, FixedOnesAreNotResized) {
  StorageImpl s(4, &cpu_allocator(), false);
  try {
    s.resize_bytes(8);
    FAIL();
  } catch (const RuntimeError& e) {
    EXPECT_STREQ(e.what(), "Trying to resize storage that is not resizable");
  }
}

TEST(Storage, SetDataPtrReturnsTheOldAndKeepsTheSize) {
  FailingAllocator memory;
  StorageImpl s(4, &memory, true);
  void* const old_data = s.data();
  DataPtr fresh = memory.allocate(100);
  void* const fresh_data = fresh.get();
  const DataPtr old = s.set_data_ptr(std::move(fresh));
  EXPECT_EQ(old.get(), old_data);
  EXPECT_EQ(s.data(), fresh_data);
  EXPECT_EQ(s.nbytes(), 4u);
  s.set_nbytes(100);
  EXPECT_EQ(s.nbytes(), 100u);
}

TEST(Storage, SetDataPtrNoswapFreesTheOld) {
  FailingAllocator memory;
  StorageImpl s(4, &memory, true);
  DataPtr fresh = memory.allocate(100);
  void* const fresh_data = fresh.get();
  s.set_data_ptr_noswap(std::move(fresh));
  EXPECT_EQ(memory.alive(), 1);
  EXPECT_EQ(s.data(), fresh_data);
  EXPECT_EQ(s.nbytes(), 4u);
  EXPECT_EQ(s.unsafe_data<char>(), fresh_data);
}

TEST(Storage, SwapExchangesAllButTheOwners) {
  FailingAllocator memory;
  const Storage a = make_intrusive<StorageImpl>(size_t{4}, &memory, true), a_again = a;
  const Storage b = make_intrusive<StorageImpl>(size_t{8}, cpu_allocator().allocate(8), nullptr, false);
  void* const a_data = a->data();
  void* const b_data = b->data();
  a->swap(*b);
  EXPECT_EQ(a->data(), b_data);
  EXPECT_EQ(b->data(), a_data);
  EXPECT_EQ(a->nbytes(), 8u);
  EXPECT_FALSE(a->resizable());
  EXPECT_EQ(a->allocator(), nullptr);
  EXPECT_EQ(b->allocator(), &memory);
  EXPECT_EQ(a.use_count(), 2u);
  EXPECT_EQ(b.use_count(), 1u);
  EXPECT_EQ(a->version(), 1u);  // for saved tensors over it, this is a change
  a->swap(*a);
  EXPECT_EQ(a->data(), b_data);
}

TEST(Storage, UniqueOneTakesAnExternalPointer) {
  FailingAllocator memory;
  Storage s = make_intrusive<StorageImpl>(size_t{4}, &memory, true);
  int block[4] = {1, 2, 3, 4};
  {
    const Storage other = s;
    EXPECT_TRUE(test::message_of<RuntimeError>([&] {
                  unique_storage_share_external_pointer(s, DataPtr(block, kCpu), sizeof(block));
                }).starts_with("UniqueStorageShareExternalPointer can only be called when use_count == 1"));
    EXPECT_TRUE(s->resizable());
  }
  unique_storage_share_external_pointer(s, DataPtr(block, kCpu), sizeof(block));
  EXPECT_EQ(memory.alive(), 0);
  EXPECT_EQ(s->data(), block);
  EXPECT_EQ(s->nbytes(), sizeof(block));
  EXPECT_FALSE(s->resizable());
  EXPECT_EQ(s->allocator(), nullptr);
  EXPECT_THROW(s->resize_bytes(100), RuntimeError);
}

TEST(Storage, ElementsByIndex) {
  StorageImpl s(10, &cpu_allocator(), true);
  for (int i = 0; i < 2; ++i) storage_set(s, kFloat32, i, 1.5 + i);
  EXPECT_EQ(storage_get(s, kFloat32, 1).to_double(), 2.5);
  EXPECT_EQ(s.version(), 2u);
  storage_set(s, kUInt8, 9, 300.0);  // saturates, like every conversion from floating-point
  EXPECT_EQ(storage_get(s, kUInt8, 9).to_int64(), 255);
  EXPECT_EQ(test::message_of<IndexError>([&] { storage_get(s, kFloat32, 2); }),
            "storage index 2 is out of bounds for a storage of 2 elements");  // the last two bytes are no element
  EXPECT_THROW(storage_get(s, kFloat32, -1), IndexError);
  EXPECT_THROW(storage_get(s, kInt8, INT64_MAX), IndexError);
  EXPECT_THROW(storage_set(s, kInt64, 1, 0), IndexError);
  EXPECT_THROW(storage_get(s, ScalarType::Undefined, 0), RuntimeError);
}

TEST(Storage, ResetFreesTheBlock) {
  FailingAllocator memory;
  StorageImpl s(4, &memory, true);
  s.reset();
  EXPECT_EQ(memory.alive(), 0);
  EXPECT_EQ(s.nbytes(), 0u);
  EXPECT_EQ(s.data(), nullptr);
  EXPECT_EQ(s.device(), kCpu);
}

TEST(Storage, WeakHandleKeepsNoBytes) {
  FailingAllocator memory;
  auto s = make_intrusive<StorageImpl>(size_t{4}, &memory, true);
  const weak_intrusive_ptr<StorageImpl> weak(s);
  s.reset();
  EXPECT_EQ(memory.alive(), 0);
  EXPECT_TRUE(weak.expired());
}

TEST(Storage, CreateStorageIsEmptyAndResizable) {
  const Storage s = create_storage(kCpu);
  EXPECT_EQ(s->nbytes(), 0u);
  EXPECT_TRUE(s->resizable());
  EXPECT_EQ(s->allocator(), &cpu_allocator());
  EXPECT_EQ(s->device(), kCpu);
}

TEST(Storage, VersionsCountUp) {
  StorageImpl s(0, &cpu_allocator(), true);
  EXPECT_EQ(s.version(), 0u);
  s.bump_version();
  s.bump_version();
  EXPECT_EQ(s.version(), 2u);
}

TEST(StorageThreads, VersionsAreAtomic) {
  const Storage s = create_storage(kCpu);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([s] {
      for (int i = 0; i < 5000; ++i) s->bump_version();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(s->version(), 20'000u);
}

}  // namespace
}  // namespace tercel
