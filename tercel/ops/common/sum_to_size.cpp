#include "tercel/ops/common/sum_to_size.h"

#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"

namespace tercel {

Tensor sum_to_size(const Tensor& x, IntSpan size) {
  if (x.sizes() == size) return x;
  TERCEL_CHECK(size.size() <= x.sizes().size(), RuntimeError, "sum_to_size: size ", size, " is not expandable to size ",
               x.sizes());
  const size_t lead = x.sizes().size() - size.size();
  DimVector summed;
  for (size_t d = 0; d < x.sizes().size(); ++d) {
    if (d >= lead && x.sizes()[d] == size[d - lead]) continue;
    TERCEL_CHECK(d < lead || size[d - lead] == 1, RuntimeError, "sum_to_size: size ", size,
                 " is not expandable to size ", x.sizes());
    summed.push_back(static_cast<int64_t>(d));
  }
  return view(sum(x, summed, /*keepdim=*/true), size);
}

}  // namespace tercel
