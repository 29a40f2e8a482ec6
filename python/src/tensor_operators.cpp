// x + y, -x, x < y, x @ y and Python's other operators.
//
// An operator returns NotImplemented for an operand that is neither a tensor nor a number, so that Python tries the
// other operand.
#include <algorithm>

#include "python/src/autocast.h"
#include "python/src/call.h"
#include "python/src/data.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/special/special.h"
#include "tercel/util/profile.h"

namespace tercel::python {

namespace {

/** The name of an operator's operation as a template argument; profiles show it. */
template <size_t N>
struct Name {
  constexpr Name(const char (&s)[N]) { std::copy_n(s, N, text); }  // NOLINT(google-explicit-constructor)
  char text[N];
};

using TensorTensor = Tensor (*)(const Tensor&, const Tensor&);
using TensorScalar = Tensor (*)(const Tensor&, Scalar);
using ScalarTensor = Tensor (*)(Scalar, const Tensor&);

bool is_large(const Tensor& t) { return t.numel() >= kGilGrain; }

/** Selects one of the three overloads by the operands. */
template <Name kName, TensorTensor Tt, TensorScalar Ts, ScalarTensor St>
PyObject* binary(PyObject* a, PyObject* b) noexcept {
  const ProfileRange range(kName.text, RangeKind::Op);
  try {
    if (is_tensor(a)) [[likely]] {
      const Tensor& x = tensor_of(a);
      if (is_tensor(b)) [[likely]] {
        const Tensor& y = tensor_of(b);
        if (!is_large(x) && !is_large(y)) [[likely]]
          return wrap(Tt(x, y));
        return wrap([&] {
          const WithoutGil scope(true);
          return Tt(x, y);
        }());
      }
      if (is_scalar_like(b)) {
        const Scalar number = to_scalar(b);
        return wrap([&] {
          const WithoutGil scope(is_large(x));
          return Ts(x, number);
        }());
      }
    } else if (is_scalar_like(a)) {
      const Tensor& y = tensor_of(b);
      const Scalar number = to_scalar(a);
      return wrap([&] {
        const WithoutGil scope(is_large(y));
        return St(number, y);
      }());
    }
    return Py_NewRef(Py_NotImplemented);
  } catch (...) {
    set_error_from_exception();
    return nullptr;
  }
}

using TensorTensorInPlace = const Tensor& (*)(const Tensor&, const Tensor&);
using TensorScalarInPlace = const Tensor& (*)(const Tensor&, Scalar);

template <Name kName, TensorTensorInPlace Tt, TensorScalarInPlace Ts>
PyObject* in_place(PyObject* a, PyObject* b) noexcept {
  const ProfileRange range(kName.text, RangeKind::Op);
  try {
    const Tensor& x = tensor_of(a);
    if (is_tensor(b)) {
      const WithoutGil scope(is_large(x));
      Tt(x, tensor_of(b));
    } else if (is_scalar_like(b)) {
      const Scalar number = to_scalar(b);
      const WithoutGil scope(is_large(x));
      Ts(x, number);
    } else {
      return Py_NewRef(Py_NotImplemented);
    }
    return Py_NewRef(a);
  } catch (...) {
    set_error_from_exception();
    return nullptr;
  }
}

template <Name kName, Tensor (*F)(const Tensor&)>
PyObject* unary(PyObject* a) noexcept {
  const ProfileRange range(kName.text, RangeKind::Op);
  return at_border([&] {
    const Tensor& x = tensor_of(a);
    return wrap([&] {
      const WithoutGil scope(is_large(x));
      return F(x);
    }());
  });
}

PyObject* plus(PyObject* a) noexcept {
  return at_border([&] {
    positive(tensor_of(a));
    return Py_NewRef(a);
  });
}

PyObject* invert(PyObject* a) noexcept {
  return at_border([&] {
    TERCEL_CHECK(is_integral(tensor_of(a).dtype(), true), TypeError,
                 "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return unary<"bitwise_not", bitwise_not>(a);
  });
}

/** x ** y; three arguments are not supported. */
PyObject* power(PyObject* a, PyObject* b, PyObject* modulo) {
  if (modulo != Py_None) return Py_NewRef(Py_NotImplemented);
  return binary<"pow", pow, pow, pow>(a, b);
}
PyObject* power_in_place(PyObject* a, PyObject* b, PyObject*) { return in_place<"pow_", pow_, pow_>(a, b); }

PyObject* product(PyObject* a, PyObject* b) noexcept {
  if (!is_tensor(a) || !is_tensor(b)) return Py_NewRef(Py_NotImplemented);
  const ProfileRange range("matmul", RangeKind::Op);
  return at_border([&] {
    const auto multiply = [](const Tensor& x, const Tensor& y) {
      const WithoutGil scope(is_large(x) || is_large(y));
      return matmul(x, y);
    };
    if (t_autocast) [[unlikely]]
      return wrap(multiply(autocast_lower(tensor_of(a)), autocast_lower(tensor_of(b))));
    return wrap(multiply(tensor_of(a), tensor_of(b)));
  });
}

/** x / y; a NumPy array divided by a tensor is the product with 1 / y, since NumPy defers to the tensor. */
PyObject* quotient(PyObject* a, PyObject* b) noexcept {
  if (is_tensor(a) || !is_ndarray(a)) return binary<"div", div, div, div>(a, b);
  return at_border([&] {
    const nb::object inverse = own(wrap(reciprocal(tensor_of(b))));
    return PyNumber_Multiply(inverse.ptr(), a);
  });
}

/** x == y; a NumPy array is converted to a tensor if possible, else it compares unequal. */
PyObject* equal(PyObject* a, PyObject* b) noexcept {
  if (is_tensor(b) || !is_ndarray(b)) return binary<"eq", eq, eq, eq>(a, b);
  return at_border([&]() -> PyObject* {
    Tensor other;
    try {
      other = tensor_from_buffer(b, false);
    } catch (const TypeError&) {
      return Py_NewRef(Py_NotImplemented);
    }
    const Tensor& x = tensor_of(a);
    return wrap([&] {
      const WithoutGil scope(is_large(x) || is_large(other));
      return eq(x, other);
    }());
  });
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  switch (op) {
    case Py_EQ: return equal(a, b);
    case Py_NE: return binary<"ne", ne, ne, ne>(a, b);
    case Py_LT: return binary<"lt", lt, lt, lt>(a, b);
    case Py_LE: return binary<"le", le, le, le>(a, b);
    case Py_GT: return binary<"gt", gt, gt, gt>(a, b);
    case Py_GE: return binary<"ge", ge, ge, ge>(a, b);
    default: return Py_NewRef(Py_NotImplemented);
  }
}

/** id(x), as in PyTorch, so that small sets with tensors iterate in the same order. */
Py_hash_t hash(PyObject* a) { return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(a)); }

int truth(PyObject* a) {
  return at_border<int>(-1, [&] {
    const Tensor& t = tensor_of(a);
    TERCEL_CHECK(t.numel() <= 1, RuntimeError, "Boolean value of Tensor with more than one value is ambiguous");
    TERCEL_CHECK(t.numel() == 1, RuntimeError, "Boolean value of Tensor with no values is ambiguous");
    return item(t).to_bool() ? 1 : 0;
  });
}

Scalar only_element(PyObject* a) {
  const Tensor& t = tensor_of(a);
  TERCEL_CHECK(t.numel() == 1, ValueError, "only one element tensors can be converted to Python scalars");
  return item(t);
}
PyObject* to_python_int(PyObject* a) {
  return at_border([&]() -> PyObject* {
    const Scalar s = real_number(only_element(a), kInt64);
    if (s.is_floating()) return PyLong_FromDouble(s.to_double());
    return from_scalar(s.category() == TypeCategory::Bool ? Scalar(s.to_int64()) : s);
  });
}
PyObject* to_python_float(PyObject* a) {
  return at_border([&] { return PyFloat_FromDouble(real_number(only_element(a), kFloat64).to_double()); });
}
PyObject* to_python_index(PyObject* a) {
  return at_border([&] {
    const Tensor& t = tensor_of(a);
    TERCEL_CHECK(t.numel() == 1 && is_integral(t.dtype(), true), TypeError,
                 "only integer tensors of a single element can be converted to an index");
    const Scalar s = item(t);
    return from_scalar(t.dtype() == kBool ? Scalar(s.to_int64()) : s);
  });
}

PyObject* item_method(PyObject* a, PyObject*) {
  return at_border([&] { return from_scalar(the_item(tensor_of(a))); });
}
PyMethodDef g_item = {"item", item_method, METH_NOARGS, "The value of a tensor of one element, as a Python number."};

template <class F>
PyType_Slot slot(int id, F* function) {
  return {id, reinterpret_cast<void*>(function)};
}

}  // namespace

Scalar the_item(const Tensor& t) {
  TERCEL_CHECK(t.numel() == 1, RuntimeError, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
  return item(t);
}

void register_item() {
  const nb::object method = nb::steal(PyDescr_NewMethod(tensor_type, &g_item));
  if (!method || PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), "item", method.ptr()) < 0)
    raise_pending();
}

Span<PyType_Slot> tensor_operators() {
  static const PyType_Slot slots[] = {
      slot(Py_nb_add, binary<"add", add, add, add>),
      slot(Py_nb_subtract, binary<"sub", sub, sub, sub>),
      slot(Py_nb_multiply, binary<"mul", mul, mul, mul>),
      slot(Py_nb_true_divide, quotient),
      slot(Py_nb_floor_divide, binary<"floor_divide", floor_divide, floor_divide, floor_divide>),
      slot(Py_nb_remainder, binary<"remainder", remainder, remainder, remainder>),
      slot(Py_nb_power, power),
      slot(Py_nb_and, binary<"bitwise_and", bitwise_and, bitwise_and, bitwise_and>),
      slot(Py_nb_or, binary<"bitwise_or", bitwise_or, bitwise_or, bitwise_or>),
      slot(Py_nb_xor, binary<"bitwise_xor", bitwise_xor, bitwise_xor, bitwise_xor>),
      slot(Py_nb_lshift, binary<"bitwise_left_shift", bitwise_left_shift, bitwise_left_shift, bitwise_left_shift>),
      slot(Py_nb_rshift, binary<"bitwise_right_shift", bitwise_right_shift, bitwise_right_shift, bitwise_right_shift>),
      slot(Py_nb_matrix_multiply, product),
      slot(Py_nb_inplace_add, in_place<"add_", add_, add_>),
      slot(Py_nb_inplace_subtract, in_place<"sub_", sub_, sub_>),
      slot(Py_nb_inplace_multiply, in_place<"mul_", mul_, mul_>),
      slot(Py_nb_inplace_true_divide, in_place<"div_", div_, div_>),
      slot(Py_nb_inplace_floor_divide, in_place<"floor_divide_", floor_divide_, floor_divide_>),
      slot(Py_nb_inplace_remainder, in_place<"remainder_", remainder_, remainder_>),
      slot(Py_nb_inplace_power, power_in_place),
      slot(Py_nb_inplace_and, in_place<"bitwise_and_", bitwise_and_, bitwise_and_>),
      slot(Py_nb_inplace_or, in_place<"bitwise_or_", bitwise_or_, bitwise_or_>),
      slot(Py_nb_inplace_xor, in_place<"bitwise_xor_", bitwise_xor_, bitwise_xor_>),
      slot(Py_nb_inplace_lshift, in_place<"bitwise_left_shift_", bitwise_left_shift_, bitwise_left_shift_>),
      slot(Py_nb_inplace_rshift, in_place<"bitwise_right_shift_", bitwise_right_shift_, bitwise_right_shift_>),
      slot(Py_nb_negative, unary<"neg", neg>),
      slot(Py_nb_positive, plus),
      slot(Py_nb_absolute, unary<"abs", abs>),
      slot(Py_nb_invert, invert),
      slot(Py_nb_bool, truth),
      slot(Py_nb_int, to_python_int),
      slot(Py_nb_float, to_python_float),
      slot(Py_nb_index, to_python_index),
      slot(Py_tp_richcompare, compare),
      slot(Py_tp_hash, hash),
  };
  return slots;
}

}  // namespace tercel::python
