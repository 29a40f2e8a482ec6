// The module's process-wide mutexes, and how fork() handles them: Note [Locks and fork] in util/process_mutex.h, which
// has the library's. The module has a list of its own, since it does not link the library. Private.
#pragma once

#include <cstdint>
#include <mutex>

namespace tercel::arrow_module {

/** In locking order. */
enum class ModuleMutex : uint8_t {
  Stores,
  Pool,
  Count,
};

/** The mutex, which is never destroyed. */
std::mutex& module_mutex(ModuleMutex which);

}  // namespace tercel::arrow_module
