#include "tercel/ops/views/resize.h"

#include "tercel/autograd/record.h"
#include "tercel/core/alignment.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"

namespace tercel {

namespace {

void check_storage(const char* op, const Tensor& x) {
  check_strided(op, x);
  TERCEL_CHECK(x.has_storage(), RuntimeError, op, ": the tensor has no storage");
}

/** The number of bytes that the storage must have; RuntimeError if an element would be before its beginning. */
size_t bytes_under(const TensorImpl& t) {
  if (t.numel() == 0) return 0;
  const Extent extent = extent_of(t.sizes(), t.strides());
  TERCEL_CHECK(t.storage_offset() + extent.lowest >= 0, RuntimeError, "setStorage: sizes ", t.sizes(), ", strides ",
               t.strides(), ", storage offset ", t.storage_offset(), " begin before the storage does");
  int64_t items = 0, nbytes = 0;
  TERCEL_CHECK(!__builtin_add_overflow(t.storage_offset(), extent.highest + 1, &items) &&
                   !__builtin_mul_overflow(items, static_cast<int64_t>(t.itemsize()), &nbytes),
               RuntimeError, "Storage size calculation overflowed with sizes=", t.sizes(),
               " and strides=", t.strides());
  return static_cast<size_t>(nbytes);
}

/** Does all checks before changing anything. */
void change(const Tensor& x, const char* op, const Storage& storage, int64_t offset, IntSpan sizes, IntSpan strides) {
  x.impl().check_metadata_change(op);
  check_aligned(op, *storage, x.dtype());
  const auto fresh = make_intrusive<TensorImpl>(storage, x.dtype(), sizes, strides, offset);
  const size_t needed = bytes_under(*fresh);
  if (needed > storage->nbytes()) storage->resize_bytes(needed);
  x.impl().shallow_copy_from(*fresh);
  x.impl().bump_version();
}

void check_no_history(const char* op, const Tensor& x) {
  check_inplace(x, should_record(x));
  TERCEL_CHECK(!should_record(x), RuntimeError, op, ": the tensor has a gradient history; detach() it first");
}

void leave_base(const Tensor& x) {
  if (x.impl().plain_view_base()) x.impl().set_autograd_meta(nullptr);
}

}  // namespace

const Tensor& resize_(const Tensor& x, IntSpan sizes, MemoryFormat format) {
  check_storage("resize_", x);
  TERCEL_CHECK(!x.requires_grad() && !should_record(x), RuntimeError, "cannot resize variables that require grad");
  // The spans may refer to this tensor's own sizes.
  const DimVector wanted(sizes), strides = strides_for(sizes, format);
  change(x, "resize_", Storage(x.storage()), x.storage_offset(), wanted, strides);
  return x;
}
const Tensor& resize_(const Tensor& x, IntSpan sizes) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_resize_(x, sizes);
  if (x.defined() && x.sizes() == sizes && !x.requires_grad()) return x;
  return resize_(x, sizes, MemoryFormat::Contiguous);
}

const Tensor& resize_as_(const Tensor& x, const Tensor& other) {
  check_defined("resize_as_", x, "self");
  if (x.layout() == Layout::SparseCoo && has_sparse(other)) return resize_as_sparse_(x, other);
  if (!has_sparse(other)) check_strided("resize_as_", other, "the_template");
  return resize_(x, other.sizes());
}
const Tensor& resize_as_(const Tensor& x, const Tensor& other, MemoryFormat format) {
  check_strided("resize_as_", other, "the_template");
  return resize_(x, other.sizes(), format == MemoryFormat::Preserve ? other.suggest_memory_format() : format);
}

const Tensor& set_(const Tensor& x, const Storage& source, int64_t storage_offset, IntSpan sizes, IntSpan strides) {
  check_storage("set_", x);
  TERCEL_CHECK(source.defined(), RuntimeError, "set_: expected a storage but got none");
  check_no_history("set_", x);
  TERCEL_CHECK(storage_offset >= 0, RuntimeError, "Tensor: invalid storage offset ", storage_offset);
  TERCEL_CHECK(strides.empty() || strides.size() == sizes.size(), RuntimeError, "unequal size length (", sizes.size(),
               ") and stride length (", strides.size(), ")");
  TERCEL_CHECK(source->device() == x.device(), RuntimeError, "Attempted to set the storage of a tensor on device \"",
               to_string(x.device()), "\" to a storage on different device \"", to_string(source->device()),
               "\".  This is no longer allowed; the devices must match.");
  const DimVector new_sizes(sizes), new_strides = strides.empty() ? contiguous_strides(sizes) : DimVector(strides);
  change(x, "set_", Storage(source), storage_offset, new_sizes, new_strides);
  leave_base(x);
  return x;
}
const Tensor& set_(const Tensor& x, const Storage& source) {
  check_storage("set_", x);
  TERCEL_CHECK(source.defined(), RuntimeError, "set_: expected a storage but got none");
  return set_(x, source, 0, {static_cast<int64_t>(source->nbytes() / x.itemsize())});
}
const Tensor& set_(const Tensor& x, const Tensor& source) {
  check_storage("set_", x);
  check_storage("set_", source);
  TERCEL_CHECK(x.dtype() == source.dtype(), RuntimeError, "Could not set tensor of type ", to_string(source.dtype()),
               " to a tensor of type ", to_string(x.dtype()));
  if (x.is_same(source)) return x;
  return set_(x, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

void swap_data(const Tensor& a, const Tensor& b) {
  check_storage("swap_data", a);
  check_storage("swap_data", b);
  check_no_history("swap_data", a);
  check_no_history("swap_data", b);
  TERCEL_CHECK(a.dtype() == b.dtype() || (!a.requires_grad() && !b.requires_grad()), RuntimeError,
               "swap_data: a tensor that requires grad must keep its dtype: ", to_string(a.dtype()), " is not ",
               to_string(b.dtype()));
  a.impl().check_metadata_change("swap_data");
  b.impl().check_metadata_change("swap_data");
  if (a.is_same(b)) return;
  const auto old = a.impl().shallow_copy(false, true);
  a.impl().shallow_copy_from(b.impl());
  b.impl().shallow_copy_from(*old);
  for (const Tensor& t : {a, b}) {
    t.impl().bump_version();
    leave_base(t);
  }
}

}  // namespace tercel
