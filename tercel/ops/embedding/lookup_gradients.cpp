// Gradients of lookups.
#include "tercel/core/launch.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/embedding/lookup_impl.h"
#include "tercel/ops/embedding/row_gradient.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/histogram.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

constinit const KernelTable<BagEntriesFn> entries_kernels = TERCEL_CPU_KERNELS(embedding_bag_entries);
constinit const KernelTable<BagWeightedEntriesFn> weighted_entries_kernels =
    TERCEL_CPU_KERNELS(embedding_bag_weighted_entries);
constinit const KernelTable<BagWeightGradFn> weight_grad_kernels = TERCEL_CPU_KERNELS(embedding_bag_weight_grad);

/** The number of indices in the bags before one. */
int64_t indices_before(const Lookup& lookup, int64_t bag) {
  return bag == 0 || !lookup.offsets.defined() ? bag : index_at(lookup.offsets, bag);
}

/** The options of rows and sources. */
TensorOptions indices_like(const Tensor& grad) { return {kInt64, grad.device()}; }

/** The gradient of a table whose lookups have weights: a value for each index. */
Gradient weighted_gradient(const Lookup& lookup, const Tensor& grad) {
  const LookupOperands operands(grad, lookup);
  const auto kernel = weighted_entries_kernels[grad.device()];
  const int64_t n = lookup.indices.numel(), dim = grad.size(1);
  Tensor values = empty({n, dim}, grad.options());
  if (lookup.padding >= 0) {
    // The output position of an entry depends on all entries before it.
    Tensor rows = empty({n}, indices_like(grad));
    const int64_t used =
        kernel(*operands, grad.data_ptr(), {0, 1, lookup.bags, rows.data<int64_t>(), nullptr, values.data_ptr()});
    return {narrow(values, 0, 0, used), narrow(rows, 0, 0, used)};
  }
  const int64_t row_bytes = dim * static_cast<int64_t>(grad.itemsize());
  launch(grad.device(), 0, lookup.bags, operands.grain(), [&](int64_t begin, int64_t end) {
    const int64_t first = indices_before(lookup, begin);
    kernel(*operands, grad.data_ptr(),
           {begin, 1, end - begin, nullptr, nullptr, static_cast<std::byte*>(values.data_ptr()) + first * row_bytes});
  });
  return {std::move(values), to(lookup.indices, kInt64)};
}

}  // namespace

Gradient gradient_of_table(const Lookup& lookup, bool one_each, const Tensor& grad) {
  if (one_each && !lookup.index_weights.defined() && lookup.padding < 0) return {grad, to(lookup.indices, kInt64)};
  const Tensor dense_grad = contiguous(grad);
  if (lookup.index_weights.defined()) return weighted_gradient(lookup, dense_grad);
  const LookupOperands operands(dense_grad, lookup);
  const auto kernel = entries_kernels[grad.device()];
  const int64_t n = lookup.indices.numel();
  const Tensor shares = lookup.mean ? empty(dense_grad.sizes(), grad.options()) : Tensor();
  void* const values = shares.defined() ? shares.data_ptr() : nullptr;
  Gradient out{shares.defined() ? shares : dense_grad, Tensor(), empty({n}, indices_like(grad))};
  auto* const sources = static_cast<int64_t*>(out.sources.data_ptr());
  if (lookup.padding >= 0) {
    // The output position of an entry depends on all entries before it.
    out.rows = empty({n}, indices_like(grad));
    auto* const rows = static_cast<int64_t*>(out.rows.data_ptr());
    const int64_t used = kernel(*operands, dense_grad.data_ptr(), {0, 1, lookup.bags, rows, sources, values});
    out.rows = narrow(out.rows, 0, 0, used);
    out.sources = narrow(out.sources, 0, 0, used);
    return out;
  }
  launch(grad.device(), 0, lookup.bags, operands.grain(), [&](int64_t begin, int64_t end) {
    const int64_t first = indices_before(lookup, begin);
    kernel(*operands, dense_grad.data_ptr(), {begin, 1, end - begin, nullptr, sources + first, values});
  });
  out.rows = to(lookup.indices, kInt64);
  return out;
}

Gradient gradient_of_slot(const Lookup& lookup, bool one_each, const Tensor& grad, int64_t table, int64_t tables) {
  const int64_t batch = lookup.bags / tables;
  const Tensor of_table = select(view(grad, {batch, tables, grad.size(1)}), 1, table);
  if (one_each) {
    const Tensor rows = to(lookup.indices, kInt64);
    return {of_table, contiguous(select(view(rows, {batch, tables}), 1, table))};
  }
  const LookupOperands operands(grad, lookup);
  int64_t n = 0;
  for (int64_t b = table; b < lookup.bags; b += tables)
    n += index_at(lookup.offsets, b + 1) - index_at(lookup.offsets, b);
  const Tensor shares = lookup.mean ? empty(of_table.sizes(), grad.options()) : Tensor();
  Gradient out{shares.defined() ? shares : of_table, empty({n}, indices_like(grad)), empty({n}, indices_like(grad))};
  entries_kernels[grad.device()](
      *operands, grad.data_ptr(),
      {table, tables, batch, static_cast<int64_t*>(out.rows.data_ptr()), static_cast<int64_t*>(out.sources.data_ptr()),
       shares.defined() ? shares.data_ptr() : nullptr});
  return out;
}

Tensor index_weight_grad(const Lookup& lookup, const Tensor& table, const Tensor& grad) {
  Tensor grads = empty({lookup.indices.numel()}, grad.options());
  // No indices precede the first bag, as offsets begin with 0.
  const LookupOperands operands(Span<Tensor>(&table, 1), lookup);
  const auto kernel = weight_grad_kernels[grad.device()];
  launch(grad.device(), 0, lookup.bags, operands.grain(),
         [&](int64_t begin, int64_t end) { kernel(*operands, grad.data_ptr(), grads.data_ptr(), begin, end); });
  return grads;
}

// For second derivatives, gradients are ops of the graph. A lookup is linear in the table, in the index weights and, in
// backward, in the gradient: each of the three functions has the other two as its derivatives.

Tensor recorded_table_gradient(const SavedLookup& saved, const Tensor& grad, const Tensor& index_weights,
                               int64_t rows) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    Lookup lookup = saved.get();
    lookup.index_weights = index_weights.defined() ? flatten(contiguous(index_weights)) : Tensor();
    out = dense_gradient(gradient_of_table(lookup, saved.one_each, grad), {rows, grad.size(1)});
  }
  if (should_record(grad, index_weights))
    record("EmbeddingBagDenseBackward0", out, {grad, index_weights},
           [saved, grad = SavedTensor(grad), index_weights = SavedTensor(index_weights)](BackwardCall& call) {
             const Tensor g = grad.get(), weights = index_weights.get();
             if (call.needs(0)) {
               Lookup lookup = saved.get();
               lookup.index_weights = Tensor();
               call.set(0, look_up("EmbeddingBagBackward0", call.grad(), lookup, weights, TableGradient::Dense,
                                   saved.padding, g.sizes()));
             }
             if (call.needs(1)) call.set(1, recorded_index_weight_gradient(saved, g, call.grad(), weights));
           });
  return out;
}

Tensor recorded_index_weight_gradient(const SavedLookup& saved, const Tensor& grad, const Tensor& weight,
                                      const Tensor& index_weights) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = view(index_weight_grad(saved.get(), readable_table(weight), contiguous(grad)), index_weights.sizes());
  }
  if (should_record(grad, weight))
    record("EmbeddingBagWeightBackward0", out, {grad, weight},
           [saved, grad = SavedTensor(grad), weight = SavedTensor(weight)](BackwardCall& call) {
             const Tensor g = grad.get(), table = weight.get();
             if (call.needs(0)) {
               Lookup lookup = saved.get();
               lookup.index_weights = Tensor();
               call.set(0, look_up("EmbeddingBagBackward0", table, lookup, call.grad(), TableGradient::Dense,
                                   saved.padding, g.sizes()));
             }
             if (call.needs(1)) call.set(1, recorded_table_gradient(saved, g, call.grad(), table.size(0)));
           });
  return out;
}

void check_dense_scaling(bool sparse) {
  TERCEL_CHECK(!sparse, RuntimeError, "embedding_backward: scale_grad_by_freq not supported with sparse gradients");
}

Tensor with_gradient_by_frequency(const Tensor& weight, const Lookup& lookup) {
  if (!should_record(weight)) return weight;
  const Tensor out = weight.detach();
  Tensor counts;  // at least 1
  {
    const NoRecordGuard no_record;
    const Tensor flat = to(lookup.indices, kInt64);
    BagResult result;
    result.fault = BagResult::Fault::Index;
    for (; result.position < flat.numel(); ++result.position) {
      const int64_t index = flat.data<int64_t>()[result.position];
      if (index < 0 || index >= weight.size(0)) refuse_lookup(lookup, result, weight.size(0), 1);
    }
    counts = to(view(clamp_min(bincount(flat, {}, weight.size(0)), 1), {weight.size(0), 1}), weight.dtype());
  }
  record("EmbeddingScaleBackward0", out, {weight},
         [counts = SavedTensor(counts)](BackwardCall& call) { call.set(0, div(call.grad(), counts.get())); });
  return out;
}

}  // namespace tercel
