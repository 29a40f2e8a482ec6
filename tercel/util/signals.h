// Cooperative stop: the first Ctrl-C asks, the second one does not.
#pragma once

#include <csignal>

#include "tercel/util/export.h"

namespace tercel {

/** SIGINT or SIGTERM once a stop was asked for, else 0. Long work looks here and ends in good order. */
TERCEL_API int stop_signal() noexcept;

/** Asks for a stop as that signal would; safe in a signal handler. */
TERCEL_API void request_stop(int signal) noexcept;

/**
 * While it lives, the first SIGINT or SIGTERM sets stop_signal() and a second one ends the process at once with exit
 * code 128 + signal; writing past a file size limit is an error instead of a signal. For the main function of a program
 * only: the library never touches signals by itself. A signal that is ignored when it is made stays so (nohup).
 */
class TERCEL_API ScopedSignals {
 public:
  ScopedSignals();
  ~ScopedSignals();
  ScopedSignals(const ScopedSignals&) = delete;
  ScopedSignals& operator=(const ScopedSignals&) = delete;

 private:
  struct sigaction before_[3];
};

}  // namespace tercel
