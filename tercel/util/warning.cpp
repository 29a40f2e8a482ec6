#include "tercel/util/warning.h"

#include <mutex>
#include <utility>

namespace tercel {

namespace {

std::mutex mutex;

WarningHandler& handler_slot() {
  // Never destroyed: a thread may still warn while the program ends.
  static WarningHandler& slot = *new WarningHandler;
  return slot;
}

}  // namespace

WarningHandler set_warning_handler(WarningHandler handler) {
  const std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(handler_slot(), std::move(handler));
}

void warn(const std::string& text) {
  WarningHandler handler;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    handler = handler_slot();
  }
  if (handler) handler(text);
}

}  // namespace tercel
