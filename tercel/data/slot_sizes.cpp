#include <algorithm>

#include "tercel/data/slot_sizes_impl.h"
#include "tercel/util/error.h"

namespace tercel::data {

std::vector<int64_t> set_slot_sizes(std::vector<Slot>& slots, const std::vector<int64_t>& sizes,
                                    std::string_view owner) {
  TERCEL_CHECK(sizes.size() <= slots.size(), ConfigError, "[", owner, "] option 'slot_size_array': expected at most ",
               slots.size(), " sizes, one for each slot, found ", sizes.size());
  std::vector<int64_t> offsets;
  int64_t sum = 0;
  for (size_t s = 0; s < sizes.size(); ++s) {
    const auto next = std::find_if(sizes.begin() + static_cast<std::ptrdiff_t>(s), sizes.end(),
                                   [](int64_t size) { return size > 0; });
    offsets.push_back(sum);
    if (next != sizes.end()) {
      slots[s].size = *next;
      slots[s].first_key = sum;
    }
    TERCEL_CHECK(!__builtin_add_overflow(sum, sizes[s], &sum), ConfigError, "[", owner,
                 "] option 'slot_size_array': expected sizes whose sum fits in 64 bits");
  }
  return offsets;
}

}  // namespace tercel::data
