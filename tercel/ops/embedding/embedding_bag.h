// Embedding bags: rows of a table, looked up by index and combined; batched_embedding_bag.h does so for several slots.
//
// Row gradients have one entry per lookup, in the order of the lookups: see UniqueRows in row_gradient.h.
#pragma once

#include <array>
#include <optional>

#include "tercel/core/tensor.h"
#include "tercel/util/enum_names.h"

namespace tercel {

/** How the rows of a bag are combined. An empty bag gives zeros in every mode. */
enum class BagMode : uint8_t { Sum, Mean, Max };
constexpr auto enum_names(BagMode) {
  return std::to_array<EnumName<BagMode>>({{BagMode::Sum, "sum"}, {BagMode::Mean, "mean"}, {BagMode::Max, "max"}});
}

struct EmbeddingBagOptions {
  BagMode mode = BagMode::Mean;
  /** Offsets have one more element than there are bags: the number of indices. */
  bool include_last_offset = false;
  /** Entries with this index (negative: from the end) are skipped, also in the count of a mean and in the gradient. */
  std::optional<int64_t> padding_idx;
  /** The weight has a row gradient; not supported for Max. */
  bool sparse = false;
  /** Divides the gradient of a row by the number of its lookups; not supported with sparse or for Max. */
  bool scale_grad_by_freq = false;
};

/**
 * weight [rows, dim], indices [n], offsets [bags] (start of each bag; ascending from 0) -> [bags, dim]. Per-index
 * weights, [n] of the weight's dtype, require mode Sum. RuntimeError for unsorted offsets and, as in PyTorch, for an
 * index outside the rows (embedding() and batched_embedding_bag() raise IndexError).
 */
TERCEL_API Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                                const EmbeddingBagOptions& options = {}, const Tensor& per_sample_weights = {});
/** indices [bags, n]: each row is a bag. */
TERCEL_API Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const EmbeddingBagOptions& options = {},
                                const Tensor& per_sample_weights = {});

}  // namespace tercel
