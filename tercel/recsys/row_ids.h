// What identifies the rows of predictions: the values of a column beside them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/batch.h"
#include "tercel/data/parquet_table.h"
#include "tercel/data/schema.h"
#include "tercel/data/sparse_input.h"
#include "tercel/recsys/row_keys.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

/** Ids of the rows of batches. */
class TERCEL_API RowIds {
 public:
  /**
   * `name` is that of a slot whose rows have one key at most, of an input of one such slot, of a dense value, or of a
   * further column. ConfigError that starts with `owner` and names the known ones if there is none.
   */
  RowIds(const data::Schema& schema, Span<data::SparseInput> inputs, std::string_view name, std::string_view owner);

  /** I64 for keys and columns of integers, F32 for dense values and columns of floats. */
  data::ValueType type() const { return keys_ ? data::ValueType::I64 : data::ValueType::F32; }
  /** Columns that a reader must be asked for. */
  std::vector<std::string> columns() const;
  /** A value for each row, RowKeys::kNone where a slot is empty. Valid until the next call. */
  data::TableValues read(const data::Batch& batch);

 private:
  std::string name_;
  std::optional<RowKeys> keys_;
  int64_t dense_ = -1;  // the place of the dense value; -1: a column of floats
  std::vector<float> floats_;
};

}  // namespace tercel::recsys
