// Threads of our own.
#pragma once

#include <pthread.h>

#include <cstddef>

#include "tercel/util/callable.h"
#include "tercel/util/export.h"

namespace tercel {

/**
 * What the stack of a thread of ours holds at least. The default is the limit that the process was started with
 * (RLIMIT_STACK), which may be 64 KiB; a pass of backward() that runs Python functions needs some MiB. Memory that is
 * not touched costs nothing.
 */
constexpr size_t kLeastThreadStack = size_t{8} << 20;

/** std::thread with a stack of at least kLeastThreadStack. It must be joined or detached before it is destroyed. */
class TERCEL_API Thread {
 public:
  Thread() = default;
  /** std::system_error when the system grants no thread. */
  explicit Thread(Callable<void()> run);
  Thread(Thread&& other) noexcept : id_(other.id_), owner_(other.owner_) { other.owner_ = 0; }
  Thread& operator=(Thread&& other) = delete;
  ~Thread();

  bool joinable() const { return owner_ != 0; }
  /** Whether this process has it: a child that was forked since has not. */
  bool is_here() const;
  /** Waits for its end. In a forked child, where it does not exist, there is nothing to wait for. */
  void join();
  void detach();

 private:
  pthread_t id_ = 0;
  int owner_ = 0;  // the process that started it
};

}  // namespace tercel
