// Options by column: "4", "ip=2", or both. Private.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/util/span.h"

namespace tercel::data {

/**
 * The number of each column of an option whose texts are "N", for all columns, and "column=N", for one; `otherwise`
 * where there is none. ConfigError that starts with [owner] for texts of another form, numbers below `least`, a column
 * given twice, and columns that are not in `names`, with the nearest name.
 */
std::vector<int64_t> numbers_by_column(const std::vector<std::string>& texts, Span<std::string_view> names,
                                       int64_t otherwise, int64_t least, std::string_view owner,
                                       std::string_view option);

/** The same for finite numbers, "X" and "column=X". */
std::vector<double> values_by_column(const std::vector<std::string>& texts, Span<std::string_view> names,
                                     double otherwise, std::string_view owner, std::string_view option);

/** Whether the option names this column. */
bool names_column(const std::vector<std::string>& texts, std::string_view column);

/** "[owner] option 'option': expected one of the columns a, b, found 'c'; did you mean ...?". ConfigError. */
[[noreturn]] void fail_column(std::string_view owner, std::string_view option, std::string_view name,
                              Span<std::string_view> names);

}  // namespace tercel::data
