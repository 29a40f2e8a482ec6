#include "tercel/util/reserved_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/sanitizers_impl.h"
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

/** In a process whose addresses are limited to what it has and 3 GiB more. */
void grow_many_with_limited_addresses() {
  const auto check = [](bool holds, int code) {
    if (!holds) std::_Exit(code);
  };
  const int64_t pages = std::stoll(read_system_file("/proc/self/statm"));
  const rlimit limit{static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + 3072 * kMiB, RLIM_INFINITY};
  check(setrlimit(RLIMIT_AS, &limit) == 0, 2);
  std::vector<ReservedMemory> all;
  for (int i = 0; i < 200; ++i) all.emplace_back(1, size_t{1} << 36);
  for (ReservedMemory& memory : all) {
    check(memory.reserved() >= size_t{1} << 36, 3);
    for (const size_t mib : {1, 2, 5, 8}) {
      memory.grow(mib * kMiB);
      check(memory.data()[mib * kMiB - 1] == std::byte{0}, 4);
      memory.data()[mib * kMiB - 1] = std::byte{1};
      check(memory.data()[kMiB - 1] == std::byte{1}, 5);
    }
  }
  all.resize(100);
  std::byte* const start = all[0].data();
  all[0].grow(1200 * kMiB);  // what the others gave back
  check(all[0].data() == start && start[8 * kMiB - 1] == std::byte{1}, 6);
  try {
    all[1].grow(size_t{1} << 35);
    check(false, 7);
  } catch (const OutOfMemoryError&) {
    check(all[1].data()[8 * kMiB - 1] == std::byte{1}, 8);
  }
  const std::vector<std::byte> other(300 * kMiB);  // the rest of the program has its memory
  check(other[0] == std::byte{0}, 9);
  std::_Exit(0);
}

TEST(ReservedMemory, ManyShareLimitedAddresses) {
#if TERCEL_ADDRESS_SANITIZER || TERCEL_THREAD_SANITIZER
  GTEST_SKIP() << "sanitizers take all addresses";
#endif
  EXPECT_EXIT(grow_many_with_limited_addresses(), ::testing::ExitedWithCode(0), "");
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
