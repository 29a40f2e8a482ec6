#include "tercel/ops/embedding/embedding_bag.h"

#include <atomic>
#include <vector>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/embedding/embedding_bag_kernels.h"
#include "tercel/ops/embedding/plain_embedding_impl.h"
#include "tercel/ops/embedding/row_gradient.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/reduce/histogram.h"
#include "tercel/ops/reduce/vector_norms.h"
#include "tercel/ops/sort/unique.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<BagForwardFn> forward_kernels = TERCEL_CPU_KERNELS(embedding_bag);
constinit const KernelTable<BagExpandFn> expand_kernels = TERCEL_CPU_KERNELS(embedding_bag_expand);
constinit const KernelTable<BagWeightGradFn> weight_grad_kernels = TERCEL_CPU_KERNELS(embedding_bag_weight_grad);

// Bytes to read and write that are worth another thread.
constexpr int64_t kGrainBytes = 128 * 1024;
// Outputs that leave no room for anything else in the caches are written past them.
constexpr int64_t kStreamBytes = 32 * 1024 * 1024;

// The lookups of one call, by value: kept for backward too. Tables are known by their sizes alone then.
struct Lookup {
  const char* op;
  Tensor indices, offsets, index_weights;
  int64_t bags = 0;
  int64_t padding = -1;
  bool mean = false;
};

// The operands of a kernel, as long as the tensors live.
class LoopOperands {
 public:
  LoopOperands(Span<Tensor> tables, const Lookup& lookup) {
    for (const Tensor& table : tables) {
      pointers_.push_back(table.data_ptr());
      rows_.push_back(table.size(0));
    }
    fill(lookup);
    loop_.dim = tables[0].size(1);
    loop_.row_stride = tables.size() == 1 ? tables[0].stride(0) : loop_.dim;
    loop_.dtype = tables[0].dtype();
  }
  // For kernels that read indices and offsets alone.
  LoopOperands(const Tensor& grad, const Lookup& lookup) {
    fill(lookup);
    loop_.dim = grad.size(1);
    loop_.dtype = grad.dtype();
  }

  LoopOperands(const LoopOperands&) = delete;
  LoopOperands& operator=(const LoopOperands&) = delete;

  const BagLoop& operator*() const { return loop_; }
  int64_t grain() const {
    const int64_t row_bytes = (loop_.dim + 1) * static_cast<int64_t>(item_size(loop_.dtype));
    const int64_t bag_bytes = row_bytes * (1 + loop_.num_indices / std::max<int64_t>(bags_, 1));
    return std::max<int64_t>(1, kGrainBytes / bag_bytes);
  }

 private:
  void fill(const Lookup& lookup) {
    bags_ = lookup.bags;
    loop_.tables = pointers_.data();
    loop_.table_rows = rows_.data();
    loop_.num_tables = static_cast<int64_t>(rows_.size());
    loop_.wide = lookup.indices.dtype() == kInt64;
    loop_.indices = lookup.indices.data_ptr();
    loop_.num_indices = lookup.indices.numel();
    if (lookup.offsets.defined()) {
      loop_.offsets = lookup.offsets.data_ptr();
      loop_.num_offsets = lookup.offsets.numel();
    }
    if (lookup.index_weights.defined()) loop_.index_weights = lookup.index_weights.data_ptr();
    loop_.padding = lookup.padding;
    loop_.mean = lookup.mean;
  }

  SmallVector<const void*, 1> pointers_;
  SmallVector<int64_t, 1> rows_;
  BagLoop loop_{};
  int64_t bags_ = 0;
};

Scalar element(const Tensor& t, int64_t i) {
  return t.dtype() == kInt64 ? Scalar(t.data<int64_t>()[i]) : Scalar(t.data<int32_t>()[i]);
}

void check_indices(const char* op, const char* name, const Tensor& t) {
  check_defined(op, t, name);
  TERCEL_CHECK(t.dtype() == kInt64 || t.dtype() == kInt32, RuntimeError, op, ": expected ", name,
               " of int64 or int32 but got ", describe(t));
}

void check_weight(const char* op, const Tensor& weight) {
  check_defined(op, weight, "weight");
  TERCEL_CHECK(weight.dim() == 2, RuntimeError, op, ": 'weight' must be 2-D, but got ", describe(weight));
  TERCEL_CHECK(weight.is_floating_point(), RuntimeError, op, ": expected a floating weight but got ", describe(weight));
}

// A table whose rows a kernel can read.
Tensor readable(const Tensor& weight) {
  return weight.stride(1) == 1 || weight.size(1) <= 1 ? weight : weight.contiguous();
}

int64_t wrap_padding(const char* op, std::optional<int64_t> padding, int64_t rows) {
  if (!padding) return -1;
  TERCEL_CHECK(*padding >= -rows && *padding < rows, RuntimeError, op,
               ": padding_idx must be within the number of embeddings, ", -rows, " through ", rows - 1, ", but got ",
               *padding);
  return *padding < 0 ? *padding + rows : *padding;
}

[[noreturn]] void refuse(const Lookup& lookup, const BagResult& result, int64_t rows, int64_t tables) {
  if (result.fault == BagResult::Fault::Offset) {
    const bool last = result.bag + 1 >= lookup.offsets.numel();
    const int64_t end = last ? lookup.indices.numel() : element(lookup.offsets, result.bag + 1).to_int64();
    throw_error<RuntimeError>({lookup.op, ": expected offsets that ascend from 0 to ", lookup.indices.numel(),
                               " but bag ", result.bag, " is [", element(lookup.offsets, result.bag).to_int64(), ", ",
                               end, ")"});
  }
  const int64_t index = element(lookup.indices, result.position).to_int64();
  if (tables > 1)
    throw_error<IndexError>({lookup.op, ": index ", index, " (at position ", result.position,
                             ") is out of range for weight ", result.bag % tables, " of ", rows, " rows"});
  if (std::string_view(lookup.op) == "embedding_bag")
    throw_error<RuntimeError>({lookup.op, ": Expected idx >= 0 && idx < num_embeddings but found idx to be ", index,
                               " (at position ", result.position, ") for a weight of ", rows, " rows"});
  throw_error<IndexError>({lookup.op, ": index ", index, " (at position ", result.position,
                           ") is out of range for a weight of ", rows, " rows"});
}

// out [bags, dim]; says whether every bag holds one index.
bool run_forward(Span<Tensor> tables, const Lookup& lookup, const Tensor& out) {
  const LoopOperands operands(tables, lookup);
  const auto kernel = forward_kernels[tables[0].device()];
  const bool stream = static_cast<int64_t>(out.nbytes()) >= kStreamBytes;
  std::atomic<bool> one_each{true};
  parallel_for(0, lookup.bags, operands.grain(), [&](int64_t begin, int64_t end) {
    const BagResult result = kernel(*operands, out.data_ptr(), stream, begin, end);
    if (result.fault != BagResult::Fault::None) [[unlikely]] {
      const int64_t table = result.bag % static_cast<int64_t>(tables.size());
      refuse(lookup, result, tables[static_cast<size_t>(table)].size(0), static_cast<int64_t>(tables.size()));
    }
    if (!result.one_each) one_each.store(false, std::memory_order_relaxed);
  });
  return one_each;
}

// What backward needs of a call.
struct SavedLookup {
  const char* op;
  SavedTensor indices, offsets, index_weights;
  int64_t bags, padding;
  bool mean, one_each;

  SavedLookup(const Lookup& lookup, bool each_one)
      : op(lookup.op),
        indices(lookup.indices),
        offsets(lookup.offsets),
        index_weights(lookup.index_weights),
        bags(lookup.bags),
        padding(lookup.padding),
        mean(lookup.mean),
        one_each(each_one) {}
  Lookup get() const { return {op, indices.get(), offsets.get(), index_weights.get(), bags, padding, mean}; }
};

// The gradient of the only table, from grad [bags, dim].
Gradient rows_of_table(const Lookup& lookup, bool one_each, const Tensor& grad) {
  if (one_each && !lookup.index_weights.defined() && lookup.padding < 0) return {grad, to(lookup.indices, kInt64)};
  const Tensor dense_grad = contiguous(grad);
  const LoopOperands operands(dense_grad, lookup);
  const auto kernel = expand_kernels[grad.device()];
  const int64_t n = lookup.indices.numel(), dim = dense_grad.size(1);
  Tensor values = empty({n, dim}, grad.options());
  if (lookup.padding >= 0) {
    // Where an entry goes depends on all before it.
    Tensor rows = empty({n}, kInt64);
    const int64_t used =
        kernel(*operands, dense_grad.data_ptr(), 0, 1, lookup.bags, rows.data<int64_t>(), values.data_ptr());
    return {narrow(values, 0, 0, used), narrow(rows, 0, 0, used)};
  }
  const int64_t row_bytes = dim * static_cast<int64_t>(grad.itemsize());
  parallel_for(0, lookup.bags, operands.grain(), [&](int64_t begin, int64_t end) {
    const int64_t first = lookup.offsets.defined() ? element(lookup.offsets, begin).to_int64() : begin;
    kernel(*operands, dense_grad.data_ptr(), begin, 1, end - begin, nullptr,
           static_cast<std::byte*>(values.data_ptr()) + first * row_bytes);
  });
  return {std::move(values), to(lookup.indices, kInt64)};
}

// The gradient of table `table` of several, from grad [bags, dim]; no padding, no weights.
Gradient rows_of_slot(const Lookup& lookup, bool one_each, const Tensor& grad, int64_t table, int64_t tables) {
  if (one_each) {
    const int64_t batch = lookup.bags / tables;
    const Tensor rows = to(lookup.indices, kInt64);
    return {select(view(grad, {batch, tables, grad.size(1)}), 1, table),
            contiguous(select(view(rows, {batch, tables}), 1, table))};
  }
  const LoopOperands operands(grad, lookup);
  int64_t n = 0;
  for (int64_t b = table; b < lookup.bags; b += tables)
    n += element(lookup.offsets, b + 1).to_int64() - element(lookup.offsets, b).to_int64();
  Gradient out{empty({n, grad.size(1)}, grad.options()), empty({n}, kInt64)};
  expand_kernels[grad.device()](*operands, grad.data_ptr(), table, tables, lookup.bags / tables,
                                out.rows.data<int64_t>(), out.values.data_ptr());
  return out;
}

Tensor index_weight_grad(const Lookup& lookup, const Tensor& table, const Tensor& grad) {
  Tensor grads = empty({lookup.indices.numel()}, grad.options());
  // Indices before the first bag's belong to none; there are none, as the offsets begin with 0.
  const LoopOperands operands(Span<Tensor>(&table, 1), lookup);
  const auto kernel = weight_grad_kernels[grad.device()];
  parallel_for(0, lookup.bags, operands.grain(),
               [&](int64_t begin, int64_t end) { kernel(*operands, grad.data_ptr(), grads.data_ptr(), begin, end); });
  return grads;
}

// A call's parts in the form that kernels read.
Lookup make_lookup(const char* op, const Tensor& indices, const Tensor& offsets, BagMode mode) {
  Lookup lookup;
  lookup.op = op;
  lookup.mean = mode == BagMode::Mean;
  const bool same = !offsets.defined() || offsets.dtype() == indices.dtype();
  lookup.indices = contiguous(same ? indices : to(indices, kInt64));
  if (indices.dim() != 1) lookup.indices = view(lookup.indices, {-1});
  if (offsets.defined()) lookup.offsets = contiguous(same ? offsets : to(offsets, kInt64));
  return lookup;
}

// Offsets with the end of the last bag.
void check_offsets(const Lookup& lookup, const char* name) {
  const int64_t n = lookup.offsets.numel(), indices = lookup.indices.numel();
  TERCEL_CHECK(n > 0, RuntimeError, lookup.op, ": expected ", name,
               " with the end of the last bag but got none at all");
  const int64_t first = element(lookup.offsets, 0).to_int64(), last = element(lookup.offsets, n - 1).to_int64();
  TERCEL_CHECK(first == 0, RuntimeError, lookup.op, ": ", name, "[0] has to be 0, i.e., the first sequence in the ",
               "mini-batch has to start from position 0. However, got ", first);
  TERCEL_CHECK(last == indices, RuntimeError, lookup.op, ": expected ", name, "[-1] to be the number of indices, ",
               indices, ", but got ", last);
}

// Offsets without it.
void check_starts(const Lookup& lookup) {
  const int64_t n = lookup.offsets.numel(), indices = lookup.indices.numel();
  if (n == 0) {
    TERCEL_CHECK(indices == 0, RuntimeError, lookup.op, ": expected no indices, as there are no offsets, but got ",
                 indices);
    return;
  }
  const int64_t first = element(lookup.offsets, 0).to_int64(), last = element(lookup.offsets, n - 1).to_int64();
  TERCEL_CHECK(first == 0, RuntimeError, lookup.op,
               ": offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
               "However, got ",
               first);
  TERCEL_CHECK(last <= indices, RuntimeError, lookup.op, ": offsets[-1] can not be greater than input's length ",
               indices, " but got offsets[-1] of ", last);
}

Tensor look_up(const char* backward_name, const Tensor& weight, Lookup lookup, const Tensor& index_weights, bool sparse,
               int64_t padding, IntSpan out_sizes);
Tensor recorded_index_weight_gradient(const SavedLookup& saved, const Tensor& grad, const Tensor& weight,
                                      const Tensor& index_weights);

// For second derivatives the gradients are ops of the graph. A lookup is linear in the table, in the weights of indices
// and, backwards, in the gradient: each of the three functions has the other two as its derivatives.

// The gradient of a table of `rows`, from grad [bags, dim].
Tensor recorded_table_gradient(const SavedLookup& saved, const Tensor& grad, const Tensor& index_weights,
                               int64_t rows) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    Lookup lookup = saved.get();
    lookup.index_weights = index_weights.defined() ? flatten(contiguous(index_weights)) : Tensor();
    out = dense_gradient(rows_of_table(lookup, saved.one_each, grad), {rows, grad.size(1)});
  }
  if (should_record(grad, index_weights))
    record("EmbeddingBagDenseBackward0", out, {grad, index_weights},
           [saved, grad = SavedTensor(grad), index_weights = SavedTensor(index_weights)](BackwardCall& call) {
             const Tensor g = grad.get(), weights = index_weights.get();
             if (call.needs(0)) {
               Lookup lookup = saved.get();
               lookup.index_weights = Tensor();
               call.set(
                   0, look_up("EmbeddingBagBackward0", call.grad(), lookup, weights, false, saved.padding, g.sizes()));
             }
             if (call.needs(1)) call.set(1, recorded_index_weight_gradient(saved, g, call.grad(), weights));
           });
  return out;
}

// The gradient of the weights of indices, in their form.
Tensor recorded_index_weight_gradient(const SavedLookup& saved, const Tensor& grad, const Tensor& weight,
                                      const Tensor& index_weights) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = view(index_weight_grad(saved.get(), readable(weight), contiguous(grad)), index_weights.sizes());
  }
  if (should_record(grad, weight))
    record("EmbeddingBagWeightBackward0", out, {grad, weight},
           [saved, grad = SavedTensor(grad), weight = SavedTensor(weight)](BackwardCall& call) {
             const Tensor g = grad.get(), table = weight.get();
             if (call.needs(0)) {
               Lookup lookup = saved.get();
               lookup.index_weights = Tensor();
               call.set(0,
                        look_up("EmbeddingBagBackward0", table, lookup, call.grad(), false, saved.padding, g.sizes()));
             }
             if (call.needs(1)) call.set(1, recorded_table_gradient(saved, g, call.grad(), table.size(0)));
           });
  return out;
}

// The op over one table. `padding` is what backward leaves out.
Tensor look_up(const char* backward_name, const Tensor& weight, Lookup lookup, const Tensor& index_weights, bool sparse,
               int64_t padding, IntSpan out_sizes) {
  const ProfileRange range("embedding_bag", RangeKind::Op);
  Tensor out, table;
  bool one_each = false;
  {
    NoRecordGuard no_grad;
    table = readable(weight);
    if (index_weights.defined()) lookup.index_weights = flatten(contiguous(index_weights));
    out = empty(out_sizes, weight.options());
    one_each = run_forward({&table, 1}, lookup, out);
  }
  if (!should_record(weight, index_weights)) return out;
  lookup.padding = padding;
  record(backward_name, out, {weight, index_weights},
         [saved = SavedLookup(lookup, one_each), table = SavedTensor::when(is_tracked(index_weights), table),
          given_weight = SavedTensor::when(is_tracked(index_weights), weight), given = SavedTensor(index_weights),
          rows = weight.size(0), dim = weight.size(1), sparse,
          weight_sizes = DimVector(index_weights.sizes())](BackwardCall& call) {
           const Lookup then = saved.get();
           const Tensor grad = reshape(call.grad(), {then.bags, dim});
           if (is_recording()) {
             if (call.needs(0) && sparse) {
               const NoRecordGuard no_record;  // rows are no tensor of the graph
               call.set(0, rows_of_table(then, saved.one_each, grad));
               detail::forbid_second_derivative(call);
             } else if (call.needs(0)) {
               call.set(0, recorded_table_gradient(saved, grad, given.get(), rows));
             }
             if (call.needs(1))
               call.set(1, recorded_index_weight_gradient(saved, grad, given_weight.get(), given.get()));
             return;
           }
           if (call.needs(0)) {
             Gradient gradient = rows_of_table(then, saved.one_each, grad);
             call.set(0, sparse ? std::move(gradient) : Gradient{dense_gradient(gradient, {rows, dim}), {}});
           }
           if (call.needs(1)) call.set(1, view(index_weight_grad(then, table.get(), contiguous(grad)), weight_sizes));
         });
  return out;
}

void check_dense_scaling(bool sparse) {
  TERCEL_CHECK(!sparse, RuntimeError, "embedding_backward: scale_grad_by_freq not supported with sparse gradients");
}

/** The same weight, whose gradient is divided, row by row, by how often the row is looked up. */
Tensor with_gradient_by_frequency(const Tensor& weight, const Tensor& indices) {
  if (!should_record(weight)) return weight;
  const Tensor out = weight.detach();
  Tensor counts;  // at least 1
  {
    const NoRecordGuard no_record;
    const Tensor flat = to(indices, kInt64);
    for (int64_t i = 0; i < flat.numel(); ++i)
      TERCEL_CHECK(flat.data<int64_t>()[i] >= 0 && flat.data<int64_t>()[i] < weight.size(0), IndexError,
                   "embedding: index ", flat.data<int64_t>()[i], " (at position ", i,
                   ") is out of range for a weight of ", weight.size(0), " rows");
    counts = to(view(clamp_min(bincount(flat, {}, weight.size(0)), 1), {weight.size(0), 1}), weight.dtype());
  }
  record("EmbeddingScaleBackward0", out, {weight},
         [counts = SavedTensor(counts)](BackwardCall& call) { call.set(0, div(call.grad(), counts.get())); });
  return out;
}

/** Which row holds the largest element of each column of each bag: the first of equals; 0 for an empty bag. */
template <class T>
void find_largest(const Lookup& lookup, const Tensor& table, const Tensor& rows, const Tensor& empty_bags) {
  const Tensor indices = to(lookup.indices, kInt64), offsets = to(lookup.offsets, kInt64);
  const auto* index = indices.data<int64_t>();
  const auto* start = offsets.data<int64_t>();
  const int64_t dim = table.size(1), n = indices.numel(), stride = table.stride(0), starts = offsets.numel();
  const T* weight = table.data<T>();
  parallel_for(0, lookup.bags, std::max<int64_t>(1, kGrainBytes / ((dim + 1) * static_cast<int64_t>(sizeof(T)))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) {
                   const int64_t first = start[b], last = b + 1 < starts ? start[b + 1] : n;
                   BagResult result;
                   result.bag = b;
                   result.fault = BagResult::Fault::Offset;
                   if (first < 0 || first > last || last > n) refuse(lookup, result, table.size(0), 1);
                   int64_t* row = rows.data<int64_t>() + b * dim;
                   bool any = false;
                   for (int64_t i = first; i < last; ++i) {
                     result.fault = BagResult::Fault::Index;
                     result.position = i;
                     if (index[i] < 0 || index[i] >= table.size(0)) refuse(lookup, result, table.size(0), 1);
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

/** The largest elements of bags: gathered, so that the gradient goes to where they stood. */
Tensor largest_of_bags(const Tensor& weight, const Lookup& lookup) {
  Tensor rows, empty_bags;
  {
    const NoRecordGuard no_record;
    rows = zeros({lookup.bags, weight.size(1)}, kInt64);
    empty_bags = empty({lookup.bags, 1}, kBool);
    const Tensor table = readable(weight);
    if (weight.size(0) == 0 && lookup.indices.numel() == 0) return zeros(rows.sizes(), weight.options());
    visit_types<float, double, Half, BFloat16>(lookup.op, weight.dtype(),
                                               [&]<class T>() { find_largest<T>(lookup, table, rows, empty_bags); });
  }
  return masked_fill(gather(weight, 0, rows), empty_bags, 0);
}

Tensor bags_of_one_table(const Tensor& weight, Lookup lookup, const EmbeddingBagOptions& options,
                         const Tensor& index_weights) {
  check_weight(lookup.op, weight);
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
  lookup.padding = wrap_padding(lookup.op, options.padding_idx, weight.size(0));
  if (options.mode == BagMode::Max) {
    TERCEL_CHECK(!options.sparse, ValueError, "max mode does not support sparse weights");
    TERCEL_CHECK(!options.scale_grad_by_freq, ValueError,
                 "max mode does not support scaling the gradient by the frequency");
    return largest_of_bags(weight, lookup);
  }
  if (options.scale_grad_by_freq) {
    check_dense_scaling(options.sparse);
    const Tensor scaled = with_gradient_by_frequency(weight, lookup.indices);
    return look_up("EmbeddingBagBackward0", scaled, lookup, index_weights, false, lookup.padding,
                   {lookup.bags, weight.size(1)});
  }
  return look_up("EmbeddingBagBackward0", weight, lookup, index_weights, options.sparse, lookup.padding,
                 {lookup.bags, weight.size(1)});
}

// keys and row_offsets of a batch, of `slots` bags a sample.
Lookup make_batched_lookup(const Tensor& keys, const Tensor& row_offsets, int64_t slots, BagMode mode) {
  constexpr const char* kOp = "batched_embedding_bag";
  check_indices(kOp, "keys", keys);
  check_indices(kOp, "row_offsets", row_offsets);
  TERCEL_CHECK(slots > 0, RuntimeError, kOp, ": expected at least one slot but got ", slots);
  TERCEL_CHECK(mode != BagMode::Max, NotImplementedError, kOp, ": mode 'max' is for embedding_bag() alone");
  TERCEL_CHECK(keys.dim() == 1 && row_offsets.dim() == 1, RuntimeError, kOp,
               ": expected keys [n] and row_offsets [batch * slots + 1] but got ", describe(keys), " and ",
               describe(row_offsets));
  TERCEL_CHECK(row_offsets.numel() >= 1 && (row_offsets.numel() - 1) % slots == 0, RuntimeError, kOp,
               ": expected row_offsets [batch * ", slots, " + 1] but got ", describe(row_offsets));
  Lookup lookup = make_lookup(kOp, keys, row_offsets, mode);
  lookup.bags = row_offsets.numel() - 1;
  check_offsets(lookup, "row_offsets");
  return lookup;
}

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& indices, std::optional<int64_t> padding_idx, bool sparse,
                 bool scale_grad_by_freq) {
  check_defined("embedding", weight, "weight");
  if (!weight.is_floating_point()) {
    check_indices("embedding", "indices", indices);
    return plain_embedding(weight, indices, padding_idx);
  }
  check_weight("embedding", weight);
  check_indices("embedding", "indices", indices);
  Lookup lookup = make_lookup("embedding", indices, {}, BagMode::Sum);
  lookup.bags = indices.numel();
  DimVector sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  const int64_t padding = wrap_padding("embedding", padding_idx, weight.size(0));
  if (scale_grad_by_freq) check_dense_scaling(sparse);
  const Tensor table = scale_grad_by_freq ? with_gradient_by_frequency(weight, lookup.indices) : weight;
  return look_up("EmbeddingBackward0", table, std::move(lookup), {}, sparse, padding, sizes);
}

const Tensor& embedding_renorm_(const Tensor& weight, const Tensor& indices, double max_norm, double norm_type) {
  constexpr const char* kOp = "embedding_renorm_";
  check_weight(kOp, weight);
  check_indices(kOp, "indices", indices);
  const Tensor rows = unique(to(indices, kInt64)).values;
  return index_copy_(weight, 0, rows, renorm(index_select(weight, 0, rows), norm_type, 0, max_norm));
}

Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                     const EmbeddingBagOptions& options, const Tensor& per_sample_weights) {
  constexpr const char* kOp = "embedding_bag";
  check_indices(kOp, "indices", indices);
  check_indices(kOp, "offsets", offsets);
  TERCEL_CHECK(indices.dim() == 1, RuntimeError, kOp, ": expected indices [n] with offsets but got ", describe(indices),
               "; rows of indices are bags by themselves");
  TERCEL_CHECK(offsets.dim() == 1, RuntimeError, kOp, ": offsets has to be a 1D Tensor but got ", describe(offsets));
  Lookup lookup = make_lookup(kOp, indices, offsets, options.mode);
  if (options.include_last_offset) {
    check_offsets(lookup, "offsets");
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
  check_indices(kOp, "indices", indices);
  TERCEL_CHECK(indices.dim() == 2, RuntimeError, kOp, ": expected indices [bags, n], or offsets, but got ",
               describe(indices));
  const int64_t bags = indices.size(0), n = indices.size(1);
  Tensor starts = empty({bags}, kInt64);
  for (int64_t b = 0; b < bags; ++b) starts.data<int64_t>()[b] = b * n;
  Lookup lookup = make_lookup(kOp, indices, starts, options.mode);
  lookup.bags = bags;
  return bags_of_one_table(weight, std::move(lookup), options, per_sample_weights);
}

Tensor batched_embedding_bag(const Tensor& weight, const Tensor& keys, const Tensor& row_offsets, int64_t slots,
                             BagMode mode) {
  check_weight("batched_embedding_bag", weight);
  Lookup lookup = make_batched_lookup(keys, row_offsets, slots, mode);
  const int64_t batch = lookup.bags / slots;
  return look_up("BatchedEmbeddingBagBackward0", weight, std::move(lookup), {}, /*sparse=*/true, -1,
                 {batch, slots, weight.size(1)});
}

Tensor batched_embedding_bag(Span<Tensor> weights, const Tensor& keys, const Tensor& row_offsets, BagMode mode) {
  constexpr const char* kOp = "batched_embedding_bag";
  const int64_t slots = static_cast<int64_t>(weights.size());
  TERCEL_CHECK(slots > 0, RuntimeError, kOp, ": expected at least one weight");
  bool records = false;
  for (const Tensor& weight : weights) {
    check_weight(kOp, weight);
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
    one_each = run_forward(tables, lookup, out);
  }
  if (records)
    record_list("BatchedEmbeddingBagBackward0", out, weights,
                once_differentiable([saved = SavedLookup(lookup, one_each), dim, slots](BackwardCall& call) {
                  const Lookup then = saved.get();
                  const Tensor grad = contiguous(reshape(call.grad(), {then.bags, dim}));
                  for (int64_t slot = 0; slot < slots; ++slot)
                    if (call.needs(static_cast<size_t>(slot)))
                      call.set(static_cast<size_t>(slot), rows_of_slot(then, saved.one_each, grad, slot, slots));
                }));
  return out;
}

}  // namespace tercel
