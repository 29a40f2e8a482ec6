// Help about options, in two columns.
#pragma once

#include <string>
#include <string_view>

#include "tercel/util/options.h"

namespace tercel::cli {

/** "  name   text", the text broken between words and indented. */
std::string help_entry(const std::string& name, std::string_view text);

/** "rows to write (integer, at least 1; default 1000000)". */
std::string help_of(const OptionField& field, const void* options);

/** An entry for each field; those of structs have the names "outer.inner". */
std::string help_of(OptionTable table, const void* defaults, const std::string& prefix = "");

/** The same of a struct. */
template <OptionStruct S>
std::string help_of(const S& defaults = {}) {
  return help_of(option_table<S>(), &defaults);
}

}  // namespace tercel::cli
