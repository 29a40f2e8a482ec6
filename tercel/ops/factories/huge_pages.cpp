#include "tercel/ops/factories/huge_pages_impl.h"

#include "tercel/core/huge_pages_impl.h"
#include "tercel/ops/factories/factories.h"

namespace tercel {

Tensor empty_in_huge_pages(IntSpan sizes, const TensorOptions& options) {
  const size_t item = item_size(options.dtype), bytes = static_cast<size_t>(numel_of(sizes)) * item;
  const size_t wanted = bytes_in_huge_pages(bytes);
  if (wanted == bytes || !options.device.is_cpu()) return empty(sizes, options);
  const Tensor page = empty({static_cast<int64_t>(wanted / item)}, options);
  return Tensor(make_intrusive<TensorImpl>(page.storage(), options.dtype, sizes));
}

}  // namespace tercel
