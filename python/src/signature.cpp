#include "python/src/signature.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "python/src/convert.h"

namespace tercel::python {

namespace {

struct KindName {
  std::string_view text;  // in a signature
  Kind kind;
  const char* spoken;  // in an error message
};
constexpr KindName kKinds[] = {
    {"Tensor|Scalar", Kind::TensorOrScalar, "Tensor"},
    {"Tensor[]", Kind::TensorList, "tuple of Tensors"},
    {"Tensor", Kind::Tensor, "Tensor"},
    {"Scalar", Kind::Scalar, "Number"},
    {"int[]", Kind::IntList, "tuple of ints"},
    {"int", Kind::Int, "int"},
    {"float[]", Kind::FloatList, "tuple of floats"},
    {"float", Kind::Float, "float"},
    {"bool", Kind::Bool, "bool"},
    {"str", Kind::String, "str"},
    {"dtype", Kind::Dtype, "tercel.dtype"},
    {"device", Kind::Device, "tercel.device"},
    {"layout", Kind::Layout, "tercel.layout"},
    {"memory_format", Kind::MemoryFormat, "tercel.memory_format"},
    {"Generator", Kind::Generator, "tercel.Generator"},
    {"Storage", Kind::Storage, "tercel.Storage"},
    {"object", Kind::Object, "object"},
};

const char* spoken(Kind kind) {
  for (const KindName& k : kKinds)
    if (k.kind == kind) return k.spoken;
  return "object";
}

struct Alias {
  const char *name, *numpy;
};
constexpr Alias kAliases[] = {{"dim", "axis"}, {"keepdim", "keepdims"}, {"input", "x"},
                              {"input", "a"},  {"input", "x1"},         {"other", "x2"}};

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

PyObject* intern(std::string_view text) {
  PyObject* s = own(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()))).release().ptr();
  PyUnicode_InternInPlace(&s);
  return s;
}

/** The value of a default: a Python literal. */
PyObject* literal(std::string_view text) {
  if (text == "None") return Py_NewRef(Py_None);
  if (text == "True") return Py_NewRef(Py_True);
  if (text == "False") return Py_NewRef(Py_False);
  if (text == "()") return own(PyTuple_New(0)).release().ptr();
  if (text == "(-2, -1)") return own(Py_BuildValue("(ii)", -2, -1)).release().ptr();
  const std::string copy(text);
  if (text.front() == '"') return intern(text.substr(1, text.size() - 2));
  if (text.find_first_of(".en") != std::string_view::npos)
    return own(PyFloat_FromDouble(PyOS_string_to_double(copy.c_str(), nullptr, nullptr))).release().ptr();
  return own(PyLong_FromString(copy.c_str(), nullptr, 10)).release().ptr();
}

[[noreturn]] void refuse(const char* text, std::string_view part) {
  throw_error<RuntimeError>({"not a signature: '", text, "', at '", part, "'"});
}

Parameter parse_parameter(const char* whole, std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) refuse(whole, text);
  std::string_view type = text.substr(0, space), name = trim(text.substr(space));
  Parameter p{};
  p.type_text = type;
  if (const size_t equals = name.find('='); equals != std::string_view::npos) {
    const std::string_view value = trim(name.substr(equals + 1));
    name = trim(name.substr(0, equals));
    p.has_default = true;
    p.default_text = value;
    p.fallback = literal(value);
    p.accepts_none = p.fallback == Py_None;
  }
  if (type.back() == '?') {
    p.accepts_none = true;
    type.remove_suffix(1);
  }
  std::string plain(type);
  if (const size_t bracket = plain.find('['); bracket != std::string::npos && plain[bracket + 1] != ']') {
    p.list_size = plain[bracket + 1] - '0';
    plain.erase(bracket + 1, 1);
  }
  bool known = false;
  for (const KindName& k : kKinds)
    if (k.text == plain) {
      p.kind = k.kind;
      known = true;
      break;
    }
  if (!known) refuse(whole, type);
  p.name = intern(name);
  for (const Alias& a : kAliases)
    if (a.name == name && !p.alias) p.alias = intern(a.numpy);
  return p;
}

bool same_text(PyObject* a, PyObject* b) { return a == b || PyUnicode_Compare(a, b) == 0; }

/** Whether a keyword is the parameter's name, or one that NumPy has for it. */
bool goes_by(const Parameter& p, PyObject* keyword) {
  if (same_text(p.name, keyword)) return true;
  if (!p.alias) return false;
  if (same_text(p.alias, keyword)) return true;
  for (const Alias& a : kAliases)
    if (PyUnicode_CompareWithASCIIString(p.name, a.name) == 0 &&
        PyUnicode_CompareWithASCIIString(keyword, a.numpy) == 0)
      return true;
  return false;
}

std::string text_of(PyObject* unicode) {
  const char* s = PyUnicode_AsUTF8(unicode);
  if (!s) raise_pending();
  return s;
}

const char* type_name(PyObject* o) { return Py_TYPE(o) == tensor_type ? "Tensor" : Py_TYPE(o)->tp_name; }

bool all_tensors(PyObject* o) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!is_tensor(PySequence_Fast_GET_ITEM(o, i))) return false;
  return true;
}

/** The first element that does not fit the list's type, and its position; null if there is none. */
struct WrongElement {
  nb::object element;
  Py_ssize_t position = 0;
};
WrongElement first_wrong_element(PyObject* o, bool (*fits)(PyObject*)) {
  WrongElement wrong;
  for_each_item(o, [&](PyObject* item, Py_ssize_t i) {
    if (!wrong.element && !fits(item)) wrong = {nb::borrow(item), i};
  });
  return wrong;
}

bool is_list_of(PyObject* o, bool (*fits)(PyObject*)) {
  return (PyTuple_Check(o) || PyList_Check(o)) && !first_wrong_element(o, fits).element;
}

}  // namespace

bool accepts(const Parameter& p, PyObject* o) {
  switch (p.kind) {
    case Kind::Tensor: return is_tensor(o);
    case Kind::Scalar: return is_scalar_like(o);
    case Kind::TensorOrScalar: return is_tensor(o) || is_scalar_like(o);
    case Kind::Int: return is_int_like(o);
    case Kind::Float: return is_float_like(o);
    case Kind::Bool: return is_bool_like(o);
    case Kind::String: return PyUnicode_Check(o);
    case Kind::IntList: return is_list_of(o, is_int_like) || (p.list_size > 0 && is_int_like(o));
    case Kind::FloatList: return is_list_of(o, is_float_like) || (p.list_size > 0 && is_float_like(o));
    case Kind::TensorList: return all_tensors(o);
    case Kind::Dtype: return is_dtype_like(o);
    case Kind::Device: return is_device_like(o);
    case Kind::Layout: return is_layout(o);
    case Kind::MemoryFormat: return is_memory_format(o);
    case Kind::Generator: return is_generator(o);
    case Kind::Storage: return is_storage(o);
    case Kind::Object: return true;
  }
  return false;
}

std::string argument_type(PyObject* o) {
  if ((PyTuple_CheckExact(o) || PyList_CheckExact(o)) && PySequence_Fast_GET_SIZE(o) > 0) {
    std::string text = str_cat({Py_TYPE(o)->tp_name, " of "});
    const bool list = PyList_CheckExact(o);
    text += list ? "[" : "(";
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < n && i < 10; ++i) {
      if (i > 0) text += ", ";
      text += type_name(PySequence_Fast_GET_ITEM(o, i));  // without its elements, which may include the list itself
    }
    if (n > 10) text += ", ...";
    if (n == 1 && !list) text += ",";
    return text + (list ? "]" : ")");
  }
  return type_name(o);
}

Signature::Signature(const char* text) {
  std::string_view rest(text);
  const size_t open = rest.find('(');
  if (open == std::string_view::npos || rest.back() != ')') refuse(text, rest);
  name_ = rest.substr(0, open);
  rest = rest.substr(open + 1, rest.size() - open - 2);
  bool keyword_only = false;
  while (!(rest = trim(rest)).empty()) {
    // The comma inside the default (-2, -1) does not end a parameter.
    const size_t closing = rest.find("=(") < rest.find(',') ? rest.find(')') : 0;
    const size_t comma = rest.find(',', closing);
    const std::string_view part = trim(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    Parameter p = parse_parameter(text, part);
    if (PyUnicode_CompareWithASCIIString(p.name, "out") == 0) out_ = static_cast<int>(parameters_.size());
    p.keyword_only = keyword_only;
    if (!keyword_only) ++max_positional_;
    if (!p.has_default) ++required_;
    parameters_.push_back(std::move(p));
  }
  if (parameters_.size() > kMostParameters) refuse(text, "too many parameters");
  const size_t last = max_positional_;
  takes_variadic_ = last > 0 && last <= 2 && parameters_[last - 1].kind == Kind::IntList &&
                    (last == 1 || parameters_[0].kind == Kind::Tensor);
}

int Signature::find(PyObject* keyword) const {
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].name == keyword) return static_cast<int>(i);
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (goes_by(parameters_[i], keyword)) return static_cast<int>(i);
  return -1;
}

/** Whether the integers x.view(2, 3) are the list; in zeros(2, 3) they follow nothing, in x.view they follow x. */
bool Signature::match_variadic(PyObject* const* args, size_t count, bool bound) const {
  const size_t at = max_positional_ - 1;
  if (!takes_variadic_ || count <= at || at != (bound ? 1u : 0u)) return false;
  if (PyTuple_Check(args[at]) || PyList_Check(args[at]) || args[at] == Py_None) return false;
  for (size_t i = at; i < count; ++i)
    if (!is_int_like(args[i])) return false;
  return true;
}

bool Signature::match(PyObject* const* args, size_t count, PyObject* keywords, bool bound, Arguments& out) const {
  const size_t n = parameters_.size();
  size_t positional = count;
  out.variadic = nullptr;
  if (takes_variadic_ && match_variadic(args, count, bound)) {
    out.variadic = args + max_positional_ - 1;
    out.variadic_count = count - (max_positional_ - 1);
    positional = max_positional_ - 1;
  } else if (count > max_positional_) {
    return false;
  }
  const Parameter* p = parameters_.data();
  for (size_t i = 0; i < positional; ++i) {
    PyObject* o = args[i];
    if (!(o == Py_None && p[i].accepts_none) && !accepts(p[i], o)) return false;
    out.values[i] = o;
  }
  for (size_t i = positional; i < n; ++i) out.values[i] = nullptr;
  if (out.variadic) out.values[positional] = args[positional];
  if (keywords) {
    const Py_ssize_t extra = PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t k = 0; k < extra; ++k) {
      const int i = find(PyTuple_GET_ITEM(keywords, k));
      if (i < 0 || out.values[i]) return false;
      PyObject* o = args[count + static_cast<size_t>(k)];
      if (!(o == Py_None && p[i].accepts_none) && !accepts(p[i], o)) return false;
      out.values[i] = o;
    }
  }
  for (size_t i = positional; i < n; ++i)
    if (!out.values[i]) {
      if (!p[i].has_default) return false;
      out.values[i] = p[i].fallback;
    }
  return true;
}

namespace {

void complain(std::initializer_list<tercel::detail::MessagePart> parts) {
  PyErr_SetString(PyExc_TypeError, str_cat(parts).c_str());
}

void complain_of_type(const std::string& op, const Parameter& p, PyObject* o, int position) {
  std::string where = str_cat({op, "(): argument '", text_of(p.name), "'"});
  if (position >= 0) where += str_cat({" (position ", position, ")"});
  const bool list = p.kind == Kind::IntList || p.kind == Kind::FloatList || p.kind == Kind::TensorList;
  if (list && (PyTuple_Check(o) || PyList_Check(o))) {
    const auto fits = p.kind == Kind::TensorList ? +[](PyObject* e) { return is_tensor(e); }
                      : p.kind == Kind::IntList  ? is_int_like
                                                 : is_float_like;
    // None if the list has changed since it was refused.
    const WrongElement wrong = first_wrong_element(o, fits);
    if (wrong.element && p.kind == Kind::TensorList) {
      complain({op, "(): expected Tensor as element ", wrong.position, " in argument ", position > 0 ? position - 1 : 0,
                ", but got ", Py_TYPE(wrong.element.ptr())->tp_name});
      return;
    }
    if (wrong.element) {
      complain({where, " must be ", spoken(p.kind), ", but found element of type ",
                Py_TYPE(wrong.element.ptr())->tp_name, " at pos ", wrong.position});
      return;
    }
  }
  complain({where, " must be ", spoken(p.kind), ", not ", argument_type(o)});
}

}  // namespace

void Signature::explain(PyObject* const* args, size_t count, PyObject* keywords, bool bound) const {
  const size_t self = bound ? 1 : 0;
  // Integers in place of a list: all of them fit.
  const bool spread = takes_variadic_ && match_variadic(args, count, bound);
  const Py_ssize_t extra = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  if (count > max_positional_ && !spread) {
    const size_t most = max_positional_ - self, given = count - self;
    complain({name_, "() takes ", most, " positional argument", most == 1 ? "" : "s", " but ", given,
              given == 1 ? " was given" : " were given"});
    return;
  }
  std::vector<PyObject*> values(parameters_.size(), nullptr);
  std::vector<bool> by_keyword(parameters_.size(), false);
  for (size_t i = 0; i < std::min(count, max_positional_); ++i) values[i] = args[i];
  for (Py_ssize_t k = 0; k < extra; ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(keywords, k);
    const int i = find(keyword);
    if (i < 0) continue;
    if (values[static_cast<size_t>(i)]) {
      complain({name_, "() got multiple values for argument '", text_of(keyword), "'"});
      return;
    }
    values[static_cast<size_t>(i)] = args[count + static_cast<size_t>(k)];
    by_keyword[static_cast<size_t>(i)] = true;
  }
  std::string missing;
  int missing_count = 0;
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (!values[i] && !parameters_[i].has_default) {
      missing += str_cat({missing_count > 0 ? ", " : "", "\"", text_of(parameters_[i].name), "\""});
      ++missing_count;
    }
  if (missing_count > 0) {
    complain({name_, "() missing ", missing_count, " required positional arguments: ", missing});
    return;
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    if (!values[i] || (values[i] == Py_None && p.accepts_none) || accepts(p, values[i])) continue;
    if (spread && i + 1 == max_positional_) continue;
    complain_of_type(name_, p, values[i], by_keyword[i] ? -1 : static_cast<int>(i + 1 - self));
    return;
  }
  for (Py_ssize_t k = 0; k < extra; ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(keywords, k);
    if (find(keyword) >= 0) continue;
    complain({name_, "() got an unexpected keyword argument '", text_of(keyword), "'"});
    return;
  }
  complain({name_, "(): the arguments do not fit"});
}

std::string Signature::listing(bool bound) const {
  std::string text = "(";
  bool star = false, first = true;
  for (size_t i = bound ? 1 : 0; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    if (!first) text += ", ";
    first = false;
    if (p.keyword_only && !star) {
      text += "*, ";
      star = true;
    }
    text += str_cat({spoken(p.kind), " ", text_of(p.name)});
    if (p.has_default && p.fallback != Py_None) text += str_cat({" = ", p.default_text});
  }
  return text + ")";
}

}  // namespace tercel::python
