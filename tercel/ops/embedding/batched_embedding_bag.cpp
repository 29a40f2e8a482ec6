#include "tercel/ops/embedding/batched_embedding_bag.h"

#include <vector>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/embedding/lookup_impl.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/reduce/differences.h"
#include "tercel/ops/reduce/segment_reduce.h"
#include "tercel/ops/views/flip_roll_repeat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

// Lookup for the keys and row_offsets of a batch, with `slots` bags per sample.
Lookup make_batched_lookup(const Tensor& keys, const Tensor& row_offsets, int64_t slots, BagMode mode) {
  constexpr const char* kOp = "batched_embedding_bag";
  check_index_dtype(kOp, keys, "keys");
  check_index_dtype(kOp, row_offsets, "row_offsets");
  TERCEL_CHECK(slots > 0, RuntimeError, kOp, ": expected at least one slot but got ", slots);
  TERCEL_CHECK(mode != BagMode::Max, NotImplementedError, kOp, ": mode 'max' is supported only by embedding_bag()");
  TERCEL_CHECK(keys.dim() == 1 && row_offsets.dim() == 1, RuntimeError, kOp,
               ": expected keys [n] and row_offsets [batch * slots + 1] but got ", describe(keys), " and ",
               describe(row_offsets));
  TERCEL_CHECK(row_offsets.numel() >= 1 && (row_offsets.numel() - 1) % slots == 0, RuntimeError, kOp,
               ": expected row_offsets [batch * ", slots, " + 1] but got ", describe(row_offsets));
  Lookup lookup = make_lookup(kOp, keys, row_offsets, mode);
  lookup.bags = row_offsets.numel() - 1;
  check_ends(lookup, "row_offsets");
  return lookup;
}

/** Weights [n] of keys divided by the sum of their bag, if that is not 0. */
Tensor divide_by_bag(const Tensor& key_weights, const Tensor& row_offsets) {
  const Tensor offsets = to(row_offsets, kInt64);
  const Tensor sums = segment_reduce(key_weights, "sum", Tensor(), Tensor(), offsets);
  return div(key_weights, repeat_interleave(masked_fill(sums, eq(sums, 0), 1), diff(offsets)));
}

}  // namespace

Tensor batched_embedding_bag(const Tensor& weight, const Tensor& keys, const Tensor& row_offsets, int64_t slots,
                             BagMode mode, const Tensor& key_weights) {
  constexpr const char* kOp = "batched_embedding_bag";
  check_table(kOp, weight);
  Lookup lookup = make_batched_lookup(keys, row_offsets, slots, mode);
  Tensor weights = key_weights;
  if (weights.defined()) {
    check_strided(kOp, weights, "key_weights");
    TERCEL_CHECK(weights.dim() == 1 && weights.numel() == keys.numel() && weights.dtype() == weight.dtype(),
                 RuntimeError, kOp, ": expected key_weights [", keys.numel(), "] of dtype ", to_string(weight.dtype()),
                 " but got ", describe(weights));
    if (lookup.mean) weights = divide_by_bag(weights, lookup.offsets);
    lookup.mean = false;
  }
  const int64_t batch = lookup.bags / slots;
  return look_up("BatchedEmbeddingBagBackward0", weight, std::move(lookup), weights, TableGradient::RowsOfIndices, -1,
                 {batch, slots, weight.size(1)});
}

Tensor batched_embedding_bag(Span<Tensor> weights, const Tensor& keys, const Tensor& row_offsets, BagMode mode) {
  constexpr const char* kOp = "batched_embedding_bag";
  const int64_t slots = static_cast<int64_t>(weights.size());
  TERCEL_CHECK(slots > 0, RuntimeError, kOp, ": expected at least one weight");
  bool records = false;
  for (const Tensor& weight : weights) {
    check_table(kOp, weight);
    TERCEL_CHECK(weight.size(1) == weights[0].size(1) && weight.dtype() == weights[0].dtype(), RuntimeError, kOp,
                 ": expected weights of one dtype and row size but got ", describe(weights[0]), " and ",
                 describe(weight));
    records |= should_record(weight);
  }
  const Lookup lookup = make_batched_lookup(keys, row_offsets, slots, mode);
  const int64_t batch = lookup.bags / slots, dim = weights[0].size(1);
  Tensor out;
  bool one_each = false;
  {
    NoRecordGuard no_grad;
    std::vector<Tensor> tables;
    for (const Tensor& weight : weights) tables.push_back(weight.contiguous());
    out = empty({batch, slots, dim}, weights[0].options());
    one_each = run_lookup(tables, lookup, out);
  }
  if (records)
    record_list("BatchedEmbeddingBagBackward0", out, weights,
                once_differentiable([saved = SavedLookup(lookup, one_each), dim, slots](BackwardCall& call) {
                  const Lookup then = saved.get();
                  Tensor grad = call.take();
                  if (is_shared(grad)) grad = dense_copy(grad);
                  grad = contiguous(reshape(grad, {then.bags, dim}));
                  for (int64_t slot = 0; slot < slots; ++slot)
                    if (call.needs(static_cast<size_t>(slot)))
                      call.set(static_cast<size_t>(slot), gradient_of_slot(then, saved.one_each, grad, slot, slots));
                }));
  return out;
}

}  // namespace tercel
