// The tensor: a handle to sizes and strides over shared storage.
//
// Note [Tensor methods]
// Methods that only read metadata are defined here. The methods of the base TensorMethods and those below "Operations"
// call functions of higher layers: x.view(s) is view(x, s). They are declared here so that expressions read as in
// PyTorch, and defined in tercel/ops and tercel/autograd: a program that calls one links those layers, and core alone
// calls none. TensorMethods is written from the table of ops (Note [The table of ops] in op.h).
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "tercel/core/op.h"
#include "tercel/core/scalar.h"
#include "tercel/core/tensor_accessor.h"
#include "tercel/core/tensor_impl.h"
#include "tercel/core/tensor_methods.h"
#include "tercel/util/callable.h"

namespace tercel {

class HookHandle;
class TensorIndex;
namespace linalg {
struct QrResult;
}

/** Properties of a new tensor. */
struct TensorOptions {
  ScalarType dtype = kFloat32;
  Device device = kCpu;
  Layout layout = Layout::Strided;
  bool requires_grad = false;

  constexpr TensorOptions() = default;
  constexpr TensorOptions(ScalarType type) : dtype(type) {}
  constexpr TensorOptions(ScalarType type, Device where) : dtype(type), device(where) {}
  constexpr TensorOptions(Device where) : device(where) {}
};

namespace detail {
struct UndefinedTensor {
  static constexpr TensorImpl* singleton() noexcept { return &undefined_tensor_impl; }
};
}  // namespace detail

class TERCEL_API Tensor : public TensorMethods {
 public:
  using ImplPtr = intrusive_ptr<TensorImpl, detail::UndefinedTensor>;

  /** Undefined: has no dtype, device or elements; ops refuse it. */
  constexpr Tensor() noexcept = default;
  explicit Tensor(ImplPtr impl) : impl_(std::move(impl)) {}
  explicit Tensor(intrusive_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return impl_.defined(); }
  TensorImpl& impl() const { return *impl_; }
  const ImplPtr& impl_ptr() const { return impl_; }
  uint32_t use_count() const { return impl_.use_count(); }
  /** Whether both handles refer to one tensor object (not merely to equal or shared data). */
  bool is_same(const Tensor& other) const { return impl_.get() == other.impl_.get(); }
  void reset() { impl_.reset(); }

  int64_t dim() const { return impl_->dim(); }
  IntSpan sizes() const { return impl_->sizes(); }
  IntSpan strides() const { return impl_->strides(); }
  int64_t size(int64_t d) const { return sizes()[static_cast<size_t>(wrap_dim(d, dim(), false))]; }
  int64_t stride(int64_t d) const { return strides()[static_cast<size_t>(wrap_dim(d, dim(), false))]; }
  int64_t storage_offset() const { return impl_->storage_offset(); }
  int64_t numel() const { return impl_->numel(); }
  ScalarType dtype() const { return impl_->dtype(); }
  size_t itemsize() const { return impl_->itemsize(); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * itemsize(); }
  /** RuntimeError for the undefined tensor. */
  Device device() const {
    if (dtype() == ScalarType::Undefined) [[unlikely]]
      refuse_device();
    return impl_->device();
  }
  Layout layout() const { return impl_->layout(); }
  TensorOptions options() const;
  bool is_contiguous() const { return impl_->is_contiguous(); }
  bool is_contiguous(MemoryFormat format) const { return impl_->is_contiguous(format); }
  /** See tercel::suggest_memory_format() in geometry.h. */
  MemoryFormat suggest_memory_format() const { return tercel::suggest_memory_format(sizes(), strides()); }
  bool is_floating_point() const { return tercel::is_floating(dtype()); }
  bool is_complex() const { return tercel::is_complex(dtype()); }
  /** Whether it may require a gradient: a floating or complex dtype. */
  bool is_differentiable() const { return tercel::is_differentiable(dtype()); }
  bool has_storage() const { return impl_->has_storage(); }
  const Storage& storage() const { return impl_->storage(); }
  bool is_alias_of(const Tensor& other) const { return has_storage() && storage() == other.storage(); }
  /** Same storage, offset, sizes and strides. */
  bool is_set_to(const Tensor& other) const;
  uint32_t version() const { return impl_->version(); }

  /** First element, untyped; null when there are no elements. */
  void* data_ptr() const { return impl_->data(); }
  /** First element; RuntimeError when T is not the dtype, and when there is no storage. */
  template <class T>
  T* data() const {
    if (dtype() != scalar_type_of<T>() || !has_storage()) [[unlikely]]
      refuse_data(scalar_type_of<T>());
    return static_cast<T*>(data_ptr());
  }

  /** Elements by their indices. RuntimeError unless there are N >= 1 dimensions and T is the dtype. */
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const& {
    static_assert(N > 0, "item<T>() is for tensors without dimensions");
    if (dim() != static_cast<int64_t>(N)) [[unlikely]]
      refuse_accessor(N);
    return {data<std::remove_const_t<T>>(), sizes().data(), strides().data()};
  }
  /** Deleted: the accessor would outlive a temporary tensor. */
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() && = delete;

  // libtorch's other names of these.
  ScalarType scalar_type() const { return dtype(); }
  int64_t ndimension() const { return dim(); }
  size_t element_size() const { return itemsize(); }
  bool is_cpu() const { return device().is_cpu(); }
  template <class T>
  T* data_ptr() const {
    return data<T>();
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data<T>();
  }
  template <class T>
  const T* const_data_ptr() const {
    return data<T>();
  }

  // Operations; see Note [Tensor methods].
  /** The value of a tensor of one element, as T. */
  template <class T>
  T item() const {
    return item().to<T>();
  }
  Scalar item() const;
  // methods that are not their function with the first tensor in front (ops/tensor_other_methods.cpp)
  using TensorMethods::index;
  using TensorMethods::index_put_;
  using TensorMethods::squeeze;
  using TensorMethods::squeeze_;
  using TensorMethods::view;
  /** select(0, index). */
  Tensor operator[](int64_t index) const;
  /** The same bytes as another dtype. */
  template <std::same_as<ScalarType> Dtype>
  Tensor view(Dtype dtype) const;
  Tensor squeeze(std::initializer_list<int64_t> dims) const;
  Tensor& squeeze_(std::initializer_list<int64_t> dims) const;
  /** x.index({Slice(1, 3), None, "..."}): see ops/index/subscript.h. */
  Tensor index(std::initializer_list<TensorIndex> items) const;
  Tensor& index_put_(std::initializer_list<TensorIndex> items, const Tensor& value) const;
  Tensor& index_put_(std::initializer_list<TensorIndex> items, Scalar value) const;
  /** Of the other tensor's dtype. */
  Tensor type_as(const Tensor& other) const;
  /** This where the condition is true, else the other. */
  Tensor where(const Tensor& condition, const Tensor& other) const;
  Tensor lu_solve(const Tensor& lu, const Tensor& pivots) const;
  linalg::QrResult qr(bool some = true) const;
  /** New tensors of these sizes with this one's options, or with others. */
  Tensor new_empty(IntSpan sizes) const;
  Tensor new_empty(IntSpan sizes, TensorOptions options) const;
  Tensor new_zeros(IntSpan sizes) const;
  Tensor new_zeros(IntSpan sizes, TensorOptions options) const;
  Tensor new_ones(IntSpan sizes) const;
  Tensor new_ones(IntSpan sizes, TensorOptions options) const;
  Tensor new_full(IntSpan sizes, Scalar value) const;
  Tensor new_full(IntSpan sizes, Scalar value, TensorOptions options) const;
  Tensor new_empty_strided(IntSpan sizes, IntSpan strides) const;
  // gradients (autograd/autograd.h)
  bool requires_grad() const { return impl_->requires_grad(); }
  Tensor& requires_grad_(bool requires_grad = true);
  bool is_leaf() const;
  /** The gradient that backward() left; undefined before. A gradient of rows is row_gradient(x), not this. */
  Tensor grad() const;
  void set_grad(Tensor grad);
  /** Gradients of this scalar (or of gradient-weighted elements) with respect to every leaf it depends on. */
  void backward(const Tensor& gradient = Tensor(), std::optional<bool> retain_graph = std::nullopt,
                bool create_graph = false, Span<Tensor> inputs = {}) const;
  HookHandle register_hook(Callable<Tensor(const Tensor& gradient)> hook) const;
  void retain_grad() const;
  bool retains_grad() const;
  /** Index of this tensor among the results of the operation that made it. */
  uint32_t output_nr() const;
  /** Removes the tensor from the graph: it becomes a leaf that requires no gradient. */
  Tensor& detach_() const;
  /** Takes the other's data and keeps its own history. */
  void set_data(const Tensor& data) const;
  /** Same data, no history; shares the version counter. */
  Tensor detach() const;
  /** Same data, no history, own version counter: backward does not see changes through it. */
  Tensor data() const;

 private:
  [[noreturn]] void refuse_data(ScalarType wanted) const;
  [[noreturn]] void refuse_accessor(size_t wanted) const;
  [[noreturn]] static void refuse_device();

  ImplPtr impl_;
};

inline bool operator==(const Tensor::ImplPtr& a, const Tensor::ImplPtr& b) { return a.get() == b.get(); }

/** Shape, dtype and device for error messages: "[2, 3]" float32 on cpu. */
TERCEL_API std::string describe(const Tensor& t);

/** Throws RuntimeError unless the tensor is defined: "op: expected a tensor but got an undefined one for argument
 * 'name'". */
inline void check_defined(const char* op, const Tensor& t, const char* argument) {
  TERCEL_CHECK(t.defined(), RuntimeError, op, ": expected a tensor for argument '", argument,
               "' but got an undefined one");
}

/** Throws unless the tensor is defined (RuntimeError) and strided (NotImplementedError); Note [Layouts] in op.h. */
inline void check_strided(const char* op, const Tensor& t, const char* argument = "self") {
  check_defined(op, t, argument);
  if (t.layout() != Layout::Strided) [[unlikely]]
    refuse_layout(op, t.layout());
}

/** Uninitialised, row-major. OutOfMemoryError if there is not enough memory. */
TERCEL_API Tensor empty(IntSpan sizes, TensorOptions options = {});
/** The same in a memory format; RuntimeError for Preserve, or if it does not fit the number of dimensions. */
TERCEL_API Tensor empty(IntSpan sizes, TensorOptions options, MemoryFormat format);
/** Uninitialised with given strides (none negative but of size 1), on a storage just large enough. */
TERCEL_API Tensor empty_strided(IntSpan sizes, IntSpan strides, TensorOptions options = {});

/**
 * A tensor over external memory. When its last user is gone, or if this throws, deleter(context) releases the memory,
 * unless the context is null. Strides are not negative. ValueError if data is not aligned to the elements.
 */
TERCEL_API Tensor from_blob(void* data, IntSpan sizes, TensorOptions options = {}, void* context = nullptr,
                            DataPtr::Deleter deleter = nullptr);
TERCEL_API Tensor from_blob(void* data, IntSpan sizes, IntSpan strides, TensorOptions options = {},
                            void* context = nullptr, DataPtr::Deleter deleter = nullptr);

namespace detail {
/** Wraps any callable deleter as a context; costs one allocation. */
template <class F>
DataPtr block_with_callable(void* data, F free_data, Device device) {
  if constexpr (requires { free_data == nullptr; })
    if (free_data == nullptr) return DataPtr(data, device);
  struct Context {
    F free_data;
    void* data;
  };
  Context* context = nullptr;
  try {
    context = new Context{free_data, data};
  } catch (...) {
    free_data(data);
    throw;
  }
  return DataPtr(
      data, context,
      [](void* c) {
        const std::unique_ptr<Context> owner(static_cast<Context*>(c));
        owner->free_data(owner->data);
      },
      device);
}
TERCEL_API Tensor from_block(DataPtr block, IntSpan sizes, IntSpan strides, TensorOptions options);
}  // namespace detail

/** from_blob() with a deleter that takes the data and may be any callable, a std::function too (an empty one: none). */
template <class F>
requires std::invocable<F&, void*> Tensor from_blob(void* data, IntSpan sizes, TensorOptions options, F deleter) {
  DataPtr block = detail::block_with_callable(data, std::move(deleter), options.device);
  return detail::from_block(std::move(block), sizes, contiguous_strides(sizes), options);
}
template <class F>
requires std::invocable<F&, void*> Tensor from_blob(void* data, IntSpan sizes, IntSpan strides, TensorOptions options,
                                                    F deleter) {
  return detail::from_block(detail::block_with_callable(data, std::move(deleter), options.device), sizes, strides,
                            options);
}
/** The same with libtorch's order of arguments. */
template <class F>
requires std::invocable<F&, void*> Tensor from_blob(void* data, IntSpan sizes, F deleter, TensorOptions options = {}) {
  return from_blob(data, sizes, options, std::move(deleter));
}

}  // namespace tercel
