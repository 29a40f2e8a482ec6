#include "tercel/core/arena.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/errors.h"
#include "tests/support/failing_allocator.h"

namespace tercel {
namespace {

TEST(Arena, TensorsLieOneAfterTheOther) {
  Arena arena;
  EXPECT_EQ(arena.reserve({3, 5}, kFloat32), 0u);  // 60 bytes
  EXPECT_EQ(arena.reserve({}, kInt8, 1), 1u);      // 1 byte
  EXPECT_EQ(arena.reserve({2}, kFloat64, 8), 2u);  // 16 bytes
  EXPECT_EQ(arena.reserve({0, 4}, kFloat32), 3u);  // none
  EXPECT_EQ(arena.reserve({7}, kInt64, 256), 4u);  // 56 bytes
  EXPECT_EQ(arena.size(), 5u);
  const int64_t offsets[] = {0, 64, 72, 128, 256};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(arena.offset(i), offsets[i]) << i;
  EXPECT_EQ(arena.nbytes(), 512);
  EXPECT_FALSE(arena.is_allocated());
  arena.allocate();
  ASSERT_TRUE(arena.is_allocated());
  auto* const block = static_cast<char*>(arena.whole(kUInt8).data_ptr());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % Arena::kAlignment, 0u);
  const std::vector<int64_t> sizes[] = {{3, 5}, {}, {2}, {0, 4}, {7}};
  const ScalarType dtypes[] = {kFloat32, kInt8, kFloat64, kFloat32, kInt64};
  for (size_t i = 0; i < 5; ++i) {
    const Tensor t = arena[i];
    EXPECT_EQ(t.sizes().to_vector(), sizes[i]);
    EXPECT_EQ(t.dtype(), dtypes[i]);
    EXPECT_TRUE(t.is_contiguous());
    EXPECT_TRUE(t.is_alias_of(arena.whole(kUInt8)));
    if (t.numel() > 0) {
      EXPECT_EQ(static_cast<char*>(t.data_ptr()) - block, offsets[i]) << i;
    }
  }
  EXPECT_EQ(arena.whole(kFloat64).sizes().to_vector(), std::vector<int64_t>{64});
}

TEST(Arena, ViewsShareTheBlock) {
  Arena arena;
  const size_t a = arena.reserve({4}, kFloat32), b = arena.reserve({4}, kFloat32);
  arena.allocate();
  const Tensor whole = arena.whole(kFloat32);
  std::memset(whole.data_ptr(), 0, static_cast<size_t>(arena.nbytes()));
  arena[b].data<float>()[1] = 5;
  EXPECT_EQ(whole.data<float>()[16 + 1], 5);
  EXPECT_EQ(arena[a].data<float>()[1], 0);
  const uint32_t version = arena[a].version();
  whole.impl().bump_version();
  EXPECT_EQ(arena[a].version(), version + 1);
  Tensor kept;
  {
    Arena gone;
    gone.reserve({2}, kFloat32);
    gone.allocate();
    kept = gone[0];
  }
  kept.data<float>()[1] = 3;  // the block lives as long as its views
  EXPECT_EQ(kept.data<float>()[1], 3);
}

TEST(Arena, MayBeEmpty) {
  Arena arena;
  arena.allocate();
  EXPECT_EQ(arena.nbytes(), 0);
  EXPECT_EQ(arena.whole(kFloat32).numel(), 0);
}

TEST(Arena, Errors) {
  Arena arena;
  for (const int64_t alignment : {0, 2, 12, -64})
    TERCEL_EXPECT_THROW(arena.reserve({2}, kFloat32, alignment), RuntimeError,
                        "arena: expected an alignment that is a power of two, from 4 bytes, but got ");
  arena.reserve({2}, kFloat32);
  TERCEL_EXPECT_THROW(arena.reserve({int64_t{1} << 48}, kFloat32), RuntimeError,
                      "arena: with [281474976710656] float32 there would be more than 1125899906842624 bytes");
  TERCEL_EXPECT_THROW(arena[0], RuntimeError, "arena: the block is not allocated yet");
  TERCEL_EXPECT_THROW(arena.whole(kFloat32), RuntimeError, "arena: the block is not allocated yet");
  test::FailingAllocator allocator;
  allocator.fail_call(1);
  TERCEL_EXPECT_THROW(arena.allocate(allocator), OutOfMemoryError, "out of memory");
  EXPECT_FALSE(arena.is_allocated());
  arena.allocate();
  TERCEL_EXPECT_THROW(arena.reserve({2}, kFloat32), RuntimeError, "arena: the block is already allocated");
  TERCEL_EXPECT_THROW(arena.allocate(), RuntimeError, "arena: the block is already allocated");
  Arena bytes;
  bytes.reserve({3}, kInt8, 1);
  bytes.allocate();
  TERCEL_EXPECT_THROW(bytes.whole(kFloat32), RuntimeError, "arena: 3 bytes are not a number of float32 elements");
}

}  // namespace
}  // namespace tercel
