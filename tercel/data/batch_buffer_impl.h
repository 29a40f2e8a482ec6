// The memory of a batch while a reader fills it. Private.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/data/batch.h"
#include "tercel/data/schema.h"
#include "tercel/data/sparse_input.h"
#include "tercel/util/span.h"

namespace tercel::data {

/** Shape common to all batches of a reader. A source sets it; the reader adds what it was asked for. */
struct BatchShape {
  struct Input {
    std::string name;
    int64_t slot_num = 0;
    std::vector<int64_t> hotness;  // of each slot
    bool key_weights = false;
  };
  struct Column {
    std::string name;
    ScalarType dtype = kFloat32;  // or kInt64
    bool is_weight = false;       // its values are the weights of the rows
  };

  int64_t label_dim = 1;
  int64_t dense_dim = 0;
  bool uniform = false;  // every slot has `hotness` keys in every row
  std::vector<Input> inputs;
  std::vector<Column> columns;

  // Of the reader: how finish() arranges keys.
  BagOrder bag_order = BagOrder::SampleMajor;
  ScalarType key_dtype = kInt64;

  /** Whether batches have keys as sources write them: SampleMajor, i64. */
  bool as_decoded() const { return bag_order == BagOrder::SampleMajor && key_dtype == kInt64; }
};

/** Labels, dense values and inputs of a schema; inputs cover all slots. */
BatchShape shape_of(const Schema& schema, Span<SparseInput> inputs);

/** Number of keys of a row with full slots in an input. */
int64_t row_nnz(const BatchShape::Input& input);

/** Row offsets of rows whose slots all have their full hotness: the same for all batches of so many rows. */
Tensor uniform_row_offsets(const BatchShape& shape, size_t input, int64_t rows);

/**
 * Writes into a Batch; reuses its tensors if they are not referenced elsewhere. Sources write keys as i64, row by row;
 * finish() arranges them as the reader was asked.
 */
class BatchBuffer {
 public:
  struct Input {
    int64_t* row_offsets = nullptr;  // null where the shape is uniform
    int64_t* keys = nullptr;
    float* key_weights = nullptr;  // null where there are none, or no keys yet
    int64_t capacity = 0;          // of keys
    int64_t nnz = 0;
  };

  /** Allocates for `rows` rows. Keys: for all if the shape is uniform, else see reserve_keys(). */
  void prepare(int64_t rows, const BatchShape& shape, Span<Tensor> uniform_offsets);
  /** Reserves memory for `count` keys of an input in total; existing keys are kept. */
  void reserve_keys(size_t input, int64_t count);
  /** Forgets what was written of rows from `row` on: keys of the ones after it follow those of the ones before. */
  void truncate(int64_t row);
  /** Gives the tensors their final sizes, for so many rows, order and dtype. */
  void finish(int64_t rows);

  Batch batch;
  float* labels = nullptr;
  float* dense = nullptr;
  std::vector<Input> inputs;
  std::vector<void*> columns;  // of float or int64_t

 private:
  /** Tensors of an input that sources write to: those of the batch, or own ones if finish() arranges them. */
  struct Decoded {
    Tensor &row_offsets, &keys, &key_weights;
  };
  Decoded decoded(size_t input);
  void prepare_input(size_t input, int64_t rows);
  /** The row offsets of so many rows whose slots are full. */
  Tensor uniform_offsets_of(size_t input, int64_t rows) const;
  /** Cuts the tensors, which are for more rows. */
  void shrink(int64_t rows);
  void arrange(size_t input);

  const BatchShape* shape_ = nullptr;
  Span<Tensor> uniform_offsets_;
  std::vector<SparseBatch> own_;
};

}  // namespace tercel::data
