#include "python/src/options.h"

#include <string>
#include <vector>

#include "python/src/convert.h"
#include "tercel/util/format.h"
#include "tercel/util/options_impl.h"

namespace tercel::python {

namespace {

/** Converts what options are given as, and knows which one it is at. */
class ToJson {
 public:
  explicit ToJson(std::string_view owner) : owner_(owner) {}

  /** Values by name; None, which stands for the default, is left out. */
  Json options(const nb::dict& values) {
    Json given = Json::object();
    for_each_entry(values.ptr(), [&](const std::string& name, PyObject* value) {
      option_ = name;
      if (value != Py_None) given[name] = convert(value);
    });
    return given;
  }

 private:
  template <class F>
  void for_each_entry(PyObject* dict, F&& f) {
    // A list of its own: conversions may change the dict.
    const nb::object items = own(PyDict_Items(dict));
    for_each_item(items.ptr(), [&](PyObject* item, Py_ssize_t) {
      PyObject* const key = PyTuple_GET_ITEM(item, 0);
      TERCEL_CHECK(PyUnicode_Check(key), TypeError, place(), ": expected names of type str, not ",
                   Py_TYPE(key)->tp_name);
      f(std::string(to_text(key)), PyTuple_GET_ITEM(item, 1));
    });
  }

  std::string place() const {
    return option_.empty() ? str_cat({"[", owner_, "] options"})
                           : str_cat({"[", owner_, "] option '", printable(option_), "'"});
  }

  static Json integer(PyObject* o) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow == 0) {
      if (value == -1 && PyErr_Occurred()) raise_pending();
      return value;
    }
    if (overflow > 0) {
      const unsigned long long natural = PyLong_AsUnsignedLongLong(o);
      if (!PyErr_Occurred()) return natural;
      PyErr_Clear();
    }
    return to_float(o);
  }

  Json list(PyObject* o) {
    Json out = Json::array();
    for_each_item(o, [&](PyObject* item, Py_ssize_t) { out.push_back(convert(item)); });
    return out;
  }

  Json dict(PyObject* o) {
    Json out = Json::object();
    for_each_entry(o, [&](const std::string& name, PyObject* value) { out[name] = convert(value); });
    return out;
  }

  static Json text(PyObject* o) {
    if (PyBytes_Check(o)) return std::string(PyBytes_AS_STRING(o), static_cast<size_t>(PyBytes_GET_SIZE(o)));
    return std::string(to_text(o));
  }

  /** Numbers, strings, paths, lists, arrays and dicts; TypeError for another object. */
  Json convert(PyObject* o) {
    if (o == Py_None) return nullptr;
    if (PyBool_Check(o)) return o == Py_True;
    if (PyLong_Check(o)) return integer(o);
    if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
    if (PyUnicode_Check(o) || PyBytes_Check(o)) return text(o);
    const RecursionGuard guard(" while options are read");
    if (PyList_Check(o) || PyTuple_Check(o)) return list(o);
    if (PyDict_Check(o)) return dict(o);
    if (PyRange_Check(o)) return list(own(PySequence_List(o)).ptr());
    if (numpy_scalar_kind(o) == 'b') return to_bool(o);
    if (is_int_like(o)) return integer(own(PyNumber_Index(o)).ptr());
    if (is_number(o) && !PyComplex_Check(o)) return to_float(o);
    if (PyObject_HasAttrString(o, "__fspath__")) return text(own(PyOS_FSPath(o)).ptr());
    // Arrays and tensors; not NumPy's numbers, which have it too.
    if (!is_number(o) && PyObject_HasAttrString(o, "tolist"))
      return convert(own(PyObject_CallMethod(o, "tolist", nullptr)).ptr());
    throw_error<TypeError>({place(), ": expected a number, a string, a list or a dict, not ", Py_TYPE(o)->tp_name});
  }

  std::string_view owner_;
  std::string option_;
};

nb::object from_json(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean: return nb::bool_(json.get<bool>());
    case Json::value_t::number_integer: return nb::int_(json.get<int64_t>());
    case Json::value_t::number_unsigned: return nb::int_(json.get<uint64_t>());
    case Json::value_t::number_float: return nb::float_(json.get<double>());
    case Json::value_t::string: return to_str(json.get_ref<const std::string&>());
    case Json::value_t::array: {
      nb::list list;
      for (const Json& item : json) list.append(from_json(item));
      return list;
    }
    case Json::value_t::object: {
      nb::dict dict;
      for (const auto& [key, value] : json.items()) dict[to_str(key)] = from_json(value);
      return dict;
    }
    default: return nb::none();
  }
}

std::string annotation_of(const OptionType& type) {
  switch (type.kind) {
    case OptionKind::Bool: return "bool";
    case OptionKind::Int:
    case OptionKind::UInt: return "int";
    case OptionKind::Double: return "float";
    case OptionKind::String: return "str";
    case OptionKind::Enum: {
      std::string names;
      for (const std::string_view name : type.enumeration.names)
        names += str_cat({names.empty() ? "" : ", ", "'", name, "'"});
      return str_cat({"Literal[", names, "]"});
    }
    case OptionKind::List: {
      const std::string element = annotation_of(*type.list.element);
      return element == "Any" ? element : str_cat({"Sequence[", element, "]"});
    }
    case OptionKind::Struct: break;
  }
  return "Any";
}

}  // namespace

void set_options(const nb::dict& values, OptionTable table, void* options, std::string_view owner,
                 Span<std::string_view> others) {
  const Json given = ToJson(owner).options(values);
  detail::read_options(given, table, options, owner, others);
}

std::string dict_to_json(const nb::dict& values, std::string_view owner) {
  return dump_json(ToJson(owner).options(values));
}

nb::object json_to_object(const std::string& text) { return from_json(parse_json(text, "JSON", JsonErrors::Config)); }

nb::dict options_to_dict(OptionTable table, const void* options) {
  return nb::borrow<nb::dict>(from_json(detail::write_options(table, options)));
}

nb::list describe_options(OptionTable table, const void* defaults) {
  const nb::dict values = options_to_dict(table, defaults);
  nb::list out;
  for (const OptionField& field : table) {
    const nb::str name = to_str(field.name);
    const std::string text = option_text(field, defaults);
    const std::string help =
        str_cat({field.help, " (", option_type_text(field),
                 field.rules.required ? "" : str_cat({", default ", text.empty() ? "empty" : text}), ")"});
    out.append(nb::make_tuple(name, values[name], to_str(help), to_str(annotation_of(*field.type))));
  }
  return out;
}

}  // namespace tercel::python
