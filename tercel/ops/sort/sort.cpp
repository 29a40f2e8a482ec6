#include "tercel/ops/sort/sort.h"

#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/value_selecting_reduction_backward_impl.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sort/key_sort_impl.h"
#include "tercel/ops/sort/row_keys_impl.h"
#include "tercel/ops/sort/sort_kernels.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<SortResultFn> result_kernels = TERCEL_CPU_KERNELS(sort_result);

constexpr int64_t kGrainElements = 16384;

// Sorts contiguous rows [rows, n] of x.
void sort_rows(const Tensor& x, int64_t rows, int64_t n, bool descending, const Tensor* values, const Tensor& indices) {
  const auto write = result_kernels[x.device()];
  const int64_t row_bytes = n * static_cast<int64_t>(x.itemsize());
  // Many rows: one per thread. Few rows: several threads for each.
  parallel_for(0, rows, rows >= 8 ? std::max<int64_t>(1, kGrainElements / n) : rows, [&](int64_t begin, int64_t end) {
    RowKeys keys;
    KeySorter sorter;
    for (int64_t r = begin; r < end; ++r) {
      const auto* in = static_cast<const std::byte*>(x.data_ptr()) + r * row_bytes;
      SortResult result{};
      result.sorted = sorter.sort("sort", keys.read(x, in, n), n, descending);
      result.dtype = x.dtype();
      result.in = in;
      result.values = values ? static_cast<std::byte*>(values->data_ptr()) + r * row_bytes : nullptr;
      result.indices = static_cast<int64_t*>(indices.data_ptr()) + r * n;
      parallel_for(0, n, kGrainElements, [&](int64_t first, int64_t last) { write(result, first, last); });
    }
  });
}

/** Moves the sorted dimension from the end back to its position, with x's dimension order in memory. */
Tensor placed_like(const Tensor& x, const Tensor& rows, int64_t dim) {
  const Tensor sorted = transpose(rows, dim, -1);
  if (IntSpan(preserved_strides(x.sizes(), x.strides())) == sorted.strides()) return sorted;
  return copy_(empty_like(x, sorted.options()), sorted);
}

// values may be null.
Tensor sort_along(const Tensor& x, int64_t dim, bool descending, Tensor* values) {
  const ProfileRange range("sort", RangeKind::Op);
  const NoRecordGuard no_record;
  TERCEL_CHECK(!x.is_complex(), TypeError, "Sort does not support complex dtypes on CPU");
  if (x.dim() == 0) {
    if (values) *values = clone(x);
    return zeros({}, kInt64);
  }
  // The dimension is moved to the end, so that lines are contiguous.
  const Tensor rows = contiguous(transpose(x, dim, -1));
  const int64_t n = rows.size(-1);
  Tensor indices = empty(rows.sizes(), TensorOptions(kInt64, x.device()));
  if (values) *values = empty(rows.sizes(), x.options());
  if (rows.numel() != 0) sort_rows(rows, rows.numel() / n, n, descending, values, indices);
  if (values) *values = placed_like(x, *values, dim);
  return placed_like(x, indices, dim);
}

}  // namespace

ValuesAndIndices sort(const Tensor& x, int64_t d, bool descending) {
  check_strided("sort", x, "x");
  const int64_t dim = wrap_dim(d, x.dim());
  ValuesAndIndices out;
  out.indices = sort_along(x, dim, descending, &out.values);
  record_value_selecting_reduction("SortBackward0", out.values, x, out.indices, dim, true);
  return out;
}

Tensor argsort(const Tensor& x, int64_t d, bool descending) {
  check_strided("argsort", x, "x");
  return sort_along(x, wrap_dim(d, x.dim()), descending, nullptr);
}

Tensor msort(const Tensor& x) { return sort(x, 0).values; }

}  // namespace tercel
