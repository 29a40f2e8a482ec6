// Rows of a table, looked up by index and added up in bags; batched_embedding_bag.h has those of several slots.
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
 * for each index, [n] of the weight's dtype, is for sums only. RuntimeError for offsets out of order and, as in
 * PyTorch, for an index outside the rows (embedding() and batched_embedding_bag() raise IndexError).
 */
TERCEL_API Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                                const EmbeddingBagOptions& options = {}, const Tensor& per_sample_weights = {});
/** indices [bags, n]: every row is a bag. */
TERCEL_API Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const EmbeddingBagOptions& options = {},
                                const Tensor& per_sample_weights = {});

}  // namespace tercel
