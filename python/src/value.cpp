// Conversion between Python objects and io::Value, the content of a .pt file.
#include <string>
#include <unordered_map>
#include <vector>

#include "python/src/exchange.h"

namespace tercel::python {

namespace {

using io::Value;

// Deeper than any file may nest, and far below the stack limit.
constexpr int kMostDepth = 500;

std::string type_name(PyObject* o) {
  const nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(o)));
  const std::string module = nb::str(type.attr("__module__")).c_str();
  const std::string name = nb::str(type.attr("__qualname__")).c_str();
  return module == "builtins" ? name : module + "." + name;
}

nb::object parameter_type() { return nb::module_::import_("tercel.nn").attr("Parameter"); }
bool is_parameter(PyObject* o) {
  return is_tensor(o) && parameter_type().ptr() == reinterpret_cast<PyObject*>(Py_TYPE(o));
}
/** A subclass whose tensors may be loaded as plain tensors: arrays of tercel.array_api. */
bool is_saved_as_tensor(PyObject* o) {
  return is_tensor(o) && PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "_saved_as_tensor") == 1;
}
bool is_ordered_dict(PyObject* o) { return Py_TYPE(o) == &PyODict_Type; }

class Converter {
 public:
  Value convert(PyObject* o, int depth) {
    if (o == Py_None) return {};
    if (PyBool_Check(o)) return o == Py_True;
    if (PyLong_CheckExact(o)) return to_int64(o);
    if (PyFloat_CheckExact(o)) return PyFloat_AS_DOUBLE(o);
    if (Py_TYPE(o) == tensor_type || is_saved_as_tensor(o)) return tensor_of(o);
    if (is_parameter(o)) return Value::parameter(tensor_of(o));
    if (nb::isinstance<DtypeObject>(o)) return to_dtype(o);
    if (nb::isinstance<DeviceObject>(o)) return to_device(o);
    return convert_shared(o, depth);
  }

 private:
  struct Done {
    nb::object object;  // so that its address is not reused
    Value value;
    bool open = true;
  };

  static Value to_int64(PyObject* o) {
    int overflow = 0;
    const int64_t value = PyLong_AsLongLongAndOverflow(o, &overflow);
    TERCEL_CHECK(overflow == 0, ValueError, "tercel.save: the number ", std::string(nb::str(nb::handle(o)).c_str()),
                 " does not fit 64 bits");
    return value;
  }

  Value convert_shared(PyObject* o, int depth) {
    TERCEL_CHECK(depth < kMostDepth, ValueError, "tercel.save: expected at most ", kMostDepth,
                 " containers inside each other");
    if (const auto found = done_.find(o); found != done_.end()) {
      TERCEL_CHECK(!found->second.open, ValueError, "tercel.save: the ", type_name(o), " contains itself");
      return found->second.value;
    }
    done_.emplace(o, Done{nb::borrow(o), {}});
    const Value value = convert_new(o, depth);
    Done& done = done_.at(o);
    done.value = value;
    done.open = false;
    return value;
  }

  Value convert_new(PyObject* o, int depth) {
    if (PyUnicode_CheckExact(o)) {
      Py_ssize_t size = 0;
      const char* text = PyUnicode_AsUTF8AndSize(o, &size);
      if (!text) raise_pending();
      return std::string(text, static_cast<size_t>(size));
    }
    if (PyBytes_CheckExact(o)) return Value::bytes({PyBytes_AS_STRING(o), static_cast<size_t>(PyBytes_GET_SIZE(o))});
    if (is_size(o)) return Value::size(to_ints(o));
    if (PyList_CheckExact(o)) return Value::list(items_of(o, depth));
    if (PyTuple_CheckExact(o)) return Value::tuple(items_of(o, depth));
    if (PyDict_CheckExact(o)) return Value::dict(entries_of(o, depth));
    if (is_ordered_dict(o)) return Value::ordered_dict(entries_of(o, depth));
    throw_error<TypeError>({"tercel.save: cannot save an object of type ", type_name(o),
                            "; tensors, numbers, strings, bytes, None, dtypes, devices, sizes, and lists, tuples and "
                            "dicts of these can be saved"});
  }

  std::vector<Value> items_of(PyObject* o, int depth) {
    const nb::object items = own(PySequence_Tuple(o));  // the list might change meanwhile
    std::vector<Value> out;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.ptr()); ++i)
      out.push_back(convert(PyTuple_GET_ITEM(items.ptr(), i), depth + 1));
    return out;
  }

  std::vector<Value::Item> entries_of(PyObject* o, int depth) {
    const nb::object items = own(PyMapping_Items(o));
    std::vector<Value::Item> out;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.ptr()); ++i) {
      PyObject* item = PyList_GET_ITEM(items.ptr(), i);
      Value key = convert(PyTuple_GET_ITEM(item, 0), depth + 1);
      out.emplace_back(std::move(key), convert(PyTuple_GET_ITEM(item, 1), depth + 1));
    }
    return out;
  }

  std::unordered_map<PyObject*, Done> done_;
};

class Maker {
 public:
  nb::object make(const Value& value) {
    if (!value.identity()) return make_new(value);
    if (const auto found = done_.find(value.identity()); found != done_.end()) return found->second;
    nb::object made = make_new(value);
    done_.emplace(value.identity(), made);
    return made;
  }

 private:
  nb::object make_new(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::None: return nb::none();
      case Value::Kind::Bool: return nb::borrow(value.to_bool() ? Py_True : Py_False);
      case Value::Kind::Int: return own(PyLong_FromLongLong(value.to_int()));
      case Value::Kind::Float: return own(PyFloat_FromDouble(value.to_double()));
      case Value::Kind::String: {
        const std::string& text = value.to_string();
        return own(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
      }
      case Value::Kind::Bytes: {
        const std::string& bytes = value.to_bytes();
        return own(PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
      }
      case Value::Kind::List: {
        nb::list list;
        for (const Value& item : value.items()) list.append(make(item));
        return list;
      }
      case Value::Kind::Tuple: return make_tuple(value);
      case Value::Kind::Dict: return make_dict(value);
      case Value::Kind::Tensor: {
        const nb::object tensor = own(wrap(value.to_tensor()));
        return value.is_parameter() ? parameter_type()(tensor, value.to_tensor().requires_grad()) : tensor;
      }
      case Value::Kind::Dtype: return own(from_dtype(value.to_dtype()));
      case Value::Kind::Device: return own(from_device(value.to_device()));
    }
    throw_error<InternalError>({"a value of unknown kind"});
  }

  nb::object make_tuple(const Value& value) {
    if (value.is_size()) {
      DimVector sizes;
      for (const Value& item : value.items()) sizes.push_back(item.to_int());
      return own(from_sizes(sizes));
    }
    nb::list list;
    for (const Value& item : value.items()) list.append(make(item));
    return own(PyList_AsTuple(list.ptr()));
  }

  nb::object make_dict(const Value& value) {
    nb::object dict = own(value.is_ordered() ? PyODict_New() : PyDict_New());
    for (const auto& [key, item] : value.entries())
      if (PyObject_SetItem(dict.ptr(), make(key).ptr(), make(item).ptr()) < 0) raise_pending();
    return dict;
  }

  std::unordered_map<const void*, nb::object> done_;
};

}  // namespace

Value to_value(PyObject* o) { return Converter().convert(o, 0); }
nb::object from_value(const Value& value) { return Maker().make(value); }

}  // namespace tercel::python
