#include "tercel/nn/function_layers.h"

namespace tercel::nn::detail {

std::vector<int64_t> borders(const char* layer, std::vector<int64_t> padding, int64_t dims) {
  const auto ends = static_cast<size_t>(2 * dims);
  if (padding.size() == 1) padding.assign(ends, padding[0]);
  TERCEL_CHECK(padding.size() == ends, ValueError, layer, ": padding must be one number or ", ends, " but got ",
               IntSpan(padding));
  return padding;
}

}  // namespace tercel::nn::detail
