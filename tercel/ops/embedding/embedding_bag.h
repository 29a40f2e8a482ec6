// Rows of tables, looked up by index: one each, or added up in bags.
//
// Gradients of rows hold one entry a lookup, in the order of the lookups: see UniqueRows in row_gradient.h.
#pragma once

#include <array>
#include <optional>

#include "tercel/core/tensor.h"
#include "tercel/util/enum_names.h"

namespace tercel {

/** What becomes of the rows of one bag. An empty bag gives zeros in all. */
enum class BagMode : uint8_t { Sum, Mean, Max };
constexpr auto enum_names(BagMode) {
  return std::to_array<EnumName<BagMode>>({{BagMode::Sum, "sum"}, {BagMode::Mean, "mean"}, {BagMode::Max, "max"}});
}

/**
 * weight [rows, dim], indices of any sizes (int32 or int64) -> [..., dim]. IndexError for one outside the rows.
 * scale_grad_by_freq divides the gradient of a row by how often it was looked up; for dense gradients only.
 */
TERCEL_API Tensor embedding(const Tensor& weight, const Tensor& indices, std::optional<int64_t> padding_idx = {},
                            bool sparse = false, bool scale_grad_by_freq = false);
/** Rows of the weight that are looked up and whose p-norm exceeds max_norm get that norm. */
TERCEL_API const Tensor& embedding_renorm_(const Tensor& weight, const Tensor& indices, double max_norm,
                                           double norm_type = 2);

struct EmbeddingBagOptions {
  BagMode mode = BagMode::Mean;
  /** Offsets have one element more than there are bags: the number of indices. */
  bool include_last_offset = false;
  /** Entries of this index (negative: from the end) are left out, of a mean's count and of the gradient too. */
  std::optional<int64_t> padding_idx;
  /** The weight's gradient is one of rows; not of a maximum. */
  bool sparse = false;
  /** The gradient of a row is divided by how often it was looked up; not a sparse one, nor that of a maximum. */
  bool scale_grad_by_freq = false;
};

/**
 * weight [rows, dim], indices [n], offsets [bags] (where each bag begins; ascending from 0) -> [bags, dim]. A weight
 * for each index, [n] of the weight's dtype, is for sums only. RuntimeError for offsets out of order, IndexError for an
 * index outside the rows.
 */
TERCEL_API Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                                const EmbeddingBagOptions& options = {}, const Tensor& per_sample_weights = {});
/** indices [bags, n]: every row is a bag. */
TERCEL_API Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const EmbeddingBagOptions& options = {},
                                const Tensor& per_sample_weights = {});

/**
 * Bags of many slots at once: keys [n], row_offsets [batch * slots + 1] -> [batch, slots, dim]. Bag b * slots + s
 * belongs to sample b and slot s. One weight [rows, dim] holds the rows of all slots. Gradients are of rows. The mode
 * is Sum or Mean.
 */
TERCEL_API Tensor batched_embedding_bag(const Tensor& weight, const Tensor& keys, const Tensor& row_offsets,
                                        int64_t slots, BagMode mode = BagMode::Sum);
/** The same with a weight [rows_s, dim] for each slot; keys are rows of the slot's own weight. */
TERCEL_API Tensor batched_embedding_bag(Span<Tensor> weights, const Tensor& keys, const Tensor& row_offsets,
                                        BagMode mode = BagMode::Sum);

}  // namespace tercel
