// Option structs (tercel/util/options.h) as keyword arguments and dicts: names, texts, defaults and rules come from
// their fields().
#pragma once

#include <string>
#include <string_view>

#include "python/src/python.h"
#include "tercel/util/options.h"

namespace tercel::python {

/**
 * Sets the options that a dict has; None leaves the default. Names in `others` are skipped. ConfigError that starts
 * with [owner] for an unknown name, a wrong type or a broken rule.
 */
void set_options(const nb::dict& values, OptionTable table, void* options, std::string_view owner,
                 Span<std::string_view> others = {});

/** A dict of what options are given as, as JSON text; TypeError that starts with [owner] for another object. */
std::string dict_to_json(const nb::dict& values, std::string_view owner);
/** JSON text that the library wrote. */
nb::object json_to_object(const std::string& text);

/** The options as a dict; structs in them are dicts. */
nb::dict options_to_dict(OptionTable table, const void* options);

/**
 * Describes the options for signatures, help and type stubs: a list of (name, default, text with type, rules and
 * default, type as a Python annotation).
 */
nb::list describe_options(OptionTable table, const void* defaults);

}  // namespace tercel::python
