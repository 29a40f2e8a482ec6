// Options from and to JSON. Private: never included by public headers.
#pragma once

#include "tercel/util/json_impl.h"
#include "tercel/util/options.h"

namespace tercel {

namespace detail {
TERCEL_API void read_options(const Json& json, OptionTable table, void* options, std::string_view owner,
                             Span<std::string_view> others);
TERCEL_API Json write_options(OptionTable table, const void* options);
}  // namespace detail

/**
 * Sets the fields that the object has; other fields keep their values. Keys in `others` are ignored. ConfigError
 * that starts with [owner] for an unknown key, a wrong type, a broken rule or a missing required field. If it throws,
 * some fields may have been set.
 */
template <OptionStruct S>
void read_options(const Json& json, S& options, std::string_view owner, Span<std::string_view> others = {}) {
  detail::read_options(json, option_table<S>(), &options, owner, others);
}

/** All fields, in order; ConfigError for a number that is not finite, which JSON cannot hold. */
template <OptionStruct S>
Json write_options(const S& options) {
  return detail::write_options(option_table<S>(), &options);
}

}  // namespace tercel
