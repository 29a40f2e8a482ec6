#include "tercel/util/process_mutex.h"

#include <pthread.h>

#include <iterator>

#include "tercel/util/parallel_impl.h"

namespace tercel {

constinit detail::ProcessMutexSlot detail::g_process_mutexes[static_cast<size_t>(ProcessMutex::Count)];

namespace {

using detail::g_process_mutexes;

void before_fork() {
  for (detail::ProcessMutexSlot& slot : g_process_mutexes) slot.mutex.lock();
}

void after_fork() {
  for (size_t i = std::size(g_process_mutexes); i-- > 0;) g_process_mutexes[i].mutex.unlock();
}

void after_fork_in_child() {
  after_fork();
  detail::abandon_threads();
}

// In the same object file as the mutexes, so that the linker keeps it.
[[maybe_unused]] const int kRegistered = pthread_atfork(before_fork, after_fork, after_fork_in_child);

}  // namespace

}  // namespace tercel
