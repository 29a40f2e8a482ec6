// The shipped models, by the names of their files in presets/. Private.
#pragma once

#include <string_view>

#include "tercel/util/span.h"

namespace tercel::recsys {

struct Preset {
  std::string_view name, text;
};

/** In the order of their names. */
Span<Preset> shipped_presets();

}  // namespace tercel::recsys
