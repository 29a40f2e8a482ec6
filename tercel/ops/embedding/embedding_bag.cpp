#include "tercel/ops/embedding/embedding_bag.h"

#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/embedding/lookup_impl.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

// Checks offsets that lack the end of the last bag.
void check_starts(const Lookup& lookup) {
  const int64_t n = lookup.offsets.numel(), indices = lookup.indices.numel();
  if (n == 0) {
    TERCEL_CHECK(indices == 0, RuntimeError, lookup.op, ": expected no indices, since there are no offsets, but got ",
                 indices);
    return;
  }
  const int64_t first = index_at(lookup.offsets, 0), last = index_at(lookup.offsets, n - 1);
  TERCEL_CHECK(first == 0, RuntimeError, lookup.op,
               ": offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
               "However, got ",
               first);
  TERCEL_CHECK(last <= indices, RuntimeError, lookup.op, ": offsets[-1] can not be greater than input's length ",
               indices, " but got offsets[-1] of ", last);
}

/** The row of the largest element of each column of each bag (the first of equal ones); 0 for an empty bag. */
template <class T>
void find_largest(const Lookup& lookup, const Tensor& table, const Tensor& rows, const Tensor& empty_bags) {
  const Tensor indices = to(lookup.indices, kInt64), offsets = to(lookup.offsets, kInt64);
  const auto* index = indices.data<int64_t>();
  const auto* start = offsets.data<int64_t>();
  const int64_t dim = table.size(1), n = indices.numel(), starts = offsets.numel();
  // Rows without columns may be at a null pointer.
  const int64_t stride = dim == 0 ? 0 : table.stride(0);
  const T* weight = table.data<T>();
  parallel_for(0, lookup.bags, std::max<int64_t>(1, kLookupGrainBytes / ((dim + 1) * static_cast<int64_t>(sizeof(T)))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) {
                   const int64_t first = start[b], last = b + 1 < starts ? start[b + 1] : n;
                   BagResult result;
                   result.bag = b;
                   result.fault = BagResult::Fault::Offset;
                   if (first < 0 || first > last || last > n) refuse_lookup(lookup, result, table.size(0), 1);
                   int64_t* row = rows.data<int64_t>() + b * dim;
                   bool any = false;
                   for (int64_t i = first; i < last; ++i) {
                     result.fault = BagResult::Fault::Index;
                     result.position = i;
                     if (index[i] < 0 || index[i] >= table.size(0)) refuse_lookup(lookup, result, table.size(0), 1);
                     if (index[i] == lookup.padding) continue;
                     const T* values = weight + index[i] * stride;
                     for (int64_t c = 0; c < dim; ++c)
                       if (!any || values[c] > weight[row[c] * stride + c]) row[c] = index[i];
                     any = true;
                   }
                   empty_bags.data<bool>()[b] = !any;
                 }
               });
}

/** Column maxima of bags: gathered, so that the gradient goes to the rows they came from. */
Tensor largest_of_bags(const Tensor& weight, const Lookup& lookup) {
  Tensor rows, empty_bags;
  {
    const NoRecordGuard no_record;
    rows = zeros({lookup.bags, weight.size(1)}, kInt64);
    empty_bags = empty({lookup.bags, 1}, kBool);
    const Tensor table = readable_table(weight);
    if (weight.size(0) == 0 && lookup.indices.numel() == 0) return zeros(rows.sizes(), weight.options());
    visit_types<float, double, Half, BFloat16>(lookup.op, weight.dtype(),
                                               [&]<class T>() { find_largest<T>(lookup, table, rows, empty_bags); });
  }
  return masked_fill(gather(weight, 0, rows), empty_bags, 0);
}

Tensor bags_of_one_table(const Tensor& weight, Lookup lookup, const EmbeddingBagOptions& options,
                         const Tensor& index_weights) {
  check_table(lookup.op, weight);
  if (index_weights.defined()) {
    TERCEL_CHECK(options.mode == BagMode::Sum, RuntimeError, lookup.op,
                 ": per_sample_weights are for mode 'sum' but the mode is '", to_string(options.mode), "'");
    TERCEL_CHECK(index_weights.dtype() == weight.dtype(), RuntimeError, lookup.op,
                 ": expected per_sample_weights to have the same type as weight, ", to_string(weight.dtype()),
                 ", but got ", to_string(index_weights.dtype()));
    TERCEL_CHECK(index_weights.numel() == lookup.indices.numel(), RuntimeError, lookup.op,
                 ": expected per_sample_weights of ", to_string(weight.dtype()), ", one for each of the ",
                 lookup.indices.numel(), " indices, but got ", describe(index_weights));
  }
  lookup.padding = wrap_padding_idx(lookup.op, options.padding_idx, weight.size(0));
  if (options.mode == BagMode::Max) {
    TERCEL_CHECK(!options.sparse, ValueError, "max mode does not support sparse weights");
    TERCEL_CHECK(!options.scale_grad_by_freq, ValueError,
                 "max mode does not support scaling the gradient by the frequency");
    return largest_of_bags(weight, lookup);
  }
  if (options.scale_grad_by_freq) {
    check_dense_scaling(options.sparse);
    const Tensor scaled = with_gradient_by_frequency(weight, lookup);
    return look_up("EmbeddingBagBackward0", scaled, lookup, index_weights, TableGradient::Dense, lookup.padding,
                   {lookup.bags, weight.size(1)});
  }
  return look_up("EmbeddingBagBackward0", weight, lookup, index_weights,
                 options.sparse ? TableGradient::Rows : TableGradient::Dense, lookup.padding,
                 {lookup.bags, weight.size(1)});
}

}  // namespace

Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                     const EmbeddingBagOptions& options, const Tensor& per_sample_weights) {
  constexpr const char* kOp = "embedding_bag";
  check_index_dtype(kOp, indices, "indices");
  check_index_dtype(kOp, offsets, "offsets");
  TERCEL_CHECK(indices.dim() == 1, RuntimeError, kOp, ": expected indices [n] with offsets but got ", describe(indices),
               "; 2-D indices are bags by row and take no offsets");
  TERCEL_CHECK(offsets.dim() == 1, RuntimeError, kOp, ": offsets has to be a 1D Tensor but got ", describe(offsets));
  Lookup lookup = make_lookup(kOp, indices, offsets, options.mode);
  if (options.include_last_offset) {
    check_ends(lookup, "offsets");
    lookup.bags = offsets.numel() - 1;
  } else {
    check_starts(lookup);
    lookup.bags = offsets.numel();
  }
  return bags_of_one_table(weight, std::move(lookup), options, per_sample_weights);
}

Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const EmbeddingBagOptions& options,
                     const Tensor& per_sample_weights) {
  constexpr const char* kOp = "embedding_bag";
  check_index_dtype(kOp, indices, "indices");
  TERCEL_CHECK(indices.dim() == 2, RuntimeError, kOp, ": expected indices [bags, n], or offsets, but got ",
               describe(indices));
  const int64_t bags = indices.size(0), n = indices.size(1);
  Tensor starts = empty({bags}, kInt64);
  for (int64_t b = 0; b < bags; ++b) starts.data<int64_t>()[b] = b * n;
  Lookup lookup = make_lookup(kOp, indices, starts, options.mode);
  lookup.bags = bags;
  return bags_of_one_table(weight, std::move(lookup), options, per_sample_weights);
}

}  // namespace tercel
