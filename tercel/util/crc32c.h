// CRC-32C checksums (Castagnoli), as formats of other programs use them; for our own files see checksum.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "tercel/util/export.h"

namespace tercel {

/** CRC-32C of bytes (RFC 3720, appendix B.4: that of "123456789" is e3069283). Not for large data: a byte at a time. */
TERCEL_API uint32_t crc32c(std::string_view bytes);

}  // namespace tercel
