#include "tercel/ops/views/view_inplace.h"

#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/ops/views/views_impl.h"

namespace tercel {

namespace {

/**
 * Changes the geometry of x. Its history is extended by one node; that of its base is not, since no element changes.
 */
template <class MakeBackward>
const Tensor& regard_as(const char* name, const Tensor& x, const Geometry& g, MakeBackward make_backward) {
  const bool records = should_record(x);
  check_inplace(x, records);
  intrusive_ptr<Node> node;
  if (records) node = detail::make_node(name, 1, InputRefs{x}, make_backward());
  x.impl().set_sizes_and_strides(g.sizes, g.strides, g.offset);
  x.impl().bump_version();
  if (records) detail::record_result(x, std::move(node));
  return x;
}

const Tensor& regard_as(const char* name, const Tensor& x, const Geometry& g) {
  return regard_as(name, x, g, [old = DimVector(x.sizes())] {
    return [old](BackwardCall& call) { call.set(0, reshape(call.grad(), old)); };
  });
}

}  // namespace

const Tensor& transpose_(const Tensor& x, int64_t dim0, int64_t dim1) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_transpose_("transpose_", x, dim0, dim1);
  check_strided("transpose_", x);
  const Geometry g = transposed(x, dim0, dim1);
  return regard_as("TransposeBackward0", x, g, [dim0, dim1] {
    return [dim0, dim1](BackwardCall& call) { call.set(0, transpose(call.grad(), dim0, dim1)); };
  });
}
const Tensor& swapaxes_(const Tensor& x, int64_t axis0, int64_t axis1) { return transpose_(x, axis0, axis1); }
const Tensor& swapdims_(const Tensor& x, int64_t dim0, int64_t dim1) { return transpose_(x, dim0, dim1); }

const Tensor& t_(const Tensor& x) {
  if (!has_sparse(x)) check_strided("t_", x);
  TERCEL_CHECK(x.dim() <= 2, RuntimeError, "t_() expects a tensor with <= 2 dimensions, but self is ", x.dim(), "D");
  return transpose_(x, 0, x.dim() < 2 ? 0 : 1);
}

const Tensor& squeeze_(const Tensor& x) {
  check_strided("squeeze_", x);
  return regard_as("SqueezeBackward0", x, squeezed(x, DimMarks(x.sizes().size(), true)));
}
const Tensor& squeeze_(const Tensor& x, int64_t dim) { return squeeze_(x, IntSpan(&dim, 1)); }
const Tensor& squeeze_(const Tensor& x, IntSpan dim) {
  check_strided("squeeze_", x);
  return regard_as("SqueezeBackward0", x, squeezed(x, marked_dims(dim, x.dim())));
}

const Tensor& unsqueeze_(const Tensor& x, int64_t dim) {
  check_strided("unsqueeze_", x);
  return regard_as("UnsqueezeBackward0", x, unsqueezed(x, dim));
}

const Tensor& as_strided_(const Tensor& x, IntSpan size, IntSpan stride, std::optional<int64_t> storage_offset) {
  check_strided("as_strided_", x);
  const Geometry g = restrided(x, size, stride, storage_offset.value_or(x.storage_offset()));
  return regard_as("AsStridedBackward0", x, g, [&] {
    return
        [base = Geometry(x), g](BackwardCall& call) { call.set(0, as_strided_backward(call.grad(), g, base, false)); };
  });
}

}  // namespace tercel
