// std::thread with a minimum stack size.
#pragma once

#include <pthread.h>

#include <cstddef>

#include "tercel/util/callable.h"
#include "tercel/util/export.h"

namespace tercel {

/**
 * Minimum stack size of the library's threads. The default is the limit that the process was started with
 * (RLIMIT_STACK), which may be 64 KiB; a pass of backward() that runs Python functions needs several MiB. Stack pages
 * that are not touched use no memory.
 */
constexpr size_t kLeastThreadStack = size_t{8} << 20;

/** std::thread with a stack of at least kLeastThreadStack. It must be joined or detached before it is destroyed. */
class TERCEL_API Thread {
 public:
  Thread() = default;
  /** std::system_error if the system cannot start a thread. */
  explicit Thread(Callable<void()> run);
  Thread(Thread&& other) noexcept : id_(other.id_), owner_(other.owner_) { other.owner_ = 0; }
  Thread& operator=(Thread&& other) = delete;
  ~Thread();

  bool joinable() const { return owner_ != 0; }
  /** Whether the thread exists in this process; false in a child forked since it started. */
  bool is_here() const;
  /** Waits for its end; returns at once in a forked child, where it does not exist. */
  void join();
  void detach();

 private:
  pthread_t id_ = 0;
  int owner_ = 0;  // the process that started it
};

}  // namespace tercel
