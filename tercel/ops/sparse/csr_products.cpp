// Products of matrices by rows with strided ones.
#include <algorithm>
#include <atomic>
#include <limits>

#include "tercel/core/launch.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sparse/csr_impl.h"
#include "tercel/ops/sparse/csr_kernels.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/ceil_div.h"

namespace tercel::sparse_ops {

namespace {

constinit const KernelTable<CsrProductFn> product_kernels = TERCEL_CPU_KERNELS(csr_product);
constinit const KernelTable<CsrScatterFn> scatter_kernels = TERCEL_CPU_KERNELS(csr_scatter);
constinit const KernelTable<CsrSampleFn> sample_kernels = TERCEL_CPU_KERNELS(csr_sample);

/** Multiplications that are worth another thread. */
constexpr int64_t kGrain = 32768;
/** A result of at least this size does not stay in the caches until it is read. */
constexpr size_t kStreamBytes = size_t{32} << 20;

CsrLoop loop_of(const CsrMatrix& a, ScalarType dtype) {
  return {.offsets = a.offsets.data_ptr(),
          .columns = a.columns.data_ptr(),
          .values = a.values.defined() ? a.values.data_ptr() : nullptr,
          .num_columns = a.num_columns,
          .nnz = a.nnz(),
          .wide = a.index_dtype() == kInt64,
          .dtype = dtype};
}

/** The first row r for which r and the number of entries before it have at least this sum. */
template <class I>
int64_t balanced_row(const CsrMatrix& a, int64_t position) {
  const I* offsets = static_cast<const I*>(a.offsets.data_ptr());
  int64_t low = 0, high = a.num_rows();
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (static_cast<int64_t>(offsets[middle]) + middle < position)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

int64_t balanced_row(const CsrMatrix& a, int64_t position) {
  return a.index_dtype() == kInt64 ? balanced_row<int64_t>(a, position) : balanced_row<int32_t>(a, position);
}

/** Calls body(begin, end) for all rows, on several threads; `work` multiplications for each entry. */
template <class Body>
void for_rows(const char* op, const CsrMatrix& a, int64_t work, Body&& body) {
  const int64_t total = a.nnz() + a.num_rows();
  const Partition partition(0, total, std::max<int64_t>(1, kGrain / std::max<int64_t>(work, 1)));
  std::atomic<int64_t> fault{std::numeric_limits<int64_t>::max()};
  const auto row_at = [&](int64_t chunk) {
    return chunk == partition.chunks() ? a.num_rows() : balanced_row(a, partition.begin(chunk));
  };
  partition.run([&](int64_t chunk, int64_t, int64_t) {
    const int64_t row = body(row_at(chunk), row_at(chunk + 1));
    if (row >= 0) fault.store(row, std::memory_order_relaxed);
  });
  TERCEL_CHECK(fault.load() == std::numeric_limits<int64_t>::max(), IndexError, op,
               ": a sparse operand has an index outside of size ", a.num_columns);
}

/** Both in the dtype of the product, contiguous. */
CsrMatrix prepared(const char* op, const CsrMatrix& given, ScalarType dtype) {
  CsrMatrix a = checked_csr(op, given);
  a.values = to(a.values, dtype);
  return a;
}

/** Sums of so few columns are divided by rows, into several results that are then added. */
constexpr int64_t kFewColumns = 32;
/** How many: by sizes alone, so that every number of threads adds in the same order. */
int64_t parts_of_sum(const CsrMatrix& a, int64_t n) {
  if (n >= kFewColumns) return 1;
  return std::clamp<int64_t>(a.nnz() / (4 * std::max<int64_t>(a.num_columns, kGrain)), 1, 8);
}

/** Adds rows [begin, end) of a's transpose times dense to out, which holds zeros or sums. */
void scatter_into(const char* op, const CsrMatrix& a, const Tensor& dense, const Tensor& out, int64_t begin,
                  int64_t end) {
  const int64_t n = dense.size(1);
  const CsrScatter work{loop_of(a, dense.dtype()), dense.data_ptr(), out.data_ptr(), n};
  const auto scatter = scatter_kernels[kCpu];
  // Threads divide the columns of the result: each adds all entries in order.
  constexpr int64_t kLine = 16;
  const Partition partition(0, ceil_div(n, kLine),
                            std::max<int64_t>(1, kGrain / (std::max<int64_t>(a.nnz(), 1) * kLine)));
  std::atomic<int64_t> found{-1};
  partition.run([&](int64_t, int64_t first, int64_t last) {
    const int64_t row = scatter(work, begin, end, first * kLine, std::min(n, last * kLine));
    if (row >= 0) found.store(row, std::memory_order_relaxed);
  });
  TERCEL_CHECK(found.load() < 0, IndexError, op, ": a sparse operand has an index outside of size ", a.num_columns);
}

}  // namespace

ScalarType product_dtype(ScalarType t) {
  if (t == kFloat16 || t == kBFloat16) return kFloat32;
  return is_integral(t, true) ? kInt64 : t;
}

void share_index_dtype(CsrMatrix& a, CsrMatrix& b) {
  if (a.index_dtype() == b.index_dtype()) return;
  for (CsrMatrix* m : {&a, &b}) {
    m->offsets = to(m->offsets, kInt64);
    m->columns = to(m->columns, kInt64);
  }
}

CsrMatrix checked_csr(const char* op, const CsrMatrix& given) {
  CsrMatrix a{given.offsets.contiguous(), given.columns.contiguous(),
              given.values.defined() ? given.values.contiguous() : Tensor(), given.num_columns};
  const bool rises = visit_index_types(op, a.index_dtype(), [&]<class I> {
    const I* offsets = static_cast<const I*>(a.offsets.data_ptr());
    const int64_t rows = a.num_rows();
    if (offsets[0] != 0 || static_cast<int64_t>(offsets[rows]) != a.nnz()) return false;
    bool falls = false;
    for (int64_t r = 0; r < rows; ++r) falls |= offsets[r + 1] < offsets[r];
    return !falls;
  });
  TERCEL_CHECK(rises, IndexError, op, ": the offsets of a sparse operand do not rise from 0 to its ", a.nnz(),
               " entries");
  return a;
}

Tensor csr_times_dense(const char* op, const CsrMatrix& given, const Tensor& given_dense) {
  const ScalarType dtype = product_dtype(given_dense.dtype());
  const CsrMatrix a = prepared(op, given, dtype);
  const Tensor dense = contiguous(to(given_dense, dtype));
  const int64_t n = dense.size(1);
  Tensor out = empty({a.num_rows(), n}, TensorOptions(dtype, dense.device()));
  if (out.numel() > 0) {
    const CsrProduct work{loop_of(a, dtype), dense.data_ptr(), out.data_ptr(), n, out.nbytes() >= kStreamBytes};
    const auto product = product_kernels[dense.device()];
    for_rows(op, a, n, [&](int64_t begin, int64_t end) { return product(work, begin, end); });
  }
  return to(out, given_dense.dtype());
}

Tensor csr_transposed_times_dense(const char* op, const CsrMatrix& given, const Tensor& given_dense) {
  const ScalarType dtype = product_dtype(given_dense.dtype());
  const CsrMatrix a = prepared(op, given, dtype);
  const Tensor dense = contiguous(to(given_dense, dtype));
  const int64_t n = dense.size(1);
  const int64_t parts = parts_of_sum(a, n);
  const Tensor sums = zeros({parts, a.num_columns, n}, TensorOptions(dtype, dense.device()));
  if (sums.numel() > 0)
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const auto row_of = [&](int64_t p) { return balanced_row(a, (a.nnz() + a.num_rows()) / parts * p); };
        scatter_into(op, a, dense, select(sums, 0, part), row_of(part),
                     part + 1 == parts ? a.num_rows() : row_of(part + 1));
      }
    });
  return to(parts == 1 ? select(sums, 0, 0) : sum(sums, {0}), given_dense.dtype());
}

Tensor csr_sampled_product(const char* op, const CsrMatrix& given, const Tensor& given_left,
                           const Tensor& given_right) {
  const ScalarType dtype = product_dtype(given_left.dtype());
  const CsrMatrix a = checked_csr(op, {given.offsets, given.columns, Tensor(), given.num_columns});
  const Tensor left = contiguous(to(given_left, dtype)), right = contiguous(t(to(given_right, dtype)));
  const int64_t k = left.size(1);
  const Tensor out = empty({a.nnz()}, TensorOptions(dtype, left.device()));
  if (out.numel() > 0) {
    const CsrSample work{loop_of(a, dtype), left.data_ptr(), right.data_ptr(), out.data_ptr(), k};
    const auto sample = sample_kernels[left.device()];
    for_rows(op, a, k, [&](int64_t begin, int64_t end) { return sample(work, begin, end); });
  }
  return to(out, given_left.dtype());
}

}  // namespace tercel::sparse_ops
