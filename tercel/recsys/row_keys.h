// The key that each row of a batch has in a slot, or the integer in a column: groups and slices of evaluations.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/batch.h"
#include "tercel/data/schema.h"
#include "tercel/data/sparse_input.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

class TERCEL_API RowKeys {
 public:
  /** Stands for rows without a key. */
  static constexpr int64_t kNone = -1;

  /**
   * `name` is that of a slot, of an input of one slot, or of a column of integers. ConfigError that starts with `owner`
   * and names the known ones if there is none, or if a row may have several keys in the slot. `others` are further
   * names for that message, which the caller knows.
   */
  RowKeys(const data::Schema& schema, Span<data::SparseInput> inputs, std::string_view name, std::string_view owner,
          const std::vector<std::string_view>& others = {});

  /** Whether it is a column, which a reader must be asked for. */
  bool is_column() const { return input_.empty(); }
  /** Of each row; kNone where the slot is empty. Valid until the next call. ConfigError for a batch without it. */
  Span<int64_t> read(const data::Batch& batch);

 private:
  std::string name_, owner_;
  std::string input_;     // that has the slot; empty: a column
  int64_t position_ = 0;  // of the slot in the input
  std::vector<int64_t> keys_;
};

}  // namespace tercel::recsys
