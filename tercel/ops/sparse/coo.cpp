#include "tercel/ops/sparse/coo.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

std::atomic<bool> g_check_invariants{true};

void check_shapes(const Tensor& indices, const Tensor& values) {
  check_defined("sparse_coo_tensor", indices, "indices");
  check_defined("sparse_coo_tensor", values, "values");
  TERCEL_CHECK(indices.layout() == Layout::Strided, RuntimeError,
               "expected indices to be a dense tensor, but got indices of layout ",
               sparse_ops::layout_word(indices.layout()));
  TERCEL_CHECK(values.layout() == Layout::Strided, RuntimeError,
               "expected values to be a dense tensor, but got values of layout ",
               sparse_ops::layout_word(values.layout()));
  TERCEL_CHECK(is_integral(indices.dtype(), false), TypeError,
               "sparse_coo_tensor: expected indices of an integer dtype but got ", to_string(indices.dtype()));
  TERCEL_CHECK(indices.dim() == 2, RuntimeError, "indices must be sparse_dim x nnz, but got: ", indices.sizes());
  TERCEL_CHECK(values.dim() >= 1, RuntimeError, "values must have at least one dimension, of size nnz");
  TERCEL_CHECK(indices.size(1) == values.size(0), RuntimeError,
               "indices and values must have same nnz, but got nnz from indices: ", indices.size(1),
               ", nnz from values: ", values.size(0));
  TERCEL_CHECK(indices.device() == values.device(), RuntimeError, "device of indices (", to_string(indices.device()),
               ") must match device of values (", to_string(values.device()), ")");
}

/** The smallest and the largest index of each sparse dimension; for none, 0 and -1. */
struct Bounds {
  DimVector low, high;
};
Bounds bounds_of(const Tensor& indices) {
  const auto dims = static_cast<size_t>(indices.size(0));
  Bounds bounds{DimVector(dims, 0), DimVector(dims, -1)};
  const int64_t n = indices.size(1), step = indices.stride(1);
  const auto* at = static_cast<const int64_t*>(indices.data_ptr());
  if (n == 0) return bounds;
  for (size_t d = 0; d < dims; ++d, at += indices.stride(0)) {
    int64_t low = at[0], high = at[0];
    for (int64_t i = 1; i < n; ++i) {
      low = std::min(low, at[i * step]);
      high = std::max(high, at[i * step]);
    }
    bounds.low[d] = low;
    bounds.high[d] = high;
  }
  return bounds;
}

void check_not_negative(const Bounds& bounds) {
  for (size_t d = 0; d < bounds.low.size(); ++d)
    TERCEL_CHECK(bounds.low[d] >= 0, RuntimeError, "found negative index ", bounds.low[d], " for dim ", d);
}

void check_below(const Bounds& bounds, IntSpan size) {
  for (size_t d = 0; d < bounds.high.size(); ++d)
    TERCEL_CHECK(bounds.high[d] < size[d], RuntimeError, "size is inconsistent with indices: for dim ", d, ", size is ",
                 size[d], " but found index ", bounds.high[d]);
}

Tensor constructed(const Tensor& given, const Tensor& values, IntSpan size, bool check,
                   std::optional<bool> is_coalesced) {
  const Tensor indices = to(given, kInt64).detach();
  const size_t sparse_dim = static_cast<size_t>(indices.size(0)), dense_dim = static_cast<size_t>(values.dim() - 1);
  TERCEL_CHECK(size.size() == sparse_dim + dense_dim, RuntimeError,
               "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = ", size.size(),
               ", sparse_dim = ", sparse_dim, ", dense_dim = ", dense_dim);
  DimVector expected(values.sizes());
  std::copy_n(size.data() + sparse_dim, dense_dim, expected.begin() + 1);
  TERCEL_CHECK(IntSpan(expected) == values.sizes(), RuntimeError, "values has incorrect size, expected ",
               IntSpan(expected), ", got ", values.sizes());
  const bool coalesced = is_coalesced.value_or(false);
  if (check) {
    const Bounds bounds = bounds_of(indices);
    check_not_negative(bounds);
    check_below(bounds, size);
    const auto in_order = [&] {
      return sparse_ops::ascends(sparse_ops::flat_indices("sparse_coo_tensor", indices, size.subspan(0, sparse_dim)));
    };
    TERCEL_CHECK(!coalesced || in_order(), RuntimeError,
                 "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor");
  }
  return sparse_ops::coo_of_values(indices, values, size, coalesced);
}

}  // namespace

bool sparse::check_invariants() { return g_check_invariants.load(std::memory_order_relaxed); }
void sparse::set_check_invariants(bool check) { g_check_invariants.store(check, std::memory_order_relaxed); }

Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntSpan size,
                         std::optional<bool> check_invariants, std::optional<bool> is_coalesced) {
  check_shapes(indices, values);
  return constructed(indices, values, size, check_invariants.value_or(sparse::check_invariants()), is_coalesced);
}

DimVector infer_coo_size(const Tensor& indices, const Tensor& values) {
  check_shapes(indices, values);
  const Bounds bounds = bounds_of(to(indices, kInt64));
  check_not_negative(bounds);
  DimVector size;
  for (size_t d = 0; d < bounds.high.size(); ++d) {
    TERCEL_CHECK(bounds.high[d] < std::numeric_limits<int64_t>::max(), RuntimeError, "sparse_coo_tensor: index ",
                 bounds.high[d], " for dim ", d, " is too large: no size above it fits in 64 bits");
    size.push_back(bounds.high[d] + 1);
  }
  for (size_t d = 1; d < values.sizes().size(); ++d) size.push_back(values.sizes()[d]);
  return size;
}

Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values) {
  return constructed(indices, values, infer_coo_size(indices, values), false, std::nullopt);
}

Tensor sparse_coo_tensor(IntSpan size, TensorOptions options) {
  Tensor out = sparse_ops::empty_coo(size, options.dtype, options.device, static_cast<int64_t>(size.size()));
  return options.requires_grad ? out.requires_grad_() : out;
}

namespace {

/** RuntimeError "indices expected sparse coordinate tensor layout but got Strided". */
const SparseData& coo_parts(const char* op, const Tensor& x, const char* kind = "sparse coordinate tensor") {
  check_defined(op, x, "self");
  TERCEL_CHECK(x.layout() == Layout::SparseCoo, RuntimeError, op, " expected ", kind, " layout but got ",
               sparse_ops::layout_word(x.layout()));
  return *x.impl().sparse();
}

}  // namespace

Tensor indices(const Tensor& x) {
  const SparseData& parts = coo_parts("indices", x);
  TERCEL_CHECK(parts.coalesced, RuntimeError,
               "Cannot get indices on an uncoalesced tensor, please call .coalesce() first");
  return parts.indices.detach();
}

Tensor values(const Tensor& x) {
  if (is_compressed(x.layout())) {
    const Tensor out = sparse_ops::compressed_values(x);
    if (!is_tracked(x)) detail::init_view(out, out.detach(), ViewOrigin::Ordinary);
    return out;
  }
  const SparseData& parts = coo_parts("values", x, "sparse tensor");
  TERCEL_CHECK(parts.coalesced, RuntimeError,
               "Cannot get values on an uncoalesced tensor, please call .coalesce() first");
  Tensor out = parts.values.detach();
  if (should_record(x))
    record("ValuesBackward0", out, {x},
           [indices = SavedTensor(parts.indices), sizes = DimVector(x.sizes())](BackwardCall& call) {
             call.set(0, sparse_ops::coo_of_values(indices.get(), call.grad(), sizes, true));
           });
  return out;
}

Tensor _indices(const Tensor& x) { return coo_parts("_indices", x).indices.detach(); }
Tensor _values(const Tensor& x) { return coo_parts("_values", x).values.detach(); }
int64_t _nnz(const Tensor& x) {
  if (is_compressed(x.layout())) return x.impl().sparse()->plain_indices.size(-1);
  return coo_parts("_nnz", x).values.size(0);
}

int64_t sparse_dim(const Tensor& x) {
  check_defined("sparse_dim", x, "self");
  return x.impl().sparse() ? x.impl().sparse()->sparse_dim : 0;
}
int64_t dense_dim(const Tensor& x) {
  check_defined("dense_dim", x, "self");
  return x.impl().sparse() ? x.impl().sparse()->dense_dim : x.dim();
}
bool is_coalesced(const Tensor& x) { return coo_parts("is_coalesced", x).coalesced; }

const Tensor& _coalesced_(const Tensor& x, bool coalesced) {
  coo_parts("_coalesced_", x);
  x.impl().sparse()->coalesced = coalesced;
  x.impl().bump_version();
  return x;
}

namespace {

constexpr const char* kResizeOptions =
    "You could try the following options:\n1. If you need an empty sparse tensor of this size, call `x = "
    "tercel.sparse_coo_tensor(size)`.\n2. If you need to resize this tensor, you have the following options:\n    1. "
    "For both sparse and dense dimensions, keep the number of them constant and the size of them non-shrinking, and "
    "then try the same call again.\n    2. Or, create a new sparse tensor with the correct indices and values from "
    "this "
    "sparse tensor.";

void check_resize_dims(const char* op, const Tensor& x, IntSpan size, int64_t sparse_dim, int64_t dense_dim) {
  coo_parts(op, x);
  TERCEL_CHECK(sparse_dim >= 0 && dense_dim >= 0 && sparse_dim + dense_dim == static_cast<int64_t>(size.size()),
               RuntimeError, "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = ", size.size(),
               ", sparse_dim = ", sparse_dim, ", dense_dim = ", dense_dim);
  for (const int64_t s : size)
    TERCEL_CHECK(s >= 0, RuntimeError, op, ": expected sizes that are not negative but got ", size);
}

bool shrinks(IntSpan from, IntSpan to) {
  for (size_t d = 0; d < from.size(); ++d)
    if (to[d] < from[d]) return true;
  return false;
}

}  // namespace

const Tensor& sparse_resize_and_clear_(const Tensor& x, IntSpan size, int64_t sparse_dim, int64_t dense_dim) {
  check_resize_dims("sparse_resize_and_clear_", x, size, sparse_dim, dense_dim);
  sparse_ops::check_unrecorded("sparse_resize_and_clear_", x, should_record(x));
  sparse_ops::replace_parts(x, sparse_ops::empty_coo(size, x.dtype(), x.device(), sparse_dim));
  return x;
}

const Tensor& sparse_resize_(const Tensor& x, IntSpan size, int64_t sparse_dim, int64_t dense_dim) {
  check_resize_dims("sparse_resize_", x, size, sparse_dim, dense_dim);
  const SparseData& parts = *x.impl().sparse();
  const int64_t nnz = parts.values.size(0);
  if (nnz == 0) return sparse_resize_and_clear_(x, size, sparse_dim, dense_dim);
  TERCEL_CHECK(sparse_dim == parts.sparse_dim, RuntimeError, "changing the number of sparse dimensions (from ",
               parts.sparse_dim, " to ", sparse_dim, ") on a non-empty sparse tensor is not supported.\n",
               kResizeOptions);
  TERCEL_CHECK(dense_dim == parts.dense_dim, RuntimeError, "changing the number of dense dimensions (from ",
               parts.dense_dim, " to ", dense_dim, ") on a non-empty sparse tensor is not supported.\n",
               kResizeOptions);
  const auto n = static_cast<size_t>(sparse_dim);
  const IntSpan sparse_now = sparse_ops::sparse_sizes(x, parts), dense_now = sparse_ops::dense_sizes(x, parts);
  const IntSpan sparse_then = size.subspan(0, n), dense_then = size.subspan(n, size.size() - n);
  TERCEL_CHECK(!shrinks(sparse_now, sparse_then), RuntimeError, "shrinking the size of sparse dimensions (from ",
               sparse_now, " to ", sparse_then, ") on a non-empty sparse tensor is not supported.\n", kResizeOptions);
  TERCEL_CHECK(!shrinks(dense_now, dense_then), RuntimeError, "shrinking the size of dense dimensions (from ",
               dense_now, " to ", dense_then, ") on a non-empty sparse tensor is not supported.\n", kResizeOptions);
  sparse_ops::check_unrecorded("sparse_resize_", x, should_record(x));
  Tensor values = parts.values;
  if (!(dense_now == dense_then)) {
    DimVector wide{nnz};
    for (const int64_t s : dense_then) wide.push_back(s);
    values = zeros(wide, parts.values.options());
    Tensor inside = values;
    for (size_t d = 0; d < dense_now.size(); ++d) inside = narrow(inside, static_cast<int64_t>(d) + 1, 0, dense_now[d]);
    copy_(inside, parts.values);
  }
  sparse_ops::replace_parts(x, sparse_ops::make_coo(parts.indices, values, size, parts.coalesced));
  return x;
}

const Tensor& resize_as_sparse_(const Tensor& x, const Tensor& the_template) {
  check_defined("resize_as_sparse_", x, "self");
  check_defined("resize_as_sparse_", the_template, "the_template");
  if (has_compressed(x, the_template)) return compressed_resize_as_(x, the_template);
  coo_parts("resize_as_sparse_", x);
  return sparse_resize_(x, the_template.sizes(), sparse_dim(the_template), dense_dim(the_template));
}

}  // namespace tercel
