// Warnings. The library prints nothing: programs that want warnings set a handler.
#pragma once

#include <string>

#include "tercel/util/callable.h"
#include "tercel/util/export.h"

namespace tercel {

/** Receives a warning's text, on the thread that caused it. Its exceptions propagate out of the op that warned. */
using WarningHandler = Callable<void(const std::string& text)>;

/** Sets the handler of all threads; an empty one (the default) drops warnings. Returns the previous one. */
TERCEL_API WarningHandler set_warning_handler(WarningHandler handler);

/** Passes a warning to the handler. */
TERCEL_API void warn(const std::string& text);

}  // namespace tercel
