#include "tercel/util/reserved_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tercel/util/error.h"
#include "tests/support/errors.h"

namespace tercel {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(ReservedMemory, GrowsInPlaceWithZeros) {
  ReservedMemory memory(1, 100 * kMiB);
  std::byte* const start = memory.data();
  EXPECT_EQ(memory.size(), 0u);
  EXPECT_GE(memory.reserved(), 100 * kMiB);
  memory.grow(1);
  EXPECT_GE(memory.size(), 1u);
  start[0] = std::byte{7};
  for (const size_t bytes : {5 * kMiB, 17 * kMiB, 33 * kMiB, 100 * kMiB}) {
    memory.grow(bytes);
    ASSERT_GE(memory.size(), bytes);
    EXPECT_EQ(memory.data(), start);
    EXPECT_EQ(start[bytes - 1], std::byte{0});
    start[bytes - 1] = std::byte{9};
  }
  memory.grow(3);
  EXPECT_GE(memory.size(), 100 * kMiB) << "it never shrinks";
  EXPECT_EQ(start[0], std::byte{7});
  EXPECT_EQ(start[5 * kMiB - 1], std::byte{9});
  EXPECT_TRUE(std::all_of(start + 1, start + kMiB, [](std::byte b) { return b == std::byte{0}; }));
}

TEST(ReservedMemory, BeyondTheReservedIsAnError) {
  ReservedMemory memory(1, 4 * kMiB);
  memory.grow(kMiB);
  const size_t size = memory.size();
  TERCEL_EXPECT_THROW(memory.grow(memory.reserved() + 1), OutOfMemoryError, "out of memory: ");
  EXPECT_EQ(memory.size(), size);
  memory.grow(memory.reserved());
  EXPECT_EQ(memory.size(), memory.reserved());
  ReservedMemory none;
  TERCEL_EXPECT_THROW(none.grow(1), OutOfMemoryError, "out of memory: ");
  TERCEL_EXPECT_THROW(ReservedMemory(size_t{1} << 60, 0), OutOfMemoryError, "cannot reserve");
}

TEST(ReservedMemory, FewerAddressesThanWantedMayBeReserved) {
  const ReservedMemory memory(kMiB, size_t{1} << 60);
  EXPECT_GE(memory.reserved(), kMiB);
  EXPECT_LT(memory.reserved(), size_t{1} << 60);
}

TEST(ReservedMemory, IsMoved) {
  ReservedMemory first(1, kMiB);
  first.grow(10);
  std::byte* const start = first.data();
  start[3] = std::byte{5};
  ReservedMemory second(std::move(first));
  EXPECT_EQ(second.data(), start);
  ReservedMemory third(1, kMiB);
  third.grow(1);
  third = std::move(second);
  EXPECT_EQ(third.data(), start);
  EXPECT_EQ(third.data()[3], std::byte{5});
  EXPECT_EQ(second.data(), nullptr);  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace tercel
