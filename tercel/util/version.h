// Version of the library.
#pragma once

#include <string_view>

#include "tercel/util/export.h"

namespace tercel {

/** Version of the library, e.g. "0.1.0". */
TERCEL_API std::string_view version() noexcept;

/** Git commit that the library was built from (12 hexadecimal digits); empty when built from an archive. */
TERCEL_API std::string_view revision() noexcept;

}  // namespace tercel
