// Human-readable numbers and names, independent of the locale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tercel/util/export.h"

namespace tercel {

/** "512 B", "1.5 KiB", "3.2 GiB". */
TERCEL_API std::string format_bytes(int64_t bytes);

/** "850 ns", "12.3 ms", "4.2 s", "3 min 05 s", "2 h 07 min". */
TERCEL_API std::string format_duration(double seconds);

/** "00:03:05"; hours may pass 99. */
TERCEL_API std::string format_clock(double seconds);

/** "1,234,567". */
TERCEL_API std::string format_count(int64_t count);

/** Three significant digits: "950", "12.3k", "8.21M", "1.20G". */
TERCEL_API std::string format_short(double value);

/** Shortest decimal text that reads back as the same double: "0.1", "1e-07". */
TERCEL_API std::string format_double(double value);

/** The text on one line: control characters and invalid UTF-8 become \n, \t or \xNN; cut after 512 bytes. */
TERCEL_API std::string printable(std::string_view text);

/** Escapes control characters as printable() does, line by line and uncut, so that terminals do not interpret them. */
TERCEL_API std::string printable_lines(std::string_view text);

/** Whether the text is well-formed UTF-8. */
TERCEL_API bool is_utf8(std::string_view text);

}  // namespace tercel
