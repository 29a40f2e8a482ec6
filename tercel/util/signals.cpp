#include "tercel/util/signals.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "tercel/util/error.h"

namespace tercel {

namespace {

std::atomic<int> asked{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may touch it");

constexpr int kSignals[3] = {SIGINT, SIGTERM, SIGXFSZ};

void on_signal(int signal) {
  int none = 0;
  if (!asked.compare_exchange_strong(none, signal)) ::_exit(128 + signal);
}

}  // namespace

int stop_signal() noexcept { return asked.load(std::memory_order_relaxed); }

void request_stop(int signal) noexcept { asked.store(signal, std::memory_order_relaxed); }

ScopedSignals::ScopedSignals() {
  asked.store(0);
  for (int i = 0; i < 3; ++i) {
    TERCEL_ASSERT(::sigaction(kSignals[i], nullptr, &before_[i]) == 0);
    if (before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = kSignals[i] == SIGXFSZ ? SIG_IGN : on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    // The second signal must get through while the first one is handled.
    action.sa_flags |= SA_NODEFER;
    TERCEL_ASSERT(::sigaction(kSignals[i], &action, nullptr) == 0);
  }
}

ScopedSignals::~ScopedSignals() {
  for (int i = 0; i < 3; ++i) static_cast<void>(::sigaction(kSignals[i], &before_[i], nullptr));
  asked.store(0);
}

}  // namespace tercel
