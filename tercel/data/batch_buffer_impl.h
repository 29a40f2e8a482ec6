// The memory of a batch while a reader fills it.
#pragma once

#include <cstdint>
#include <vector>

#include "tercel/data/batch.h"
#include "tercel/util/span.h"

namespace tercel::data {

/** Shape common to all batches of a reader. */
struct BatchShape {
  struct Input {
    int64_t slot_num = 0;
    std::vector<int64_t> hotness;  // of each slot
  };

  int64_t label_dim = 1;
  int64_t dense_dim = 0;
  bool uniform = false;  // every slot has `hotness` keys in every row
  std::vector<Input> inputs;
};

/** Row offsets of rows whose slots all have their full hotness: the same for all batches. */
Tensor uniform_row_offsets(const BatchShape::Input& input, int64_t rows);

/** Writes into a Batch; reuses its tensors if they are not referenced elsewhere. */
class BatchBuffer {
 public:
  struct Input {
    int64_t* row_offsets = nullptr;  // null where the shape is uniform
    int64_t* keys = nullptr;
    int64_t capacity = 0;  // of keys
    int64_t nnz = 0;
  };

  /** Allocates for `rows` rows. Keys: for all if the shape is uniform, else see reserve_keys(). */
  void prepare(int64_t rows, const BatchShape& shape, Span<Tensor> uniform_offsets);
  /** Reserves memory for `count` keys of an input in total; existing keys are kept. */
  void reserve_keys(size_t input, int64_t count);
  /** Gives the tensors their final sizes. */
  void finish();

  Batch batch;
  float* labels = nullptr;
  float* dense = nullptr;
  std::vector<Input> inputs;

 private:
  bool uniform_ = false;
};

}  // namespace tercel::data
