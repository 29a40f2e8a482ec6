#include "python/src/python.h"
#include "tercel/autograd/checkpoint.h"
#include "tercel/distributed/error.h"
#include "tercel/ops/linalg/linalg.h"

namespace tercel::python {

namespace {

PyObject* g_out_of_memory = nullptr;
PyObject* g_data_error = nullptr;
PyObject* g_config_error = nullptr;
PyObject* g_io_error = nullptr;
PyObject* g_numeric_error = nullptr;
PyObject* g_linalg_error = nullptr;
PyObject* g_checkpoint_error = nullptr;
PyObject* g_distributed_error = nullptr;

/** Makes <module>.<name> with one or two base classes, as _C.<name>, or _C._<name> of another module than tercel; never
 * freed. */
PyObject* new_exception(nb::module_& m, const char* name, const char* doc, std::initializer_list<PyObject*> bases,
                        const char* module = "tercel") {
  nb::object tuple = own(PyTuple_New(static_cast<Py_ssize_t>(bases.size())));
  Py_ssize_t at = 0;
  for (PyObject* base : bases) PyTuple_SET_ITEM(tuple.ptr(), at++, Py_NewRef(base));
  const std::string full = str_cat({module, ".", name});
  nb::object type = own(PyErr_NewExceptionWithDoc(full.c_str(), doc, tuple.ptr(), nullptr));
  const std::string attribute = std::string_view(module) == "tercel" ? name : str_cat({"_", name});
  m.attr(attribute.c_str()) = type;
  return type.release().ptr();
}

PyObject* type_of(const Error& e) {
  if (dynamic_cast<const NotImplementedError*>(&e)) return PyExc_NotImplementedError;
  if (dynamic_cast<const LinAlgError*>(&e)) return g_linalg_error;
  if (dynamic_cast<const CheckpointError*>(&e)) return g_checkpoint_error;
  if (dynamic_cast<const RuntimeError*>(&e)) return PyExc_RuntimeError;
  if (dynamic_cast<const IndexError*>(&e)) return PyExc_IndexError;
  if (dynamic_cast<const TypeError*>(&e)) return PyExc_TypeError;
  if (dynamic_cast<const ValueError*>(&e)) return PyExc_ValueError;
  if (dynamic_cast<const OutOfMemoryError*>(&e)) return g_out_of_memory;
  if (dynamic_cast<const DataError*>(&e)) return g_data_error;
  if (dynamic_cast<const ConfigError*>(&e)) return g_config_error;
  if (dynamic_cast<const IoError*>(&e)) return g_io_error;
  if (dynamic_cast<const NumericError*>(&e)) return g_numeric_error;
  if (dynamic_cast<const DistributedError*>(&e)) return g_distributed_error;
  return PyExc_RuntimeError;
}

}  // namespace

void set_error_from_exception() noexcept {
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const Error& e) {
    PyErr_SetString(type_of(e), e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const nb::cast_error&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "an argument has the wrong type");
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

PyTypeObject* make_type(nb::module_& m, PyType_Spec* spec, PyTypeObject* base) {
  nb::object bases;
  if (base) bases = own(PyTuple_Pack(1, base));
  auto* type = reinterpret_cast<PyTypeObject*>(own(PyType_FromSpecWithBases(spec, bases.ptr())).release().ptr());
  // A type without a constructor is only instantiated by the library: object's __new__ would leave it empty.
  if (type->tp_new == PyBaseObject_Type.tp_new) type->tp_new = nullptr;
  const std::string_view name(spec->name);
  m.attr(name.substr(name.rfind('.') + 1).data()) = nb::borrow(reinterpret_cast<PyObject*>(type));
  return type;
}

void register_errors(nb::module_& m) {
  g_out_of_memory = new_exception(m, "OutOfMemoryError", "Not enough memory for an allocation.",
                                  {PyExc_RuntimeError, PyExc_MemoryError});
  g_data_error = new_exception(m, "DataError", "Input data that violates its format.", {PyExc_ValueError});
  g_config_error = new_exception(m, "ConfigError", "An invalid option, configuration or graph.", {PyExc_ValueError});
  g_io_error =
      new_exception(m, "IoError", "The operating system failed to open, read or write a file.", {PyExc_OSError});
  g_numeric_error =
      new_exception(m, "NumericError", "A computation produced NaN or infinity.", {PyExc_ArithmeticError});
  g_linalg_error = new_exception(m, "LinAlgError", "A matrix that cannot be factorized, for instance a singular one.",
                                 {PyExc_RuntimeError});
  g_checkpoint_error =
      new_exception(m, "_CheckpointError", "A checkpointed function saved other tensors when it was recomputed.",
                    {PyExc_RuntimeError});
  PyObject* const of_groups = new_exception(m, "DistError", "An error of the processes of a group.",
                                            {PyExc_RuntimeError}, "tercel.distributed");
  g_distributed_error =
      new_exception(m, "DistBackendError",
                    "A process of the group is lost, is late or makes other calls than the others, or there is no MPI.",
                    {of_groups}, "tercel.distributed");
  nb::register_exception_translator(
      [](const std::exception_ptr& error, void*) {
        try {
          std::rethrow_exception(error);
        } catch (const Error& e) {
          PyErr_SetString(type_of(e), e.what());
        }
      },
      nullptr);
}

}  // namespace tercel::python
