#include "tercel/ops/nn/softmax.h"

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/index/scatter.h"
#include "tercel/ops/sort/unique.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/sparse/sparse.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

using sparse_ops::coo_of_values;
using sparse_ops::flat_indices;
using sparse_ops::parts_of;
using sparse_ops::sparse_sizes;

/** Of each entry, the number of the group that has the same indices but for dimension d; and how many there are. */
std::pair<Tensor, int64_t> groups_of(const Tensor& indices, IntSpan sparse_sizes, size_t d) {
  DimVector others, sizes;
  for (size_t k = 0; k < sparse_sizes.size(); ++k)
    if (k != d) {
      others.push_back(static_cast<int64_t>(k));
      sizes.push_back(sparse_sizes[k]);
    }
  if (others.empty()) return {zeros({indices.size(1)}, kInt64), 1};
  std::vector<Tensor> rows;
  for (const int64_t k : others) rows.push_back(select(indices, 0, k));
  const UniqueValues groups = unique(flat_indices("softmax", stack(rows, 0), sizes), true);
  return {groups.inverse, groups.values.numel()};
}

Tensor softmax_of(const char* op, const Tensor& given, int64_t dim, ScalarType dtype, bool logarithm) {
  parts_of(op, given);
  const auto d = static_cast<size_t>(wrap_dim(dim, given.dim()));
  const Tensor x = coalesce(dtype == ScalarType::Undefined ? given : to(given, dtype));
  TERCEL_CHECK(x.is_floating_point(), NotImplementedError, op, ": expected a floating dtype but got ",
               to_string(x.dtype()));
  const SparseData& parts = *x.impl().sparse();
  const Tensor v = values(x);
  Tensor out;
  if (static_cast<int64_t>(d) >= parts.sparse_dim) {
    const int64_t value_dim = static_cast<int64_t>(d) - parts.sparse_dim + 1;
    out = logarithm ? tercel::log_softmax(v, value_dim) : tercel::softmax(v, value_dim);
  } else if (v.size(0) == 0) {
    out = v;
  } else {
    const auto [group, count] = groups_of(parts.indices, sparse_sizes(x, parts), d);
    DimVector sizes(v.sizes());
    sizes[0] = count;
    // The result does not depend on what is subtracted, so no gradient flows through it.
    const Tensor detached = v.detach();
    const Tensor largest =
        index_reduce(zeros(sizes, detached.options()), 0, group, detached, ScatterReduction::Maximum, false);
    const Tensor shifted = sub(v, index_select(largest, 0, group));
    const Tensor e = exp(shifted);
    const Tensor sums = index_add(zeros(sizes, detached.options()), 0, group, e);
    out = logarithm ? sub(shifted, index_select(log(sums), 0, group)) : div(e, index_select(sums, 0, group));
  }
  return coo_of_values(parts.indices, out, x.sizes(), true);
}

}  // namespace

Tensor sparse::softmax(const Tensor& input, int64_t dim, ScalarType dtype) {
  return softmax_of("sparse.softmax", input, dim, dtype, false);
}
Tensor sparse::log_softmax(const Tensor& input, int64_t dim, ScalarType dtype) {
  return softmax_of("sparse.log_softmax", input, dim, dtype, true);
}

}  // namespace tercel
