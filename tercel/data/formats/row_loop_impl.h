// What the sources of Norm and Raw pass to their kernels (row_decode_kernels.h). Private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tercel/data/batch_buffer_impl.h"
#include "tercel/data/formats/row_decode_kernels.h"
#include "tercel/data/record_source_impl.h"
#include "tercel/data/row_rules_impl.h"
#include "tercel/util/small_vector.h"

namespace tercel::data {

/** Of rows with full slots: what is the same for all windows and batches. */
class RowLoopShape {
 public:
  RowLoopShape(const RowRules& rules, const BatchShape& shape);

  /** Sets the fields of `loop` that depend on rules and shape. This must outlive it. */
  void set_rules(RowsLoop& loop) const;

  using Inputs = SmallVector<RowsLoop::Input, 8>;
  /** Points to the rows of a window, and to the places of a batch that they go to; `inputs` must outlive the loop. */
  void set_places(RowsLoop& loop, const Window& window, const std::byte* rows, const Places& places,
                  const BatchBuffer& out, Inputs& inputs) const;

 private:
  int64_t label_dim_, dense_dim_;
  std::vector<uint64_t> first_key_, key_range_;  // of each key of a row
  std::vector<RowsLoop::Input> inputs_;          // without places
};

}  // namespace tercel::data
