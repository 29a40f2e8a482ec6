#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/scalar_type.h"

namespace tercel {

/** Lookups in one or several tables. Bag b looks into table b % num_tables. */
struct BagLoop {
  const void* const* tables;
  const int64_t* table_rows;
  int64_t num_tables;
  /** Of every table, in elements. Several tables are contiguous: the stride of one row says nothing of the others. */
  int64_t row_stride;
  int64_t dim;
  ScalarType dtype;     ///< of tables and output, floating
  bool wide;            ///< indices and offsets are int64, else int32
  const void* indices;  ///< [num_indices]
  int64_t num_indices;
  /** Bag b is indices [offsets[b], offsets[b + 1]); what has no offset ends with the indices. Null: one index a bag. */
  const void* offsets;
  int64_t num_offsets;
  const void* index_weights;  ///< [num_indices] of dtype, or null
  int64_t padding;            ///< the index that is left out, or -1
  bool mean;
};

/** How far a kernel came. */
struct BagResult {
  enum class Fault : uint8_t { None, Index, Offset };
  Fault fault = Fault::None;
  int64_t bag = 0;       ///< of the fault
  int64_t position = 0;  ///< of a bad index
  bool one_each = true;  ///< all bags hold one index
};

/** out [bags, dim], of bags [begin, end); checks their offsets and indices. `stream`: write past the caches. */
using BagForwardFn = BagResult(const BagLoop& loop, void* out, bool stream, int64_t begin, int64_t end);

/**
 * One entry for each index of bags first, first + step, ... (count of them) that is not padding: its index in rows
 * (unless null) and in values [., dim] what it gets of its bag's grad [bags, dim]. Returns the number of entries.
 */
using BagExpandFn = int64_t(const BagLoop& loop, const void* grad, int64_t first, int64_t step, int64_t count,
                            int64_t* rows, void* values);

/** grads [num_indices] of the index weights in bags [begin, end): row of the table times the bag's grad; padding: 0. */
using BagWeightGradFn = void(const BagLoop& loop, const void* grad, void* grads, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(BagForwardFn, embedding_bag)
TERCEL_DECLARE_KERNELS(BagExpandFn, embedding_bag_expand)
TERCEL_DECLARE_KERNELS(BagWeightGradFn, embedding_bag_weight_grad)

}  // namespace tercel
