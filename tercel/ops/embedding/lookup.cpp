#include "tercel/ops/embedding/lookup_impl.h"

#include <atomic>
#include <string_view>

#include "tercel/core/launch.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/embedding/row_gradient.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<BagForwardFn> forward_kernels = TERCEL_CPU_KERNELS(embedding_bag);

// Outputs at least this large would evict everything else from the caches, and use non-temporal stores.
constexpr int64_t kStreamBytes = 32 * 1024 * 1024;

}  // namespace

LookupOperands::LookupOperands(Span<Tensor> tables, const Lookup& lookup) {
  for (const Tensor& table : tables) {
    pointers_.push_back(table.data_ptr());
    rows_.push_back(table.size(0));
  }
  fill(lookup);
  loop_.dim = tables[0].size(1);
  // Rows without columns may be at a null pointer.
  loop_.row_stride = tables.size() == 1 && loop_.dim > 0 ? tables[0].stride(0) : loop_.dim;
  loop_.dtype = tables[0].dtype();
}

LookupOperands::LookupOperands(const Tensor& grad, const Lookup& lookup) {
  fill(lookup);
  loop_.dim = grad.size(1);
  loop_.dtype = grad.dtype();
}

int64_t LookupOperands::grain() const {
  const int64_t row_bytes = (loop_.dim + 1) * static_cast<int64_t>(item_size(loop_.dtype));
  const int64_t bag_bytes = row_bytes * (1 + loop_.num_indices / std::max<int64_t>(bags_, 1));
  return std::max<int64_t>(1, kLookupGrainBytes / bag_bytes);
}

void LookupOperands::fill(const Lookup& lookup) {
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

void check_table(const char* op, const Tensor& weight) {
  check_strided(op, weight, "weight");
  TERCEL_CHECK(weight.dim() == 2, RuntimeError, op, ": 'weight' must be 2-D, but got ", describe(weight));
  TERCEL_CHECK(weight.is_floating_point(), RuntimeError, op, ": expected a floating weight but got ", describe(weight));
}

int64_t wrap_padding_idx(const char* op, std::optional<int64_t> padding, int64_t rows) {
  if (!padding) return -1;
  TERCEL_CHECK(*padding >= -rows && *padding < rows, RuntimeError, op,
               ": padding_idx must be within the number of embeddings, ", -rows, " through ", rows - 1, ", but got ",
               *padding);
  return *padding < 0 ? *padding + rows : *padding;
}

Tensor readable_table(const Tensor& weight) {
  return weight.stride(1) == 1 || weight.size(1) <= 1 ? weight : weight.contiguous();
}

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

void check_ends(const Lookup& lookup, const char* name) {
  const int64_t n = lookup.offsets.numel(), indices = lookup.indices.numel();
  TERCEL_CHECK(n > 0, RuntimeError, lookup.op, ": expected ", name,
               " with the end of the last bag but got none at all");
  const int64_t first = index_at(lookup.offsets, 0), last = index_at(lookup.offsets, n - 1);
  TERCEL_CHECK(first == 0, RuntimeError, lookup.op, ": ", name, "[0] has to be 0, i.e., the first sequence in the ",
               "mini-batch has to start from position 0. However, got ", first);
  TERCEL_CHECK(last == indices, RuntimeError, lookup.op, ": expected ", name, "[-1] to be the number of indices, ",
               indices, ", but got ", last);
}

void refuse_lookup(const Lookup& lookup, const BagResult& result, int64_t rows, int64_t tables) {
  if (result.fault == BagResult::Fault::Offset) {
    const bool last = result.bag + 1 >= lookup.offsets.numel();
    const int64_t end = last ? lookup.indices.numel() : index_at(lookup.offsets, result.bag + 1);
    throw_error<RuntimeError>({lookup.op, ": expected offsets that ascend from 0 to ", lookup.indices.numel(),
                               " but bag ", result.bag, " is [", index_at(lookup.offsets, result.bag), ", ", end, ")"});
  }
  const int64_t index = index_at(lookup.indices, result.position);
  if (tables > 1)
    throw_error<IndexError>({lookup.op, ": index ", index, " (at position ", result.position,
                             ") is out of range for weight ", result.bag % tables, " of ", rows, " rows"});
  if (std::string_view(lookup.op) == "embedding_bag")
    throw_error<RuntimeError>({lookup.op, ": Expected idx >= 0 && idx < num_embeddings but found idx to be ", index,
                               " (at position ", result.position, ") for a weight of ", rows, " rows"});
  throw_error<IndexError>({lookup.op, ": index ", index, " (at position ", result.position,
                           ") is out of range for a weight of ", rows, " rows"});
}

bool run_lookup(Span<Tensor> tables, const Lookup& lookup, const Tensor& out) {
  const LookupOperands operands(tables, lookup);
  const Device device = tables[0].device();
  const auto kernel = forward_kernels[device];
  const bool stream = static_cast<int64_t>(out.nbytes()) >= kStreamBytes;
  std::atomic<bool> one_each{true};
  launch(device, 0, lookup.bags, operands.grain(), [&](int64_t begin, int64_t end) {
    const BagResult result = kernel(*operands, out.data_ptr(), stream, begin, end);
    if (result.fault != BagResult::Fault::None) [[unlikely]] {
      const int64_t table = result.bag % static_cast<int64_t>(tables.size());
      refuse_lookup(lookup, result, tables[static_cast<size_t>(table)].size(0), static_cast<int64_t>(tables.size()));
    }
    if (!result.one_each) one_each.store(false, std::memory_order_relaxed);
  });
  return one_each;
}

bool is_shared(const Tensor& grad) { return grad.use_count() > 1 || grad.storage().use_count() > 1; }

namespace {

/** The gradient of the table as rows; `shared`: others have grad, and may change it. */
Gradient row_gradient(const Lookup& lookup, bool one_each, const Tensor& grad, bool shared, TableGradient form) {
  Gradient gradient = gradient_of_table(lookup, one_each, grad);
  if (shared && gradient.values.is_alias_of(grad)) gradient.values = dense_copy(gradient.values);
  if (form == TableGradient::Rows && gradient.rows.is_alias_of(lookup.indices))
    gradient.rows = dense_copy(gradient.rows);
  return gradient;
}

}  // namespace

Tensor look_up(const char* backward_name, const Tensor& weight, Lookup lookup, const Tensor& index_weights,
               TableGradient form, int64_t padding, IntSpan out_sizes) {
  const ProfileRange range("embedding_bag", RangeKind::Op);
  Tensor out, table;
  bool one_each = false;
  {
    NoRecordGuard no_grad;
    table = readable_table(weight);
    if (index_weights.defined()) lookup.index_weights = flatten(contiguous(index_weights));
    out = empty(out_sizes, weight.options());
    one_each = run_lookup({&table, 1}, lookup, out);
  }
  if (!should_record(weight, index_weights)) return out;
  lookup.padding = padding;
  record(backward_name, out, {weight, index_weights},
         [saved = SavedLookup(lookup, one_each), table = SavedTensor::when(is_tracked(index_weights), table),
          given_weight = SavedTensor::when(is_tracked(index_weights), weight), given = SavedTensor(index_weights),
          rows = weight.size(0), dim = weight.size(1), form,
          weight_sizes = DimVector(index_weights.sizes())](BackwardCall& call) {
           const Lookup then = saved.get();
           const bool dense = form == TableGradient::Dense;
           Tensor grad = call.take();
           const bool shared = is_shared(grad);
           grad = reshape(grad, {then.bags, dim});
           if (is_recording()) {
             if (call.needs(1))
               call.set(1, recorded_index_weight_gradient(saved, grad, given_weight.get(), given.get()));
             if (call.needs(0) && !dense) {
               const NoRecordGuard no_record;  // row gradients are not tensors of the graph
               call.set(0, row_gradient(then, saved.one_each, grad, shared, form));
               detail::forbid_second_derivative(call);
             } else if (call.needs(0)) {
               call.set(0, recorded_table_gradient(saved, grad, given.get(), rows));
             }
             return;
           }
           if (call.needs(1)) call.set(1, view(index_weight_grad(then, table.get(), contiguous(grad)), weight_sizes));
           if (call.needs(0) && dense)
             call.set(0, dense_gradient(gradient_of_table(then, saved.one_each, grad), {rows, dim}));
           else if (call.needs(0))
             call.set(0, row_gradient(then, saved.one_each, grad, shared, form));
         });
  return out;
}

}  // namespace tercel
