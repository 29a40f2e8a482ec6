#include "tercel/ops/sparse/compressed.h"

#include <algorithm>
#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/subscript.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/compressed_invariants_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"

namespace tercel {

using sparse_ops::batch_of;
using sparse_ops::by_rows;
using sparse_ops::check_compressed_indices;
using sparse_ops::compressed_of_values;
using sparse_ops::is_blocked;
using sparse_ops::layout_word;
using sparse_ops::make_compressed;
using sparse_ops::with_index;

namespace {

/** PyTorch's names of the parts of a layout. */
struct PartNames {
  const char *compressed, *plain, *rows;
};
PartNames names_of(Layout layout) {
  switch (layout) {
    case Layout::SparseCsr: return {"crow_indices", "col_indices", "rows"};
    case Layout::SparseBsr: return {"crow_indices", "col_indices", "row blocks"};
    case Layout::SparseCsc: return {"ccol_indices", "row_indices", "columns"};
    default: return {"ccol_indices", "row_indices", "column blocks"};
  }
}

void check_layout(Layout layout) {
  TERCEL_CHECK(is_compressed(layout), RuntimeError,
               "sparse_compressed_tensor expected sparse compressed tensor layout but got ", layout_word(layout));
}

bool is_contiguous_per_batch(const Tensor& x) { return x.size(-1) < 2 || x.stride(-1) == 1; }

/** What holds of parts of any size. */
void check_parts(const Tensor& compressed, const Tensor& plain, const Tensor& values, Layout layout) {
  const PartNames names = names_of(layout);
  check_strided("sparse_compressed_tensor", compressed, names.compressed);
  check_strided("sparse_compressed_tensor", plain, names.plain);
  check_strided("sparse_compressed_tensor", values, "values");
  TERCEL_CHECK(compressed.dim() >= 1, RuntimeError, names.compressed, " must have dimensionality >= 1 but got ",
               compressed.dim());
  TERCEL_CHECK(compressed.dim() == plain.dim(), RuntimeError, names.compressed, " and ", names.plain,
               " dimensionalities must be equal but got ", compressed.dim(), " and ", plain.dim(), ", respectively");
  const int64_t batch = compressed.dim() - 1, block = is_blocked(layout) ? 2 : 0;
  TERCEL_CHECK(values.dim() > batch + block, RuntimeError,
               "values must have dimensionality > sum of batch and block dimensionalities (=", batch, " + ", block,
               ") but got ", values.dim());
  for (const auto& [indices, name] : {std::pair{&compressed, names.compressed}, {&plain, names.plain}})
    TERCEL_CHECK(is_contiguous_per_batch(*indices), RuntimeError, "expected ", name,
                 " to be a contiguous tensor per batch");
  TERCEL_CHECK(compressed.dtype() == plain.dtype(), RuntimeError, names.compressed, " and ", names.plain,
               " must have the same dtype, bot got ", scalar_type_word(compressed.dtype()), " and ",
               scalar_type_word(plain.dtype()), ", respectively");
  TERCEL_CHECK(compressed.dtype() == kInt32 || compressed.dtype() == kInt64, RuntimeError, names.compressed, " and ",
               names.plain, " dtype must be Int or Long, but got ", scalar_type_word(compressed.dtype()));
  TERCEL_CHECK(compressed.size(-1) >= 1, RuntimeError, names.compressed, ".shape[-1] must be at least 1, but got 0");
}

/** What also depends on the sizes. */
void check_sizes(const Tensor& compressed, const Tensor& plain, const Tensor& values, IntSpan size, Layout layout) {
  const PartNames names = names_of(layout);
  const auto batch = static_cast<size_t>(compressed.dim() - 1), block = size_t{is_blocked(layout) ? 2u : 0u};
  const size_t dense = values.sizes().size() - batch - block - 1;
  TERCEL_CHECK(size.size() == batch + 2 + dense, RuntimeError,
               "tensor dimensionality must be sum of batch, base, and dense dimensionalities (=", batch, " + 2 + ",
               dense, ") but got ", size.size());
  for (const int64_t s : size)
    TERCEL_CHECK(s >= 0, RuntimeError, "sparse_compressed_tensor: expected sizes that are not negative but got ", size);
  const auto batch_of = [batch](IntSpan sizes) { return sizes.subspan(0, batch); };
  TERCEL_CHECK(batch_of(compressed.sizes()) == batch_of(size) && batch_of(plain.sizes()) == batch_of(size) &&
                   batch_of(values.sizes()) == batch_of(size),
               RuntimeError, "all batch dimensions of ", names.compressed, " (=", batch_of(compressed.sizes()), "), ",
               names.plain, " (=", batch_of(plain.sizes()), "), and values (=", batch_of(values.sizes()),
               ") must be equal to tensor batch dimensions (=", batch_of(size), ")");
  int64_t units[2] = {size[batch], size[batch + 1]};
  for (size_t d = 0; d < 2 && block != 0; ++d) {
    const int64_t of_block = values.sizes()[batch + 1 + d];
    TERCEL_CHECK(of_block > 0, RuntimeError, "sparse_compressed_tensor: expected blocks that are not empty but got ",
                 values.sizes());
    TERCEL_CHECK(units[d] % of_block == 0, RuntimeError, "tensor shape[", d, "] (=", units[d],
                 ") must be divisible with blocksize[", d, "] (=", of_block, ") as defined by values shape");
    units[d] /= of_block;
  }
  const int64_t compressed_size = by_rows(layout) ? units[0] : units[1];
  TERCEL_CHECK(compressed.size(-1) == compressed_size + 1, RuntimeError, names.compressed,
               ".shape[-1] must be equal to the number of ", names.rows, " + 1 (=", compressed_size + 1, "), but got ",
               compressed.size(-1));
  const int64_t nnz = values.sizes()[batch];
  TERCEL_CHECK(plain.size(-1) == nnz, RuntimeError, names.plain, ".shape[-1] must be equal to nnz (=", nnz,
               ") as defined by values.shape[", batch, "], but got ", plain.size(-1));
  const IntSpan of_size = size.subspan(batch + 2, dense), of_values = values.sizes().subspan(batch + 1 + block, dense);
  TERCEL_CHECK(of_size == of_values, RuntimeError, "values has incorrect dense sizes, expected ", of_size, ", got ",
               of_values);
}

Tensor constructed(const Tensor& compressed, const Tensor& plain, const Tensor& values, IntSpan size, Layout layout,
                   std::optional<bool> check) {
  check_sizes(compressed, plain, values, size, layout);
  if (check.value_or(sparse::check_invariants())) {
    const auto d = static_cast<size_t>(compressed.dim() - 1) + (by_rows(layout) ? 1 : 0);
    const int64_t of_block = is_blocked(layout) ? values.sizes()[d + 1] : 1;
    check_compressed_indices(compressed, plain, compressed.size(-1) - 1, size[d] / of_block, by_rows(layout));
  }
  return compressed_of_values(layout, compressed.detach(), plain.detach(), values, size);
}

/** The largest of the indices + 1. */
int64_t extent(const Tensor& plain) {
  if (plain.numel() == 0) return 0;
  const Tensor all = plain.contiguous();
  return with_index(all.dtype(), [&]<class I> {
    const I* at = static_cast<const I*>(all.data_ptr());
    const auto largest = static_cast<int64_t>(*std::max_element(at, at + all.numel()));
    TERCEL_CHECK(largest < std::numeric_limits<int64_t>::max(), RuntimeError,
                 "sparse_compressed_tensor: no size has room for index ", largest);
    return largest + 1;
  });
}

}  // namespace

Tensor sparse_compressed_tensor(const Tensor& compressed, const Tensor& plain, const Tensor& values, IntSpan size,
                                Layout layout, std::optional<bool> check) {
  check_layout(layout);
  check_parts(compressed, plain, values, layout);
  return constructed(compressed, plain, values, size, layout, check);
}

Tensor sparse_compressed_tensor(const Tensor& compressed, const Tensor& plain, const Tensor& values, Layout layout,
                                std::optional<bool> check) {
  check_layout(layout);
  check_parts(compressed, plain, values, layout);
  const auto batch = static_cast<size_t>(compressed.dim() - 1), block = size_t{is_blocked(layout) ? 2u : 0u};
  DimVector size;
  for (size_t d = 0; d < batch; ++d) size.push_back(compressed.sizes()[d]);
  int64_t units[2] = {compressed.size(-1) - 1, extent(plain)};
  if (!by_rows(layout)) std::swap(units[0], units[1]);
  for (size_t d = 0; d < 2; ++d) size.push_back(units[d] * (block != 0 ? values.sizes()[batch + 1 + d] : 1));
  for (size_t d = batch + 1 + block; d < values.sizes().size(); ++d) size.push_back(values.sizes()[d]);
  return constructed(compressed, plain, values, size, layout, check);
}

Tensor sparse_compressed_tensor(IntSpan size, TensorOptions options) {
  check_layout(options.layout);
  TERCEL_CHECK(size.size() >= 2 && !is_blocked(options.layout), RuntimeError,
               "empty: Only batched sparse compressed (non-block) tensors are supported, but got size ", size);
  DimVector offsets(size.subspan(0, size.size() - 1)), none(size.subspan(0, size.size() - 2));
  const int64_t lines = size[size.size() - (by_rows(options.layout) ? 2 : 1)];
  TERCEL_CHECK(lines < std::numeric_limits<int64_t>::max(), RuntimeError, "empty: a tensor of layout ",
               to_string(options.layout), " with ", lines, by_rows(options.layout) ? " rows" : " columns",
               " has more offsets than fit in 64 bits");
  offsets[offsets.size() - 1] = lines + 1;
  none.push_back(0);
  const TensorOptions index(kInt64, options.device);
  Tensor out = make_compressed(options.layout, zeros(offsets, index), empty(none, index),
                               empty(none, TensorOptions(options.dtype, options.device)), size);
  return options.requires_grad ? out.requires_grad_() : out;
}

Tensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values, IntSpan size,
                         std::optional<bool> check) {
  return sparse_compressed_tensor(crow_indices, col_indices, values, size, Layout::SparseCsr, check);
}
Tensor sparse_csc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values, IntSpan size,
                         std::optional<bool> check) {
  return sparse_compressed_tensor(ccol_indices, row_indices, values, size, Layout::SparseCsc, check);
}
Tensor sparse_bsr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values, IntSpan size,
                         std::optional<bool> check) {
  return sparse_compressed_tensor(crow_indices, col_indices, values, size, Layout::SparseBsr, check);
}
Tensor sparse_bsc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values, IntSpan size,
                         std::optional<bool> check) {
  return sparse_compressed_tensor(ccol_indices, row_indices, values, size, Layout::SparseBsc, check);
}

namespace {

/** RuntimeError "crow_indices expected sparse row compressed tensor layout but got SparseCsc". */
const SparseData& parts_by(const char* op, const Tensor& x, bool rows) {
  check_defined(op, x, "self");
  TERCEL_CHECK(is_compressed(x.layout()) && by_rows(x.layout()) == rows, RuntimeError, op, " expected sparse ",
               rows ? "row" : "column", " compressed tensor layout but got ", layout_word(x.layout()));
  return *x.impl().sparse();
}

}  // namespace

Tensor crow_indices(const Tensor& x) { return parts_by("crow_indices", x, true).indices.detach(); }
Tensor col_indices(const Tensor& x) { return parts_by("col_indices", x, true).plain_indices.detach(); }
Tensor ccol_indices(const Tensor& x) { return parts_by("ccol_indices", x, false).indices.detach(); }
Tensor row_indices(const Tensor& x) { return parts_by("row_indices", x, false).plain_indices.detach(); }

}  // namespace tercel
