#include "tercel/ops/embedding/row_gradient.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tercel/core/launch.h"
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
constexpr int64_t kBlockBytes = int64_t{32} << 20;

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
  Tensor shared;      // the rows that `sorted` has; undefined for none
  SortedKeys sorted;  // in the sorter's memory
  Tensor rows, sums, counts;
};

UniqueRows::UniqueRows() = default;
UniqueRows::~UniqueRows() = default;
UniqueRows::UniqueRows(UniqueRows&&) noexcept = default;
UniqueRows& UniqueRows::operator=(UniqueRows&&) noexcept = default;

/** Sorted entries of a gradient, and the tensors that they point into. */
struct UniqueRows::Entries {
  Tensor rows, values, sources;
  SegmentSum sum;
};

UniqueRows::Scratch& UniqueRows::scratch() {
  if (!scratch_) scratch_ = std::make_unique<Scratch>();
  return *scratch_;
}

void UniqueRows::share(const Tensor& rows) {
  TERCEL_CHECK(rows.defined() && rows.is_contiguous() && rows.dtype() == kInt64 && rows.dim() == 1, RuntimeError,
               "UniqueRows: expected contiguous rows [n] of int64 but got ", describe(rows));
  const SortedKeys keys = sorted(rows);
  scratch_->sorted = keys;
  scratch_->shared = rows;
}

void UniqueRows::release() {
  if (scratch_) scratch_->shared.reset();
}

/** The rows in ascending order: the shared ones, or sorted here. */
SortedKeys UniqueRows::sorted(const Tensor& rows) {
  Scratch& s = scratch();
  if (s.shared.defined() && s.shared.data_ptr() == rows.data_ptr() && s.shared.numel() == rows.numel()) return s.sorted;
  release();
  return s.sorter.sort("UniqueRows", static_cast<const int64_t*>(rows.data_ptr()), rows.numel());
}

UniqueRows::Entries UniqueRows::sort(const Gradient& gradient) {
  TERCEL_CHECK(gradient.is_rows() && gradient.defined(), RuntimeError, "UniqueRows: expected a row gradient");
  Entries entries;
  entries.rows = gradient.rows.contiguous();
  const Tensor& rows = entries.rows;
  TERCEL_CHECK(rows.dtype() == kInt64 && rows.dim() == 1, RuntimeError,
               "UniqueRows: expected rows [n] of int64 but got ", describe(rows));
  const int64_t n = rows.numel();
  TERCEL_CHECK(gradient.values.is_differentiable(), RuntimeError, "UniqueRows: expected floating values but got ",
               describe(gradient.values));
  if (gradient.sources.defined()) {
    entries.sources = gradient.sources.contiguous();
    const Tensor& sources = entries.sources;
    TERCEL_CHECK(gradient.values.dim() >= 1 && sources.dtype() == kInt64 && sources.sizes() == rows.sizes(),
                 RuntimeError, "UniqueRows: expected values [m, ...] and sources [", n, "] of int64 but got ",
                 describe(gradient.values), " and ", describe(sources));
    const auto* first = static_cast<const int64_t*>(sources.data_ptr());
    const int64_t m = gradient.values.size(0);
    const bool inside = std::all_of(first, first + n, [m](int64_t source) { return source >= 0 && source < m; });
    TERCEL_CHECK(inside, IndexError, "UniqueRows: expected sources from 0 to ", m - 1, ", the values' rows");
  } else {
    TERCEL_CHECK(gradient.values.dim() >= 1 && gradient.values.size(0) == n, RuntimeError,
                 "UniqueRows: expected values [", n, ", ...] but got ", describe(gradient.values));
  }
  entries.values = rows_are_dense(gradient.values) ? gradient.values : gradient.values.contiguous();
  const Tensor& values = entries.values;

  SegmentSum& sum = entries.sum;
  sum.sorted = sorted(rows);
  sum.sources = entries.sources.defined() ? static_cast<const int64_t*>(entries.sources.data_ptr()) : nullptr;
  sum.values = values.data_ptr();
  // The two parts of complex numbers are added like elements of a row of twice the length.
  const int64_t parts = values.is_complex() ? 2 : 1;
  sum.value_stride = parts * values.stride(0);
  sum.dim = parts * numel_of(values.sizes().subspan(1, values.sizes().size() - 1));
  sum.dtype = real_dtype(values.dtype());
  return entries;
}

/** The rows whose first entries are in [begin, end). */
Gradient UniqueRows::sum(const Entries& entries, int64_t begin, int64_t end) {
  Scratch& scratch = *scratch_;
  const Device device = entries.values.device();
  const auto count_segments = count_segments_kernels[device];
  const auto sum_segments = sum_segments_kernels[device];
  const Partition partition = launch_partition(device, begin, end, kGrainKeys);
  const int64_t chunks = partition.chunks();
  auto* firsts = static_cast<int64_t*>(reserve_scratch(scratch.counts, chunks * int64_t{sizeof(int64_t)}));
  partition.run(
      [&](int64_t chunk, int64_t from, int64_t to) { firsts[chunk] = count_segments(entries.sum.sorted, from, to); });
  int64_t segments = 0;
  for (int64_t i = 0; i < chunks; ++i) segments += std::exchange(firsts[i], segments);

  DimVector sizes(entries.values.sizes());
  sizes[0] = segments;
  Gradient out{view_of_scratch(scratch.sums, sizes, entries.values.dtype()),
               view_of_scratch(scratch.rows, {segments}, kInt64)};
  SegmentSum sum = entries.sum;
  sum.rows = static_cast<int64_t*>(out.rows.data_ptr());
  sum.sums = out.values.data_ptr();
  partition.run([&](int64_t chunk, int64_t from, int64_t to) { sum_segments(sum, from, to, firsts[chunk]); });
  return out;
}

Gradient UniqueRows::reduce(const Gradient& gradient) {
  const ProfileRange range("unique_rows", RangeKind::Op);
  const Entries entries = sort(gradient);
  return sum(entries, 0, entries.rows.numel());
}

void UniqueRows::reduce_in_blocks(const Gradient& gradient, FunctionRef<void(const Gradient&)> visit) {
  const ProfileRange range("unique_rows", RangeKind::Op);
  const Entries entries = sort(gradient);
  const int64_t n = entries.rows.numel();
  const int64_t row_bytes = std::max<int64_t>(1, entries.sum.dim * static_cast<int64_t>(item_size(entries.sum.dtype)));
  const int64_t block = std::max(kGrainKeys, kBlockBytes / row_bytes);
  for (int64_t begin = 0; begin < n; begin += block) {
    const Gradient sums = sum(entries, begin, std::min(begin + block, n));
    if (sums.rows.numel() > 0) visit(sums);
  }
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
