#include "tercel/util/signals.h"

#include <unistd.h>

#include <atomic>
#include <iterator>

#include "tercel/util/error.h"

namespace tercel {

namespace {

std::atomic<int> asked{0};
std::atomic<bool> save_asked{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "a signal handler may touch them");

void on_signal(int signal) {
  int none = 0;
  if (asked.compare_exchange_strong(none, signal)) return;
  // A terminal that closes sends SIGHUP twice, from the shell and when the shell has ended; SIGPIPE comes with every
  // write.
  if (signal != SIGHUP && signal != SIGPIPE) ::_exit(128 + signal);
}

void on_save_signal(int /*signal*/) { save_asked.store(true, std::memory_order_relaxed); }

struct Handling {
  int signal;
  void (*handler)(int);
};
const Handling kHandling[] = {{SIGINT, on_signal},  {SIGTERM, on_signal},      {SIGHUP, on_signal},
                              {SIGPIPE, on_signal}, {SIGUSR1, on_save_signal}, {SIGXFSZ, SIG_IGN}};

}  // namespace

int stop_signal() noexcept { return asked.load(std::memory_order_relaxed); }

void request_stop(int signal) noexcept { asked.store(signal, std::memory_order_relaxed); }

bool take_save_request() noexcept { return save_asked.exchange(false, std::memory_order_relaxed); }

void request_save() noexcept { save_asked.store(true, std::memory_order_relaxed); }

std::string_view signal_name(int signal) noexcept {
  switch (signal) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    case SIGHUP: return "SIGHUP";
    case SIGPIPE: return "SIGPIPE";
    default: return "a signal";
  }
}

ScopedSignals::ScopedSignals() {
  static_assert(std::size(kHandling) == std::tuple_size_v<decltype(before_)>);
  asked.store(0);
  save_asked.store(false);
  for (size_t i = 0; i < before_.size(); ++i) {
    const auto& [signal, handler] = kHandling[i];
    TERCEL_ASSERT(::sigaction(signal, nullptr, &before_[i]) == 0);
    if (before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = handler;
    // The second signal must get through while the first one is handled.
    action.sa_flags = SA_RESTART | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    TERCEL_ASSERT(::sigaction(signal, &action, nullptr) == 0);
  }
}

ScopedSignals::~ScopedSignals() {
  for (size_t i = 0; i < before_.size(); ++i) static_cast<void>(::sigaction(kHandling[i].signal, &before_[i], nullptr));
  asked.store(0);
  save_asked.store(false);
}

}  // namespace tercel
