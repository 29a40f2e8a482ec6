// A model as tensors with names: dense parameters, buffers, tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/io/named_tensor.h"
#include "tercel/recsys/model/model.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

/**
 * All of them, contiguous: parameters and buffers, as copies, by their names, and tables [rows, dim] by theirs. Of a
 * table that grows the rows that have keys, by ascending key, and beside them the keys [n] int64 as "TABLE.keys".
 * ValueError if that is the name of something else.
 */
TERCEL_API std::vector<io::NamedTensor> named_tensors(Model& model);

/**
 * Sets all of them; a table that grows gets rows for the keys. Returns the rows that were set. DataError
 * "<file>: ...", and no change, unless the tensors are exactly those of named_tensors(), of these sizes (a table that
 * grows may have any number of rows), of numbers, all finite, and keys that are different and that the table can have.
 */
TERCEL_API int64_t set_named_tensors(Model& model, Span<io::NamedTensor> tensors, const std::string& file);

}  // namespace tercel::recsys
