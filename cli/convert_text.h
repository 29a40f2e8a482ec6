// Conversion of text to datasets. Private.
#pragma once

#include "cli/command.h"
#include "tercel/util/span.h"

namespace tercel::cli {

/** The commands of `tercel convert` that read text. */
Span<Command> text_commands();

}  // namespace tercel::cli
