// tercel.dtype and its instances; the default dtype; finfo and iinfo.
#include <nanobind/stl/string.h>

#include <array>
#include <limits>
#include <string>

#include "python/src/convert.h"
#include "python/src/package_name.h"
#include "tercel/core/default_dtype.h"

namespace tercel::python {

namespace {

/** A dtype's names: the library's and NumPy's, PyTorch's short one, and that of legacy tensor and storage types. */
struct Row {
  ScalarType type;
  const char* short_name;
  const char* legacy;
};
constexpr Row kRows[] = {
    {kUInt8, nullptr, "Byte"},
    {kInt8, nullptr, "Char"},
    {kInt16, "short", "Short"},
    {kInt32, "int", "Int"},
    {kInt64, "long", "Long"},
    {kFloat16, "half", "Half"},
    {kFloat32, "float", "Float"},
    {kFloat64, "double", "Double"},
    {kBool, nullptr, "Bool"},
    {kBFloat16, nullptr, "BFloat16"},
    {kUInt16, nullptr, "UInt16"},
    {kUInt32, nullptr, "UInt32"},
    {kUInt64, nullptr, "UInt64"},
    {kComplex64, "cfloat", "ComplexFloat"},
    {kComplex128, "cdouble", "ComplexDouble"},
};

std::array<PyObject*, 128> g_dtypes;
PyTypeObject* g_dtype_type = nullptr;

/** Python types that denote a dtype: float, int, bool, complex. */
std::optional<ScalarType> of_python_type(PyObject* o) {
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return kFloat64;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return kInt64;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return kBool;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return kComplex128;
  return {};
}

std::string name_of(const DtypeObject& d) { return str_cat({package_name(), ".", to_string(d.type)}); }

struct FloatInfo {
  ScalarType type;
  double eps, max, min, tiny, smallest_normal, resolution;
  int bits;
};
FloatInfo float_info(ScalarType type) {
  switch (type) {
    case ScalarType::Float16: return {type, 0.0009765625, 65504, -65504, 6.103515625e-05, 6.103515625e-05, 0.001, 16};
    case ScalarType::BFloat16:
      return {type,
              0.0078125,
              3.3895313892515355e38,
              -3.3895313892515355e38,
              1.1754943508222875e-38,
              1.1754943508222875e-38,
              0.01,
              16};
    case ScalarType::Float64: {
      using L = std::numeric_limits<double>;
      return {type, L::epsilon(), L::max(), L::lowest(), L::min(), L::min(), 1e-15, 64};
    }
    default: {
      using L = std::numeric_limits<float>;
      return {
          type, double{L::epsilon()}, double{L::max()}, double{L::lowest()}, double{L::min()}, double{L::min()}, 1e-06,
          32};
    }
  }
}

struct IntInfo {
  ScalarType type;
  int64_t min;
  uint64_t max;
  int bits;
};
IntInfo int_info(ScalarType type) {
  const int bits = static_cast<int>(8 * item_size(type));
  if (is_unsigned(type)) return {type, 0, UINT64_MAX >> (64 - bits), bits};
  const uint64_t max = (uint64_t{1} << (bits - 1)) - 1;
  return {type, -static_cast<int64_t>(max) - 1, max, bits};
}

void register_info(nb::module_& m) {
  nb::class_<FloatInfo>(m, "finfo", "The range and precision of a floating dtype, or of a complex one's parts.")
      .def(
          "__init__",
          [](FloatInfo* self, nb::handle dtype) {
            const ScalarType type = dtype.is_none() ? default_dtype() : real_dtype(to_dtype(dtype.ptr()));
            TERCEL_CHECK(is_floating(type), TypeError, "tercel.finfo() requires a floating point input type. Use ",
                         "tercel.iinfo to handle '", to_string(type), "'");
            new (self) FloatInfo(float_info(type));
          },
          nb::arg("type") = nb::none())
      .def_ro("bits", &FloatInfo::bits)
      .def_ro("eps", &FloatInfo::eps)
      .def_ro("max", &FloatInfo::max)
      .def_ro("min", &FloatInfo::min)
      .def_ro("tiny", &FloatInfo::tiny)
      .def_ro("smallest_normal", &FloatInfo::smallest_normal)
      .def_ro("resolution", &FloatInfo::resolution)
      .def_prop_ro("dtype", [](const FloatInfo& i) { return std::string(to_string(i.type)); })
      .def("__eq__", [](const FloatInfo& a, const FloatInfo& b) { return a.type == b.type; })
      .def("__repr__", [](nb::handle i) {
        return nb::str(
                   "finfo(resolution={0.resolution}, min={0.min:g}, max={0.max:g}, eps={0.eps:g}, "
                   "smallest_normal={0.smallest_normal:g}, tiny={0.tiny:g}, dtype={0.dtype})")
            .attr("format")(i);
      });
  nb::class_<IntInfo>(m, "iinfo", "The range of an integral dtype.")
      .def(
          "__init__",
          [](IntInfo* self, nb::handle dtype) {
            const ScalarType type = to_dtype(dtype.ptr());
            TERCEL_CHECK(type != kBool, TypeError, "tercel.bool is not supported by tercel.iinfo");
            TERCEL_CHECK(is_integral(type, false), TypeError, "tercel.iinfo() requires an integer input type. Use ",
                         "tercel.finfo to handle '", to_string(type), "'");
            new (self) IntInfo(int_info(type));
          },
          nb::arg("type"))
      .def_ro("bits", &IntInfo::bits)
      .def_ro("max", &IntInfo::max)
      .def_ro("min", &IntInfo::min)
      .def_prop_ro("dtype", [](const IntInfo& i) { return std::string(to_string(i.type)); })
      .def("__eq__", [](const IntInfo& a, const IntInfo& b) { return a.type == b.type; })
      .def("__repr__",
           [](nb::handle i) { return nb::str("iinfo(min={0.min}, max={0.max}, dtype={0.dtype})").attr("format")(i); });
}

}  // namespace

bool is_dtype_like(PyObject* o) { return is_ready(o, g_dtype_type) || of_python_type(o).has_value(); }

ScalarType to_dtype(PyObject* o) {
  if (is_ready(o, g_dtype_type)) return nb::inst_ptr<DtypeObject>(o)->type;
  const auto type = of_python_type(o);
  TERCEL_CHECK(type, TypeError, "expected a dtype, not ", Py_TYPE(o)->tp_name);
  return *type;
}

PyObject* from_dtype(ScalarType type) {
  PyObject* object = g_dtypes[static_cast<size_t>(type)];
  return Py_NewRef(object ? object : Py_None);
}

const char* legacy_name(ScalarType type) {
  for (const Row& row : kRows)
    if (row.type == type) return row.legacy;
  return "Undefined";
}

void register_dtype(nb::module_& m) {
  nb::class_<DtypeObject> type(m, "dtype", nb::is_final(), "The type of a tensor's elements.");
  type.def("__repr__", name_of)
      .def("__reduce__", [](const DtypeObject& d) { return std::string(to_string(d.type)); })
      .def_prop_ro("is_floating_point", [](const DtypeObject& d) { return is_floating(d.type); })
      .def_prop_ro("is_complex", [](const DtypeObject& d) { return category_of(d.type) == TypeCategory::Complex; })
      .def_prop_ro(
          "is_signed",
          [](const DtypeObject& d) { return category_of(d.type) != TypeCategory::Bool && !is_unsigned(d.type); })
      .def(
          "to_real", [](const DtypeObject& d) { return own(from_dtype(real_dtype(d.type))); },
          "The dtype of a complex dtype's parts; a real dtype itself.")
      .def(
          "to_complex",
          [](const DtypeObject& d) {
            TERCEL_CHECK(is_differentiable(d.type), RuntimeError, "Unknown Complex ScalarType for ",
                         legacy_name(d.type));
            return own(from_dtype(complex_dtype(d.type)));
          },
          "The complex dtype whose parts have this dtype; RuntimeError for integers.")
      .def_prop_ro("itemsize", [](const DtypeObject& d) { return item_size(d.type); })
      .def_prop_ro("_name", [](const DtypeObject& d) { return std::string(to_string(d.type)); })
      .def_prop_ro("_legacy_name", [](const DtypeObject& d) { return legacy_name(d.type); })
      .def_prop_ro("_code", [](const DtypeObject& d) { return static_cast<int>(d.type); });
  g_dtype_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  for (const Row& row : kRows) {
    nb::object object = nb::cast(DtypeObject{row.type});
    m.attr(std::string(to_string(row.type)).c_str()) = object;
    if (row.short_name) m.attr(row.short_name) = object;
    g_dtypes[static_cast<size_t>(row.type)] = object.release().ptr();
  }
  m.def(
      "get_default_dtype", [] { return nb::steal(from_dtype(default_dtype())); },
      "The default dtype of floating-point tensors.");
  m.def(
      "set_default_dtype",
      [](nb::handle d) {
        const ScalarType wanted = to_dtype(d.ptr());
        TERCEL_CHECK(is_floating(wanted), TypeError, "only floating-point types are supported as the default type");
        set_default_dtype(wanted);
      },
      "Sets the default dtype of floating-point tensors; TypeError unless it is a floating-point dtype.");
  m.def(
      "promote_types",
      [](nb::handle a, nb::handle b) {
        return nb::steal(from_dtype(promote_types(to_dtype(a.ptr()), to_dtype(b.ptr()))));
      },
      nb::arg("type1"), nb::arg("type2"), "The smallest dtype that both can be promoted to.");
  m.def(
      "can_cast", [](nb::handle from, nb::handle to) { return can_cast(to_dtype(from.ptr()), to_dtype(to.ptr())); },
      nb::arg("from_"), nb::arg("to"),
      "Whether a result of one dtype can be cast to another under the rules of type promotion.");
  m.def("_dtypes", [] {
    nb::list all;
    for (const Row& row : kRows) all.append(nb::steal(from_dtype(row.type)));
    return all;
  });
  register_info(m);
}

}  // namespace tercel::python
