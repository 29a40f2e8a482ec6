// Process-wide mutexes, and how fork() handles them.
//
// Note [Locks and fork]
// A child of fork() has one thread, the one that forked. A mutex that another thread held at that moment would stay
// locked in the child forever, and the data it guards may be half changed. So fork() first locks all mutexes of the
// list below, in its order, and both processes unlock them (pthread_atfork). This needs two rules. A thread that holds
// one of them locks only later ones. And while a thread holds one, it calls and destroys no user object (a hook, a
// node, a tensor): that may wait for a lock of the user's, such as Python's GIL, whose owner may be waiting for the
// mutex, in fork() too. Code that replaces an object under a mutex therefore destroys the old one after unlocking it.
//
// Threads do not survive fork(): the child gets a new pool (thread_pool.cpp), and a batch reader throws there.
//
// Threads are started under a mutex of the list, too. Where pthread_create() reuses the stack of an ended thread, glibc
// (seen in 2.36, get_cached_stack()) frees the thread-local memory of that thread and forgets it afterwards, without a
// lock that fork() takes. A child that was forked in between has the stack among its unused ones, and its first thread
// frees that memory again: an abort with "double free or corruption", or a damaged heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "tercel/util/export.h"

namespace tercel {

/** In locking order, for fork() and for threads that need several. */
enum class ProcessMutex : uint8_t {
  Gradients,               ///< sums of gradients in leaves
  Metadata,                ///< first use of a tensor's autograd metadata; the first of kMetadataMutexes
  Lapack = Metadata + 16,  ///< the library that is opened at first use
  FourierPlans,
  RemoteStores,
  ArrowModule,  ///< while it is loaded
  HttpConnections,
  Warnings,
  Profiles,
  ProfileEvents,  ///< of a thread; the first of kProfileEventsMutexes
  ThreadPool = ProfileEvents + 16,
  ThreadStarts,  ///< while the C library makes a thread
  Generators,
  Allocator,
  Count,
};
inline constexpr size_t kMetadataMutexes =
    static_cast<size_t>(ProcessMutex::Lapack) - static_cast<size_t>(ProcessMutex::Metadata);
inline constexpr size_t kProfileEventsMutexes =
    static_cast<size_t>(ProcessMutex::ThreadPool) - static_cast<size_t>(ProcessMutex::ProfileEvents);

namespace detail {
struct alignas(64) ProcessMutexSlot {
  std::mutex mutex;
};
TERCEL_API extern ProcessMutexSlot g_process_mutexes[static_cast<size_t>(ProcessMutex::Count)];
}  // namespace detail

/** The mutex; `index` selects one of a kind that has several. See Note [Locks and fork]. */
inline std::mutex& process_mutex(ProcessMutex which, size_t index = 0) {
  return detail::g_process_mutexes[static_cast<size_t>(which) + index].mutex;
}

}  // namespace tercel
