#include "tercel/core/tensor_impl.h"

#include <algorithm>

#include "tercel/core/sparse_data.h"

namespace tercel {

namespace {
constexpr size_t kMaxDims = 127;
}

namespace detail {
constinit UndefinedTensorHolder g_undefined;
constinit thread_local bool t_inference_mode [[gnu::tls_model("initial-exec")]] = false;
}  // namespace detail

AutogradMetaBase::~AutogradMetaBase() = default;
ExtraMeta::ExtraMeta() = default;
ExtraMeta::~ExtraMeta() = default;

/** Sets ndim_ sizes and their row-major strides; the flags say "contiguous" from the start. */
inline void TensorImpl::set_row_major(IntSpan sizes) {
  int64_t* size = dims();
  int64_t* stride = size + capacity();
  int64_t step = 1;
  bool valid = true, empty = false;
  for (size_t d = ndim_; d-- > 0;) {
    const int64_t s = size[d] = sizes[d];
    stride[d] = step;
    if (s > 0) [[likely]] {
      valid &= !__builtin_mul_overflow(step, s, &step);
    } else {
      empty = true;
      valid &= s == 0;
    }
  }
  if (!valid) [[unlikely]]
    detail::refuse_sizes(sizes);
  numel_ = empty ? 0 : step;
}

// The public ones delegate to these, so that the destructor runs when they throw.
inline TensorImpl::TensorImpl(ScalarType dtype, Device device, size_t ndim) : dtype_(dtype), device_(device) {
  set_ndim(ndim);
  if (detail::t_inference_mode) [[unlikely]]
    set_flag(kInference, true);
}
inline TensorImpl::TensorImpl(Storage&& storage, ScalarType dtype, size_t ndim)
    : storage_(std::move(storage)), dtype_(dtype), device_(storage_->device()) {
  set_ndim(ndim);
  if (detail::t_inference_mode) [[unlikely]]
    set_flag(kInference, true);
}

TensorImpl::TensorImpl(ScalarType dtype, Device device, IntSpan sizes, Layout layout)
    : TensorImpl(dtype, device, sizes.size()) {
  layout_ = layout;
  set_row_major(sizes);
}

TensorImpl::TensorImpl(Storage storage, ScalarType dtype, IntSpan sizes)
    : TensorImpl(std::move(storage), dtype, sizes.size()) {
  set_row_major(sizes);
}

TensorImpl::TensorImpl(Storage storage, ScalarType dtype, IntSpan sizes, IntSpan strides, int64_t storage_offset)
    : TensorImpl(std::move(storage), dtype, sizes.size()) {
  storage_offset_ = storage_offset;
  set_geometry(sizes.data(), strides.data());
}

TensorImpl::TensorImpl(const TensorImpl& base, IntSpan sizes, IntSpan strides, int64_t storage_offset)
    : TensorImpl(base.storage_, base.dtype_, sizes, strides, storage_offset) {
  layout_ = base.layout_;
  share_version(base);
}

TensorImpl::TensorImpl(const TensorImpl& base, IntSpan sizes) : TensorImpl(base.storage_, base.dtype_, sizes) {
  storage_offset_ = base.storage_offset_;
  layout_ = base.layout_;
  share_version(base);
}

/** The elements of `other`; see Note [Sparse tensors]. */
inline void TensorImpl::share_sparse(const TensorImpl& other) {
  if (const SparseData* parts = other.sparse()) [[unlikely]]
    set_sparse(std::make_unique<SparseData>(*parts));
}

TensorImpl::TensorImpl(const TensorImpl* whole) : TensorImpl(whole->dtype_, whole->device_, size_t{whole->ndim_}) {
  storage_ = whole->storage_;
  const size_t n = ndim_;
  const int64_t *size = whole->dims(), *stride = size + whole->capacity();
  int64_t *own_size = dims(), *own_stride = own_size + capacity();
  for (size_t d = 0; d < n; ++d) {
    own_size[d] = size[d];
    own_stride[d] = stride[d];
  }
  storage_offset_ = whole->storage_offset_;
  numel_ = whole->numel_;
  layout_ = whole->layout_;
  constexpr int kOfGeometry = kContiguous | kDense;
  flags_ = static_cast<uint8_t>((flags_ & ~kOfGeometry) | (whole->flags_ & kOfGeometry));
  share_version(*whole);
  share_sparse(*whole);
}

inline void TensorImpl::share_version(const TensorImpl& base) {
  if (flag(kInference) != base.flag(kInference)) [[unlikely]]
    set_flag(kInference, base.flag(kInference));
  if (base.has_own_version()) [[unlikely]]
    set_version_counter(base.extra()->version_counter);
}

TensorImpl::~TensorImpl() {
  if (autograd_.load(std::memory_order_relaxed) != 0) drop_autograd();
  if (extra_.load(std::memory_order_relaxed) != 0) drop_extra();
  if (ndim_ > kInlineDims) delete[] heap_;
}

/** data() of a tensor that may have no storage. */
void* TensorImpl::checked_data() const {
  if (layout_ != Layout::Strided) refuse_layout("data", layout_);
  if (numel_ == 0) return nullptr;
  TERCEL_CHECK(storage_.defined(), RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage");
  const Extent extent = extent_of(sizes(), strides());
  const auto item = static_cast<int64_t>(itemsize());
  const auto nbytes = static_cast<int64_t>(storage_->nbytes());
  // Divided, not multiplied: no product can overflow.
  TERCEL_CHECK(storage_offset_ + extent.lowest >= 0 && storage_offset_ + extent.highest < nbytes / item, RuntimeError,
               "the storage of a tensor was made too small for it: sizes ", sizes(), ", strides ", strides(),
               " and storage offset ", storage_offset_, " need elements of ", item, " bytes up to number ",
               storage_offset_ + extent.highest + 1, ", but the storage has ", nbytes, " bytes");
  return storage_->unsafe_data<std::byte>() + storage_offset_ * item;
}

void TensorImpl::release_resources() {
  drop_autograd();
  storage_.reset();
  drop_extra();
}

/** An object destroyed with a peer owns it: see Note [Peers]. */
void TensorImpl::drop_extra() {
  void* const owned = peer();
  delete extra();
  extra_.store(0, std::memory_order_relaxed);
  if (owned) detail::drop_peer(owned);
}

void TensorImpl::drop_autograd() { set_autograd_meta(nullptr); }

void TensorImpl::set_autograd_meta(std::unique_ptr<AutogradMetaBase> meta) {
  const auto fresh = reinterpret_cast<uintptr_t>(meta.release());
  // Only one thread at a time runs this, so no atomic exchange, which would cost every view a locked instruction.
  const uintptr_t old = autograd_.load(std::memory_order_relaxed);
  autograd_.store(fresh, std::memory_order_release);
  if ((old & 1) != 0)
    intrusive_ptr<TensorImpl>::reclaim(reinterpret_cast<TensorImpl*>(old & ~uintptr_t{1})).reset();
  else
    delete reinterpret_cast<AutogradMetaBase*>(old);
}

bool TensorImpl::is_contiguous(MemoryFormat format) const {
  switch (format) {
    case MemoryFormat::ChannelsLast: return is_channels_last_strides(sizes(), strides());
    case MemoryFormat::ChannelsLast3d: return is_channels_last_3d_strides(sizes(), strides());
    case MemoryFormat::Contiguous:
    case MemoryFormat::Preserve: break;
  }
  return is_contiguous();
}

void TensorImpl::move_dims(size_t ndim) {
  TERCEL_CHECK(ndim <= kMaxDims, RuntimeError, "a tensor has at most ", kMaxDims, " dimensions, not ", ndim);
  if (ndim == ndim_) return;
  int64_t* fresh = ndim > kInlineDims ? new int64_t[2 * ndim] : nullptr;
  if (ndim_ > kInlineDims) delete[] heap_;
  if (fresh) heap_ = fresh;
  ndim_ = static_cast<uint8_t>(ndim);
}

/** Copies ndim_ sizes and strides, which may be the current ones, and computes the derived flags. */
void TensorImpl::set_geometry(const int64_t* sizes, const int64_t* strides) {
  int64_t* size = dims();
  int64_t* stride = size + capacity();
  int64_t numel = 1;   // of the dimensions that are not empty
  uint64_t reach = 1;  // of the elements in memory, modulo 2^64
  bool valid = true, empty = false, contiguous = true;
  for (size_t d = ndim_; d-- > 0;) {
    const int64_t s = size[d] = sizes[d];
    const int64_t step = stride[d] = strides[d];
    if (s == 1) continue;
    if (s > 0) [[likely]] {
      contiguous &= step == numel;
      reach += static_cast<uint64_t>(s - 1) * static_cast<uint64_t>(step);
      valid &= !__builtin_mul_overflow(numel, s, &numel);
    } else {
      empty = true;
      valid &= s == 0;
    }
  }
  if (!valid) [[unlikely]]
    detail::refuse_sizes(this->sizes());
  numel_ = empty ? 0 : numel;
  contiguous |= empty;
  set_flag(kContiguous, contiguous);
  // As many positions as elements: true for dense tensors, and false for most other views.
  const bool may_be_dense = reach == static_cast<uint64_t>(numel);
  set_flag(kDense,
           contiguous || (may_be_dense && tercel::is_non_overlapping_and_dense(this->sizes(), this->strides())));
}

void TensorImpl::take_dims(const TensorImpl& other, const uint8_t* order) {
  const int64_t *from_size = other.dims(), *from_stride = from_size + other.capacity();
  int64_t *size = dims(), *stride = size + capacity();
  for (size_t d = 0; d < ndim_; ++d) {
    size[d] = from_size[order[d]];
    stride[d] = from_stride[order[d]];
  }
  set_flag(kContiguous, is_contiguous_strides(sizes(), strides()));
}

void TensorImpl::refresh() { set_geometry(dims(), dims() + capacity()); }

void TensorImpl::check_metadata_change(const char* what) const {
  TERCEL_CHECK(allow_tensor_metadata_change(), RuntimeError, what,
               " is not allowed on a Tensor created from .data or .detach().\nIf your intent is to change the metadata "
               "of a Tensor (such as sizes / strides / storage / storage_offset) without autograd tracking the change, "
               "remove the .data / .detach() call and wrap the change in a no-grad block.");
}

void TensorImpl::set_sizes_and_strides(IntSpan sizes, IntSpan strides) {
  set_sizes_and_strides(sizes, strides, storage_offset_);
}

void TensorImpl::set_sizes_and_strides(IntSpan sizes, IntSpan strides, int64_t storage_offset) {
  check_metadata_change("set_sizes_and_strides");
  TERCEL_CHECK(sizes.size() == strides.size(), RuntimeError, "dimensionality of sizes (", sizes.size(),
               ") must match dimensionality of strides (", strides.size(), ")");
  numel_of(sizes);
  // The arguments may point into this tensor.
  DimVector size(sizes), stride(strides);
  for (size_t d = size.size(); d-- > 0;) {
    if (stride[d] != kFillStride) continue;
    stride[d] = 1;
    const bool last = d + 1 == size.size();
    TERCEL_CHECK(last || !__builtin_mul_overflow(std::max<int64_t>(size[d + 1], 1), stride[d + 1], &stride[d]),
                 RuntimeError, "set_sizes_and_strides: stride ", d, " of sizes ", sizes, " does not fit 64 bits");
  }
  set_ndim(size.size());
  set_geometry(size.data(), stride.data());
  storage_offset_ = storage_offset;
}

void TensorImpl::set_sizes_contiguous(IntSpan sizes) { set_sizes_and_strides(sizes, contiguous_strides(sizes)); }

void TensorImpl::set_size(int64_t dim, int64_t size) {
  check_metadata_change("set_size");
  DimVector sizes_then(sizes());
  sizes_then[static_cast<size_t>(wrap_dim(dim, ndim_, false))] = size;
  numel_of(sizes_then);
  std::copy(sizes_then.begin(), sizes_then.end(), dims());
  refresh();
}

void TensorImpl::set_stride(int64_t dim, int64_t stride) {
  check_metadata_change("set_stride");
  dims()[capacity() + static_cast<size_t>(wrap_dim(dim, ndim_, false))] = stride;
  refresh();
}

void TensorImpl::set_storage_offset(int64_t offset) {
  check_metadata_change("set_storage_offset");
  storage_offset_ = offset;
}

void TensorImpl::resize_dim(int64_t ndim) {
  check_metadata_change("resize_dim");
  TERCEL_CHECK(ndim >= 0 && ndim <= static_cast<int64_t>(kMaxDims), RuntimeError, "resize_dim: a tensor has 0 to ",
               kMaxDims, " dimensions, not ", ndim);
  DimVector size(sizes()), stride(strides());
  size.resize(static_cast<size_t>(ndim), 0);
  stride.resize(static_cast<size_t>(ndim), 0);
  set_ndim(size.size());
  set_geometry(size.data(), stride.data());
}

void TensorImpl::empty_tensor_restride(MemoryFormat format) {
  const DimVector size(sizes());
  set_geometry(size.data(), strides_for(size, format).data());
}

void TensorImpl::set_storage(Storage storage) {
  check_metadata_change("set_storage");
  if (storage_.defined() && storage_ != storage) keep_version();
  storage_ = std::move(storage);
  device_ = storage_->device();
}

ExtraMeta& TensorImpl::make_extra() {
  if (!extra()) {
    auto meta = std::make_unique<ExtraMeta>();
    meta->peer = peer();
    extra_.store(reinterpret_cast<uintptr_t>(meta.release()), std::memory_order_relaxed);
  }
  return *extra();
}

void TensorImpl::set_version_counter(intrusive_ptr<VersionCounter> counter) {
  make_extra().version_counter = std::move(counter);
}

void TensorImpl::set_sparse(std::unique_ptr<SparseData> parts) {
  make_extra().sparse = std::move(parts);
  if (!has_own_version()) set_version_counter(make_intrusive<VersionCounter>(uint32_t{0}));
  SparseData& own = *extra()->sparse;
  for (Tensor* part : {&own.indices, &own.plain_indices, &own.values}) {
    if (!part->defined()) continue;
    auto copy = part->impl().shallow_copy(false, true);
    copy->set_version_counter(extra()->version_counter);
    *part = Tensor(std::move(copy));
  }
  // There are no strides; as in PyTorch they read as zeros.
  std::fill_n(dims() + capacity(), ndim_, int64_t{0});
  set_flag(kContiguous, false);
  set_flag(kDense, false);
}

void TensorImpl::share_sparse_version(const TensorImpl& base) {
  set_version_counter(base.extra()->version_counter);
  share_sparse(*this);  // the parts take the counter
}

/** Before the storage changes: see Note [Version counters]. */
void TensorImpl::keep_version() {
  if (!has_own_version()) set_version_counter(make_intrusive<VersionCounter>(version()));
}

intrusive_ptr<TensorImpl> TensorImpl::shallow_copy(bool own_version, bool allow_metadata_change) const {
  auto copy = make_intrusive<TensorImpl>(this);
  copy->set_flag(kWrappedNumber, flag(kWrappedNumber));
  copy->set_flag(kFixedMetadata, !allow_metadata_change);
  if (own_version) {
    copy->set_version_counter(make_intrusive<VersionCounter>(uint32_t{0}));
    copy->share_sparse(*this);  // the copied parts share the old counter
  }
  return copy;
}

void TensorImpl::shallow_copy_from(const TensorImpl& other) {
  const DimVector size(other.sizes()), stride(other.strides());
  if (storage_.defined() && storage_ != other.storage_) keep_version();
  set_ndim(size.size());
  set_geometry(size.data(), stride.data());
  storage_ = other.storage_;
  dtype_ = other.dtype_;
  device_ = other.device_;
  layout_ = other.layout_;
  storage_offset_ = other.storage_offset_;
  if (ExtraMeta* meta = extra()) meta->sparse = nullptr;
  share_sparse(other);
  set_flag(kWrappedNumber, other.flag(kWrappedNumber));
}

}  // namespace tercel
