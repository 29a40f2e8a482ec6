#include "tercel/core/allocator.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tercel/util/cpu_info.h"
#include "tercel/util/error.h"
#include "tercel/util/philox.h"
#include "tercel/util/sanitizers_impl.h"
#include "tests/support/failing_allocator.h"

namespace tercel {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;

bool aligned(const void* p, size_t alignment) { return reinterpret_cast<uintptr_t>(p) % alignment == 0; }

/** False under AddressSanitizer, where every block comes from the system and nothing is counted. */
bool allocator_caches() {
  const int64_t before = cpu_allocator_stats().allocations;
  const DataPtr block = cpu_allocator().allocate(64);
  return cpu_allocator_stats().allocations > before;
}

// ---- DataPtr

int g_freed = 0;
void* g_freed_context = nullptr;
void count_free(void* context) {
  ++g_freed;
  g_freed_context = context;
}
void other_free(void* context) { count_free(context); }

class DataPtrTest : public ::testing::Test {
 protected:
  void SetUp() override {
    g_freed = 0;
    g_freed_context = nullptr;
  }
  char data_ = 0, context_ = 0;
};

TEST_F(DataPtrTest, IsFourWords) { EXPECT_EQ(sizeof(DataPtr), 32u); }

TEST_F(DataPtrTest, DefaultIsNull) {
  const DataPtr p;
  EXPECT_FALSE(p);
  EXPECT_EQ(p.get(), nullptr);
  EXPECT_EQ(p.context(), nullptr);
  EXPECT_EQ(p.deleter(), nullptr);
  EXPECT_EQ(p.device(), kCpu);
}

TEST_F(DataPtrTest, DeleterGetsTheContextNotTheData) {
  { const DataPtr p(&data_, &context_, &count_free, kCpu); }
  EXPECT_EQ(g_freed, 1);
  EXPECT_EQ(g_freed_context, &context_);
}

TEST_F(DataPtrTest, DeleterRunsForNullData) {
  {
    const DataPtr p(nullptr, &context_, &count_free, kCpu);
    EXPECT_TRUE(p);
  }
  EXPECT_EQ(g_freed, 1);
}

TEST_F(DataPtrTest, DeleterDoesNotRunForNullContext) {
  {
    const DataPtr p(&data_, nullptr, &count_free, kCpu);
    EXPECT_TRUE(p);
  }
  EXPECT_EQ(g_freed, 0);
}

TEST_F(DataPtrTest, BorrowedMemoryIsNotFreed) {
  const DataPtr p(&data_, kCpu);
  EXPECT_TRUE(p);
  EXPECT_EQ(p.context(), nullptr);
}

TEST_F(DataPtrTest, NullKeepsItsDevice) {
  DataPtr p(nullptr, Device(DeviceType::Cuda, 1));
  EXPECT_FALSE(p);
  EXPECT_EQ(p.device(), Device(DeviceType::Cuda, 1));
  p.clear();
  EXPECT_EQ(p.device(), Device(DeviceType::Cuda, 1));
}

TEST_F(DataPtrTest, MoveTakesOver) {
  DataPtr a(&data_, &context_, &count_free, kCpu);
  DataPtr b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): the state is documented
  EXPECT_EQ(b.get(), &data_);
  DataPtr c;
  c = std::move(b);
  EXPECT_EQ(g_freed, 0);
  c = DataPtr();
  EXPECT_EQ(g_freed, 1);
}

TEST_F(DataPtrTest, MoveContextHandsOverTheOwner) {
  DataPtr p(&data_, &context_, &count_free, kCpu);
  {
    const auto owner = p.move_context();
    EXPECT_EQ(owner.get(), &context_);
    EXPECT_EQ(p.get(), &data_);  // borrowed now
    EXPECT_EQ(p.context(), nullptr);
    p.clear();
    EXPECT_EQ(g_freed, 0);
  }
  EXPECT_EQ(g_freed, 1);
  EXPECT_EQ(DataPtr(&data_, kCpu).move_context(), nullptr);
}

TEST_F(DataPtrTest, MoveAssignmentFreesTheOld) {
  char other = 0;
  DataPtr a(&data_, &context_, &count_free, kCpu);
  a = DataPtr(&data_, &other, &count_free, kCpu);
  EXPECT_EQ(g_freed, 1);
  EXPECT_EQ(g_freed_context, &context_);
  DataPtr& alias = a;
  a = std::move(alias);
  EXPECT_EQ(g_freed, 1);
  EXPECT_EQ(a.context(), &other);
}

TEST_F(DataPtrTest, ClearFreesOnce) {
  DataPtr p(&data_, &context_, &count_free, kCpu);
  p.clear();
  EXPECT_EQ(g_freed, 1);
  EXPECT_FALSE(p);
  p.clear();
  EXPECT_EQ(g_freed, 1);
}

TEST_F(DataPtrTest, ReleasedContextIsTheCallers) {
  {
    DataPtr p(&data_, &context_, &count_free, kCpu);
    EXPECT_EQ(p.release_context(), &context_);
    EXPECT_EQ(p.get(), &data_);
  }
  EXPECT_EQ(g_freed, 0);
}

TEST_F(DataPtrTest, CastContextAsksForTheDeleter) {
  const DataPtr p(&data_, &context_, &count_free, kCpu);
  EXPECT_EQ(p.cast_context<char>(&count_free), &context_);
  EXPECT_EQ(p.cast_context<char>(&other_free), nullptr);
}

TEST_F(DataPtrTest, DeleterIsExchangedIfExpected) {
  DataPtr p(&data_, &context_, &count_free, kCpu);
  EXPECT_FALSE(p.compare_exchange_deleter(&other_free, nullptr));
  EXPECT_EQ(p.deleter(), &count_free);
  EXPECT_TRUE(p.compare_exchange_deleter(&count_free, &other_free));
  EXPECT_EQ(p.deleter(), &other_free);
}

TEST_F(DataPtrTest, SwapExchangesAll) {
  DataPtr a(&data_, &context_, &count_free, kCpu), b(nullptr, kCuda);
  a.swap(b);
  EXPECT_EQ(a.device(), kCuda);
  EXPECT_EQ(b.get(), &data_);
  EXPECT_EQ(g_freed, 0);
}

// ---- blocks

TEST(CpuAllocator, NothingForNothing) {
  const DataPtr p = cpu_allocator().allocate(0);
  EXPECT_FALSE(p);
  EXPECT_EQ(p.device(), kCpu);
}

TEST(CpuAllocator, BlocksAreAlignedAndUsable) {
  for (size_t n = 1; n < 3 * kMiB; n = n < 2000 ? n + 1 : n * 5 / 4) {
    const DataPtr p = cpu_allocator().allocate(n);
    ASSERT_TRUE(aligned(p.get(), 64)) << n;
    static_cast<char*>(p.get())[0] = 1;
    static_cast<char*>(p.get())[n - 1] = 1;
  }
}

TEST(CpuAllocator, LargeBlocksAskForHugePages) {
  if (!allocator_caches()) GTEST_SKIP() << "blocks come straight from the system";
  const DataPtr p = cpu_allocator().allocate(5 * kMiB);
  EXPECT_TRUE(aligned(p.get(), 2 * kMiB));
  if (huge_page_mode() == HugePageMode::Unknown) GTEST_SKIP() << "the kernel has no huge pages";
  // smaps: a header "from-to ..." per mapping, then its "VmFlags: ..."; "hg" is what madvise set.
  std::ifstream smaps("/proc/self/smaps");
  const auto address = reinterpret_cast<uintptr_t>(p.get());
  bool inside = false, asked = false;
  for (std::string line; std::getline(smaps, line);) {
    const size_t dash = line.find('-');
    if (dash != std::string::npos && dash < 17 && line.find(' ') > dash)
      inside = std::stoull(line, nullptr, 16) <= address && address < std::stoull(line.substr(dash + 1), nullptr, 16);
    if (inside && line.starts_with("VmFlags:")) asked = line.find(" hg") != std::string::npos;
  }
  EXPECT_TRUE(asked);
}

TEST(CpuAllocator, BlocksDoNotMeet) {
  struct Filled {
    DataPtr block;
    size_t size;
    int pattern;
  };
  std::vector<Filled> blocks;
  const auto check = [](const Filled& b) {
    const auto* bytes = static_cast<const unsigned char*>(b.block.get());
    return std::all_of(bytes, bytes + b.size, [&](unsigned char byte) { return byte == b.pattern; });
  };
  const Philox random{11, 0};
  for (uint64_t i = 0; i < 4000; ++i) {
    const PhiloxBlock r = random(i);
    if (blocks.size() > 200 || (!blocks.empty() && r.word[0] % 3 == 0)) {
      std::swap(blocks[r.word[1] % blocks.size()], blocks.back());
      ASSERT_TRUE(check(blocks.back()));
      blocks.pop_back();
      continue;
    }
    const size_t size = 1 + r.word[1] % (size_t{1} << (r.word[2] % 18));
    blocks.push_back({cpu_allocator().allocate(size), size, static_cast<int>(r.word[3] % 256)});
    std::memset(blocks.back().block.get(), blocks.back().pattern, size);
  }
  for (const Filled& b : blocks) ASSERT_TRUE(check(b));
}

class CachingAllocator : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!allocator_caches()) GTEST_SKIP() << "nothing is cached under AddressSanitizer";
    trim_cpu_allocator();
  }
  void TearDown() override { set_cpu_allocator_cache_limit(memory_info().total / 4); }

  static void* address_of_freed(size_t nbytes) { return cpu_allocator().allocate(nbytes).get(); }
};

TEST_F(CachingAllocator, ClassesWasteAtMostAQuarter) {
  for (size_t n = 1; n < 40 * kMiB; n = n < 5000 ? n + 1 : n + n / 7) {
    const int64_t before = cpu_allocator_stats().allocated_bytes;
    const DataPtr p = cpu_allocator().allocate(n);
    const auto got = static_cast<size_t>(cpu_allocator_stats().allocated_bytes - before);
    ASSERT_GE(got, n);
    ASSERT_LE(got, n + std::max<size_t>(n / 4, 63)) << n;
  }
}

TEST_F(CachingAllocator, TheSameBlockComesBack) {
  for (const size_t n : {size_t{1}, size_t{24}, size_t{64}, size_t{1000}, 4 * kKiB, 5 * kKiB, 64 * kKiB, 64 * kKiB + 1,
                         100 * kKiB, kMiB, 2 * kMiB, 3 * kMiB, 64 * kMiB}) {
    void* const first = address_of_freed(n);
    EXPECT_EQ(address_of_freed(n), first) << n;
  }
}

TEST_F(CachingAllocator, AClassSharesItsBlocks) {
  void* const first = address_of_freed(1025);
  EXPECT_EQ(address_of_freed(1280), first);
  EXPECT_NE(address_of_freed(1281), first);
  EXPECT_NE(address_of_freed(1024), first);
}

TEST_F(CachingAllocator, LargeBlocksFitBest) {
  DataPtr a = cpu_allocator().allocate(10 * kMiB), b = cpu_allocator().allocate(9 * kMiB);
  void* const ten = a.get();
  void* const nine = b.get();
  a.clear();
  b.clear();
  const DataPtr c = cpu_allocator().allocate(9 * kMiB - 5), d = cpu_allocator().allocate(9 * kMiB);
  EXPECT_EQ(c.get(), nine);
  EXPECT_EQ(d.get(), ten);  // at most a quarter too large
  const DataPtr e = cpu_allocator().allocate(9 * kMiB);
  EXPECT_NE(e.get(), ten);
  EXPECT_NE(e.get(), nine);
}

TEST_F(CachingAllocator, LargeBlocksAreNotGivenToMuchSmallerRequests) {
  void* const ten = address_of_freed(10 * kMiB);
  EXPECT_NE(address_of_freed(7 * kMiB), ten);
}

TEST_F(CachingAllocator, StatsAddUp) {
  const AllocatorStats before = cpu_allocator_stats();
  EXPECT_GE(before.allocated_bytes, 0);
  {
    const DataPtr small = cpu_allocator().allocate(100), middle = cpu_allocator().allocate(50 * kKiB),
                  large = cpu_allocator().allocate(5 * kMiB);
    const AllocatorStats during = cpu_allocator_stats();
    EXPECT_EQ(during.allocated_bytes - before.allocated_bytes, static_cast<int64_t>(128 + 56 * kKiB + 5 * kMiB));
    EXPECT_EQ(during.allocations - before.allocations, 3);
    EXPECT_GE(during.misses, before.misses + 2);  // trimmed: the larger two were returned
  }
  const AllocatorStats after = cpu_allocator_stats();
  EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
  EXPECT_GE(after.cached_bytes, before.cached_bytes + static_cast<int64_t>(56 * kKiB + 5 * kMiB));
  { const DataPtr again = cpu_allocator().allocate(5 * kMiB); }
  EXPECT_EQ(cpu_allocator_stats().misses, after.misses);
  EXPECT_EQ(cpu_allocator_stats().cached_bytes, after.cached_bytes);
}

TEST_F(CachingAllocator, SteadyUseAsksTheSystemForNothing) {
  const size_t sizes[] = {4, 64, 700, 5000, 60000, 70000, 300000, 3 * kMiB};
  const auto round = [&] {
    std::vector<DataPtr> blocks;
    for (int i = 0; i < 50; ++i) blocks.push_back(cpu_allocator().allocate(sizes[i % 8]));
  };
  round();
  const int64_t misses = cpu_allocator_stats().misses;
  for (int i = 0; i < 20; ++i) round();
  EXPECT_EQ(cpu_allocator_stats().misses, misses);
}

TEST_F(CachingAllocator, TrimGivesBack) {
  {
    std::vector<DataPtr> blocks;
    for (const size_t n : {20 * kKiB, 60 * kKiB, 100 * kKiB, 3 * kMiB}) blocks.push_back(cpu_allocator().allocate(n));
  }
  const int64_t cached = cpu_allocator_stats().cached_bytes;
  const auto expected = static_cast<int64_t>(20 * kKiB + 64 * kKiB + 100 * kKiB + 3 * kMiB);
  EXPECT_GE(trim_cpu_allocator(), expected);
  EXPECT_LE(cpu_allocator_stats().cached_bytes, cached - expected);
  EXPECT_EQ(trim_cpu_allocator(), 0);
  const int64_t misses = cpu_allocator_stats().misses;
  { const DataPtr p = cpu_allocator().allocate(60 * kKiB); }
  EXPECT_EQ(cpu_allocator_stats().misses, misses + 1);
}

TEST_F(CachingAllocator, LimitDropsTheLeastRecentlyUsed) {
  set_cpu_allocator_cache_limit(static_cast<int64_t>(20 * kMiB));
  DataPtr a = cpu_allocator().allocate(8 * kMiB), b = cpu_allocator().allocate(4 * kMiB),
          c = cpu_allocator().allocate(12 * kMiB);
  void* const middle = b.get();
  void* const newest = c.get();
  a.clear();
  b.clear();
  c.clear();  // 24 MiB: the oldest goes
  const int64_t misses = cpu_allocator_stats().misses;
  b = cpu_allocator().allocate(4 * kMiB);
  c = cpu_allocator().allocate(12 * kMiB);
  EXPECT_EQ(b.get(), middle);
  EXPECT_EQ(c.get(), newest);
  EXPECT_EQ(cpu_allocator_stats().misses, misses);
  a = cpu_allocator().allocate(8 * kMiB);
  EXPECT_EQ(cpu_allocator_stats().misses, misses + 1);
}

TEST_F(CachingAllocator, BlockAboveTheLimitDrivesOutNoOther) {
  set_cpu_allocator_cache_limit(static_cast<int64_t>(10 * kMiB));
  void* const kept = address_of_freed(8 * kMiB);
  address_of_freed(30 * kMiB);
  const int64_t misses = cpu_allocator_stats().misses;
  EXPECT_EQ(address_of_freed(8 * kMiB), kept);
  EXPECT_EQ(cpu_allocator_stats().misses, misses);
}

TEST_F(CachingAllocator, LoweringTheLimitGivesBackAtOnce) {
  address_of_freed(8 * kMiB);
  const int64_t cached = cpu_allocator_stats().cached_bytes;
  set_cpu_allocator_cache_limit(0);
  EXPECT_EQ(cpu_allocator_stats().cached_bytes, cached - static_cast<int64_t>(8 * kMiB));
  address_of_freed(8 * kMiB);
  EXPECT_LE(cpu_allocator_stats().cached_bytes, cached - static_cast<int64_t>(8 * kMiB));
  EXPECT_THROW(set_cpu_allocator_cache_limit(-1), RuntimeError);
}

TEST_F(CachingAllocator, ObjectsShareTheCaches) {
  void* const first = detail::allocate_object(144);
  EXPECT_TRUE(aligned(first, 16));
  detail::free_object(first, 144);
  void* const again = detail::allocate_object(130);  // 144 is the next multiple of 16
  EXPECT_EQ(again, first);
  detail::free_object(again, 130);
}

TEST(CpuAllocator, ObjectsOfAnySize) {
  for (const size_t n : {size_t{1}, size_t{16}, size_t{512}, size_t{513}, size_t{100000}}) {
    void* const p = detail::allocate_object(n);
    EXPECT_TRUE(aligned(p, 16));
    std::memset(p, 1, n);
    detail::free_object(p, n);
  }
}

// ---- running out

std::string out_of_memory_message(size_t nbytes) {
  try {
    const DataPtr p = cpu_allocator().allocate(nbytes);
  } catch (const OutOfMemoryError& e) {
    return e.what();
  }
  return "there was enough";
}

TEST(CpuAllocator, OutOfMemorySaysHowMuchAndHowMuchThereIs) {
  const AllocatorStats before = cpu_allocator_stats();
  const std::string message = out_of_memory_message(size_t{1} << 46);
  EXPECT_EQ(message.find("out of memory: cannot allocate 64.0 TiB (70368744177664 bytes); "), 0u) << message;
  EXPECT_NE(message.find("B are available"), std::string::npos) << message;
  EXPECT_EQ(cpu_allocator_stats().allocated_bytes, before.allocated_bytes);
}

TEST(CpuAllocator, AbsurdRequestsAreOutOfMemoryToo) {
  EXPECT_NE(out_of_memory_message(SIZE_MAX).find("(18446744073709551615 bytes)"), std::string::npos);
  EXPECT_NE(out_of_memory_message(SIZE_MAX / 2).find("8.0 EiB (9223372036854775807 bytes)"), std::string::npos);
}

#if !TERCEL_THREAD_SANITIZER  // it maps more memory than any limit allows
TEST(CpuAllocatorDeathTest, CachesAreEmptiedBeforeGivingUp) {
  if (!allocator_caches()) GTEST_SKIP() << "nothing is cached under AddressSanitizer";
  const auto scarce = [] {
    trim_cpu_allocator();
    std::ifstream statm("/proc/self/statm");
    size_t pages = 0;
    statm >> pages;
    const rlimit limit{pages * 4 * kKiB + 60 * kMiB, RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(1);
    cpu_allocator().allocate(40 * kMiB).clear();
    const DataPtr needs_the_room = cpu_allocator().allocate(55 * kMiB);
    try {
      cpu_allocator().allocate(40 * kMiB).clear();
    } catch (const OutOfMemoryError&) {
      std::_Exit(7);
    }
    std::_Exit(2);
  };
  EXPECT_EXIT(scarce(), ::testing::ExitedWithCode(7), "");
}
#endif

// scripts/test and CTest set it; checked with a reused block.
TEST(CpuAllocator, FreshMemoryIsPoisonedWhereTheEnvironmentSaysSo) {
  const char* const text = std::getenv("TERCEL_POISON_MEMORY");
  if (!text || std::string(text) != "1") GTEST_SKIP() << "TERCEL_POISON_MEMORY is not 1";
  for (const size_t n : {size_t{1}, size_t{100}, 5 * kKiB, 200 * kKiB, 3000 * kKiB}) {
    for (int again = 0; again < 2; ++again) {
      const DataPtr block = cpu_allocator().allocate(n);
      auto* const bytes = static_cast<unsigned char*>(block.get());
      EXPECT_TRUE(std::all_of(bytes, bytes + n, [](unsigned char byte) { return byte == 0xFF; })) << n;
      std::memset(bytes, 0, n);
    }
  }
  EXPECT_EQ(cpu_allocator().allocate(0).get(), nullptr);
}

// ---- the interface

TEST(AllocatorInterface, RawCallsNeedARawDeleter) {
  EXPECT_EQ(cpu_allocator().raw_deleter(), nullptr);
  EXPECT_THROW(cpu_allocator().raw_allocate(8), RuntimeError);
  EXPECT_THROW(cpu_allocator().raw_deallocate(nullptr), RuntimeError);
}

TEST(AllocatorInterface, RawCallsWork) {
  class Plain final : public Allocator {
   public:
    DataPtr allocate(size_t nbytes) override {
      void* p = std::malloc(nbytes);
      return DataPtr(p, p, &std::free, kCpu);
    }
    DataPtr::Deleter raw_deleter() const override { return &std::free; }
  } plain;
  void* const p = plain.raw_allocate(100);
  std::memset(p, 0, 100);
  plain.raw_deallocate(p);
  plain.raw_deallocate(nullptr);
}

TEST(AllocatorInterface, IsReplacedAndRestored) {
  EXPECT_EQ(&get_allocator(DeviceType::Cpu), &cpu_allocator());
  test::FailingAllocator mine;
  EXPECT_EQ(set_allocator(DeviceType::Cpu, &mine), &cpu_allocator());
  EXPECT_EQ(&get_allocator(DeviceType::Cpu), &mine);
  EXPECT_EQ(set_allocator(DeviceType::Cpu, nullptr), &mine);
  EXPECT_EQ(&get_allocator(DeviceType::Cpu), &cpu_allocator());
}

TEST(AllocatorInterface, FailingAllocatorFailsTheNthCall) {
  test::FailingAllocator failing;
  failing.fail_call(2);
  {
    const DataPtr first = failing.allocate(10);
    EXPECT_THROW(failing.allocate(10), OutOfMemoryError);
    const DataPtr third = failing.allocate(10);
    EXPECT_EQ(failing.alive(), 2);
  }
  EXPECT_EQ(failing.alive(), 0);
  EXPECT_EQ(failing.calls(), 3);
}

// Freed after main(), when static destructors run: the allocator must still exist.
DataPtr g_freed_at_exit;  // NOLINT(bugprone-throwing-static-initialization)

TEST(CpuAllocator, OutlivesStaticDestructors) {
  g_freed_at_exit = cpu_allocator().allocate(100);
  EXPECT_TRUE(g_freed_at_exit);
}

// ---- threads

TEST(CpuAllocatorThreads, BlocksMayBeFreedAnywhere) {
  for (const size_t n : {size_t{64}, 8 * kKiB, 200 * kKiB}) {
    const int64_t before = cpu_allocator_stats().allocated_bytes;
    std::vector<DataPtr> blocks;
    for (int i = 0; i < 200; ++i) {
      blocks.push_back(cpu_allocator().allocate(n));
      std::memset(blocks.back().get(), i, n);
    }
    std::thread([taken = std::move(blocks)]() mutable { taken.clear(); }).join();
    EXPECT_EQ(cpu_allocator_stats().allocated_bytes, before);
  }
}

TEST(CpuAllocatorThreads, BlocksOfAnEndedThreadAreReused) {
  if (!allocator_caches()) GTEST_SKIP() << "nothing is cached under AddressSanitizer";
  trim_cpu_allocator();
  const AllocatorStats before = cpu_allocator_stats();
  std::thread([] {
    std::vector<DataPtr> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(cpu_allocator().allocate(40 * kKiB));
  }).join();
  const AllocatorStats between = cpu_allocator_stats();
  EXPECT_EQ(between.allocations, before.allocations + 4);
  EXPECT_EQ(between.allocated_bytes, before.allocated_bytes);
  std::vector<DataPtr> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(cpu_allocator().allocate(40 * kKiB));
  EXPECT_EQ(cpu_allocator_stats().misses, between.misses);
}

TEST(CpuAllocatorThreads, ThreadLocalsMayFreeAndAllocateLate) {
  // Created before the thread's cache, so destroyed after it.
  struct Late {
    DataPtr small, large;
    ~Late() {
      small = cpu_allocator().allocate(200);
      std::memset(small.get(), 1, 200);
      large.clear();
    }
  };
  const int64_t before = cpu_allocator_stats().allocated_bytes;
  std::thread([] {
    static thread_local Late late;
    late.small = cpu_allocator().allocate(100);
    late.large = cpu_allocator().allocate(3 * kMiB);
  }).join();
  EXPECT_EQ(cpu_allocator_stats().allocated_bytes, before);
}

TEST(CpuAllocatorThreads, ManyThreadsAtOnce) {
  const int64_t before = cpu_allocator_stats().allocated_bytes;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      const Philox random{t, 1};
      std::vector<DataPtr> blocks(64);
      for (uint64_t i = 0; i < 3000; ++i) {
        const PhiloxBlock r = random(i);
        const size_t size = 1 + r.word[0] % (size_t{1} << (r.word[1] % 19));
        DataPtr& block = blocks[r.word[2] % blocks.size()];
        block = cpu_allocator().allocate(size);
        auto* bytes = static_cast<unsigned char*>(block.get());
        bytes[0] = bytes[size - 1] = static_cast<unsigned char>(t);
        if (i % 500 == 0) trim_cpu_allocator();
        if (i % 100 == 0) cpu_allocator_stats();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cpu_allocator_stats().allocated_bytes, before);
}

}  // namespace
}  // namespace tercel
