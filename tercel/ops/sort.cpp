#include "tercel/ops/sort.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tercel/autograd/record.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/indexing.h"
#include "tercel/ops/row_gradient_impl.h"
#include "tercel/ops/sort_impl.h"
#include "tercel/ops/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<SortKeysFn> keys_kernels = TERCEL_CPU_KERNELS(sort_keys);
constinit const KernelTable<SortResultFn> result_kernels = TERCEL_CPU_KERNELS(sort_result);
constinit const KernelTable<UniqueResultFn> unique_kernels = TERCEL_CPU_KERNELS(unique_result);
constinit const KernelTable<CountSegmentsFn> count_kernels = TERCEL_CPU_KERNELS(count_segments);

constexpr int64_t kGrain = 16384;

// Keys of a row; int64 elements are their own.
class RowKeys {
 public:
  const int64_t* read(const Tensor& like, const void* row, int64_t n) {
    const auto kernel = keys_kernels[like.device()];
    if (like.dtype() == kInt64) return static_cast<const int64_t*>(row);
    auto* keys = static_cast<int64_t*>(reserve_scratch(memory_, n * int64_t{sizeof(int64_t)}));
    const size_t item = like.itemsize();
    parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
      kernel(like.dtype(), static_cast<const std::byte*>(row) + static_cast<size_t>(begin) * item, end - begin,
             keys + begin);
    });
    return keys;
  }

 private:
  Tensor memory_;
};

// Sorts rows [rows, n] of x, contiguous.
void sort_rows(const Tensor& x, int64_t rows, int64_t n, bool descending, const Tensor* values, const Tensor& indices) {
  const auto write = result_kernels[x.device()];
  const int64_t row_bytes = n * static_cast<int64_t>(x.itemsize());
  // Many rows: one a thread at a time. Few: several threads for each.
  parallel_for(0, rows, rows >= 8 ? std::max<int64_t>(1, kGrain / n) : rows, [&](int64_t begin, int64_t end) {
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
      parallel_for(0, n, kGrain, [&](int64_t first, int64_t last) { write(result, first, last); });
    }
  });
}

// values may be null.
Tensor sort_along(const Tensor& x, int64_t dim, bool descending, Tensor* values) {
  const NoGradGuard no_grad;
  if (x.dim() == 0) {
    if (values) *values = clone(x);
    return zeros({}, kInt64);
  }
  // The dimension last, so that what is sorted lies together.
  const Tensor rows = contiguous(transpose(x, dim, -1));
  const int64_t n = rows.size(-1);
  Tensor indices = empty(rows.sizes(), TensorOptions(kInt64, x.device()));
  if (values) *values = empty(rows.sizes(), x.options());
  if (rows.numel() != 0) sort_rows(rows, rows.numel() / n, n, descending, values, indices);
  if (values) *values = contiguous(transpose(*values, dim, -1));
  return contiguous(transpose(indices, dim, -1));
}

}  // namespace

ValuesAndIndices sort(const Tensor& x, int64_t d, bool descending) {
  check_defined(x, "sort", "x");
  const int64_t dim = wrap_dim(d, x.dim());
  ValuesAndIndices out;
  out.indices = sort_along(x, dim, descending, &out.values);
  if (should_record(x))
    record("SortBackward0", out.values, {x}, [indices = SavedTensor(out.indices), dim](BackwardCall& call) {
      if (call.grad().dim() == 0) return call.set(0, call.take());
      call.set(0, scatter_add(zeros_like(call.grad()), dim, indices.get(), call.grad()));
    });
  return out;
}

Tensor argsort(const Tensor& x, int64_t d, bool descending) {
  check_defined(x, "argsort", "x");
  return sort_along(x, wrap_dim(d, x.dim()), descending, nullptr);
}

UniqueValues unique(const Tensor& x, bool return_inverse, bool return_counts) {
  check_defined(x, "unique", "x");
  TERCEL_CHECK(is_integral(x.dtype(), true), TypeError, "unique: expected integers or bool but got ", describe(x));
  const NoGradGuard no_grad;
  const Tensor elements = contiguous(x);
  const int64_t n = elements.numel();
  UniqueValues out;
  if (return_inverse) out.inverse = empty(x.sizes(), TensorOptions(kInt64, x.device()));

  RowKeys keys;
  KeySorter sorter;
  UniqueResult result{};
  result.sorted = sorter.sort("unique", keys.read(elements, elements.data_ptr(), n), n);
  result.dtype = x.dtype();
  result.inverse = return_inverse ? static_cast<int64_t*>(out.inverse.data_ptr()) : nullptr;

  const auto count = count_kernels[x.device()];
  const auto write = unique_kernels[x.device()];
  std::vector<int64_t> firsts(
      static_cast<size_t>(std::max<int64_t>(1, in_parallel_region() ? 1 : num_chunks(n, kGrain))));
  const auto chunk = [&firsts] { return firsts.size() == 1 ? 0 : static_cast<size_t>(thread_index()); };
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) { firsts[chunk()] = count(result.sorted, begin, end); });
  int64_t different = 0;
  for (int64_t& first : firsts) different += std::exchange(first, different);

  out.values = empty({different}, x.options());
  if (return_counts) out.counts = empty({different}, TensorOptions(kInt64, x.device()));
  result.values = out.values.data_ptr();
  result.starts = return_counts ? static_cast<int64_t*>(out.counts.data_ptr()) : nullptr;
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) { write(result, begin, end, firsts[chunk()]); });
  // From where each begins to how many there are.
  for (int64_t i = 0; return_counts && i < different; ++i)
    result.starts[i] = (i + 1 < different ? result.starts[i + 1] : n) - result.starts[i];
  return out;
}

}  // namespace tercel
