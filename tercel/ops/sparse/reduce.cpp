#include <bitset>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/vector_norms.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/sparse/sparse.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views.h"

namespace tercel {

using sparse_ops::compressed_values;
using sparse_ops::coo_of_values;
using sparse_ops::for_values;
using sparse_ops::parts_of;
using sparse_ops::recorded_values;

namespace {

using Dims = std::bitset<128>;

Dims dims_of(const char* op, const Tensor& x, IntSpan dims) {
  Dims summed;
  if (dims.empty()) return summed.set();
  for (const int64_t dim : dims) {
    const auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
    TERCEL_CHECK(!summed[d], RuntimeError, op, ": dim ", d, " appears multiple times in the list of dims");
    summed.set(d);
  }
  return summed;
}

/** The sum of a COO tensor, recorded through its values. */
Tensor sum_of(const Tensor& given, const Dims& summed, ScalarType dtype) {
  // Dense dimensions, then entries: rounded to 16 bits once, not after each.
  if (const ScalarType result = dtype == ScalarType::Undefined ? given.dtype() : dtype;
      result == kFloat16 || result == kBFloat16)
    return to(sum_of(to(given, kFloat32), summed, kFloat32), result);
  const Tensor x = for_values(given);
  const SparseData& parts = parts_of("sum", x);
  const auto n = static_cast<size_t>(parts.sparse_dim);
  DimVector kept_dims, kept_sizes, value_dims;
  for (size_t d = 0; d < n; ++d)
    if (!summed[d]) kept_dims.push_back(static_cast<int64_t>(d));
  for (size_t d = 0; d < x.sizes().size(); ++d) {
    if (!summed[d])
      kept_sizes.push_back(x.sizes()[d]);
    else if (d >= n)
      value_dims.push_back(static_cast<int64_t>(d - n) + 1);
  }
  Tensor elements = recorded_values(x);
  if (kept_dims.empty()) {
    value_dims.push_back(0);
    return sum(elements, value_dims, false, dtype);
  }
  if (!value_dims.empty())
    elements = sum(elements, value_dims, false, dtype);
  else if (dtype != ScalarType::Undefined)
    elements = to(elements, dtype);
  else if (!elements.is_differentiable() && elements.dtype() != kUInt64)
    elements = to(elements, kInt64);
  if (kept_dims.size() == n) return coo_of_values(parts.indices, elements, kept_sizes, parts.coalesced);
  sparse_ops::check_indices("sum", parts.indices, sparse_ops::sparse_sizes(x, parts));  // also those left out below
  const Tensor rows = empty({static_cast<int64_t>(kept_dims.size())}, kInt64);
  for (size_t i = 0; i < kept_dims.size(); ++i) rows.data<int64_t>()[i] = kept_dims[i];
  return coalesce(coo_of_values(index_select(parts.indices, 0, rows), elements, kept_sizes, false));
}

}  // namespace

Tensor sparse::sum(const Tensor& input, IntSpan dim, ScalarType dtype) {
  parts_of("sparse.sum", input);
  return sum_of(input, dims_of("sum", input, dim), dtype);
}

Tensor sparse_sum(const Tensor& x, IntSpan dims, bool keepdim, ScalarType dtype) {
  if (is_compressed(x.layout())) return compressed_sum(x, dims, keepdim, dtype);
  parts_of("sum", x);
  const Dims summed = dims_of("sum", x, dims);
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = sum_of(x, summed, dtype);
    if (keepdim)
      for (size_t d = 0; d < x.sizes().size(); ++d)
        if (summed[d]) out = unsqueeze(out, static_cast<int64_t>(d));
  }
  if (should_record(x) && out.is_differentiable())
    record("SumBackward1", out, {x},
           [summed, keepdim, sizes = DimVector(x.sizes()), dtype = x.dtype()](BackwardCall& call) {
             Tensor g = to_dense(call.grad());
             if (!keepdim)
               for (size_t d = 0; d < sizes.size(); ++d)
                 if (summed[d]) g = unsqueeze(g, static_cast<int64_t>(d));
             call.set(0, to(expand(g, sizes), dtype));
           });
  return out;
}

Tensor sparse_any(const Tensor& x) {
  if (is_compressed(x.layout())) return any(x.impl().sparse()->values);
  parts_of("any", x);
  return any(recorded_values(coalesce(x)).detach());
}

Tensor sparse_norm(const Tensor& x, double p) {
  if (is_compressed(x.layout())) return norm(compressed_values(x), p);
  parts_of("norm", x);
  return norm(values(coalesce(x)), p);
}

Tensor sparse_norm(const Tensor& x, double p, IntSpan dims, bool keepdim) {
  TERCEL_CHECK(!keepdim, RuntimeError, "norm_sparse currently does not support keepdim=True");
  const Dims summed = dims_of("norm", x, dims);
  for (size_t d = 0; d < x.sizes().size(); ++d)
    TERCEL_CHECK(summed[d], RuntimeError,
                 "norm_sparse currently only supports full reductions, so 'dim' must either be ",
                 "empty or contain all dimensions of the input");
  return norm(x, p);
}

}  // namespace tercel
