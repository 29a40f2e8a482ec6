#include "tercel/util/thread_impl.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "tercel/util/parallel.h"
#include "tercel/util/process_mutex.h"

namespace tercel {
namespace {

size_t own_stack() {
  pthread_attr_t attributes;
  size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  static_cast<void>(pthread_attr_getstacksize(&attributes, &bytes));
  pthread_attr_destroy(&attributes);
  return bytes;
}

TEST(Thread, RunsAFunctionThatCannotBeCopied) {
  int seen = 0;
  Thread thread([number = std::make_unique<int>(7), &seen] { seen = *number; });
  EXPECT_TRUE(thread.joinable());
  EXPECT_TRUE(thread.is_here());
  Thread moved(std::move(thread));
  EXPECT_FALSE(thread.joinable());  // NOLINT(bugprone-use-after-move)
  moved.join();
  EXPECT_FALSE(moved.joinable());
  EXPECT_EQ(seen, 7);
  std::promise<int> promise;
  Thread([&] { promise.set_value(3); }).detach();
  EXPECT_EQ(promise.get_future().get(), 3);
}

TEST(Thread, IsNotPartOfAForkedChild) {
  std::promise<void> end;
  Thread thread([&] { end.get_future().wait(); });
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const bool here = thread.is_here();
    thread.join();
    _exit(here || thread.joinable() ? 3 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  end.set_value();
  thread.join();
}

TEST(Thread, StartsWhenNoForkIsUnderWay) {
  std::atomic<int> seen{0};
  std::unique_lock fork_lock(process_mutex(ProcessMutex::ThreadStarts));
  std::thread starter([&] {
    seen = 1;
    Thread thread([&] { seen = 2; });
    thread.join();
  });
  while (seen == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(seen, 1);
  fork_lock.unlock();
  starter.join();
  EXPECT_EQ(seen, 2);
}

TEST(Thread, HasALargeStackUnderASmallLimit) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small{size_t{256} << 10, size_t{256} << 10};
    setrlimit(RLIMIT_STACK, &small);
    execl("/proc/self/exe", "test_util", "--gtest_filter=Thread.HasALargeStack", static_cast<char*>(nullptr));
    _exit(9);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Thread, HasALargeStack) {
  size_t of_thread = 0, of_worker = 0;
  Thread thread([&] { of_thread = own_stack(); });
  thread.join();
  const int64_t before = num_threads();
  set_num_threads(2);
  std::atomic<int> arrived{0};
  parallel_for(0, 2, 1, [&](int64_t first, int64_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    const size_t bytes = own_stack();
    if (first == 1) of_worker = bytes;
  });
  set_num_threads(before);
  EXPECT_GE(of_thread, kLeastThreadStack);
  EXPECT_GE(of_worker, kLeastThreadStack);
}

}  // namespace
}  // namespace tercel
