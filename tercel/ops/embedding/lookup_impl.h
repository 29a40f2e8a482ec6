// Table lookups shared by embedding(), embedding_bag() and batched_embedding_bag().
#pragma once

#include <optional>

#include "tercel/autograd/record.h"
#include "tercel/ops/embedding/embedding_bag.h"
#include "tercel/ops/embedding/embedding_bag_kernels.h"

namespace tercel {

/** The lookups of one call, without their tables. */
struct Lookup {
  const char* op;
  Tensor indices, offsets, index_weights;
  int64_t bags = 0;
  int64_t padding = -1;
  bool mean = false;
};

/** What backward needs from a call. */
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

/** Bytes read and written per task, at least. */
constexpr int64_t kLookupGrainBytes = 128 * 1024;

/** The operands of a kernel; valid while the tensors exist. */
class LookupOperands {
 public:
  LookupOperands(Span<Tensor> tables, const Lookup& lookup);
  /** For kernels that read only indices and offsets. */
  LookupOperands(const Tensor& grad, const Lookup& lookup);

  LookupOperands(const LookupOperands&) = delete;
  LookupOperands& operator=(const LookupOperands&) = delete;

  const BagLoop& operator*() const { return loop_; }
  /** Minimum number of bags per task. */
  int64_t grain() const;

 private:
  void fill(const Lookup& lookup);

  SmallVector<const void*, 1> pointers_;
  SmallVector<int64_t, 1> rows_;
  BagLoop loop_{};
  int64_t bags_ = 0;
};

/** Element i of indices or offsets. */
inline int64_t index_at(const Tensor& t, int64_t i) {
  return t.dtype() == kInt64 ? t.data<int64_t>()[i] : t.data<int32_t>()[i];
}

/** RuntimeError unless the weight is a floating matrix. */
void check_table(const char* op, const Tensor& weight);
/** padding_idx counted from 0, or -1 for none. RuntimeError if it is outside the rows. */
int64_t wrap_padding_idx(const char* op, std::optional<int64_t> padding, int64_t rows);
/** The table, or a copy whose rows a kernel can read. */
Tensor readable_table(const Tensor& weight);
/** Converts a call's arguments to the layout that kernels read; the caller sets the number of bags and the padding. */
Lookup make_lookup(const char* op, const Tensor& indices, const Tensor& offsets, BagMode mode);
/** RuntimeError unless offsets (with the end of the last bag) begin with 0 and end with the number of indices. */
void check_ends(const Lookup& lookup, const char* name);
/** Throws the error for a fault that a kernel found, in a table with `rows` rows, one of `tables`. */
[[noreturn]] void refuse_lookup(const Lookup& lookup, const BagResult& result, int64_t rows, int64_t tables);
/** Fills out [bags, dim]; returns whether every bag has exactly one index. */
bool run_lookup(Span<Tensor> tables, const Lookup& lookup, const Tensor& out);

/** Form of a table's gradient. */
enum class TableGradient : uint8_t {
  Dense,
  Rows,
  RowsOfIndices  ///< the rows are the tensor of indices itself: callers must not change it before the gradient is used
};

/**
 * The op over one table, with its gradients. `padding` is the index that backward skips, lookup.padding the one that
 * forward skips.
 */
Tensor look_up(const char* backward_name, const Tensor& weight, Lookup lookup, const Tensor& index_weights,
               TableGradient form, int64_t padding, IntSpan out_sizes);
/** Whether others have an incoming gradient, which the caller has taken: a row gradient must not keep it then. */
bool is_shared(const Tensor& grad);

// Gradients of lookups, defined in lookup_gradients.cpp.

/** The gradient of a single table, from grad [bags, dim]. */
Gradient gradient_of_table(const Lookup& lookup, bool one_each, const Tensor& grad);
/** The gradient of table `table` of several, from grad [bags, dim]; without padding and index weights. */
Gradient gradient_of_slot(const Lookup& lookup, bool one_each, const Tensor& grad, int64_t table, int64_t tables);
/** The gradient [n] of the index weights. */
Tensor index_weight_grad(const Lookup& lookup, const Tensor& table, const Tensor& grad);
/** The gradient of a table with `rows` rows, from grad [bags, dim], composed of recorded ops. */
Tensor recorded_table_gradient(const SavedLookup& saved, const Tensor& grad, const Tensor& index_weights, int64_t rows);
/** The gradient of the index weights, in their shape, composed of recorded ops. */
Tensor recorded_index_weight_gradient(const SavedLookup& saved, const Tensor& grad, const Tensor& weight,
                                      const Tensor& index_weights);
/** RuntimeError for row gradients, which cannot be scaled by frequency. */
void check_dense_scaling(bool sparse);
/** The same weight, with each row's gradient divided by the number of its lookups. */
Tensor with_gradient_by_frequency(const Tensor& weight, const Lookup& lookup);

}  // namespace tercel
