// Where the rows of an embedding table are when several ranks train it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tercel/util/enum_names.h"

namespace tercel::recsys {

enum class Placement : uint8_t {
  Replicated,   ///< every rank has all rows
  Distributed,  ///< a rank has the keys whose remainder by the number of ranks is its number
  Localized     ///< a rank has all keys of some slots
};

constexpr auto enum_names(Placement) {
  return std::to_array<EnumName<Placement>>({{Placement::Replicated, "replicated"},
                                             {Placement::Distributed, "distributed"},
                                             {Placement::Localized, "localized"}});
}

/** The placement of a table. */
struct TablePlacement {
  Placement placement = Placement::Replicated;
  std::vector<int64_t> ranks = {};  ///< that have rows, in the order in which they take turns; unless replicated
};

}  // namespace tercel::recsys
