#include "tercel/io/dlpack.h"

#include <cstring>
#include <memory>

#include "tercel/core/alignment.h"
#include "tercel/io/elements_impl.h"
#include "tercel/util/error.h"

namespace tercel::io {

namespace {

constexpr DLPackVersion kVersion = {1, 1};
constexpr int32_t kMaxDims = 64;

/** State of an exported tensor, kept until its deleter is called. */
template <class Managed>
struct Export {
  Managed managed{};
  Storage storage;
  DimVector sizes, strides;
};

void check(const Tensor& t) {
  check_exportable(t, "to_dlpack", "");
  TERCEL_CHECK(!t.requires_grad(), RuntimeError, "Can't export tensors that require gradient, use tensor.detach()");
  TERCEL_CHECK(find_element_type(t.dtype()), TypeError, "to_dlpack: DLPack has no dtype for ", to_string(t.dtype()));
}

template <class Managed>
Managed* export_tensor(const Tensor& t) {
  auto owner = std::make_unique<Export<Managed>>();
  owner->sizes.assign(t.sizes());
  owner->strides.assign(t.strides());
  // Some consumers read strides of dimensions of size 1.
  for (size_t d = 0; d < owner->sizes.size(); ++d)
    if (owner->sizes[d] < 2) owner->strides[d] = 1;
  DLTensor& out = owner->managed.dl_tensor;
  out.data = t.data_ptr();
  owner->storage = lend_storage(t);
  out.device = {kDLCPU, 0};
  out.ndim = static_cast<int32_t>(t.dim());
  out.dtype = {static_cast<uint8_t>(find_element_type(t.dtype())->dlpack), static_cast<uint8_t>(8 * t.itemsize()), 1};
  out.shape = owner->sizes.data();
  out.strides = owner->strides.data();
  owner->managed.manager_ctx = owner.get();
  owner->managed.deleter = [](Managed* self) { delete static_cast<Export<Managed>*>(self->manager_ctx); };
  return &owner.release()->managed;
}

template <class Managed>
void delete_managed(void* context) {
  auto* managed = static_cast<Managed*>(context);
  if (managed->deleter) managed->deleter(managed);
}

ScalarType dtype_of(const DLDataType& type) {
  TERCEL_CHECK(type.lanes == 1, RuntimeError, "from_dlpack: expected elements of one lane but got ", type.lanes);
  for (const ElementType& t : element_types())
    if (static_cast<uint8_t>(t.dlpack) == type.code && 8 * item_size(t.type) == type.bits) return t.type;
  throw_error<RuntimeError>(
      {"from_dlpack: no dtype for elements of code ", int{type.code}, " and ", int{type.bits}, " bits"});
}

/** Sizes and strides, once it is certain that all offsets in bytes fit 63 bits. */
void read_geometry(const DLTensor& t, ScalarType dtype, DimVector& sizes, DimVector& strides) {
  TERCEL_CHECK(t.ndim >= 0 && t.ndim <= kMaxDims, RuntimeError, "from_dlpack: expected 0 to ", kMaxDims,
               " dimensions but got ", t.ndim);
  const auto ndim = static_cast<size_t>(t.ndim);
  TERCEL_CHECK(ndim == 0 || t.shape, RuntimeError, "from_dlpack: expected a shape of ", ndim, " sizes but got null");
  sizes.assign(IntSpan(t.shape, ndim));
  numel_of(sizes);
  strides = contiguous_strides(sizes);
  if (t.strides && ndim > 0) strides.assign(IntSpan(t.strides, ndim));
  // The stride of a dimension of size 0 or 1 may be anything.
  bool empty = false;
  for (size_t d = 0; d < ndim; ++d) {
    empty |= sizes[d] == 0;
    if (sizes[d] < 2) strides[d] = 1;
    TERCEL_CHECK(strides[d] >= 0, RuntimeError, "from_dlpack: strides ", IntSpan(strides), " have a negative one");
  }
  const int64_t last = extent_of(sizes, strides).highest;
  const auto item = static_cast<int64_t>(item_size(dtype));
  TERCEL_CHECK(last < INT64_MAX / item - 1 && t.byte_offset <= uint64_t{INT64_MAX} / 2, RuntimeError,
               "from_dlpack: sizes ", IntSpan(sizes), " at byte ", t.byte_offset, " reach beyond 64 bits");
  TERCEL_CHECK(empty || t.data, RuntimeError, "from_dlpack: no data for sizes ", IntSpan(sizes));
}

Tensor import_tensor(const DLTensor& t, void* context, DataPtr::Deleter deleter, bool read_only, CopyMode copy) {
  // From here on any exception calls the deleter.
  DataPtr block(nullptr, context, deleter, kCpu);
  TERCEL_CHECK(t.device.device_type == kDLCPU || t.device.device_type == kDLCUDAHost, RuntimeError,
               "from_dlpack: expected a tensor on the CPU (device type 1) but got device type ", t.device.device_type);
  TERCEL_CHECK(!read_only || copy != CopyMode::Never, RuntimeError,
               "from_dlpack: a read-only tensor cannot be imported without a copy");
  const ScalarType dtype = dtype_of(t.dtype);
  DimVector sizes, strides;
  read_geometry(t, dtype, sizes, strides);
  void* const data = t.data ? static_cast<std::byte*>(t.data) + t.byte_offset : nullptr;
  if (numel_of(sizes) > 0 && !is_aligned(data, dtype)) {
    TERCEL_CHECK(copy != CopyMode::Never, RuntimeError, "from_dlpack: memory that is not aligned to elements of ",
                 to_string(dtype), " cannot be imported without a copy");
    Tensor out = empty_strided(sizes, strides, dtype);
    std::memcpy(out.data_ptr(), data, out.storage()->nbytes());
    return out;
  }
  static_cast<void>(block.release_context());
  const Tensor imported = from_blob(data, sizes, strides, dtype, context, deleter);
  return read_only || copy == CopyMode::Always ? row_major_copy(imported) : imported;
}

}  // namespace

DLManagedTensor* to_dlpack(const Tensor& tensor) {
  check(tensor);
  return export_tensor<DLManagedTensor>(tensor);
}

DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor, CopyMode copy) {
  check(tensor);
  const bool copies = copy == CopyMode::Always;
  DLManagedTensorVersioned* managed = export_tensor<DLManagedTensorVersioned>(copies ? row_major_copy(tensor) : tensor);
  managed->version = kVersion;
  managed->flags = copies ? kDLFlagIsCopied : 0;
  return managed;
}

Tensor from_dlpack(DLManagedTensor* managed, CopyMode copy) {
  TERCEL_CHECK(managed, RuntimeError, "from_dlpack: expected a tensor but got null");
  return import_tensor(managed->dl_tensor, managed, delete_managed<DLManagedTensor>, false, copy);
}

Tensor from_dlpack(DLManagedTensorVersioned* managed, CopyMode copy) {
  TERCEL_CHECK(managed, RuntimeError, "from_dlpack: expected a tensor but got null");
  if (managed->version.major != kVersion.major) {
    const DLPackVersion version = managed->version;
    delete_managed<DLManagedTensorVersioned>(managed);
    throw_error<RuntimeError>(
        {"from_dlpack: expected DLPack ", kVersion.major, " but got version ", version.major, ".", version.minor});
  }
  return import_tensor(managed->dl_tensor, managed, delete_managed<DLManagedTensorVersioned>,
                       (managed->flags & kDLFlagReadOnly) != 0, copy);
}

}  // namespace tercel::io
