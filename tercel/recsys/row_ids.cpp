#include "tercel/recsys/row_ids.h"

#include <algorithm>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

RowIds::RowIds(const data::Schema& schema, Span<data::SparseInput> inputs, std::string_view name,
               std::string_view owner)
    : name_(name) {
  std::vector<std::string_view> others;
  for (size_t d = 0; d < schema.dense_names.size(); ++d) {
    others.push_back(schema.dense_names[d]);
    if (schema.dense_names[d] == name) dense_ = static_cast<int64_t>(d);
  }
  bool found = dense_ >= 0;
  for (const data::Column& column : schema.columns) {
    if (column.type != data::ColumnType::F32) continue;
    others.push_back(column.name);
    found = found || column.name == name;
  }
  if (!found) keys_.emplace(schema, inputs, name, owner, others);
}

std::vector<std::string> RowIds::columns() const {
  const bool is_column = keys_ ? keys_->is_column() : dense_ < 0;
  return is_column ? std::vector<std::string>{name_} : std::vector<std::string>{};
}

data::TableValues RowIds::read(const data::Batch& batch) {
  data::TableValues values;
  if (keys_) {
    values.integers = keys_->read(batch);
    return values;
  }
  Tensor found;
  if (dense_ >= 0) {
    found = batch.dense.select(1, dense_);
  } else {
    const auto column = std::find_if(batch.columns.begin(), batch.columns.end(),
                                     [this](const data::RowColumn& entry) { return entry.name == name_; });
    TERCEL_CHECK(column != batch.columns.end(), ConfigError, "the batch has no column '", printable(name_), "'");
    found = column->values;
  }
  found = to(found, kFloat32).contiguous();
  floats_.assign(found.data<float>(), found.data<float>() + batch.rows);
  values.floats = floats_;
  return values;
}

}  // namespace tercel::recsys
