// Times in text: numbers, and ISO 8601 timestamps. Private.
#pragma once

#include <cstdint>
#include <string_view>

#include "tercel/data/text_format.h"

namespace tercel::data {

/** A point in time and its place in a calendar. */
struct Timestamp {
  double number = 0;    // the number in the text, or seconds from 1970, UTC
  int64_t seconds = 0;  // from 1970 in the time zone of the text, for its parts
};

/**
 * "2024-05-01", "2024-05-01T12:30", "2024-05-01 12:30:05.25Z", "2024-05-01T12:30:00+02:00"; years 1 to 9999. False for
 * any other text.
 */
bool parse_iso_time(std::string_view text, Timestamp& out);

/** The same, or a number of units from 1970; false for other texts and years. */
bool parse_time(std::string_view text, TimeUnit unit, Timestamp& out);

/** A number as it is, or a timestamp as a number of units from 1970; false for other texts. */
bool parse_number_or_time(std::string_view text, TimeUnit unit, double& out);

/** A part of a time as a decimal text, which lives as long as the program. */
std::string_view time_part_text(const Timestamp& time, TimePart part);

}  // namespace tercel::data
