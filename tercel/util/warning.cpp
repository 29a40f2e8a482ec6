#include "tercel/util/warning.h"

#include <utility>

#include "tercel/util/process_mutex.h"

namespace tercel {

namespace {

/** Under ProcessMutex::Warnings. */
WarningHandler& handler_slot() {
  // Never destroyed: a thread may still warn while the program ends.
  static WarningHandler& slot = *new WarningHandler;
  return slot;
}

}  // namespace

WarningHandler set_warning_handler(WarningHandler handler) {
  const std::lock_guard lock(process_mutex(ProcessMutex::Warnings));
  return std::exchange(handler_slot(), std::move(handler));
}

void warn(const std::string& text) {
  WarningHandler handler;
  {
    const std::lock_guard lock(process_mutex(ProcessMutex::Warnings));
    handler = handler_slot();
  }
  if (handler) handler(text);
}

}  // namespace tercel
