#include "tercel/arrow/fork_locks.h"

#include <pthread.h>

#include <array>
#include <cstddef>

namespace tercel::arrow_module {

namespace {

constinit std::array<std::mutex, static_cast<size_t>(ModuleMutex::Count)> mutexes;

void before_fork() {
  for (std::mutex& mutex : mutexes) mutex.lock();
}

void after_fork() {
  for (size_t i = mutexes.size(); i-- > 0;) mutexes[i].unlock();
}

[[maybe_unused]] const int kRegistered = pthread_atfork(before_fork, after_fork, after_fork);

}  // namespace

std::mutex& module_mutex(ModuleMutex which) { return mutexes[static_cast<size_t>(which)]; }

}  // namespace tercel::arrow_module
