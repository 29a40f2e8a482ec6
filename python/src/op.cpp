#include "python/src/op.h"

#include <algorithm>
#include <map>

#include "python/src/op_docs.h"
#include "python/src/out.h"
#include "python/src/package_name.h"
#include "tercel/util/profile.h"

namespace tercel::python {

namespace {

struct OpObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const Op* op;
  unsigned place;  ///< one of the flags
};

PyTypeObject* g_op_type = nullptr;

/** Every operation by name, in the order of names; lives as long as the process. */
std::map<std::string, Op*>& all_ops() {
  static auto* ops = new std::map<std::string, Op*>;
  return *ops;
}

const OpObject& cast(PyObject* o) { return *reinterpret_cast<OpObject*>(o); }
bool is_method(PyObject* o) { return cast(o).place == kMethod; }

PyObject* call_op(PyObject* callable, PyObject* const* args, size_t flagged, PyObject* keywords) {
  const OpObject& object = cast(callable);
  const ProfileRange range(object.op->name().c_str(), RangeKind::Op);
  return object.op->call(args, static_cast<size_t>(PyVectorcall_NARGS(flagged)), keywords, object.place);
}

nb::object make_op(const Op& op, unsigned place) {
  auto* object = PyObject_New(OpObject, g_op_type);
  if (!object) raise_pending();
  object->vectorcall = call_op;
  object->op = &op;
  object->place = place;
  return nb::steal(reinterpret_cast<PyObject*>(object));
}

/** A method is bound to the tensor it is taken from; a function is not, like a built-in one. */
PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None || !is_method(self)) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

void dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* to_unicode(const std::string& s) {
  return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}
/** Namespaces of operations: the flag of their entries, the extension's submodule, the prefix of names in it, and the
 * public module of the package. */
struct Place {
  unsigned flag;
  const char* part;
  std::string_view prefix;
  const char* module;
};
constexpr Place kPlaces[] = {
    {kFunction, nullptr, "", ""},
    {kNn, "_nn", "", ".nn.functional"},
    {kLinalg, "_linalg", "linalg_", ".linalg"},
    {kSpecial, "_special", "special_", ".special"},
    {kFft, "_fft", "fft_", ".fft"},
    {kSparse, "_sparse", "sparse_", ".sparse"},
};
const Place& place_of(PyObject* o) {
  for (const Place& place : kPlaces)
    if (place.flag == cast(o).place) return place;
  return kPlaces[0];  // methods: Tensor is in the module itself
}

PyObject* get_name(PyObject* o, void*) { return to_unicode(cast(o).op->name()); }
PyObject* get_qualname(PyObject* o, void*) {
  return to_unicode(is_method(o) ? "Tensor." + cast(o).op->name()
                                 : cast(o).op->name().substr(place_of(o).prefix.size()));
}
PyObject* get_doc(PyObject* o, void*) { return to_unicode(cast(o).op->doc()); }
PyObject* get_module(PyObject* o, void*) { return to_unicode(package_name() + place_of(o).module); }
/** Copying an operation returns the same object, and pickling stores its name. */
PyObject* reduce(PyObject* o, PyObject*) { return get_qualname(o, nullptr); }
PyObject* repr(PyObject* o) {
  const char* name = cast(o).op->name().c_str();
  return is_method(o) ? PyUnicode_FromFormat("<method '%s' of '%s.Tensor' objects>", name, package_name().c_str())
                      : PyUnicode_FromFormat("<built-in function %s>", name);
}

PyMethodDef g_methods[] = {
    {"__reduce__", reduce, METH_NOARGS, "Pickles and copies the operation by its name."},
    {},
};

PyGetSetDef g_attributes[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_qualname, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {},
};

PyMemberDef g_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OpObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot g_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_getset, g_attributes},
    {Py_tp_members, g_members},
    {Py_tp_methods, g_methods},
    {0, nullptr},
};
PyType_Spec g_spec = {"tercel.Op", sizeof(OpObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, g_slots};

/** All signatures of the module, for the type stubs: [(flags, name, [(parameter ...)], doc)]. */
nb::list describe_ops() {
  nb::list all;
  for (const auto& [name, op] : all_ops())
    for (const Op::Overload& o : op->overloads()) {
      nb::list parameters;
      for (const Parameter& p : o.signature.parameters())
        parameters.append(nb::make_tuple(nb::borrow(p.name), p.type_text.c_str(),
                                         p.has_default ? nb::object(nb::str(p.default_text.c_str())) : nb::none(),
                                         p.keyword_only, p.accepts_none));
      all.append(nb::make_tuple(o.entry.flags, name.c_str(), parameters, o.entry.doc));
    }
  return all;
}

constexpr unsigned kEveryLayout = ~0u;
/** Ops of COO operands refuse the compressed layouts that they have no code for themselves. */
constexpr unsigned kSparseLayouts = ((2u << static_cast<int>(Layout::SparseBsc)) - 1) & ~1u;

/** The layouts that the columns of the op of that name allow. */
unsigned layouts_of(std::string_view name) {
  static constexpr std::string_view kAny[] = {
#include "python/src/layout_any_ops.inc"
  };
  static constexpr std::string_view kOfCoo[] = {
#include "python/src/layout_sparse_ops.inc"
  };
  const auto is_in = [name](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return is_in(kAny) ? kEveryLayout : is_in(kOfCoo) ? kSparseLayouts : 0;
}

/** The aliases of an operation and of its in-place variant. */
void add_aliases() {
  for (const OpAlias& alias : op_aliases())
    for (const char* suffix : {"", "_"}) {
      const bool special = std::string_view(alias.name).starts_with("special_");
      if (special && *suffix) continue;
      const auto found = all_ops().find(str_cat({alias.of, suffix}));
      if (found == all_ops().end()) continue;
      const std::string name = str_cat({alias.name, suffix});
      Op*& op = all_ops()[name];
      op = new Op(name, *found->second, special ? unsigned{kSpecial} : 0u);
    }
}

}  // namespace

Op::Op(std::string name, const Op& other, unsigned flags)
    : name_(std::move(name)), autocast_(other.autocast_), layouts_(other.layouts_) {
  for (const Overload& o : other.overloads_) {
    if (flags != 0 && (o.entry.flags & (kFunction | kSpecial)) == 0) continue;
    Overload& own = overloads_.emplace_back(Overload{Signature(o.signature, name_), o.entry});
    if (flags != 0) own.entry.flags = flags;
  }
}

void Op::add(const Entry& e) {
  Signature signature(e.signature);
  TERCEL_CHECK(signature.parameters().size() == e.parameters, RuntimeError, "the C++ function for ", e.signature,
               " takes ", e.parameters, " parameters");
  overloads_.push_back({std::move(signature), e});
  layouts_ |= layouts_of(name_);
  if ((e.flags & kAnyLayout) != 0) layouts_ = kEveryLayout;
  if ((e.flags & (kCoo | kSparse)) != 0) layouts_ |= kSparseLayouts;
}

PyObject* Op::call(PyObject* const* args, size_t count, PyObject* keywords, unsigned place) const noexcept {
  try {
    Call c{*this, {}};
    for (const Overload& o : overloads_) {
      if ((o.entry.flags & place) == 0) continue;
      if (!o.signature.match(args, count, keywords, place == kMethod, c.arguments)) continue;
      const int out = o.signature.out();
      c.has_out = out >= 0 && c.arguments.values[out] != Py_None;
      if (c.has_out) [[unlikely]]
        check_out_apart(o.entry.signature, o.signature, c.arguments);
      if (autocast_ != AutocastPolicy::None && t_autocast && !c.has_out) [[unlikely]] {
        const AutocastArguments cast(autocast_, o.signature, c.arguments);
        return o.entry.invoke(c);
      }
      return o.entry.invoke(c);
    }
    if (PyObject* result = call_deprecated_signature(*this, args, count, keywords, place)) return result;
    explain(args, count, keywords, place);
  } catch (...) {
    set_error_from_exception();
  }
  return nullptr;
}

void Op::explain(PyObject* const* args, size_t count, PyObject* keywords, unsigned place) const {
  if (PyErr_Occurred()) return;
  const bool method = place == kMethod;
  const size_t extra = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  std::vector<const Overload*> open, likely;
  for (const Overload& o : overloads_) {
    if ((o.entry.flags & place) == 0) continue;
    open.push_back(&o);
    if (o.signature.plausible(count + extra)) likely.push_back(&o);
  }
  if (method && (count == 0 || !is_tensor(args[0]))) {
    PyErr_Format(PyExc_TypeError, "descriptor '%s' for 'tercel.Tensor' objects doesn't apply to a '%s' object",
                 name_.c_str(), count == 0 ? "missing" : Py_TYPE(args[0])->tp_name);
    return;
  }
  if (likely.size() == 1 || open.size() == 1) {
    (likely.empty() ? open : likely)[0]->signature.explain(args, count, keywords, method);
    return;
  }
  std::string text = name_ + "() received an invalid combination of arguments - got (";
  const size_t first = method ? 1 : 0;
  for (size_t i = first; i < count; ++i) {
    if (i > first) text += ", ";
    text += argument_type(args[i]);
  }
  for (size_t k = 0; k < extra; ++k) {
    if (count + k > first) text += ", ";
    text +=
        str_cat({to_text(PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(k))), "=", argument_type(args[count + k])});
  }
  text += "), but expected one of:\n";
  for (const Overload* o : open) text += " * " + o->signature.listing(method) + "\n";
  PyErr_SetString(PyExc_TypeError, text.c_str());
}

std::string Op::doc() const {
  std::string text, said;
  for (const Overload& o : overloads_) {
    text += o.entry.signature;
    text += "\n";
    if (*o.entry.doc) said += str_cat({"\n", o.entry.doc, "\n"});
  }
  if (!said.empty()) return text + said;
  // An alias has the description of its operation, whose name its signatures still begin with.
  const std::string_view signature = overloads_[0].entry.signature;
  const std::vector<Parameter>& parameters = overloads_[0].signature.parameters();
  said = op_doc(name_, parameters.empty() ? "" : to_text(parameters[0].name));
  if (said.empty())
    said = op_doc(signature.substr(0, signature.find('(')), parameters.empty() ? "" : to_text(parameters[0].name));
  return said.empty() ? text : str_cat({text, "\n", said, "\n"});
}

void register_op_type(nb::module_& m) {
  g_op_type = make_type(m, &g_spec);
  m.def("_describe_ops", describe_ops);
}

void add_ops(nb::module_&, Span<Entry> table) {
  for (const Entry& e : table) {
    const std::string_view text(e.signature);
    std::string name(text.substr(0, text.find('(')));
    Op*& op = all_ops()[name];
    if (!op) op = new Op(name);
    op->add(e);
  }
}

void finish_ops(nb::module_& m) {
  add_aliases();
  check_autocast_policies();
  for (const Place& place : kPlaces)
    if (place.part) m.def_submodule(place.part);
  PyObject* tensor = reinterpret_cast<PyObject*>(tensor_type);
  for (const auto& [name, op] : all_ops()) {
    unsigned flags = 0;
    for (const Op::Overload& o : op->overloads()) flags |= o.entry.flags;
    for (const Place& place : kPlaces)
      if ((flags & place.flag) != 0)
        nb::setattr(place.part ? nb::object(m.attr(place.part)) : m, name.c_str() + place.prefix.size(),
                    make_op(*op, place.flag));
    if ((flags & kMethod) != 0 && PyObject_SetAttrString(tensor, name.c_str(), make_op(*op, kMethod).ptr()) < 0)
      raise_pending();
  }
}

}  // namespace tercel::python
