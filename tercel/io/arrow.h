// The Arrow C data interface: columns of numbers from and for Arrow, pandas, polars and DuckDB in this process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/io/copy_mode.h"
#include "tercel/util/arrow_c.h"
#include "tercel/util/export.h"

namespace tercel::io {

using tercel::ArrowArray;
using tercel::ArrowSchema;

struct ArrowOptions {
  /**
   * By default elements are not copied, except bools, which Arrow packs into bits. Arrow's data is immutable: use
   * CopyMode::Always if the tensor will be written to.
   */
  CopyMode copy = CopyMode::IfNeeded;
  /** Missing values give a mask instead of an error. */
  bool mask = false;
};

struct ArrowColumn {
  std::string name;
  Tensor values;   ///< [rows] or [rows, ...]; unspecified where a value is missing
  Tensor valid{};  ///< bool [rows], false where a value is missing; undefined if none is
};

/**
 * One column: numbers, bools, fixed-size lists of these (a dimension each), and the extension arrow.fixed_shape_tensor.
 * Takes ownership of both structs (their release is null afterwards) and releases each once: the schema immediately,
 * the array with the last tensor over it, or when this throws. RuntimeError for other types, missing values without a
 * mask, and inconsistent lengths or offsets; DataError for invalid metadata of the extension.
 */
TERCEL_API ArrowColumn from_arrow(ArrowSchema* schema, ArrowArray* array, const ArrowOptions& options = {});
/** All columns of a struct array (a record batch). All of them keep the array alive. */
TERCEL_API std::vector<ArrowColumn> columns_from_arrow(ArrowSchema* schema, ArrowArray* array,
                                                       const ArrowOptions& options = {});

/**
 * Exports a one-dimensional tensor as a column of numbers, others as arrow.fixed_shape_tensor. The consumer releases
 * both structs; until then the elements stay valid. Bools and tensors that are not row-major are copied. RuntimeError
 * for a tensor that has no dimension, is not strided and on the CPU, or requires a gradient; TypeError for a dtype that
 * Arrow lacks.
 */
TERCEL_API void to_arrow(const Tensor& tensor, std::string_view name, ArrowSchema* schema, ArrowArray* array);
/**
 * A struct array with such a column for each one. Values are missing where `valid`, [rows] or as large as `values`, is
 * defined and false. RuntimeError for one of another dtype or size, and unless all have the same number of rows.
 */
TERCEL_API void columns_to_arrow(Span<ArrowColumn> columns, ArrowSchema* schema, ArrowArray* array);

}  // namespace tercel::io
