#include "tercel/ops/embedding/row_gradient.h"

#include <cstring>

#include "tercel/ops/embedding/row_gradient_kernels.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sort/key_sort_impl.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<CountSegmentsFn> count_segments_kernels = TERCEL_CPU_KERNELS(count_segments);
constinit const KernelTable<SumSegmentsFn> sum_segments_kernels = TERCEL_CPU_KERNELS(sum_segments);

constexpr int64_t kGrainKeys = 8192;

// A row-major view of `buffer` with the given sizes; the buffer grows if needed.
Tensor view_of_scratch(Tensor& buffer, IntSpan sizes, ScalarType dtype) {
  reserve_scratch(buffer, numel_of(sizes) * static_cast<int64_t>(item_size(dtype)));
  return Tensor(make_intrusive<TensorImpl>(buffer.storage(), dtype, sizes));
}

bool rows_are_dense(const Tensor& values) {
  return is_contiguous_strides(values.sizes().subspan(1, values.sizes().size() - 1),
                               values.strides().subspan(1, values.strides().size() - 1));
}

}  // namespace

struct UniqueRows::Scratch {
  KeySorter sorter;
  Tensor rows, sums, counts;
};

UniqueRows::UniqueRows() = default;
UniqueRows::~UniqueRows() = default;
UniqueRows::UniqueRows(UniqueRows&&) noexcept = default;
UniqueRows& UniqueRows::operator=(UniqueRows&&) noexcept = default;

Gradient UniqueRows::reduce(const Gradient& gradient) {
  const ProfileRange range("unique_rows", RangeKind::Op);
  TERCEL_CHECK(gradient.is_rows() && gradient.defined(), RuntimeError, "UniqueRows: expected a row gradient");
  const Tensor rows = gradient.rows.contiguous();
  TERCEL_CHECK(rows.dtype() == kInt64 && rows.dim() == 1, RuntimeError,
               "UniqueRows: expected rows [n] of int64 but got ", describe(rows));
  const int64_t n = rows.numel();
  TERCEL_CHECK(gradient.values.dim() >= 1 && gradient.values.size(0) == n, RuntimeError,
               "UniqueRows: expected values [", n, ", ...] but got ", describe(gradient.values));
  TERCEL_CHECK(gradient.values.is_differentiable(), RuntimeError, "UniqueRows: expected floating values but got ",
               describe(gradient.values));
  const Tensor values = rows_are_dense(gradient.values) ? gradient.values : gradient.values.contiguous();

  if (!scratch_) scratch_ = std::make_unique<Scratch>();
  Scratch& scratch = *scratch_;
  SegmentSum sum{};
  sum.sorted = scratch.sorter.sort("UniqueRows", static_cast<const int64_t*>(rows.data_ptr()), n);

  DimVector sizes = values.sizes();
  Tensor unique = view_of_scratch(scratch.rows, {n}, kInt64);
  Tensor sums = view_of_scratch(scratch.sums, sizes, values.dtype());
  if (n == 0) return {std::move(sums), std::move(unique)};

  sum.values = values.data_ptr();
  // The two parts of complex numbers are added like elements of a row of twice the length.
  const int64_t parts = values.is_complex() ? 2 : 1;
  sum.value_stride = parts * values.stride(0);
  sum.dim = parts * values.numel() / n;
  sum.dtype = real_dtype(values.dtype());
  sum.rows = static_cast<int64_t*>(unique.data_ptr());
  sum.sums = sums.data_ptr();

  const auto count_segments = count_segments_kernels[values.device()];
  const auto sum_segments = sum_segments_kernels[values.device()];
  const Partition partition(0, n, kGrainKeys);
  const int64_t chunks = partition.chunks();
  auto* firsts = static_cast<int64_t*>(reserve_scratch(scratch.counts, chunks * int64_t{sizeof(int64_t)}));
  partition.run(
      [&](int64_t chunk, int64_t begin, int64_t end) { firsts[chunk] = count_segments(sum.sorted, begin, end); });
  int64_t segments = 0;
  for (int64_t i = 0; i < chunks; ++i) segments += std::exchange(firsts[i], segments);
  partition.run([&](int64_t chunk, int64_t begin, int64_t end) { sum_segments(sum, begin, end, firsts[chunk]); });

  sizes[0] = segments;
  return {view_of_scratch(scratch.sums, sizes, values.dtype()), view_of_scratch(scratch.rows, {segments}, kInt64)};
}

Tensor dense_gradient(const Gradient& gradient, IntSpan sizes) {
  UniqueRows unique;
  const Gradient sums = unique.reduce(gradient);
  TERCEL_CHECK(sizes.size() >= 1 &&
                   sums.values.sizes().subspan(1, sums.values.sizes().size() - 1) == sizes.subspan(1, sizes.size() - 1),
               RuntimeError, "dense_gradient: expected rows of a tensor ", sizes, " but got ", describe(sums.values));
  const int64_t n = sums.rows.numel();
  const auto* rows = static_cast<const int64_t*>(sums.rows.data_ptr());
  // Rows ascend, so checking the first and the last is enough.
  for (const int64_t i : {int64_t{0}, n - 1})
    TERCEL_CHECK(n == 0 || (rows[i] >= 0 && rows[i] < sizes[0]), IndexError, "dense_gradient: row ", rows[i],
                 " is out of range for ", sizes);
  Tensor out = zeros(sizes, sums.values.options());
  if (sums.values.numel() == 0) return out;
  const size_t row_bytes = sums.values.nbytes() / static_cast<size_t>(n);
  const auto* from = static_cast<const std::byte*>(sums.values.data_ptr());
  auto* to = static_cast<std::byte*>(out.data_ptr());
  parallel_for(0, n, kGrainKeys, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(to + static_cast<size_t>(rows[i]) * row_bytes, from + static_cast<size_t>(i) * row_bytes, row_bytes);
  });
  return out;
}

}  // namespace tercel
