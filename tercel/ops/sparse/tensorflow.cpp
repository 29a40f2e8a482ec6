#include "tercel/ops/sparse/tensorflow.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/sort/sort.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/views/permute.h"
#include "tercel/ops/views/views.h"

namespace tercel::tensorflow {

using sparse_ops::flat_indices;

namespace {

Tensor as_int64(const char* what, const Tensor& x) {
  check_defined("SparseTensor", x, what);
  check_strided("SparseTensor", x, what);
  TERCEL_CHECK(is_integral(x.dtype(), false), RuntimeError, "SparseTensor: expected ", what,
               " of an integer dtype but got ", to_string(x.dtype()));
  return contiguous(to(x, kInt64));
}

}  // namespace

SparseTensor::SparseTensor(const Tensor& indices, const Tensor& values, const Tensor& dense_shape)
    : indices_(as_int64("indices", indices.detach())), values_(), dense_shape_(as_int64("dense_shape", dense_shape)) {
  check_defined("SparseTensor", values, "values");
  check_strided("SparseTensor", values, "values");
  values_ = values.detach();
  TERCEL_CHECK(indices_.dim() == 2, RuntimeError, "SparseTensor: expected indices of sizes [nnz, rank] but got ",
               indices_.sizes());
  TERCEL_CHECK(values_.dim() == 1 && values_.size(0) == indices_.size(0), RuntimeError,
               "SparseTensor: expected values of sizes [", indices_.size(0),
               "], the number of rows of indices, but got ", values_.sizes());
  TERCEL_CHECK(dense_shape_.dim() == 1 && dense_shape_.size(0) == indices_.size(1), RuntimeError,
               "SparseTensor: expected dense_shape of sizes [", indices_.size(1),
               "], the number of columns of indices, but got ", dense_shape_.sizes());
  const auto* size = static_cast<const int64_t*>(dense_shape_.data_ptr());
  for (int64_t d = 0; d < dense_shape_.size(0); ++d)
    TERCEL_CHECK(size[d] >= 0, RuntimeError, "SparseTensor: dense_shape[", d, "] is negative: ", size[d]);
}

SparseTensor::SparseTensor(const Tensor& coo) {
  check_defined("SparseTensor", coo, "coo");
  TERCEL_CHECK(coo.layout() == Layout::SparseCoo && dense_dim(coo) == 0, RuntimeError,
               "SparseTensor: expected a COO tensor without dense dimensions but got layout ", to_string(coo.layout()));
  const NoRecordGuard no_record;
  const Tensor unique = coalesce(coo.detach());
  indices_ = contiguous(t(_indices(unique)));
  values_ = _values(unique);
  dense_shape_ = empty({coo.dim()}, kInt64);
  std::copy(coo.sizes().begin(), coo.sizes().end(), dense_shape_.data<int64_t>());
}

DimVector SparseTensor::sizes() const {
  const auto* size = static_cast<const int64_t*>(dense_shape_.data_ptr());
  DimVector out;
  for (int64_t d = 0; d < dense_shape_.size(0); ++d) out.push_back(size[d]);
  return out;
}

SparseTensor SparseTensor::reorder() const {
  const NoRecordGuard no_record;
  const Tensor order = sort(flat_indices("reorder", contiguous(t(indices_)), sizes()), 0).indices;
  return {index_select(indices_, 0, order), index_select(values_, 0, order), dense_shape_};
}

Tensor SparseTensor::to_dense(Scalar default_value, bool validate_indices) const {
  const NoRecordGuard no_record;
  const DimVector shape = sizes();
  const Tensor flat = flat_indices("to_dense", contiguous(t(indices_)), shape);
  const auto* at = static_cast<const int64_t*>(flat.data_ptr());
  const int64_t n = flat.numel();
  for (int64_t i = 1; validate_indices && i < n; ++i) {
    if (at[i] > at[i - 1]) continue;
    const IntSpan row(static_cast<const int64_t*>(indices_.data_ptr()) + i * indices_.size(1), shape.size());
    TERCEL_CHECK(at[i] != at[i - 1], RuntimeError, "indices[", i, "] = ", row, " is repeated");
    constexpr std::string_view out_of_order =
        " is out of order. Many sparse ops require sorted indices. Use `reorder` to create a correctly ordered copy.";
    throw_error<RuntimeError>({"indices[", i, "] = ", row, out_of_order});
  }
  const Tensor out = full(shape, default_value, TensorOptions(values_.dtype(), values_.device()));
  const Tensor values = contiguous(values_);
  // In order, so that the last entry of an index counts.
  const auto* from = static_cast<const std::byte*>(values.data_ptr());
  auto* to = static_cast<std::byte*>(out.data_ptr());
  const size_t size = values.itemsize();
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(to + static_cast<size_t>(at[i]) * size, from + static_cast<size_t>(i) * size, size);
  return out;
}

Tensor SparseTensor::to_coo() const {
  return coalesce(sparse_coo_tensor(contiguous(t(indices_)), values_, sizes(), true));
}

}  // namespace tercel::tensorflow
