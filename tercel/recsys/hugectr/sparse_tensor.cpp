#include "tercel/recsys/hugectr/sparse_tensor.h"

#include <algorithm>

#include "tercel/data/batch.h"
#include "tercel/data/csr_tensor.h"
#include "tercel/util/error.h"

namespace tercel::recsys::hugectr {

namespace {

/** Number of keys of the row with most. */
int64_t most_keys(const data::SparseBatch& batch, int64_t rows) {
  if (batch.hotness > 0) return batch.hotness * batch.slot_num;
  return visit_index_types("SparseTensor", batch.row_offsets.dtype(), [&]<class T>() {
    const T* offsets = batch.row_offsets.data<T>();
    int64_t most = 0;
    for (int64_t row = 0; row < rows; ++row, offsets += batch.slot_num)
      most = std::max(most, static_cast<int64_t>(offsets[batch.slot_num] - offsets[0]));
    return most;
  });
}

}  // namespace

SparseTensorBag::SparseTensorBag(const Dimensions& sizes, TensorBag2 values, TensorBag2 row_offsets,
                                 std::shared_ptr<int64_t> nnz)
    : sizes_(IntSpan(sizes)), values_(std::move(values)), row_offsets_(std::move(row_offsets)), nnz_(std::move(nnz)) {
  check();
}

SparseTensorBag::SparseTensorBag(const data::SparseBatch& batch)
    : values_(batch.keys), row_offsets_(batch.row_offsets), nnz_(std::make_shared<int64_t>(batch.keys.numel())) {
  TERCEL_CHECK(batch.order == data::BagOrder::SampleMajor, RuntimeError,
               "SparseTensor: its rows are in sample-major order, but the bags of '", batch.name,
               "' in slot-major order");
  TERCEL_CHECK(batch.slot_num >= 1 && rowoffset_count() >= 1 && (rowoffset_count() - 1) % batch.slot_num == 0,
               RuntimeError, "SparseTensor: expected row offsets for a number of rows of ", batch.slot_num,
               " slots, and one more, but '", batch.name, "' has ", rowoffset_count());
  TERCEL_CHECK(!batch.key_weights.defined(), RuntimeError, "SparseTensor: it has no weights, but the keys of '",
               batch.name, "' have; data::csr_tensor() takes them");
  const int64_t rows = (rowoffset_count() - 1) / batch.slot_num;
  sizes_ = {rows, most_keys(batch, rows)};
  check();
}

void SparseTensorBag::check() const {
  TERCEL_CHECK(values_.get_dimensions().size() == 1 && row_offsets_.get_dimensions().size() == 1, RuntimeError,
               "SparseTensor: expected values [max_nnz] and row offsets [rows + 1], but got sizes ",
               values_.get_dimensions(), " and ", row_offsets_.get_dimensions());
  row_offsets_.check_dtype("SparseTensor: row offsets", values_.dtype());
  TERCEL_CHECK(!sizes_.empty(), RuntimeError,
               "SparseTensor: expected sizes [samples, most keys of a sample], but got []");
  const int64_t samples = numel_of(IntSpan(sizes_).subspan(0, sizes_.size() - 1)), rows = rowoffset_count() - 1;
  TERCEL_CHECK(samples == 0 ? rows == 0 : rows >= 0 && rows % samples == 0, RuntimeError,
               "SparseTensor: expected row offsets for a number of slots of ", samples,
               " samples, and one more, but got ", rowoffset_count());
  TERCEL_CHECK(nnz_, RuntimeError, "SparseTensor: expected a counter of values, but got null");
  nnz();
}

int64_t SparseTensorBag::nnz() const {
  TERCEL_CHECK(nnz_, RuntimeError, "SparseTensor: there are no tensors");
  TERCEL_CHECK(*nnz_ >= 0 && *nnz_ <= max_nnz(), RuntimeError, "SparseTensor: expected a number of values in [0, ",
               max_nnz(), "], but the counter is ", *nnz_);
  return *nnz_;
}

Tensor SparseTensorBag::csr_tensor(int64_t num_keys) const {
  const Tensor& all = values_.tensor();
  const Tensor keys(make_intrusive<TensorImpl>(all.impl(), IntSpan({nnz()}), IntSpan({1}), all.storage_offset()));
  return data::csr_tensor(row_offsets_.tensor(), keys, Tensor(), num_keys);
}

}  // namespace tercel::recsys::hugectr
