// HugeCTR's SparseTensor: the keys of rows, one after the other, and where each row begins.
//
// Row r has value[row_offset[r]] to value[row_offset[r + 1] - 1]. Rows are bags: row sample * slot_num + slot holds the
// keys of a slot of a sample. There are no column indices: the values are keys.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tercel/recsys/hugectr/dimensions.h"
#include "tercel/recsys/hugectr/tensor2.h"
#include "tercel/util/export.h"

namespace tercel::data {
struct SparseBatch;
}

namespace tercel::recsys::hugectr {

/** A SparseTensor of keys of any dtype; SparseTensor<T>::shrink() makes one. */
class TERCEL_API SparseTensorBag {
 public:
  /** Of no tensors. */
  SparseTensorBag() = default;
  /**
   * Of sizes [..., samples, most keys of a sample], over values [max_nnz] and row offsets [samples * slot_num + 1] of
   * one dtype. The counter is shared by all copies: who fills the tensor sets it. RuntimeError for other sizes, without
   * a counter, or if it is not in [0, max_nnz]; TypeError for unequal dtypes. Row offsets are not looked at.
   */
  SparseTensorBag(const Dimensions& sizes, TensorBag2 values, TensorBag2 row_offsets, std::shared_ptr<int64_t> nnz);
  /**
   * The keys of a batch's input, not copied, of sizes [rows, keys of the row with most]; nnz() is their number.
   * RuntimeError for a batch in slot-major order, or with weights of keys.
   */
  explicit SparseTensorBag(const data::SparseBatch& batch);

  /** Valid while the bag, or a copy of it, lives. */
  IntSpan get_dimensions() const { return sizes_; }
  const TensorBag2& values() const { return values_; }
  const TensorBag2& row_offsets() const { return row_offsets_; }
  const std::shared_ptr<int64_t>& get_nnz_ptr() const { return nnz_; }
  /** Number of values in use; RuntimeError if the counter is not in [0, max_nnz()]. */
  int64_t nnz() const;
  /** Number of values that there is memory for. */
  int64_t max_nnz() const { return values_.get_num_elements(); }
  /** Number of rows, plus 1. */
  int64_t rowoffset_count() const { return row_offsets_.get_num_elements(); }
  ScalarType dtype() const { return values_.dtype(); }
  /**
   * The rows as a tensor [rows, num_keys] of layout sparse_csr, over the same memory, but for the values in it: 1 for
   * each key. Errors, and what it is good for: data/csr_tensor.h.
   */
  Tensor csr_tensor(int64_t num_keys) const;

 private:
  void check() const;

  DimVector sizes_;
  TensorBag2 values_, row_offsets_;
  std::shared_ptr<int64_t> nnz_;
};

/** Keys and row offsets of type T. Copies share them and nnz(). */
template <class T>
class SparseTensor {
 public:
  /** No tensors. */
  SparseTensor() = default;
  /** As the constructor of SparseTensorBag. */
  SparseTensor(const Dimensions& sizes, const Tensor2<T>& values, const Tensor2<T>& row_offsets,
               std::shared_ptr<int64_t> nnz)
      : bag_(sizes, values.shrink(), row_offsets.shrink(), std::move(nnz)) {}
  /** The keys of a batch's input, not copied; as the constructor of SparseTensorBag, and TypeError for other keys. */
  explicit SparseTensor(const data::SparseBatch& batch) : SparseTensor("SparseTensor", SparseTensorBag(batch)) {}
  /** TypeError unless the bag's keys are T. */
  static SparseTensor stretch_from(const SparseTensorBag& bag) {
    return SparseTensor("SparseTensor::stretch_from", bag);
  }
  SparseTensorBag shrink() const { return bag_; }

  /** Valid while a copy of the tensor lives. */
  IntSpan get_dimensions() const { return bag_.get_dimensions(); }
  /** [max_nnz()], of which the first nnz() are in use; RuntimeErrors as of Tensor2. */
  T* get_value_ptr() const { return get_value_tensor().get_ptr(); }
  Tensor2<T> get_value_tensor() const { return Tensor2<T>::stretch_from(bag_.values()); }
  /** [rowoffset_count()]. */
  T* get_rowoffset_ptr() const { return get_rowoffset_tensor().get_ptr(); }
  Tensor2<T> get_rowoffset_tensor() const { return Tensor2<T>::stretch_from(bag_.row_offsets()); }
  /** The counter that copies share. */
  const std::shared_ptr<int64_t>& get_nnz_ptr() const { return bag_.get_nnz_ptr(); }
  /** Number of values in use; RuntimeError if the counter is not in [0, max_nnz()]. */
  int64_t nnz() const { return bag_.nnz(); }
  /** Number of values that there is memory for. */
  int64_t max_nnz() const { return bag_.max_nnz(); }
  /** Number of rows, plus 1. */
  int64_t rowoffset_count() const { return bag_.rowoffset_count(); }
  /** The rows as a tensor of layout sparse_csr, over the same memory; see SparseTensorBag. */
  Tensor csr_tensor(int64_t num_keys) const { return bag_.csr_tensor(num_keys); }

 private:
  SparseTensor(const char* what, SparseTensorBag bag) : bag_(std::move(bag)) {
    bag_.values().check_dtype(what, scalar_type_of<T>());
  }

  SparseTensorBag bag_;
};

template <class T>
using SparseTensors = std::vector<SparseTensor<T>>;

}  // namespace tercel::recsys::hugectr
