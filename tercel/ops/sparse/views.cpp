// Rearranged entries: what strided tensors do by views. Sparse results share values where they can, and are no views.
#include <algorithm>
#include <bitset>
#include <numeric>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/nonzero.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sort/search.h"
#include "tercel/ops/sort/sort.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

using sparse_ops::coo_of_values;
using sparse_ops::for_values;
using sparse_ops::make_coo;
using sparse_ops::parts_of;
using sparse_ops::recorded_values;
using sparse_ops::replace_by_result;

namespace {

/** The indices in one dimension: a view. */
Tensor row(const Tensor& indices, size_t d) { return select(indices, 0, static_cast<int64_t>(d)); }

Tensor without_row(const Tensor& indices, size_t d) {
  const auto dim = static_cast<int64_t>(d), n = indices.size(0);
  return cat({narrow(indices, 0, 0, dim), narrow(indices, 0, dim + 1, n - dim - 1)}, 0);
}

Tensor nonzero_positions(const Tensor& mask) { return reshape(nonzero(mask), {-1}); }

/** The dimension of the values that the dense dimension d of the tensor has. */
int64_t value_dim(const SparseData& parts, size_t d) { return static_cast<int64_t>(d) - parts.sparse_dim + 1; }

bool is_sparse_dim(const SparseData& parts, size_t d) { return static_cast<int64_t>(d) < parts.sparse_dim; }

Tensor permuted(const Tensor& x, const DimVector& order) {
  const SparseData& parts = parts_of("permute", x);
  const auto n = static_cast<size_t>(parts.sparse_dim);
  DimVector sizes, value_order{0};
  const Tensor at = empty({parts.sparse_dim}, kInt64);
  bool same = true;
  for (size_t d = 0; d < order.size(); ++d) {
    sizes.push_back(x.sizes()[static_cast<size_t>(order[d])]);
    if (d < n) {
      at.data<int64_t>()[d] = order[d];
      same &= order[d] == static_cast<int64_t>(d);
    } else {
      value_order.push_back(order[d] - parts.sparse_dim + 1);
    }
  }
  const Tensor indices = same ? parts.indices : index_select(parts.indices, 0, at);
  return make_coo(indices, permute(parts.values, value_order), sizes, same && parts.coalesced);
}

}  // namespace

Tensor sparse_permute(const Tensor& x, IntSpan dims) {
  if (is_compressed(x.layout()) && dims.size() == 2 && x.dim() == 2 && wrap_dim(dims[0], 2) != wrap_dim(dims[1], 2))
    return transpose(x, 0, wrap_dim(dims[0], 2));
  const SparseData& parts = parts_of("permute", x);
  TERCEL_CHECK(
      dims.size() == x.sizes().size(), RuntimeError,
      "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering "
      "of dimensions i.e. input.dim() = ",
      x.dim(), " is not equal to len(dims) = ", dims.size());
  DimVector order, inverse(dims.size(), 0);
  std::bitset<128> named;
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto from = static_cast<size_t>(wrap_dim(dims[d], x.dim()));
    TERCEL_CHECK(!named[from], RuntimeError, "permute(sparse_coo): duplicate dims are not allowed.");
    named.set(from);
    TERCEL_CHECK(is_sparse_dim(parts, d) == is_sparse_dim(parts, from), RuntimeError,
                 "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed.Only "
                 "transpositions within sparse and dense dimensions are supported.");
    order.push_back(static_cast<int64_t>(from));
    inverse[from] = static_cast<int64_t>(d);
  }
  Tensor out = permuted(x, order);
  if (should_record(x))
    record("PermuteBackward0", out, {x}, [inverse](BackwardCall& call) { call.set(0, permute(call.grad(), inverse)); });
  return out;
}

Tensor sparse_transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  if (is_compressed(x.layout())) return compressed_transpose(x, dim0, dim1);
  const SparseData& parts = parts_of("transpose", x);
  const auto a = static_cast<size_t>(wrap_dim(dim0, x.dim())), b = static_cast<size_t>(wrap_dim(dim1, x.dim()));
  TERCEL_CHECK(a == b || is_sparse_dim(parts, a) == is_sparse_dim(parts, b), RuntimeError,
               "sparse transpose: transposed dimensions must be sparse Got sparse_dim: ", parts.sparse_dim, ", d0: ", a,
               ", d1: ", b);
  DimVector order(x.sizes().size(), 0);
  std::iota(order.begin(), order.end(), int64_t{0});
  if (!order.empty()) std::swap(order[a], order[b]);
  Tensor out = permuted(x, order);
  if (should_record(x))
    record("TransposeBackward0", out, {x}, [a, b](BackwardCall& call) {
      call.set(0, transpose(call.grad(), static_cast<int64_t>(a), static_cast<int64_t>(b)));
    });
  return out;
}

const Tensor& sparse_transpose_(const char* op, const Tensor& x, int64_t dim0, int64_t dim1) {
  parts_of(op, x);
  replace_by_result(x, transpose(sparse_as_it_was(x, should_record(x)), dim0, dim1));
  return x;
}

Tensor sparse_unsqueeze(const Tensor& x, int64_t dim) {
  const SparseData& parts = parts_of("unsqueeze", x);
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim() + 1));
  DimVector sizes(x.sizes());
  sizes.insert(sizes.begin() + d, 1);
  Tensor out;
  // A new dimension at the border of both kinds is sparse.
  if (static_cast<int64_t>(d) <= parts.sparse_dim) {
    const auto at = static_cast<int64_t>(d), n = parts.sparse_dim;
    const Tensor indices = cat({narrow(parts.indices, 0, 0, at), zeros({1, parts.indices.size(1)}, kInt64),
                                narrow(parts.indices, 0, at, n - at)},
                               0);
    out = make_coo(indices, parts.values, sizes, parts.coalesced);
  } else {
    out = make_coo(parts.indices, unsqueeze(parts.values, value_dim(parts, d)), sizes, parts.coalesced);
  }
  if (should_record(x))
    record("UnsqueezeBackward0", out, {x},
           [d](BackwardCall& call) { call.set(0, squeeze(call.grad(), static_cast<int64_t>(d))); });
  return out;
}

namespace {

Tensor without_dim(const Tensor& x, size_t d) {
  const SparseData& parts = parts_of("squeeze", x);
  DimVector sizes(x.sizes());
  sizes.erase(sizes.begin() + d);
  Tensor out = is_sparse_dim(parts, d)
                   ? make_coo(without_row(parts.indices, d), parts.values, sizes, parts.coalesced)
                   : make_coo(parts.indices, squeeze(parts.values, value_dim(parts, d)), sizes, parts.coalesced);
  if (should_record(x))
    record("SqueezeBackward1", out, {x},
           [d](BackwardCall& call) { call.set(0, unsqueeze(call.grad(), static_cast<int64_t>(d))); });
  return out;
}

}  // namespace

Tensor sparse_squeeze(const Tensor& x, IntSpan dims) {
  parts_of("squeeze", x);
  std::bitset<128> named;
  for (const int64_t dim : dims) {
    const auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
    TERCEL_CHECK(!named[d], RuntimeError, "squeeze: dim ", d, " appears multiple times in the list of dims");
    named.set(d);
  }
  Tensor out = x;
  for (size_t d = x.sizes().size(); d-- > 0;)
    if (named[d] && x.sizes()[d] == 1) out = without_dim(out, d);
  return out;
}

Tensor sparse_select(const Tensor& given, int64_t dim, int64_t index) {
  if (is_compressed(given.layout())) return compressed_select(given, dim, index);
  parts_of("select", given);
  TERCEL_CHECK(given.dim() > 0, IndexError, "select() cannot be applied to a 0-dim tensor.");
  const auto d = static_cast<size_t>(wrap_dim(dim, given.dim()));
  const int64_t size = given.sizes()[d];
  TERCEL_CHECK(index >= -size && index < size, IndexError, "select(): index ", index,
               " out of range for tensor of size ", given.sizes(), " at dimension ", d);
  if (index < 0) index += size;
  const Tensor x = for_values(given);
  const SparseData& parts = parts_of("select", x);
  DimVector sizes(x.sizes());
  sizes.erase(sizes.begin() + d);
  const Tensor elements = recorded_values(x);
  if (!is_sparse_dim(parts, d))
    return coo_of_values(parts.indices, select(elements, value_dim(parts, d), index), sizes, parts.coalesced);
  const Tensor at = nonzero_positions(eq(row(parts.indices, d), index));
  const Tensor chosen = index_select(elements, 0, at);
  // No sparse dimension remains: the result is strided, the sum of the entries.
  if (parts.sparse_dim == 1) return sum(chosen, {0}, false, x.dtype());
  return coo_of_values(index_select(without_row(parts.indices, d), 1, at), chosen, sizes, parts.coalesced);
}

Tensor sparse_narrow(const Tensor& given, int64_t dim, int64_t start, int64_t length) {
  parts_of("narrow", given);
  const auto d = static_cast<size_t>(dim);
  const Tensor x = for_values(given);
  const SparseData& parts = parts_of("narrow", x);
  DimVector sizes(x.sizes());
  sizes[d] = length;
  const Tensor elements = recorded_values(x);
  if (!is_sparse_dim(parts, d))
    return coo_of_values(parts.indices, narrow(elements, value_dim(parts, d), start, length), sizes, parts.coalesced);
  const Tensor index = row(parts.indices, d);
  const Tensor at = nonzero_positions(logical_and(ge(index, start), lt(index, start + length)));
  const Tensor indices = index_select(parts.indices, 1, at);
  sub_(row(indices, d), start);
  return coo_of_values(indices, index_select(elements, 0, at), sizes, parts.coalesced);
}

Tensor sparse_index_select(const Tensor& given, int64_t dim, const Tensor& index) {
  parts_of("index_select", given);
  check_strided("index_select", index, "index");
  TERCEL_CHECK(index.dim() == 1 && is_integral(index.dtype(), false), RuntimeError,
               "index_select() argument index must be 1-D long-tensor.");
  TERCEL_CHECK(given.dim() > 0, IndexError, "index_select() cannot be applied to a 0-dim tensor.");
  const auto d = static_cast<size_t>(wrap_dim(dim, given.dim()));
  const int64_t size = given.sizes()[d], count = index.numel();
  const Tensor wanted = contiguous(to(index, kInt64));
  const auto* want = static_cast<const int64_t*>(wanted.data_ptr());
  std::vector<int64_t> wrapped(want, want + count);
  for (int64_t& w : wrapped) {
    TERCEL_CHECK(w >= -size && w < size, IndexError, "index_select(): index contains ", w,
                 " that is out of range for tensor of size ", given.sizes(), " at dimension ", d);
    if (w < 0) w += size;
  }
  const Tensor x = for_values(given);
  const SparseData& parts = parts_of("index_select", x);
  DimVector sizes(x.sizes());
  sizes[d] = count;
  const Tensor elements = recorded_values(x);
  const Tensor picked = empty({count}, kInt64);
  std::copy(wrapped.begin(), wrapped.end(), picked.data<int64_t>());
  if (!is_sparse_dim(parts, d))
    return coo_of_values(parts.indices, index_select(elements, value_dim(parts, d), picked), sizes, parts.coalesced);
  // Entries in ascending order of their index in the dimension; those of an index are a range.
  const Tensor of_dim = contiguous(row(parts.indices, d));
  const auto [ascending, order] = sort(of_dim, 0);
  const Tensor lows = searchsorted(ascending, picked), highs = searchsorted(ascending, picked, false, true);
  const auto *low = static_cast<const int64_t*>(lows.data_ptr()), *high = static_cast<const int64_t*>(highs.data_ptr()),
             *entry = static_cast<const int64_t*>(order.data_ptr());
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) total += high[i] - low[i];
  const Tensor source = empty({total}, kInt64), place = empty({total}, kInt64);
  auto *from = source.data<int64_t>(), *to = place.data<int64_t>();
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = low[i]; k < high[i]; ++k) {
      *from++ = entry[k];
      *to++ = i;
    }
  const Tensor indices = index_select(parts.indices, 1, source);
  copy_(row(indices, d), place);
  return coo_of_values(indices, index_select(elements, 0, source), sizes, false);
}

namespace {

void check_joined(const char* op, Span<Tensor> tensors, size_t d) {
  const Tensor& first = tensors[0];
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    check_defined(op, t, "tensors");
    TERCEL_CHECK(is_sparse(t.layout()), RuntimeError,
                 "Concatenating sparse tensors, but a dense tensor was found at position ", i, ".");
    parts_of(op, t);
    bool fits = t.dim() == first.dim();
    for (size_t k = 0; fits && k < t.sizes().size(); ++k) fits = k == d || t.sizes()[k] == first.sizes()[k];
    TERCEL_CHECK(fits, RuntimeError, "All tensors must have the same shape: ", first.sizes(),
                 " (except in the concatenating dimension), but found shape: ", t.sizes(), " at position ", i, ".");
    TERCEL_CHECK(sparse_dim(t) == sparse_dim(first), RuntimeError, "All tensors must have the same sparse_dim and ",
                 "dense_dim: ", sparse_dim(first), ", ", dense_dim(first), ", but tensor at position ", i, " has ",
                 sparse_dim(t), ", ", dense_dim(t), ".");
  }
}

Tensor joined(Span<Tensor> tensors, size_t d, ScalarType dtype) {
  std::vector<Tensor> indices, elements;
  DimVector sizes(tensors[0].sizes());
  const SparseData& first = *tensors[0].impl().sparse();
  const bool sparse = is_sparse_dim(first, d);
  int64_t total = 0;
  for (const Tensor& t : tensors) total += t.sizes()[d];
  sizes[d] = total;
  int64_t before = 0;
  for (const Tensor& t : tensors) {
    const SparseData& parts = *t.impl().sparse();
    const int64_t size = t.sizes()[d];
    Tensor values = to(parts.values, dtype);
    if (sparse) {
      const Tensor moved = clone(parts.indices, MemoryFormat::Contiguous);
      add_(row(moved, d), before);
      indices.push_back(moved);
    } else {
      DimVector wide(values.sizes());
      const auto at = static_cast<size_t>(value_dim(parts, d));
      wide[at] = total;
      const Tensor padded = zeros(wide, values.options());
      copy_(narrow(padded, static_cast<int64_t>(at), before, size), values);
      indices.push_back(parts.indices);
      values = padded;
    }
    elements.push_back(values);
    before += size;
  }
  return make_coo(cat(indices, 1), cat(elements, 0), sizes, false);
}

}  // namespace

Tensor sparse_cat(Span<Tensor> tensors, int64_t dim) {
  check_defined("cat", tensors[0], "tensors");
  const auto d = static_cast<size_t>(wrap_dim(dim, tensors[0].dim()));
  check_joined("cat", tensors, d);
  ScalarType dtype = tensors[0].dtype();
  bool records = false;
  for (const Tensor& t : tensors) {
    dtype = promote_types(dtype, t.dtype());
    records |= should_record(t);
  }
  Tensor out = joined(tensors, d, dtype);
  if (records) {
    DimVector lengths;
    std::vector<ScalarType> dtypes;
    for (const Tensor& t : tensors) {
      lengths.push_back(t.sizes()[d]);
      dtypes.push_back(t.dtype());
    }
    record_list("CatBackward0", out, tensors, [d, lengths, dtypes](BackwardCall& call) {
      int64_t before = 0;
      for (size_t i = 0; i < lengths.size(); ++i) {
        if (call.needs(i)) call.set(i, to(narrow(call.grad(), static_cast<int64_t>(d), before, lengths[i]), dtypes[i]));
        before += lengths[i];
      }
    });
  }
  return out;
}

Tensor sparse_stack(Span<Tensor> tensors, int64_t dim) {
  const int64_t d = wrap_dim(dim, tensors[0].dim() + 1);
  std::vector<Tensor> wide;
  for (const Tensor& t : tensors) {
    TERCEL_CHECK(is_sparse(t.layout()), RuntimeError,
                 "Concatenating sparse tensors, but a dense tensor was found at position ", wide.size(), ".");
    TERCEL_CHECK(t.sizes() == tensors[0].sizes(), RuntimeError, "stack expects each tensor to be equal size, but got ",
                 tensors[0].sizes(), " at entry 0 and ", t.sizes(), " at entry ", wide.size());
    wide.push_back(unsqueeze(t, d));
  }
  return cat(wide, d);
}

}  // namespace tercel
