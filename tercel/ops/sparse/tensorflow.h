// Sparse tensors in TensorFlow's form, for programs and files that have it.
//
// TensorFlow's indices are the transpose of those of a COO tensor: a row for each entry. Its functions want entries in
// row-major order without duplicates, and refuse others in place of sorting and adding them, as a COO tensor does.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel::tensorflow {

/** Three strided tensors over the memory of those given; without gradients. */
class TERCEL_API SparseTensor {
 public:
  /**
   * indices [nnz, rank] and dense_shape [rank] are int64 (other integers are converted), values [nnz]. RuntimeError
   * unless the sizes agree. Indices are not read: to_dense() and to_coo() check them.
   */
  SparseTensor(const Tensor& indices, const Tensor& values, const Tensor& dense_shape);
  /** The entries of a COO tensor without dense dimensions, coalesced first; RuntimeError for another one. */
  explicit SparseTensor(const Tensor& coo);

  const Tensor& indices() const { return indices_; }
  const Tensor& values() const { return values_; }
  const Tensor& dense_shape() const { return dense_shape_; }

  /** The same entries in row-major order; those of one index keep their order. IndexError for an index outside. */
  SparseTensor reorder() const;
  /**
   * A strided tensor of sizes dense_shape that has default_value where no entry is. With validate_indices, RuntimeError
   * for entries that are out of order or repeated, else the last of an index counts. IndexError for an index outside.
   */
  Tensor to_dense(Scalar default_value = 0, bool validate_indices = true) const;
  /** A COO tensor, coalesced; values of repeated entries are added. IndexError for an index outside. */
  Tensor to_coo() const;

 private:
  DimVector sizes() const;

  Tensor indices_, values_, dense_shape_;
};

}  // namespace tercel::tensorflow
