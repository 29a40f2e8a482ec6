// COO tensors repeated along dimensions: what strided tensors do by strides of 0.
#include <algorithm>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constexpr int64_t kGrain = 16384;

/** The sparse dimensions of a result, with those that the operand lacks in front. */
struct Repeated {
  DimVector sizes;          ///< of the result
  DimVector dims, times;    ///< dimensions along which entries are repeated, and how often
  int64_t count = 1;        ///< the product of `times`
  bool tiles = true;        ///< all entries together are repeated, not each of them
  bool keeps_order = true;  ///< entries in row-major order remain so
};

Repeated repetition(IntSpan wanted, IntSpan given, size_t sparse_dims) {
  const size_t lead = wanted.size() - given.size();
  Repeated out;
  int64_t first_kept = -1, last_kept = -1;
  for (size_t d = 0; d < lead + sparse_dims; ++d) {
    const int64_t size = d < lead ? 1 : given[d - lead];
    out.sizes.push_back(wanted[d]);
    if (size != wanted[d]) {
      out.dims.push_back(static_cast<int64_t>(d));
      out.times.push_back(wanted[d]);
    } else if (size != 1) {
      if (first_kept < 0) first_kept = static_cast<int64_t>(d);
      last_kept = static_cast<int64_t>(d);
    }
  }
  out.count = numel_of(out.times);
  if (out.dims.empty() || first_kept < 0) return out;
  out.tiles = out.dims.back() < first_kept;
  out.keeps_order = out.tiles || out.dims.front() > last_kept;
  return out;
}

void check_broadcast(IntSpan wanted, IntSpan given) {
  TERCEL_CHECK(wanted.size() >= given.size(), RuntimeError,
               "the requested broadcast shape has fewer dimensions than the input");
  const size_t lead = wanted.size() - given.size();
  for (const int64_t s : wanted)
    TERCEL_CHECK(s >= 0, RuntimeError, "_sparse_broadcast_to: expected sizes that are not negative but got ", wanted);
  for (size_t d = 0; d < given.size(); ++d)
    TERCEL_CHECK(given[d] == 1 || given[d] == wanted[d + lead], RuntimeError, "The input's length ", given[d],
                 " at dimension ", d, " does not broadcast over the requested shape of length ", wanted[d + lead],
                 " at dimension ", d + lead);
}

/** Of each entry of the result the position [n] of the entry that it repeats, and the indices of the result. */
std::pair<Tensor, Tensor> repeated_entries(const Tensor& indices, const Repeated& repeated, size_t lead) {
  const int64_t nnz = indices.size(1);
  int64_t total = 0;
  TERCEL_CHECK(!__builtin_mul_overflow(nnz, repeated.count, &total), RuntimeError,
               "_sparse_broadcast_to: the number of entries, ", nnz, " x ", repeated.count, ", overflows");
  const Tensor source = empty({total}, kInt64), turn = empty({total}, kInt64);
  auto *from = source.data<int64_t>(), *number = turn.data<int64_t>();
  parallel_for(0, total, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      from[i] = repeated.tiles ? i % nnz : i / repeated.count;
      number[i] = repeated.tiles ? i / nnz : i % repeated.count;
    }
  });
  const Tensor places = sparse_ops::unflatten(turn, repeated.times);
  const Tensor out = zeros({static_cast<int64_t>(repeated.sizes.size()), total}, kInt64);
  size_t next = 0;
  for (size_t d = 0; d < repeated.sizes.size(); ++d) {
    const Tensor row = select(out, 0, static_cast<int64_t>(d));
    if (next < repeated.dims.size() && repeated.dims[next] == static_cast<int64_t>(d))
      copy_(row, select(places, 0, static_cast<int64_t>(next++)));
    else if (d >= lead)
      copy_(row, index_select(select(indices, 0, static_cast<int64_t>(d - lead)), 0, source));
  }
  return {source, out};
}

}  // namespace

void sparse_refuse_expand(const Tensor& x) {
  throw_error<RuntimeError>({"expand is unsupported for ", sparse_ops::layout_word(x.layout()), " tensors"});
}

Tensor _sparse_broadcast_to(const Tensor& given, IntSpan size) {
  sparse_ops::parts_of("_sparse_broadcast_to", given);
  check_broadcast(size, given.sizes());
  if (size == given.sizes()) return given;
  const Tensor x = sparse_ops::for_values(given);
  const SparseData& parts = sparse_ops::parts_of("_sparse_broadcast_to", x);
  const auto sparse_dims = static_cast<size_t>(parts.sparse_dim);
  const size_t lead = size.size() - x.sizes().size();
  const Repeated repeated = repetition(size, x.sizes(), sparse_dims);
  const auto [source, indices] = repeated_entries(parts.indices, repeated, lead);
  DimVector value_sizes{parts.values.size(0)};
  for (size_t d = lead + sparse_dims; d < size.size(); ++d) value_sizes.push_back(size[d]);
  const Tensor values = index_select(expand(sparse_ops::recorded_values(x), value_sizes), 0, source);
  return sparse_ops::coo_of_values(indices, values, size, parts.coalesced && repeated.keeps_order);
}

}  // namespace tercel
