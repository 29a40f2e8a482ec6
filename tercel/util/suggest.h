// "Did you mean": the known name nearest to a misspelled one.
#pragma once

#include <string>
#include <string_view>

#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel {

/** The nearest of `known` by edit distance (case and '-' against '_' do not count); empty if none is near. */
TERCEL_API std::string_view nearest_name(std::string_view word, Span<std::string_view> known);

/** "; did you mean 'num_layers'? known: num_layers, use_bias", to append to "unknown ... 'num_layer'". */
TERCEL_API std::string known_names(std::string_view word, Span<std::string_view> known);

}  // namespace tercel
