// Whether elements are copied between libraries.
#pragma once

#include <cstdint>

namespace tercel::io {

/** Elements are copied if necessary, always, or never (an error if a copy is necessary). */
enum class CopyMode : uint8_t { IfNeeded, Always, Never };

}  // namespace tercel::io
