// The implementation of a tensor: a storage, sizes and strides.
//
// Note [Version counters]
// Every in-place change bumps a version, so that backward can tell when a saved tensor was changed. The counter lives
// in the storage, because views and detach() share it. `.data` does not: such a tensor has its own counter in
// ExtraMeta, shared with its views and shallow copies. So does a tensor whose storage was replaced.
//
// Note [Views without history]
// A view must know its base even if nothing requires a gradient yet: a later in-place op with a differentiable operand
// changes the base's history too. Few views need that, so a view gets no AutogradMeta for it: its autograd slot holds
// the base itself, distinguished from metadata by the lowest bit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tercel/core/geometry.h"
#include "tercel/core/intrusive_ptr.h"
#include "tercel/core/peer.h"
#include "tercel/core/scalar_type.h"
#include "tercel/core/storage.h"

namespace tercel {

class TensorImpl;
struct SparseData;

/** Autograd metadata of a tensor; the autograd layer defines its content. */
class TERCEL_API AutogradMetaBase {
 public:
  virtual ~AutogradMetaBase();
  /** For a view: the tensor whose history may become its own. Kept alive by the autograd layer. */
  TensorImpl* view_base = nullptr;
};

/** Counts in-place changes for tensors that do not use their storage's counter. */
class TERCEL_API VersionCounter final : public intrusive_ptr_target {
 public:
  explicit VersionCounter(uint32_t start) : version_(start) {}
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump() { version_.fetch_add(1, std::memory_order_relaxed); }

  static void* operator new(size_t size) { return detail::allocate_object(size); }
  static void operator delete(void* p) { detail::free_object(p, sizeof(VersionCounter)); }

 private:
  std::atomic<uint32_t> version_;
};

/** Rarely needed metadata. */
struct TERCEL_API ExtraMeta {
  ExtraMeta();
  virtual ~ExtraMeta();
  ExtraMeta(const ExtraMeta&) = delete;
  ExtraMeta& operator=(const ExtraMeta&) = delete;
  /** Own version counter, used instead of the storage's; may be null. */
  intrusive_ptr<VersionCounter> version_counter;
  /** The tensor's peer; see Note [Peers] in peer.h. */
  void* peer = nullptr;
  /** The parts of a tensor of a sparse layout, or of a packed weight; else null. */
  std::unique_ptr<SparseData> sparse;
};

/** How a view was made, which decides what in-place ops may do to it. */
enum class ViewOrigin : uint8_t { Ordinary, NoGrad, MultiOutput, Inference, CustomFunction };

namespace detail {
union UndefinedTensorHolder;
// Whether tensors made on this thread are inference tensors; see InferenceMode.
TERCEL_API extern constinit thread_local bool t_inference_mode [[gnu::tls_model("initial-exec")]];
}  // namespace detail

class TERCEL_API TensorImpl final : public intrusive_ptr_target {
 public:
  /** Row-major, without storage; data() throws NotImplementedError unless the layout is strided. */
  TensorImpl(ScalarType dtype, Device device, IntSpan sizes, Layout layout = Layout::Strided);
  /** Row-major over the start of the storage. */
  TensorImpl(Storage storage, ScalarType dtype, IntSpan sizes);
  /** Any geometry, as many strides as sizes; the caller has checked that it lies inside the storage. */
  TensorImpl(Storage storage, ScalarType dtype, IntSpan sizes, IntSpan strides, int64_t storage_offset);
  /** A view: the same with storage, dtype, layout and version counter of `base`. */
  TensorImpl(const TensorImpl& base, IntSpan sizes, IntSpan strides, int64_t storage_offset);
  /** A view of all elements of a contiguous base, contiguous itself; the caller has checked that there are as many. */
  TensorImpl(const TensorImpl& base, IntSpan sizes);
  explicit TensorImpl(const TensorImpl* whole);  ///< a view of all of it
  ~TensorImpl() override;
  TensorImpl(const TensorImpl&) = delete;
  TensorImpl& operator=(const TensorImpl&) = delete;

  bool defined() const { return dtype_ != ScalarType::Undefined; }

  int64_t dim() const { return ndim_; }
  IntSpan sizes() const { return {dims(), ndim_}; }
  IntSpan strides() const { return {dims() + capacity(), ndim_}; }
  int64_t storage_offset() const { return storage_offset_; }
  int64_t numel() const { return numel_; }
  ScalarType dtype() const { return dtype_; }
  size_t itemsize() const { return item_size(dtype_); }
  Device device() const { return device_; }
  Layout layout() const { return layout_; }
  bool is_contiguous() const { return flag(kContiguous); }
  bool is_contiguous(MemoryFormat format) const;
  bool is_non_overlapping_and_dense() const { return flag(kDense); }

  /** The parts of a tensor of a sparse layout, or of a packed weight; null for others, and until they are set. */
  SparseData* sparse() const {
    const ExtraMeta* meta = extra();
    return meta ? meta->sparse.get() : nullptr;
  }
  void set_sparse(std::unique_ptr<SparseData> parts);
  /** A change of this tensor of a sparse layout, or of its parts, counts as one of `base` too, and the reverse. */
  void share_sparse_version(const TensorImpl& base);

  bool has_storage() const { return storage_.defined(); }
  const Storage& storage() const { return storage_; }
  /** First element, or null if there is none. RuntimeError if the storage is missing or too small. */
  void* data() const {
    if (numel_ == 0 || !storage_.defined() || storage_->shrunk()) [[unlikely]]
      return checked_data();
    return static_cast<std::byte*>(storage_->data()) + storage_offset_ * static_cast<int64_t>(itemsize());
  }

  // Metadata setters. Each refuses a result of data() or detach() that must not change; none checks the storage.
  /** The setters' check, for callers that change several properties; RuntimeError that starts with `what`. */
  void check_metadata_change(const char* what) const;
  /** A stride of kFillStride makes the dimension contiguous with the next one. */
  void set_sizes_and_strides(IntSpan sizes, IntSpan strides);
  void set_sizes_and_strides(IntSpan sizes, IntSpan strides, int64_t storage_offset);
  void set_sizes_contiguous(IntSpan sizes);
  void set_size(int64_t dim, int64_t size);
  void set_stride(int64_t dim, int64_t stride);
  void set_storage_offset(int64_t offset);
  /** Changes the number of dimensions; new ones have size and stride 0. */
  void resize_dim(int64_t ndim);
  void empty_tensor_restride(MemoryFormat format);
  /** Sets the storage of a tensor made without one; it must be on the tensor's device. */
  void adopt_storage(Storage storage) { storage_.swap(storage); }
  /** Replaces the storage; the version continues from its old value. */
  void set_storage(Storage storage);
  void set_dtype(ScalarType dtype) { dtype_ = dtype; }

  bool allow_tensor_metadata_change() const { return !flag(kFixedMetadata); }
  void set_allow_tensor_metadata_change(bool allow) { set_flag(kFixedMetadata, !allow); }

  /** A Python or C++ number made a tensor, which does not promote tensors of the same category. */
  bool is_wrapped_number() const { return flag(kWrappedNumber); }
  void set_wrapped_number(bool wrapped) { set_flag(kWrappedNumber, wrapped); }

  /** Made in inference mode: has no version counter (the version is 0) and is not recorded. */
  bool is_inference() const { return flag(kInference); }
  uint32_t version() const {
    if (has_own_version()) [[unlikely]]
      return extra()->version_counter->version();
    return storage_.defined() && !is_inference() ? storage_->version() : 0;
  }
  void bump_version() {
    if (is_inference()) [[unlikely]]
      return;
    if (has_own_version()) [[unlikely]]
      extra()->version_counter->bump();
    else if (storage_.defined())
      storage_->bump_version();
  }

  /** Same storage and geometry, no gradient history; shares the version counter unless a separate one is requested. */
  intrusive_ptr<TensorImpl> shallow_copy(bool own_version, bool allow_metadata_change) const;
  /** Takes another tensor's storage and geometry; keeps its own history, version counter and permission. */
  void shallow_copy_from(const TensorImpl& other);

  /** An op with this input is recorded for its gradient, or for forward mode's tangent; it is a result itself. */
  enum AutogradFlag : uint8_t { kGradient = 1, kHasHistory = 2, kTangent = 4 };
  /** Whether it is tracked for one of these reasons: its own flags, which autograd keeps true, or those of its base. */
  bool is_tracked(int reasons) const {
    if (has_autograd_flag(reasons)) return true;
    const uintptr_t word = autograd_.load(std::memory_order_acquire);
    if (word == 0) [[likely]]
      return false;
    const TensorImpl* base = (word & 1) != 0 ? reinterpret_cast<const TensorImpl*>(word & ~uintptr_t{1})
                                             : reinterpret_cast<const AutogradMetaBase*>(word)->view_base;
    return base && base->has_autograd_flag((reasons & kTangent) | ((reasons & kGradient) != 0 ? kHasHistory : 0));
  }
  bool requires_grad() const { return is_tracked(kGradient); }
  /** Whether an op made the tensor. */
  bool has_history() const { return has_autograd_flag(kHasHistory); }
  // One thread may set these at a time, others may read them meanwhile.
  void set_requires_grad_flag(bool value) { set_autograd_flags(value ? kGradient : 0, kGradient); }
  void set_history_flags() { set_autograd_flags(kGradient | kHasHistory, kGradient | kHasHistory); }
  void clear_history_flags() { set_autograd_flags(0, kGradient | kHasHistory); }
  void set_tangent_flag() { set_autograd_flags(kTangent, kTangent); }
  AutogradMetaBase* autograd_meta() const {
    const uintptr_t word = autograd_.load(std::memory_order_acquire);
    return (word & 1) == 0 ? reinterpret_cast<AutogradMetaBase*>(word) : nullptr;
  }
  /** Sets dimension d to dimension order[d] of `other`, a permutation: equally dense. For views under construction. */
  void take_dims(const TensorImpl& other, const uint8_t* order);
  /** Sets metadata, replacing a base held without metadata. Other threads may read meanwhile, but not set. */
  void set_autograd_meta(std::unique_ptr<AutogradMetaBase> meta);
  /** The base of a view that has no metadata; see Note [Views without history]. */
  TensorImpl* plain_view_base() const {
    const uintptr_t word = autograd_.load(std::memory_order_relaxed);
    return (word & 1) != 0 ? reinterpret_cast<TensorImpl*>(word & ~uintptr_t{1}) : nullptr;
  }
  void set_plain_view_base(intrusive_ptr<TensorImpl> base, ViewOrigin origin) {
    if (autograd_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      drop_autograd();
    autograd_.store(reinterpret_cast<uintptr_t>(base.release()) | 1, std::memory_order_relaxed);
    view_origin_ = origin;
  }
  ViewOrigin view_origin() const { return view_origin_; }
  void set_view_origin(ViewOrigin origin) { view_origin_ = origin; }

  /** The object of another language for this tensor, or null; see Note [Peers] in peer.h. */
  void* peer() const {
    const uintptr_t word = extra_.load(std::memory_order_relaxed);
    if ((word & kPeerTag) != 0) return reinterpret_cast<void*>(word & ~kPeerTag);
    return word == 0 ? nullptr : reinterpret_cast<ExtraMeta*>(word)->peer;
  }
  void set_peer(void* peer) {
    if (ExtraMeta* meta = extra()) [[unlikely]]
      meta->peer = peer;
    else
      extra_.store(peer ? reinterpret_cast<uintptr_t>(peer) | kPeerTag : 0, std::memory_order_relaxed);
  }

  static void* operator new(size_t size) { return detail::allocate_object(size); }
  static void operator delete(void* p) { detail::free_object(p, sizeof(TensorImpl)); }

 private:
  friend union detail::UndefinedTensorHolder;
  static constexpr size_t kInlineDims = 5;
  static constexpr uintptr_t kPeerTag = 1;
  enum Flag : uint8_t {
    kContiguous = 1,
    kDense = 2,
    kFixedMetadata = 4,
    kWrappedNumber = 8,
    kInference = 16,
  };

  constexpr TensorImpl() noexcept : inline_{0, 0, 0, 0, 0, 1, 0, 0, 0, 0} {}
  TensorImpl(ScalarType dtype, Device device, size_t ndim);
  TensorImpl(Storage&& storage, ScalarType dtype, size_t ndim);
  void release_resources() override;
  void drop_autograd();
  void* checked_data() const;
  bool flag(Flag f) const { return (flags_ & f) != 0; }
  void set_flag(Flag f, bool on) { flags_ = static_cast<uint8_t>(on ? flags_ | f : flags_ & ~f); }
  bool has_autograd_flag(int any) const { return (autograd_flags_.load(std::memory_order_relaxed) & any) != 0; }
  void set_autograd_flags(int bits, int mask) {
    const int now = autograd_flags_.load(std::memory_order_relaxed);
    autograd_flags_.store(static_cast<uint8_t>((now & ~mask) | bits), std::memory_order_relaxed);
  }
  size_t capacity() const { return ndim_ <= kInlineDims ? kInlineDims : ndim_; }
  const int64_t* dims() const { return ndim_ <= kInlineDims ? inline_ : heap_; }
  int64_t* dims() { return ndim_ <= kInlineDims ? inline_ : heap_; }
  void set_ndim(size_t ndim) {
    if (ndim <= kInlineDims && ndim_ <= kInlineDims) [[likely]]
      ndim_ = static_cast<uint8_t>(ndim);
    else
      move_dims(ndim);
  }
  void move_dims(size_t ndim);
  ExtraMeta* extra() const {
    const uintptr_t word = extra_.load(std::memory_order_relaxed);
    return (word & kPeerTag) == 0 ? reinterpret_cast<ExtraMeta*>(word) : nullptr;
  }
  ExtraMeta& make_extra();
  void drop_extra();
  bool has_own_version() const {
    const ExtraMeta* meta = extra();
    return meta && meta->version_counter.defined();
  }
  void set_version_counter(intrusive_ptr<VersionCounter> counter);
  void share_version(const TensorImpl& base);
  void share_sparse(const TensorImpl& other);
  void keep_version();
  void set_row_major(IntSpan sizes);
  void set_geometry(const int64_t* sizes, const int64_t* strides);
  void refresh();

  Storage storage_;
  // AutogradMetaBase*, or TensorImpl* | 1. Atomic, because threads that share a leaf may find it without metadata.
  std::atomic<uintptr_t> autograd_{0};
  // ExtraMeta*, or a peer | kPeerTag. Atomic, because kernels read the version while a binding sets a peer.
  std::atomic<uintptr_t> extra_{0};
  union {
    int64_t inline_[2 * kInlineDims];  // sizes, then strides
    int64_t* heap_;
  };
  int64_t storage_offset_ = 0;
  int64_t numel_ = 0;
  ScalarType dtype_ = ScalarType::Undefined;
  Device device_;
  Layout layout_ = Layout::Strided;
  uint8_t ndim_ = 1;
  uint8_t flags_ = kContiguous | kDense;
  std::atomic<uint8_t> autograd_flags_{0};
  ViewOrigin view_origin_ = ViewOrigin::Ordinary;
};
static_assert(sizeof(TensorImpl) <= 144, "many tensors are alive at once: every word counts");

namespace detail {
/** Constant-initialised and never destroyed: tensors may outlive static destructors. */
union UndefinedTensorHolder {
  constexpr UndefinedTensorHolder() : impl() {}
  ~UndefinedTensorHolder() {}
  TensorImpl impl;
};
extern TERCEL_API UndefinedTensorHolder g_undefined;
}  // namespace detail

/** The undefined tensor, which a default-constructed Tensor refers to. Not reference-counted. */
inline constexpr TensorImpl& undefined_tensor_impl = detail::g_undefined.impl;

}  // namespace tercel
