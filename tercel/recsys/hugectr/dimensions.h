// Sizes of a tensor as HugeCTR's programs write them.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "tercel/core/geometry.h"

namespace tercel::recsys::hugectr {

/** Sizes from integers of any types, {batch_size, 4}, from a vector of such, such as std::vector<size_t>, or a Span. */
class Dimensions {
 public:
  Dimensions(IntSpan sizes) : sizes_(sizes) {}
  template <std::integral... I>
  Dimensions(I... sizes) : sizes_{static_cast<int64_t>(sizes)...} {}
  template <std::integral I>
  Dimensions(const std::vector<I>& sizes) : sizes_(sizes.size()) {
    for (size_t d = 0; d < sizes.size(); ++d) sizes_[d] = static_cast<int64_t>(sizes[d]);
  }

  operator IntSpan() const { return sizes_; }

 private:
  DimVector sizes_;
};

}  // namespace tercel::recsys::hugectr
