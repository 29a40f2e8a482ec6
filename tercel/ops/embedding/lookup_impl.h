// Lookups of rows in tables: what embedding(), embedding_bag() and batched_embedding_bag() share.
#pragma once

#include <optional>

#include "tercel/autograd/record.h"
#include "tercel/ops/embedding/embedding_bag.h"
#include "tercel/ops/embedding/embedding_bag_kernels.h"

namespace tercel {

/** The lookups of one call, without the tables. */
struct Lookup {
  const char* op;
  Tensor indices, offsets, index_weights;
  int64_t bags = 0;
  int64_t padding = -1;
  bool mean = false;
};

/** What backward needs of a call. */
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

/** Bytes to read and write that are worth another thread. */
constexpr int64_t kLookupGrainBytes = 128 * 1024;

/** The operands of a kernel, as long as the tensors live. */
class LookupOperands {
 public:
  LookupOperands(Span<Tensor> tables, const Lookup& lookup);
  /** For kernels that read indices and offsets alone. */
  LookupOperands(const Tensor& grad, const Lookup& lookup);

  LookupOperands(const LookupOperands&) = delete;
  LookupOperands& operator=(const LookupOperands&) = delete;

  const BagLoop& operator*() const { return loop_; }
  /** Bags that are worth another thread. */
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
/** padding_idx counted from 0; -1: none. RuntimeError outside of the rows. */
int64_t wrap_padding_idx(const char* op, std::optional<int64_t> padding, int64_t rows);
/** The table, or a copy, with rows that a kernel can read. */
Tensor readable_table(const Tensor& weight);
/** A call's parts in the form that kernels read; the number of bags and the padding are the caller's to set. */
Lookup make_lookup(const char* op, const Tensor& indices, const Tensor& offsets, BagMode mode);
/** RuntimeError unless offsets with the end of the last bag begin with 0 and end with the number of indices. */
void check_ends(const Lookup& lookup, const char* name);
/** The error about what a kernel found, in a table of `rows`, one of `tables`. */
[[noreturn]] void refuse_lookup(const Lookup& lookup, const BagResult& result, int64_t rows, int64_t tables);
/** Fills out [bags, dim]; says whether every bag holds one index. */
bool run_lookup(Span<Tensor> tables, const Lookup& lookup, const Tensor& out);

/**
 * The op over one table, with its gradients. `padding` is what backward leaves out; lookup.padding is what forward
 * does.
 */
Tensor look_up(const char* backward_name, const Tensor& weight, Lookup lookup, const Tensor& index_weights, bool sparse,
               int64_t padding, IntSpan out_sizes);

// Gradients of lookups, in lookup_gradients.cpp.

/** The gradient of the only table, from grad [bags, dim]. */
Gradient gradient_of_table(const Lookup& lookup, bool one_each, const Tensor& grad);
/** The gradient of table `table` of several, from grad [bags, dim]; no padding, no weights. */
Gradient gradient_of_slot(const Lookup& lookup, bool one_each, const Tensor& grad, int64_t table, int64_t tables);
/** The gradient [n] of the weights of indices. */
Tensor index_weight_grad(const Lookup& lookup, const Tensor& table, const Tensor& grad);
/** The gradient of a table of `rows`, from grad [bags, dim], as an op of the graph. */
Tensor recorded_table_gradient(const SavedLookup& saved, const Tensor& grad, const Tensor& index_weights, int64_t rows);
/** The gradient of the weights of indices, in their form, as an op of the graph. */
Tensor recorded_index_weight_gradient(const SavedLookup& saved, const Tensor& grad, const Tensor& weight,
                                      const Tensor& index_weights);
/** RuntimeError for gradients of rows, which are not scaled by frequency. */
void check_dense_scaling(bool sparse);
/** The same weight, whose gradient is divided, row by row, by how often the row is looked up. */
Tensor with_gradient_by_frequency(const Tensor& weight, const Lookup& lookup);

}  // namespace tercel
