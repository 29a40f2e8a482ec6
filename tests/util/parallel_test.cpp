#include "tercel/util/parallel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tercel/util/cpu_info.h"
#include "tercel/util/error.h"
#include "tercel/util/sanitizers_impl.h"
#include "tests/support/errors.h"

namespace tercel {
namespace {

// With "Threads" in its name the suite also runs under ThreadSanitizer.
class ParallelThreads : public testing::Test {
 protected:
  ~ParallelThreads() override { set_num_threads(before_); }

 private:
  int64_t before_ = num_threads();
};

using Chunk = std::tuple<int64_t, int64_t, int64_t>;  // begin, end, index

std::set<Chunk> chunks_of(const Partition& partition) {
  std::mutex mutex;
  std::set<Chunk> chunks;
  partition.run([&](int64_t chunk, int64_t first, int64_t last) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(chunks.insert({first, last, chunk}).second);
  });
  return chunks;
}

std::set<Chunk> chunks_of(int64_t begin, int64_t end, int64_t grain) { return chunks_of(Partition(begin, end, grain)); }

TEST_F(ParallelThreads, PartitionDependsOnRangeGrainAndThreadsAlone) {
  set_num_threads(3);
  const std::set<Chunk> expected = {{10, 14, 0}, {14, 17, 1}, {17, 20, 2}};
  for (int repeat = 0; repeat < 50; ++repeat) EXPECT_EQ(chunks_of(10, 20, 1), expected);
  EXPECT_EQ(chunks_of(10, 20, 5), (std::set<Chunk>{{10, 15, 0}, {15, 20, 1}}));
  EXPECT_EQ(chunks_of(10, 20, 6), (std::set<Chunk>{{10, 20, 0}})) << "no chunk smaller than the grain";
  EXPECT_EQ(Partition(10, 20, 1).chunks(), 3);
  EXPECT_EQ(Partition(10, 20, 5).chunks(), 2);
  EXPECT_EQ(Partition(10, 20, 6).chunks(), 1);
  EXPECT_EQ(Partition(10, 10, 6).chunks(), 0);
  EXPECT_EQ(Partition(10, 9, 6).chunks(), 0);
  EXPECT_EQ(chunks_of(10, 10, 1), std::set<Chunk>{});
}

TEST_F(ParallelThreads, ParallelForCutsLikeAPartition) {
  for (int64_t threads = 1; threads <= 4; ++threads) {
    set_num_threads(threads);
    for (int64_t grain = 1; grain <= 9; ++grain) {
      std::mutex mutex;
      std::set<std::pair<int64_t, int64_t>> found, expected;
      parallel_for(5, 23, grain, [&](int64_t first, int64_t last) {
        const std::lock_guard lock(mutex);
        found.insert({first, last});
      });
      const Partition partition(5, 23, grain);
      for (int64_t chunk = 0; chunk < partition.chunks(); ++chunk)
        expected.insert({partition.begin(chunk), partition.begin(chunk + 1)});
      EXPECT_EQ(found, expected) << threads << " threads, grain " << grain;
    }
  }
}

TEST_F(ParallelThreads, APartitionKeepsItsChunksWhenTheNumberOfThreadsChanges) {
  const std::set<Chunk> of_two = {{0, 5, 0}, {5, 10, 1}},
                        of_five = {{0, 2, 0}, {2, 4, 1}, {4, 6, 2}, {6, 8, 3}, {8, 10, 4}};
  set_num_threads(2);
  const Partition two(0, 10, 1);
  set_num_threads(5);
  const Partition five(0, 10, 1);
  EXPECT_EQ(chunks_of(two), of_two);
  set_num_threads(1);
  EXPECT_EQ(chunks_of(five), of_five);
  EXPECT_EQ(chunks_of(two), of_two);
}

TEST_F(ParallelThreads, PartitionsHoldWhileAnotherThreadChangesTheNumberOfThreads) {
  std::atomic<bool> done{false};
  std::thread other([&done] {
    for (int64_t i = 0; !done; ++i) set_num_threads(1 + i % 5);
  });
  for (int repeat = 0; repeat < 2000; ++repeat) {
    const Partition partition(0, 100, 1);
    std::vector<int64_t> lengths(static_cast<size_t>(partition.chunks()));
    for (int64_t run = 1; run <= 2; ++run)
      partition.run(
          [&](int64_t chunk, int64_t first, int64_t last) { lengths[static_cast<size_t>(chunk)] += last - first; });
    int64_t sum = 0;
    for (const int64_t length : lengths) {
      EXPECT_GE(length, 2 * (100 / partition.chunks()));
      sum += length;
    }
    ASSERT_EQ(sum, 200);
  }
  done = true;
  other.join();
}

TEST_F(ParallelThreads, APartitionMadeInAParallelRegionIsOneChunk) {
  set_num_threads(2);
  const Partition outer(0, 6, 1);
  std::vector<std::set<Chunk>> fresh(2), given(2);
  outer.run([&](int64_t chunk, int64_t, int64_t) {
    fresh[static_cast<size_t>(chunk)] = chunks_of(0, 100, 1);
    given[static_cast<size_t>(chunk)] = chunks_of(outer);
    EXPECT_TRUE(in_parallel_region());
  });
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(fresh[i], (std::set<Chunk>{{0, 100, 0}}));
    EXPECT_EQ(given[i], (std::set<Chunk>{{0, 3, 0}, {3, 6, 1}})) << "one made outside keeps its chunks";
  }
}

TEST_F(ParallelThreads, EveryIndexOnceForAllSmallRanges) {
  for (int64_t threads = 1; threads <= 5; ++threads) {
    set_num_threads(threads);
    for (int64_t count = 0; count <= 23; ++count) {
      for (int64_t grain = -1; grain <= 9; ++grain) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
        const int64_t begin = -7;
        parallel_for(begin, begin + count, grain, [&](int64_t first, int64_t last) {
          EXPECT_LT(first, last);
          EXPECT_GE(last - first, std::min(grain, count));
          for (int64_t i = first; i < last; ++i) ++seen[static_cast<size_t>(i - begin)];
        });
        for (const auto& times : seen) ASSERT_EQ(times, 1) << threads << " " << count << " " << grain;
      }
    }
  }
}

TEST_F(ParallelThreads, EmptyAndReversedRangesCallNothing) {
  int calls = 0;
  parallel_for(3, 3, 1, [&](int64_t, int64_t) { ++calls; });
  parallel_for(3, -3, 1, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 0);
}

TEST_F(ParallelThreads, RunsOnSeveralThreadsAtOnce) {
  set_num_threads(3);
  std::atomic<int> arrived{0};
  std::mutex mutex;
  std::set<std::thread::id> ids;
  // Ends only if all three chunks run at the same time.
  parallel_for(0, 3, 1, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(ids.size(), 3u);
}

TEST_F(ParallelThreads, RegionIsVisibleInside) {
  set_num_threads(2);
  EXPECT_FALSE(in_parallel_region());
  parallel_for(0, 2, 1, [](int64_t, int64_t) { EXPECT_TRUE(in_parallel_region()); });
  EXPECT_FALSE(in_parallel_region());
  parallel_for(0, 2, 2, [](int64_t, int64_t) { EXPECT_FALSE(in_parallel_region()) << "this one stayed serial"; });
}

TEST_F(ParallelThreads, NestedCallsRunSerially) {
  set_num_threads(2);
  std::atomic<int> inner{0};
  parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    const auto id = std::this_thread::get_id();
    parallel_for(0, 100, 1, [&](int64_t first, int64_t last) {
      EXPECT_EQ(std::this_thread::get_id(), id);
      EXPECT_EQ(first, 0);
      EXPECT_EQ(last, 100);
      ++inner;
    });
  });
  EXPECT_EQ(inner, 2);
}

TEST_F(ParallelThreads, FirstExceptionInIndexOrderArrives) {
  set_num_threads(4);
  for (int repeat = 0; repeat < 100; ++repeat) {
    std::atomic<int> finished{0};
    try {
      parallel_for(0, 4, 1, [&](int64_t first, int64_t) {
        // The later chunk throws first, most of the time.
        if (first == 1) std::this_thread::sleep_for(std::chrono::microseconds(100));
        if (first == 1 || first == 3) throw std::runtime_error(std::to_string(first));
        ++finished;
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "1");
    }
    EXPECT_EQ(finished, 2) << "the others finish";
    EXPECT_FALSE(in_parallel_region());
  }
}

TEST_F(ParallelThreads, ExceptionOfASerialOrNestedCallArrives) {
  set_num_threads(2);
  EXPECT_THROW(parallel_for(0, 1, 1, [](int64_t, int64_t) { throw ValueError("serial"); }), ValueError);
  EXPECT_THROW(parallel_for(0, 2, 1,
                            [](int64_t, int64_t) {
                              parallel_for(0, 9, 1, [](int64_t, int64_t) { throw IndexError("nested"); });
                            }),
               IndexError);
}

TEST_F(ParallelThreads, SumsAreTheSameInEveryRun) {
  set_num_threads(3);
  std::vector<float> values(100'003);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f / static_cast<float>(i + 1);
  const auto total = [&] {
    const Partition partition(0, static_cast<int64_t>(values.size()), 1000);
    std::vector<float> parts(static_cast<size_t>(partition.chunks()));
    partition.run([&](int64_t chunk, int64_t first, int64_t last) {
      float sum = 0;
      for (int64_t i = first; i < last; ++i) sum += values[static_cast<size_t>(i)];
      parts[static_cast<size_t>(chunk)] = sum;
    });
    float sum = 0;
    for (const float part : parts) sum += part;
    return sum;
  };
  const float first = total();
  for (int repeat = 0; repeat < 100; ++repeat) ASSERT_EQ(total(), first);
}

TEST_F(ParallelThreads, CallersOnSeveralThreadsGetTheirResults) {
  set_num_threads(3);
  std::vector<std::thread> callers;
  std::vector<std::set<Chunk>> results(4);
  for (auto& result : results)
    callers.emplace_back([&result] {
      for (int i = 0; i < 50; ++i) result = chunks_of(0, 9, 1);
    });
  for (auto& caller : callers) caller.join();
  for (const auto& result : results)
    EXPECT_EQ(result, (std::set<Chunk>{{0, 3, 0}, {3, 6, 1}, {6, 9, 2}}))
        << "the same partition, even if other threads are busy";
}

TEST_F(ParallelThreads, NumberOfThreadsCanChange) {
  for (const int64_t threads : {1, 4, 2, 3, 1, 5}) {
    set_num_threads(threads);
    EXPECT_EQ(num_threads(), threads);
    EXPECT_EQ(chunks_of(0, 100, 1).size(), static_cast<size_t>(threads));
  }
  TERCEL_EXPECT_THROW(set_num_threads(0), ValueError, "found 0");
  TERCEL_EXPECT_THROW(set_num_threads(100'000), ValueError, "found 100000");
  set_num_threads(2);
  EXPECT_THROW(parallel_for(0, 2, 1, [](int64_t, int64_t) { set_num_threads(3); }), ValueError);
}

TEST_F(ParallelThreads, HugeRangesDoNotOverflow) {
  set_num_threads(3);
  const int64_t end = INT64_MAX;
  const std::set<Chunk> chunks = chunks_of(0, end, 1);
  int64_t at = 0;
  for (const auto& [first, last, index] : chunks) {
    EXPECT_EQ(first, at);
    at = last;
  }
  EXPECT_EQ(at, end);
}

TEST_F(ParallelThreads, TheCallerDoesNotWaitForThreadsThatHaveNotBegun) {
  // Far more threads than CPUs: if each had to be scheduled, a loop would take many time slices.
  set_num_threads(64);
  std::atomic<int64_t> sum{0};
  for (int loop = 0; loop < 2000; ++loop)
    parallel_for(0, 64, 1, [&](int64_t first, int64_t last) { sum += last - first; });
  EXPECT_EQ(sum, 2000 * 64);
}

#if !TERCEL_THREAD_SANITIZER  // it does not support fork() with several threads

#if !TERCEL_ADDRESS_SANITIZER  // its allocator keeps locks across fork(), also those of threads that begin

// Runs in a child, which must end: a hang is killed by its alarm.
int run_in_child(void (*body)()) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    try {
      body();
    } catch (...) {
      _exit(9);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(ParallelThreads, AForkedChildHasThreadsOfItsOwn) {
  set_num_threads(3);
  ASSERT_EQ(chunks_of(0, 9, 1).size(), 3u);
  EXPECT_EQ(run_in_child([] {
              // Ends only if all three chunks run at the same time.
              std::atomic<int> arrived{0};
              parallel_for(0, 3, 1, [&](int64_t, int64_t) {
                ++arrived;
                while (arrived < 3) std::this_thread::yield();
              });
              if (chunks_of(0, 9, 1) != std::set<Chunk>{{0, 3, 0}, {3, 6, 1}, {6, 9, 2}}) _exit(3);
              // And so has a child of the child.
              if (run_in_child([] {
                    if (chunks_of(0, 9, 1).size() != 3) _exit(4);
                  }) != 0)
                _exit(5);
            }),
            0);
  EXPECT_EQ(chunks_of(0, 9, 1).size(), 3u) << "the parent continues";
}

TEST_F(ParallelThreads, ChildrenOfAProcessWhoseOtherThreadsRunLoopsWork) {
  set_num_threads(3);
  std::atomic<bool> done{false};
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i)
    callers.emplace_back([&] {
      while (!done) chunks_of(0, 9, 1);
    });
  for (int repeat = 0; repeat < 50; ++repeat)
    ASSERT_EQ(run_in_child([] {
                if (chunks_of(0, 9, 1).size() != 3) _exit(3);
              }),
              0);
  done = true;
  for (std::thread& caller : callers) caller.join();
}

#endif

#if !TERCEL_THREAD_SANITIZER && !TERCEL_ADDRESS_SANITIZER  // where waking a thread is expensive

TEST_F(ParallelThreads, MoreThreadsThanCpusDoNotSpin) {
  constexpr int64_t kThreads = 64;
  if (usable_cpus() > kThreads / 4) GTEST_SKIP() << "a machine of " << usable_cpus() << " CPUs";
  set_num_threads(kThreads);
  const auto loop = [] { parallel_for(0, kThreads, 1, [](int64_t, int64_t) {}); };
  loop();
  constexpr int kLoops = 40;
  const std::clock_t start = std::clock();
  for (int i = 0; i < kLoops; ++i) {
    loop();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const double milliseconds = static_cast<double>(std::clock() - start) / (CLOCKS_PER_SEC / 1000.0) / kLoops;
  // Waking 64 threads takes half a millisecond of CPU time; if each spun for 100 microseconds, it would be 6.
  EXPECT_LT(milliseconds, 3);
}

#endif

// The default is read once per process, so a new process must read it.
int64_t threads_of_a_fresh_process(const std::string& environment) {
  const std::string command = "env -u OMP_NUM_THREADS -u TERCEL_NUM_THREADS " + environment + " /proc/" +
                              std::to_string(getpid()) +
                              "/exe --gtest_filter=ParallelDefault.Print --gtest_also_run_disabled_tests";
  FILE* const pipe = popen(command.c_str(), "r");
  std::string output;
  char buffer[256];
  while (fgets(buffer, sizeof buffer, pipe) != nullptr) output += buffer;
  pclose(pipe);
  const size_t at = output.find("num_threads=");
  return at == std::string::npos ? -1 : std::stoll(output.substr(at + 12));
}

TEST(ParallelExit, LeaveLoops) {
  if (!std::getenv("TERCEL_TEST_LEAVE_LOOPS")) GTEST_SKIP() << "it needs a separate process";
  // Destroyed after the objects that the first loop creates, so that other threads run on for a while.
  struct Late {
    ~Late() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }
  };
  static const Late late;
  set_num_threads(3);
  for (int i = 0; i < 4; ++i)
    std::thread([] {
      for (;;) parallel_for(0, 9, 1, [](int64_t, int64_t) {});
    }).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST(ParallelExit, LoopsMayGoOnWhileTheProgramEnds) {
  const std::string command = "TERCEL_TEST_LEAVE_LOOPS=1 /proc/" + std::to_string(getpid()) +
                              "/exe --gtest_filter=ParallelExit.LeaveLoops >/dev/null";
  for (int repeat = 0; repeat < 20; ++repeat) ASSERT_EQ(std::system(command.c_str()), 0) << "repeat " << repeat;
}

TEST(ParallelDefault, Print) {
  try {
    printf("num_threads=%ld\n", static_cast<long>(num_threads()));
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "TERCEL_NUM_THREADS: expected an integer from 1 to 1024, found 'many'");
    printf("num_threads=0\n");
  }
}

TEST(ParallelDefault, ComesFromTheEnvironment) {
  EXPECT_EQ(threads_of_a_fresh_process("TERCEL_NUM_THREADS=7 OMP_NUM_THREADS=3"), 7);
  EXPECT_EQ(threads_of_a_fresh_process("OMP_NUM_THREADS=3,2"), 3);
  EXPECT_GE(threads_of_a_fresh_process("OMP_NUM_THREADS=x"), 1);
  EXPECT_EQ(threads_of_a_fresh_process("TERCEL_NUM_THREADS=many"), 0);
}

#endif

}  // namespace
}  // namespace tercel
