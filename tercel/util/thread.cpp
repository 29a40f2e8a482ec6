#include "tercel/util/thread_impl.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "tercel/util/process_mutex.h"

namespace tercel {

namespace {

void* run_thread(void* argument) {
  const std::unique_ptr<Callable<void()>> run(static_cast<Callable<void()>*>(argument));
  (*run)();
  return nullptr;
}

}  // namespace

Thread::Thread(Callable<void()> run) {
  auto argument = std::make_unique<Callable<void()>>(std::move(run));
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error == 0) {
    // A new attribute holds the default size, which the user may have raised.
    size_t stack = 0;
    static_cast<void>(pthread_attr_getstacksize(&attributes, &stack));
    error = pthread_attr_setstacksize(&attributes, std::max(stack, kLeastThreadStack));
    if (error == 0) {
      const std::lock_guard lock(process_mutex(ProcessMutex::ThreadStarts));
      error = pthread_create(&id_, &attributes, run_thread, argument.get());
    }
    static_cast<void>(pthread_attr_destroy(&attributes));
  }
  if (error != 0) throw std::system_error(error, std::generic_category(), "cannot start a thread");
  static_cast<void>(argument.release());
  owner_ = getpid();
}

Thread::~Thread() {
  if (joinable()) std::terminate();
}

bool Thread::is_here() const { return owner_ == getpid(); }

void Thread::join() {
  if (is_here()) static_cast<void>(pthread_join(id_, nullptr));
  owner_ = 0;
}

void Thread::detach() {
  if (is_here()) static_cast<void>(pthread_detach(id_));
  owner_ = 0;
}

}  // namespace tercel
