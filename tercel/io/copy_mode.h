// Whether elements are copied between libraries.
#pragma once

#include <cstdint>

namespace tercel::io {

/** Elements are copied where they must be, in any case, or never (an error where they must be). */
enum class CopyMode : uint8_t { IfNeeded, Always, Never };

}  // namespace tercel::io
