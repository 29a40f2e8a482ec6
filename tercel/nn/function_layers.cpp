#include "tercel/nn/function_layers.h"

#include "tercel/ops/binary.h"

namespace tercel::nn::detail {

std::vector<int64_t> borders(const char* layer, std::vector<int64_t> padding, int64_t dims) {
  const auto ends = static_cast<size_t>(2 * dims);
  if (padding.size() == 1) padding.assign(ends, padding[0]);
  TERCEL_CHECK(padding.size() == ends, ValueError, layer, ": padding must be one number or ", ends, " but got ",
               IntSpan(padding));
  return padding;
}

void check_images(const char* layer, const Tensor& x) {
  TERCEL_CHECK(x.dim() == 3 || x.dim() == 4, ValueError, layer, ": expected input to be 3D or 4D, got ", x.dim(),
               "D instead");
}

Tensor lp_pool(const Tensor& x, double p, const std::vector<int64_t>& kernel_size, const std::vector<int64_t>& stride,
               bool ceil_mode, int64_t dims) {
  const Tensor powers = pow(x, p);
  const Tensor means = dims == 1   ? avg_pool1d(powers, kernel_size, stride, {0}, ceil_mode)
                       : dims == 2 ? avg_pool2d(powers, kernel_size, stride, {0}, ceil_mode)
                                   : avg_pool3d(powers, kernel_size, stride, {0}, ceil_mode);
  double count = 1;
  for (int64_t d = 0; d < dims; ++d)
    count *= static_cast<double>(kernel_size[kernel_size.size() == 1 ? 0 : static_cast<size_t>(d)]);
  return pow(mul(mul(sign(means), abs(means)), count), 1 / p);
}

}  // namespace tercel::nn::detail
