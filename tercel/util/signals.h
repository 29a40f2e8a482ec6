// Cooperative signals: the first Ctrl-C requests a stop, the second ends the process; SIGUSR1 requests a save.
#pragma once

#include <array>
#include <csignal>
#include <string_view>

#include "tercel/util/export.h"

namespace tercel {

/** SIGINT, SIGTERM, SIGHUP or SIGPIPE once a stop was requested, else 0. Long work checks it and ends cleanly.
 */
TERCEL_API int stop_signal() noexcept;

/** Requests a stop as that signal would; async-signal-safe. */
TERCEL_API void request_stop(int signal) noexcept;

/** Whether a save was requested since the last call. */
TERCEL_API bool take_save_request() noexcept;

/** Requests a save as SIGUSR1 would; async-signal-safe. */
TERCEL_API void request_save() noexcept;

/** The name of a signal that stop_signal() returns: "SIGTERM" for SIGTERM. */
TERCEL_API std::string_view signal_name(int signal) noexcept;

/**
 * While it lives, the first SIGINT, SIGTERM, SIGHUP or SIGPIPE (the reader closed the pipe) sets stop_signal(); a
 * second SIGINT or SIGTERM ends the process at once with exit code 128 + signal. SIGUSR1 sets take_save_request();
 * writing past a file size limit is an error instead of a signal. For the main function of a program only: the library
 * never touches signals by itself. A signal that is ignored when it is made stays so (nohup).
 */
class TERCEL_API ScopedSignals {
 public:
  ScopedSignals();
  ~ScopedSignals();
  ScopedSignals(const ScopedSignals&) = delete;
  ScopedSignals& operator=(const ScopedSignals&) = delete;

 private:
  std::array<struct sigaction, 6> before_;
};

}  // namespace tercel
