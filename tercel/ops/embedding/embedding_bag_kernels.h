#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/scalar_type.h"

namespace tercel {

/** Lookups in one or several tables. Bag b reads table b % num_tables. */
struct BagLoop {
  const void* const* tables;
  const int64_t* table_rows;
  int64_t num_tables;
  /** Of every table, in elements. Several tables are all contiguous: the stride of a one-row table is not reliable. */
  int64_t row_stride;
  int64_t dim;
  ScalarType dtype;     ///< of tables and output, floating
  bool wide;            ///< indices and offsets are int64, else int32
  const void* indices;  ///< [num_indices]
  int64_t num_indices;
  /** Bag b is indices [offsets[b], offsets[b + 1]); a missing last offset is num_indices. Null: one index a bag. */
  const void* offsets;
  int64_t num_offsets;
  const void* index_weights;  ///< [num_indices] of dtype, or null
  int64_t padding;            ///< the index that is skipped, or -1
  bool mean;
};

/** Result of a kernel's checks. */
struct BagResult {
  enum class Fault : uint8_t { None, Index, Offset };
  Fault fault = Fault::None;
  int64_t bag = 0;       ///< the bag with the fault
  int64_t position = 0;  ///< position of an index out of range
  bool one_each = true;  ///< every bag has exactly one index
};

/** out [bags, dim] for bags [begin, end); checks their offsets and indices. `stream`: use non-temporal stores. */
using BagForwardFn = BagResult(const BagLoop& loop, void* out, bool stream, int64_t begin, int64_t end);

/** Gradients of the table: entries for the indices of bags first, first + step, ... (count of them) but padding. */
struct BagEntries {
  int64_t first, step, count;
  int64_t* rows;     ///< the index of each entry, or null
  int64_t* sources;  ///< BagEntriesFn: the bag of each entry, divided by step: its row in `values`
  void* values;      ///< BagEntriesFn: [bags / step, dim] or null; BagWeightedEntriesFn: [entries, dim]
};

/** Rows and sources of each entry, and in values the share of each bag: grad, divided by the bag's entries. */
using BagEntriesFn = int64_t(const BagLoop& loop, const void* grad, const BagEntries& entries);
/** Rows and values of each entry: the bag's grad times the index weight. Both return the number of entries. */
using BagWeightedEntriesFn = int64_t(const BagLoop& loop, const void* grad, const BagEntries& entries);

/** Gradients [num_indices] of index weights in bags [begin, end): table row times the bag's grad; 0 for padding. */
using BagWeightGradFn = void(const BagLoop& loop, const void* grad, void* grads, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(BagForwardFn, embedding_bag)
TERCEL_DECLARE_KERNELS(BagEntriesFn, embedding_bag_entries)
TERCEL_DECLARE_KERNELS(BagWeightedEntriesFn, embedding_bag_weighted_entries)
TERCEL_DECLARE_KERNELS(BagWeightGradFn, embedding_bag_weight_grad)

}  // namespace tercel
