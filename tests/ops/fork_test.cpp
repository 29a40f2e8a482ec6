// Children of a process with running threads; see Note [Locks and fork].
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tercel/autograd/autograd.h"
#include "tercel/core/generator.h"
#include "tercel/ops/ops.h"
#include "tercel/util/parallel.h"
#include "tercel/util/sanitizers_impl.h"
#include "tercel/util/warning.h"

namespace tercel {
namespace {

// ThreadSanitizer does not support fork() with several threads; AddressSanitizer's allocator keeps other threads' locks
// across fork().
#if !TERCEL_THREAD_SANITIZER && !TERCEL_ADDRESS_SANITIZER

/** Work that takes most of the process's mutexes. */
void work(const Tensor& leaf) {
  const Tensor large = rand({200, 200});  // its block is from the central cache
  const Tensor base = mul(leaf, 2.0);
  const Tensor view = narrow(base, 0, 0, 1);
  mul_(base, large);
  add(view.sum(), base.sum()).backward();
  fft::fft(narrow(large, 0, 0, 1).flatten());
  warn("work");
}

TEST(Fork, ChildrenWorkWhateverOtherThreadsDoAtTheTime) {
  const int64_t threads_before = num_threads();
  set_num_threads(2);
  const Tensor leaf = ones({200, 200}).requires_grad_();
  work(leaf);
  std::atomic<bool> done{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i)
    others.emplace_back([&] {
      while (!done) work(leaf);
    });
  int bad = 0;
  for (int repeat = 0; repeat < 100 && bad == 0; ++repeat) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      for (int i = 0; i < 3; ++i) work(leaf);
      _exit(matmul(ones({300, 300}), ones({300, 300})).sum().item().to<double>() == 27e6 ? 0 : 3);
    }
    waitpid(child, &bad, 0);
  }
  EXPECT_EQ(bad, 0) << "SIGALRM (14) is a child that hangs";
  done = true;
  for (std::thread& other : others) other.join();
  set_num_threads(threads_before);
}

#endif

}  // namespace
}  // namespace tercel
