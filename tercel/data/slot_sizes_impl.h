// Sizes of slots from HugeCTR's slot_size_array. Private.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tercel/data/schema.h"

namespace tercel::data {

/**
 * Sets size and first key of the slots by HugeCTR's rule: keys of slot i are offset by the sum of the sizes before it;
 * a size of 0 gives a slot the keys of the next one that has a size. Slots behind the end of the array have any keys.
 * Returns the offsets, as many as there are sizes. ConfigError that starts with [owner].
 */
std::vector<int64_t> set_slot_sizes(std::vector<Slot>& slots, const std::vector<int64_t>& sizes,
                                    std::string_view owner);

}  // namespace tercel::data
