// The mutexes that a whole process shares, and what fork() does with them.
//
// Note [Locks and fork]
// A child of fork() has one thread, the one that forked. A mutex that another thread held at that moment would stay
// locked in the child for ever, and what it guards may be half changed. So fork() first takes all mutexes of the list
// below, in its order, and both processes give them back (pthread_atfork). This works under two rules. A thread that
// holds one of them takes only later ones. And while a thread holds one, nothing of a user's is called or destroyed (a
// hook, a node, a tensor): that may wait for a lock of the user's, such as Python's, whose owner may be waiting for the
// mutex, in fork() too. What replaces an object under a mutex therefore destroys the old one after the mutex is free.
//
// Threads do not survive fork(): the child gets a new pool (thread_pool.cpp), and a reader of data refuses to go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "tercel/util/export.h"

namespace tercel {

/** In the order in which fork(), and a thread that needs several, takes them. */
enum class ProcessMutex : uint8_t {
  Gradients,               ///< sums of gradients in leaves
  Metadata,                ///< first use of a tensor's autograd metadata; the first of kMetadataMutexes
  Lapack = Metadata + 16,  ///< the library that is opened at first use
  FourierPlans,
  Warnings,
  Profiles,
  ThreadPool,
  Generators,
  Allocator,
  Count,
};
inline constexpr size_t kMetadataMutexes =
    static_cast<size_t>(ProcessMutex::Lapack) - static_cast<size_t>(ProcessMutex::Metadata);

namespace detail {
struct alignas(64) ProcessMutexSlot {
  std::mutex mutex;
};
TERCEL_API extern ProcessMutexSlot g_process_mutexes[static_cast<size_t>(ProcessMutex::Count)];
}  // namespace detail

/** The mutex; of a kind that has several, the one of that index. See Note [Locks and fork]. */
inline std::mutex& process_mutex(ProcessMutex which, size_t index = 0) {
  return detail::g_process_mutexes[static_cast<size_t>(which) + index].mutex;
}

}  // namespace tercel
