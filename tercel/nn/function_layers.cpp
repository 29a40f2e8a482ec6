#include "tercel/nn/function_layers.h"

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/slicing.h"

namespace tercel::nn {

Tensor CrossMapLRN2d::forward(const Tensor& x) {
  TERCEL_CHECK(x.dim() == 4, ValueError, "CrossMapLRN2d: Expected input to be 4D, got ", x.dim(), "D instead.");
  const int64_t reach = (size_ - 1) / 2, channels = x.size(1);
  const Tensor squares = square(x), padded = pad(squares, {0, 0, 0, 0, reach, reach});
  Tensor total = narrow(padded, 1, 0, channels);
  for (int64_t i = 1; i <= 2 * reach; ++i) total = add(total, narrow(padded, 1, i, channels));
  const Tensor later = view(tercel::to(gt(arange(channels), reach), x.dtype()), {channels, 1, 1});
  total = add(total, mul(later, narrow(squares, 1, 0, 1)));
  return mul(x, pow(add(mul(total, alpha_ / static_cast<double>(size_)), k_), -beta_));
}

namespace detail {

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

}  // namespace detail
}  // namespace tercel::nn
