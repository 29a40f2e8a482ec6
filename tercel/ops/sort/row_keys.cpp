#include "tercel/ops/sort/row_keys_impl.h"

#include <cstddef>

#include "tercel/ops/sort/key_sort_impl.h"
#include "tercel/ops/sort/sort_kernels.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<SortKeysFn> keys_kernels = TERCEL_CPU_KERNELS(sort_keys);

constexpr int64_t kGrainElements = 16384;

}  // namespace

const int64_t* RowKeys::read(const Tensor& like, const void* row, int64_t n) {
  const auto kernel = keys_kernels[like.device()];
  if (like.dtype() == kInt64) return static_cast<const int64_t*>(row);
  auto* keys = static_cast<int64_t*>(reserve_scratch(memory_, n * int64_t{sizeof(int64_t)}));
  const size_t item = like.itemsize();
  parallel_for(0, n, kGrainElements, [&](int64_t begin, int64_t end) {
    kernel(like.dtype(), static_cast<const std::byte*>(row) + static_cast<size_t>(begin) * item, end - begin,
           keys + begin);
  });
  return keys;
}

}  // namespace tercel
