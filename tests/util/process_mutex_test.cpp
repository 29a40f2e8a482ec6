#include "tercel/util/process_mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tercel/util/sanitizers_impl.h"

namespace tercel {
namespace {

#if !TERCEL_THREAD_SANITIZER  // it does not support fork() with several threads

TEST(ProcessMutex, ForkWaitsForThreadsThatHoldOne) {
  for (size_t i = 0; i < static_cast<size_t>(ProcessMutex::Count); ++i) {
    std::mutex& mutex = process_mutex(ProcessMutex::Gradients, i);
    std::atomic<bool> held{false};
    bool changed = false;
    std::thread holder([&] {
      const std::lock_guard lock(mutex);
      held = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      changed = true;
    });
    while (!held) std::this_thread::yield();
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      const std::lock_guard lock(mutex);
      _exit(changed ? 0 : 3);
    }
    holder.join();
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0) << "mutex " << i << ": a signal means that the child waits for a lock that nobody holds";
    EXPECT_TRUE(mutex.try_lock()) << "the parent's is free again";
    mutex.unlock();
  }
}

#endif

}  // namespace
}  // namespace tercel
