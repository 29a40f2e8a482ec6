#include "tercel/ops/index/index_put.h"

#include <algorithm>

#include "tercel/autograd/grad_mode.h"
#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/overlap_checks_impl.h"
#include "tercel/ops/common/promotion_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/nonzero.h"
#include "tercel/ops/index/subscript.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sort/unique.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

using indexing::Slice;

/** The items of the index expression x[:, ..., index]. */
std::vector<TensorIndex> along(int64_t dim, const Tensor& index) {
  std::vector<TensorIndex> items(static_cast<size_t>(dim), Slice());
  items.emplace_back(index);
  return items;
}

/** IndexError for negative indices, which these ops do not support. */
void check_not_negative(const char* op, const Tensor& index, int64_t dim, int64_t size) {
  const NoRecordGuard no_record;
  if (index.numel() == 0) return;
  const int64_t least = min(index).item().to_int64();
  TERCEL_CHECK(least >= 0, IndexError, op, "(): index ", least, " is out of bounds for dimension ", dim, " with size ",
               size);
}

Tensor as_vector(const Tensor& t) { return t.dim() == 0 ? view(t, {1}) : t; }

/** x with at least one dimension, and the indices of the slices to change. */
struct Place {
  Tensor x;
  int64_t dim;
  Tensor index;

  Place(const char* op, const Tensor& changed, int64_t d, const Tensor& at) {
    check_strided(op, changed);
    check_index_dtype(op, at);
    dim = wrap_dim(d, changed.dim());
    x = as_vector(changed);
    index = as_vector(at);
  }
  int64_t size() const { return x.sizes()[static_cast<size_t>(dim)]; }
  std::vector<TensorIndex> items() const { return along(dim, index); }
};

bool same_sizes_but(int64_t dim, IntSpan a, IntSpan b) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < a.size(); ++d)
    if (static_cast<int64_t>(d) != dim && a[d] != b[d]) return false;
  return true;
}

}  // namespace

const Tensor& index_add_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) {
  const char* op = "index_add_";
  const Place place(op, x, dim, index);
  check_strided(op, source, "source");
  TERCEL_CHECK(index.dim() <= 1, RuntimeError, op, "(): Index is supposed to be a vector, but got ", describe(index));
  TERCEL_CHECK(source.dtype() == x.dtype(), RuntimeError, op,
               "(): self and source must have the same scalar type, but got ", to_string(x.dtype()), " and ",
               to_string(source.dtype()));
  const Tensor from = as_vector(source);
  TERCEL_CHECK(place.dim < from.dim(), RuntimeError, op, "(): Indexing dim ", place.dim,
               " is out of bounds of the source tensor with dim ", source.dim());
  TERCEL_CHECK(from.sizes()[static_cast<size_t>(place.dim)] == place.index.numel(), RuntimeError, op,
               "(): Number of indices (", place.index.numel(), ") should be equal to source.size(dim): (",
               from.sizes()[static_cast<size_t>(place.dim)], "), for dim: ", place.dim);
  TERCEL_CHECK(same_sizes_but(place.dim, place.x.sizes(), from.sizes()), RuntimeError,
               "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ",
               x.sizes(), " source.shape = ", source.sizes());
  check_not_negative(op, place.index, place.dim, place.size());
  check_number_fits(x.dtype(), alpha);
  // The number is converted to x's dtype, as in PyTorch: truncated for integers.
  const Scalar factor = x.is_differentiable() ? alpha
                        : x.dtype() == kBool  ? Scalar(alpha.to_bool())
                                              : Scalar(alpha.to_int64());
  const bool as_is = !factor.is_floating() && !factor.is_complex() && factor.to_int64() == 1;
  index_put_(place.x, place.items(), as_is ? from : to(mul(from, factor), x.dtype()), true);
  return x;
}

const Tensor& index_copy_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const char* op = "index_copy_";
  const Place place(op, x, dim, index);
  check_strided(op, source, "source");
  TERCEL_CHECK(index.dim() <= 1, RuntimeError, op, "(): Index should have dimension 1 or 0 (got ", index.dim(), ")");
  TERCEL_CHECK(source.dim() != 0 || index.numel() == 1, IndexError, op,
               "(): When source is scalar, index should have one element (got ", index.numel(), ")");
  TERCEL_CHECK(source.dim() == x.dim() || source.dim() == 0 || x.dim() == 0, IndexError, op,
               "(): When source and destination are not scalars, their dimensionality must match. ",
               "Source dimensionality (", source.dim(), "), destination dimensionality (", x.dim(), ")");
  TERCEL_CHECK(source.dtype() == x.dtype(), RuntimeError, op,
               "(): self and source expected to have the same dtype, but got (self) ", to_string(x.dtype()),
               " and (source) ", to_string(source.dtype()));
  const Tensor from = as_vector(source);
  TERCEL_CHECK(same_sizes_but(place.dim, place.x.sizes(), from.sizes()), RuntimeError, op,
               "(): Source/destination tensor must have same slice shapes. Destination slice shape: ", x.sizes(),
               " at dimension ", place.dim, " and source slice shape: ", source.sizes(), " at dimension ", place.dim,
               ".");
  TERCEL_CHECK(from.sizes()[static_cast<size_t>(place.dim)] == place.index.numel(), IndexError, op,
               "(): Number of indices (", place.index.numel(), ") should be equal to source.size(dim) (",
               from.sizes()[static_cast<size_t>(place.dim)], ")");
  check_not_negative(op, place.index, place.dim, place.size());
  index_put_(place.x, place.items(), from);
  return x;
}

namespace {

void check_fill_category(const Tensor& x, ScalarType value) {
  TERCEL_CHECK(!is_complex(value) || is_complex(x.dtype()), RuntimeError,
               "index_fill_(): Converting complex Scalar to non-complex type is not supported");
}

}  // namespace

const Tensor& index_fill_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
  const char* op = "index_fill_";
  const Place place(op, x, dim, index);
  check_strided(op, value, "value");
  TERCEL_CHECK(index.dim() <= 1, RuntimeError, "Index has to be a vector/scalar");
  TERCEL_CHECK(value.dim() == 0, RuntimeError, op, " only supports a 0-dimensional value tensor, but got tensor with ",
               value.dim(), " dimension(s).");
  check_fill_category(x, value.dtype());
  if (!should_record(value)) {
    index_put_(place.x, place.items(), to(value, x.dtype()));
    return x;
  }
  // The gradient of the value counts each filled element once.
  const Tensor negative = bitwise_and(lt(place.index, 0), ge(place.index, -place.size()));
  const Tensor from_start = where(negative, add(place.index, place.size()), place.index);
  index_put_(place.x, along(place.dim, unique(from_start).values), to(value, x.dtype()));
  return x;
}

const Tensor& index_fill_(const Tensor& x, int64_t dim, const Tensor& index, Scalar value) {
  check_strided("index_fill_", x);
  check_fill_category(x, value.dtype());
  check_number_fits(x.dtype(), value);
  // In x's dtype, since the default dtype would round float64 and int64 numbers.
  return index_fill_(x, dim, index, scalar_tensor(value, TensorOptions(x.dtype())));
}

#define TERCEL_ON_A_COPY(name, parameters, ...) \
  Tensor name parameters {                      \
    check_strided(#name, x);                    \
    return name##_(clone(x), __VA_ARGS__);      \
  }
TERCEL_ON_A_COPY(index_add, (const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha),
                 dim, index, source, alpha)
TERCEL_ON_A_COPY(index_copy, (const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source), dim, index,
                 source)
TERCEL_ON_A_COPY(index_fill, (const Tensor& x, int64_t dim, const Tensor& index, Scalar value), dim, index, value)
TERCEL_ON_A_COPY(index_fill, (const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value), dim, index,
                 value)
TERCEL_ON_A_COPY(put, (const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate), index, source,
                 accumulate)

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  check_strided("masked_scatter", x);
  check_strided("masked_scatter", mask, "mask");
  return masked_scatter_(clone(expand(x, broadcast_sizes(x.sizes(), mask.sizes())), MemoryFormat::Contiguous), mask,
                         source);
}
#undef TERCEL_ON_A_COPY

Tensor take(const Tensor& x, const Tensor& index) {
  check_strided("take", x);
  check_index_dtype("take", index);
  TERCEL_CHECK(x.numel() > 0 || index.numel() == 0, IndexError, "take(): tried to take from an empty tensor");
  // A 0-dimensional index would count as an integer, and its result would be a view.
  return reshape(tercel::index(reshape(x, {-1}), {as_vector(index)}), index.sizes());
}

namespace {

/** Converts flat indices (negative: from the end) to one index per dimension. */
std::vector<TensorIndex> unravelled(const Tensor& numbers, const Tensor& x) {
  const NoRecordGuard no_record;
  const int64_t numel = x.numel();
  const Tensor wide = to(numbers, kInt64);
  if (wide.numel() > 0) {
    const int64_t least = min(wide).item().to_int64(), most = max(wide).item().to_int64();
    const int64_t wrong = least < -numel ? least : most;
    TERCEL_CHECK(least >= -numel && most < numel, IndexError, "out of range: tried to access index ", wrong,
                 " on a tensor of ", numel, " elements.");
  }
  Tensor rest = numel == 0 ? wide : remainder(wide, numel);
  std::vector<TensorIndex> items(static_cast<size_t>(x.dim()), Slice());
  for (size_t d = items.size(); d-- > 0;) {
    const int64_t size = std::max<int64_t>(1, x.sizes()[d]);
    items[d] = remainder(rest, size);
    rest = floor_divide(rest, size);
  }
  return items;
}

}  // namespace

const Tensor& put_(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate) {
  const char* op = "put_";
  check_strided(op, x);
  check_strided(op, source, "source");
  check_index_dtype(op, index);
  TERCEL_CHECK(source.dtype() == x.dtype(), RuntimeError, op,
               "(): self and source expected to have the same dtype, but got self.dtype = ", to_string(x.dtype()),
               " and source.dtype = ", to_string(source.dtype()));
  TERCEL_CHECK(index.numel() == source.numel(), RuntimeError, op,
               "(): Expected source and index to have the same number of elements, but got source.numel() = ",
               source.numel(), ", index.numel() = ", index.numel());
  TERCEL_CHECK(x.numel() > 0 || index.numel() == 0, IndexError, op, "(): tried to put elements into an empty tensor");
  const Tensor whole = as_vector(x);
  for (const Tensor* other : {&index, &source}) check_apart(op, x, *other);
  index_put_(whole, unravelled(reshape(index, {-1}), whole), reshape(source, {-1}), accumulate);
  return x;
}

Tensor take_along_dim(const Tensor& x, const Tensor& indices, int64_t dim) {
  check_strided("take_along_dim", x);
  check_strided("take_along_dim", indices, "indices");
  TERCEL_CHECK(x.dim() == indices.dim(), RuntimeError,
               "take_along_dim(): input and indices should have the same number of dimensions, but got ", x.dim(),
               " dimensions for input, and ", indices.dim(), " dimensions for indices");
  TERCEL_CHECK(indices.dtype() == kInt64, RuntimeError, "take_along_dim(): dtype of indices should be Long but got ",
               to_string(indices.dtype()));
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
  if (x.dim() == 0) return gather(x, 0, indices);
  DimVector x_sizes(x.sizes()), index_sizes(indices.sizes());
  x_sizes[d] = index_sizes[d] = 1;
  const DimVector common = broadcast_sizes(x_sizes, index_sizes);
  x_sizes = index_sizes = common;
  x_sizes[d] = x.sizes()[d];
  index_sizes[d] = indices.sizes()[d];
  // gather() does not support negative indices.
  const Tensor negative = lt(indices, 0);
  const Tensor counted = any(negative).item<bool>() ? add(indices, mul(negative, x.sizes()[d])) : indices;
  return gather(expand(x, x_sizes), static_cast<int64_t>(d), expand(counted, index_sizes));
}

Tensor take_along_dim(const Tensor& x, const Tensor& indices) {
  check_strided("take_along_dim", x);
  check_strided("take_along_dim", indices, "indices");
  return take_along_dim(reshape(x, {-1}), reshape(indices, {-1}), 0);
}

const Tensor& masked_scatter_(const Tensor& x, const Tensor& mask, const Tensor& source) {
  const char* op = "masked_scatter_";
  check_strided(op, x);
  check_strided(op, mask, "mask");
  check_strided(op, source, "source");
  TERCEL_CHECK(mask.dtype() == kBool, RuntimeError, op, " only supports boolean masks, but got mask with dtype ",
               to_string(mask.dtype()));
  TERCEL_CHECK(x.dtype() == source.dtype(), RuntimeError,
               "masked_scatter: expected self and source to have same dtypes but got ", to_string(x.dtype()), " and ",
               to_string(source.dtype()));
  const Tensor everywhere = expand(mask, x.sizes());
  std::vector<TensorIndex> items;
  int64_t n = 0;
  for (Tensor& column : nonzero_tuple(everywhere)) {
    n = column.numel();
    items.emplace_back(std::move(column));
  }
  TERCEL_CHECK(n <= source.numel(), RuntimeError, op, ": expected source to have at least as many elements (",
               source.numel(), ") as the mask has ones (", n,
               "): Number of elements of source < number of ones in mask");
  index_put_(as_vector(x), items, slice(reshape(source, {-1}), 0, 0, n));
  return x;
}

}  // namespace tercel
