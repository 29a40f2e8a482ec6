#include "tercel/core/tensor.h"

#include "tercel/core/alignment.h"
#include "tercel/util/format.h"

namespace tercel {

TensorOptions Tensor::options() const {
  TensorOptions o(dtype(), device());
  o.layout = layout();
  return o;
}

bool Tensor::is_set_to(const Tensor& other) const {
  return is_alias_of(other) && storage_offset() == other.storage_offset() && sizes() == other.sizes() &&
         strides() == other.strides();
}

void Tensor::refuse_data(ScalarType wanted) const {
  if (layout() != Layout::Strided) refuse_layout("data", layout());
  TERCEL_CHECK(dtype() == wanted, RuntimeError, "Tensor type mismatch, caller expects elements to be ",
               to_string(wanted), ", while tensor contains ", to_string(dtype()), ". ");
  throw_error<RuntimeError>({"Cannot access data pointer of Tensor that doesn't have storage"});
}

void Tensor::refuse_accessor(size_t wanted) const {
  throw_error<RuntimeError>({"TensorAccessor expected ", wanted, " dims but tensor has ", dim()});
}

void Tensor::refuse_device() { throw_error<RuntimeError>({"tensor does not have a device"}); }

std::string to_string(Scalar value) {
  switch (value.category()) {
    case TypeCategory::Bool: return value.to_bool() ? "true" : "false";
    case TypeCategory::Integral:
      return value.is_above_int64() ? std::to_string(value.to<uint64_t>()) : std::to_string(value.to_int64());
    case TypeCategory::Floating: return format_double(value.to_double());
    case TypeCategory::Complex: break;
  }
  const Complex<double> z = value.to_complex();
  const std::string imaginary = format_double(z.im);
  return str_cat({format_double(z.re), imaginary.starts_with('-') ? "" : "+", imaginary, "j"});
}

std::string describe(const Tensor& t) {
  if (!t.defined()) return "an undefined tensor";
  return str_cat({t.sizes(), " ", to_string(t.dtype()), " on ", to_string(t.device())});
}

namespace {

[[gnu::noinline]] void check_options(const char* op, TensorOptions options) {
  TERCEL_CHECK(options.dtype != ScalarType::Undefined, RuntimeError, op, ": dtype is undefined");
  TERCEL_CHECK(options.layout == Layout::Strided, NotImplementedError, op, ": a tensor of layout ",
               to_string(options.layout), " cannot be created this way");
  TERCEL_CHECK(!options.requires_grad || is_differentiable(options.dtype), RuntimeError, op,
               ": only tensors of floating point and complex dtype can require gradients, not ",
               to_string(options.dtype));
}

void check_strides(const char* op, IntSpan sizes, IntSpan strides) {
  TERCEL_CHECK(sizes.size() == strides.size(), RuntimeError, op, ": dimensionality of sizes (", sizes.size(),
               ") must match dimensionality of strides (", strides.size(), ")");
  // The stride of a size-1 dimension is irrelevant, and reversed views may pass on a negative one.
  for (size_t d = 0; d < sizes.size(); ++d)
    TERCEL_CHECK(strides[d] >= 0 || sizes[d] == 1, RuntimeError, op, ": strides ", strides, " have a negative one");
}

/** The bytes from the first element to the end of the last. */
size_t bytes_under(IntSpan sizes, IntSpan strides, ScalarType dtype) {
  return static_cast<size_t>(extent_of(sizes, strides).highest + 1) * item_size(dtype);
}

[[noreturn, gnu::cold, gnu::noinline]] void rethrow_out_of_memory(const char* op, IntSpan sizes, ScalarType dtype,
                                                                  const OutOfMemoryError& e) {
  throw_error<OutOfMemoryError>({op, ": ", sizes, " ", to_string(dtype), ": ", e.what()});
}

/** Allocates the memory of a new tensor. Inline, since empty() is on the path of every op. */
[[gnu::always_inline]] inline Tensor allocate(const char* op, intrusive_ptr<TensorImpl> impl, size_t nbytes,
                                              TensorOptions options) {
  try {
    impl->adopt_storage(make_intrusive<StorageImpl>(nbytes, &get_allocator(options.device.type), true));
  } catch (const OutOfMemoryError& e) {
    rethrow_out_of_memory(op, impl->sizes(), options.dtype, e);
  }
  // A leaf needs no metadata until its gradient is requested.
  if (options.requires_grad) [[unlikely]]
    impl->set_requires_grad_flag(true);
  return Tensor(std::move(impl));
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_bytes(IntSpan sizes, ScalarType dtype) {
  throw_error<RuntimeError>({"empty: Storage size calculation overflowed with sizes=", sizes, " of ", to_string(dtype),
                             " does not fit 64 bits"});
}

}  // namespace

Tensor empty(IntSpan sizes, TensorOptions options) {
  const bool plain =
      options.dtype != ScalarType::Undefined && options.layout == Layout::Strided && !options.requires_grad;
  if (!plain) [[unlikely]]
    check_options("empty", options);
  auto impl = make_intrusive<TensorImpl>(options.dtype, options.device, sizes);
  int64_t nbytes = 0;
  if (__builtin_mul_overflow(impl->numel(), static_cast<int64_t>(item_size(options.dtype)), &nbytes)) [[unlikely]]
    refuse_bytes(sizes, options.dtype);
  return allocate("empty", std::move(impl), static_cast<size_t>(nbytes), options);
}

Tensor empty(IntSpan sizes, TensorOptions options, MemoryFormat format) {
  if (format == MemoryFormat::Contiguous) return empty(sizes, options);
  return empty_strided(sizes, strides_for(sizes, format), options);
}

Tensor empty_strided(IntSpan sizes, IntSpan strides, TensorOptions options) {
  check_options("empty_strided", options);
  check_strides("empty_strided", sizes, strides);
  auto impl = make_intrusive<TensorImpl>(options.dtype, options.device, sizes);
  impl->set_sizes_and_strides(sizes, strides);
  return allocate("empty_strided", std::move(impl), bytes_under(sizes, strides, options.dtype), options);
}

namespace detail {

Tensor from_block(DataPtr block, IntSpan sizes, IntSpan strides, TensorOptions options) {
  check_options("from_blob", options);
  check_strides("from_blob", sizes, strides);
  TERCEL_CHECK(block.get() || numel_of(sizes) == 0, RuntimeError, "from_blob: no data for sizes ", sizes);
  auto storage =
      make_intrusive<StorageImpl>(bytes_under(sizes, strides, options.dtype), std::move(block), nullptr, false);
  check_aligned("from_blob", *storage, options.dtype);
  auto impl = make_intrusive<TensorImpl>(std::move(storage), options.dtype, sizes, strides, 0);
  impl->set_requires_grad_flag(options.requires_grad);
  return Tensor(std::move(impl));
}

}  // namespace detail

// Both first take ownership of the block, so that it is released whatever happens afterwards.
Tensor from_blob(void* data, IntSpan sizes, TensorOptions options, void* context, DataPtr::Deleter deleter) {
  DataPtr block(data, context, deleter, options.device);
  return detail::from_block(std::move(block), sizes, contiguous_strides(sizes), options);
}

Tensor from_blob(void* data, IntSpan sizes, IntSpan strides, TensorOptions options, void* context,
                 DataPtr::Deleter deleter) {
  return detail::from_block(DataPtr(data, context, deleter, options.device), sizes, strides, options);
}

}  // namespace tercel
