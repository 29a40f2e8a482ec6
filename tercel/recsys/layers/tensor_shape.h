// Shapes of the tensors of a model graph.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "tercel/core/tensor.h"
#include "tercel/util/export.h"

namespace tercel::recsys {

/**
 * Shape of a tensor for any batch: of B samples it is [B * rows_per_sample, sizes...]. A tensor without a dimension of
 * rows, such as a loss, has 0 rows per sample.
 */
struct TensorShape {
  DimVector sizes;
  int64_t rows_per_sample = 1;

  TensorShape() = default;
  TensorShape(std::initializer_list<int64_t> row_sizes) : sizes(row_sizes) {}
  explicit TensorShape(DimVector row_sizes) : sizes(std::move(row_sizes)) {}
  /** with_rows({5}, 3): [B * 3, 5]. */
  static TensorShape with_rows(DimVector row_sizes, int64_t rows_per_sample) {
    TensorShape shape(std::move(row_sizes));
    shape.rows_per_sample = rows_per_sample;
    return shape;
  }

  friend bool operator==(const TensorShape& a, const TensorShape& b) {
    return a.rows_per_sample == b.rows_per_sample && IntSpan(a.sizes) == IntSpan(b.sizes);
  }
};

/** "[batch, 3, 4]", "[batch * 5, 3]" of 5 rows per sample, "scalar" of none. */
TERCEL_API std::string shape_text(const TensorShape& shape);

}  // namespace tercel::recsys
