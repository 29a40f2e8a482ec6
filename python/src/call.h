// Converts the arguments of a Python call for a C++ function, and the result back.
//
// A table of operations is a list of entries
//   entry("narrow(Tensor input, int dim, int start, int length)",
//         [](const Tensor& x, int64_t dim, int64_t start, int64_t length) { return narrow(x, dim, start, length); },
//         kBoth | kCheap, "Elements start to start + length of a dimension.")
// The lambda captures nothing. Its parameter types determine how arguments are converted (From below), its return
// type how the result is (to_python). kCheap: it never does work worth releasing the GIL for.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <type_traits>

#include "python/src/convert.h"
#include "python/src/signature.h"
#include "tercel/ops/common/values_and_indices.h"

namespace tercel::python {

enum Flags : unsigned {
  kFunction = 1,  ///< tercel.name
  kMethod = 2,    ///< Tensor.name
  kBoth = 3,
  kCheap = 4,
  kNn = 8,           ///< tercel._C._nn.name, from which tercel.nn.functional takes it
  kLinalg = 16,      ///< tercel._C._linalg.name of an entry linalg_name
  kSpecial = 32,     ///< tercel._C._special.name of an entry special_name
  kFft = 64,         ///< tercel._C._fft.name of an entry fft_name
  kAnyLayout = 128,  ///< operands of all overloads may have any layout; ops with the column layout_any need no flag
  kCoo = 256,        ///< the same for COO operands and the column layout_sparse
  kSparse = 512,     ///< tercel._C._sparse.name of an entry sparse_name; operands may be COO
};

class Op;

/** A call: the operation, and its matched arguments. */
struct Call {
  const Op& op;
  Arguments arguments;
  bool has_out = false;  ///< results are written to tensors of the caller

  PyObject* operator[](size_t i) const { return arguments.values[i]; }
  /** The operand; NotImplementedError for a layout that the op does not take (Note [Layouts] in tercel/core/op.h). */
  const Tensor& checked(const Tensor& operand) const {
    if (operand.layout() != Layout::Strided) [[unlikely]]
      check_layout(operand.layout());
    return operand;
  }

 private:
  [[gnu::cold]] void check_layout(Layout layout) const;
};

using Invoke = PyObject* (*)(const Call&);

struct Entry {
  const char* signature;
  Invoke invoke;
  size_t parameters;  ///< parameters of the C++ function; must be those of the signature
  unsigned flags;
  const char* doc;
};

/** The list as a span, empty if there is none. */
inline IntSpan span_of(const std::optional<DimVector>& list) { return list ? IntSpan(*list) : IntSpan(); }

/** A tensor or a number, as the second operand of x + y. */
struct Operand {
  const Tensor* tensor;  ///< null for a number
  Scalar scalar;

  bool is_tensor() const { return tensor != nullptr; }
  /** The tensor, or the number as a tensor that promotes like one. */
  Tensor as_tensor() const;
};

/** dtype, layout, device, pin_memory and requires_grad of a factory: TERCEL_FACTORY_OPTIONS in a signature. */
struct FactoryOptions {
  std::optional<ScalarType> dtype;
  std::optional<Layout> layout;
  Device device;
  bool requires_grad;
  bool has_device;

  /** The options, with the default dtype if none is given. */
  TensorOptions resolve() const { return resolve(default_dtype()); }
  TensorOptions resolve(ScalarType otherwise) const;
  /** For x.new_zeros(...) and zeros_like(x): options not given are x's. */
  TensorOptions resolve(const Tensor& like) const;
};
#define TERCEL_FACTORY_OPTIONS \
  "dtype dtype=None, layout layout=None, device device=None, bool pin_memory=False, bool requires_grad=False"

// ---- arguments ----

template <class T>
struct From;

template <>
struct From<const Tensor&> {
  using Value = const Tensor&;
  static const Tensor& get(const Call& c, size_t i) {
    static const Tensor undefined;
    return c[i] == Py_None ? undefined : c.checked(tensor_of(c[i]));
  }
};
template <>
struct From<Operand> {
  using Value = Operand;
  static Operand get(const Call& c, size_t i) {
    if (is_tensor(c[i])) return {&c.checked(tensor_of(c[i])), Scalar()};
    return {nullptr, to_scalar(c[i])};
  }
};
template <>
struct From<const DimVector&> {
  using Value = DimVector;
  static DimVector get(const Call& c, size_t i) {
    const Arguments& a = c.arguments;
    if (!a.variadic || c[i] != a.variadic[0]) return to_ints(c[i]);
    DimVector out;
    for (size_t k = 0; k < a.variadic_count; ++k) out.push_back(to_int(a.variadic[k]));
    return out;
  }
};
template <>
struct From<FactoryOptions> {
  static constexpr size_t kParameters = 5;
  using Value = FactoryOptions;
  static FactoryOptions get(const Call& c, size_t i);
};

/** Types that one function converts. */
template <class T, T (*convert)(PyObject*)>
struct FromObject {
  using Value = T;
  static T get(const Call& c, size_t i) { return convert(c[i]); }
};
template <>
struct From<Scalar> : FromObject<Scalar, to_scalar> {};
template <>
struct From<int64_t> : FromObject<int64_t, to_int> {};
template <>
struct From<double> : FromObject<double, to_float> {};
template <>
struct From<bool> : FromObject<bool, to_bool> {};
template <>
struct From<std::string_view> : FromObject<std::string_view, to_text> {};
template <>
struct From<ScalarType> : FromObject<ScalarType, to_dtype> {};
template <>
struct From<Device> : FromObject<Device, to_device> {};
template <>
struct From<MemoryFormat> : FromObject<MemoryFormat, to_memory_format> {};
template <>
struct From<Generator&> : FromObject<Generator&, to_generator> {};
template <>
struct From<const Storage&> : FromObject<const Storage&, to_storage> {};
template <>
struct From<std::vector<Tensor>> {
  using Value = std::vector<Tensor>;
  static Value get(const Call& c, size_t i) {
    Value tensors = to_tensors(c[i]);
    for (const Tensor& t : tensors) c.checked(t);
    return tensors;
  }
};
template <>
struct From<const std::vector<Tensor>&> : From<std::vector<Tensor>> {};
template <>
struct From<const std::vector<double>&> : FromObject<std::vector<double>, to_floats> {};
template <>
struct From<PyObject*> {
  using Value = PyObject*;
  static PyObject* get(const Call& c, size_t i) { return c[i]; }
};
/** None converts to an empty one. */
template <class T>
struct From<std::optional<T>> {
  using Inner = From<std::conditional_t<std::is_same_v<T, DimVector>, const DimVector&, T>>;
  using Value = std::optional<T>;
  static Value get(const Call& c, size_t i) {
    if (c[i] == Py_None) return {};
    return Inner::get(c, i);
  }
};

template <class T>
struct From<const std::optional<T>&> : From<std::optional<T>> {};

template <class T>
constexpr size_t parameters_of() {
  if constexpr (requires { From<T>::kParameters; })
    return From<T>::kParameters;
  else
    return 1;
}

// ---- work of a call in elements: each argument counts at most kGilGrain, so that the sum cannot overflow ----

inline int64_t work_of(const Tensor& t) { return std::min(t.numel(), kGilGrain); }
inline int64_t work_of(const Operand& o) { return o.tensor ? work_of(*o.tensor) : 0; }
inline int64_t work_of(const std::vector<Tensor>& list) {
  int64_t sum = 0;
  for (const Tensor& t : list) sum += work_of(t);
  return sum;
}
/** Sizes of a new tensor, or dimensions, which are small. */
inline int64_t work_of(const DimVector& sizes) {
  int64_t product = 1;
  for (const int64_t s : sizes)
    if (__builtin_mul_overflow(product, s, &product)) return kGilGrain;
  return std::clamp<int64_t>(product, 0, kGilGrain);
}
template <class T>
int64_t work_of(const T&) {
  return 0;
}

// ---- results ----

inline PyObject* to_python(const Call&, Tensor t) { return wrap(std::move(t)); }
inline PyObject* to_python(const Call&, PyObject* fresh) { return own(fresh).release().ptr(); }
inline PyObject* to_python(const Call&, bool value) { return PyBool_FromLong(value); }
inline PyObject* to_python(const Call&, int64_t value) { return PyLong_FromLongLong(value); }
inline PyObject* to_python(const Call&, double value) { return PyFloat_FromDouble(value); }
inline PyObject* to_python(const Call&, Scalar value) { return from_scalar(value); }
inline PyObject* to_python(const Call&, ScalarType type) { return from_dtype(type); }
inline PyObject* to_python(const Call&, const std::vector<Tensor>& list) { return wrap_tuple(list); }

/** Results that have names, which are literals: tercel.return_types.<op>, a tuple with these fields. */
template <size_t N>
struct Named {
  std::array<const char*, N> names;
  std::array<Tensor, N> values;
};
PyObject* named_tuple(const Call& call, Span<const char*> names, Span<Tensor> values);
template <size_t N>
PyObject* to_python(const Call& call, const Named<N>& result) {
  return named_tuple(call, result.names, result.values);
}
inline PyObject* to_python(const Call& call, const ValuesAndIndices& result) {
  return to_python(call, Named<2>{{"values", "indices"}, {result.values, result.indices}});
}

// ---- entries ----

namespace binding {

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class F, class R, class... A>
struct Signature<R (F::*)(A...) const> {
  static constexpr size_t kParameters = (parameters_of<A>() + ... + 0);

  template <bool cheap>
  static PyObject* invoke(const Call& call) {
    return invoke_with<cheap>(call, std::index_sequence_for<A...>());
  }

 private:
  template <bool cheap, size_t... I>
  static PyObject* invoke_with(const Call& call, std::index_sequence<I...>) {
    // Index of the first argument of each parameter.
    constexpr std::array<size_t, sizeof...(A) + 1> at = [] {
      std::array<size_t, sizeof...(A) + 1> out{};
      size_t next = 0, k = 0;
      static_cast<void>(((out[k++] = next, next += parameters_of<A>()), ...));
      return out;
    }();
    std::tuple<typename From<A>::Value...> values{From<A>::get(call, at[I])...};
    if constexpr (std::is_void_v<R>) {
      F{}(std::get<I>(values)...);
      return Py_NewRef(Py_None);
    } else if constexpr (cheap || std::is_same_v<R, PyObject*> || (std::is_same_v<A, PyObject*> || ...)) {
      // Functions of Python objects need the GIL, and release it themselves while they compute.
      return to_python(call, F{}(std::get<I>(values)...));
    } else {
      return to_python(call, [&]() -> std::remove_cvref_t<R> {
        const WithoutGil scope((work_of(std::get<I>(values)) + ... + 0) >= kGilGrain);
        return F{}(std::get<I>(values)...);
      }());
    }
  }
};

}  // namespace binding

template <class F>
constexpr Entry entry(const char* signature, F, unsigned flags = kBoth, const char* doc = "") {
  using S = binding::Signature<F>;
  return {signature, (flags & kCheap) != 0 ? &S::template invoke<true> : &S::template invoke<false>, S::kParameters,
          flags, doc};
}

}  // namespace tercel::python
