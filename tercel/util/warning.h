// Warnings: what is allowed, but probably not meant. The library prints nothing: whoever wants them sets a handler.
#pragma once

#include <string>

#include "tercel/util/callable.h"
#include "tercel/util/export.h"

namespace tercel {

/** Gets the text of a warning, on the thread that caused it. What it throws leaves the operation that warned. */
using WarningHandler = Callable<void(const std::string& text)>;

/** Sets the handler of all threads; an empty one (the default) drops warnings. Returns the one before. */
TERCEL_API WarningHandler set_warning_handler(WarningHandler handler);

/** Hands a warning to the handler. */
TERCEL_API void warn(const std::string& text);

}  // namespace tercel
