// Export and import of DLPack capsules.
//
// Note [Foreign memory]
// Memory of another library is released by its callback, on the thread of the tensor's last user: possibly a thread of
// the library without the GIL, or during interpreter shutdown. So the callback is wrapped: the wrapper acquires the GIL
// first, and does nothing once the interpreter shuts down.
#include "tercel/io/dlpack.h"

#include <memory>

#include "python/src/exchange.h"

namespace tercel::python {

namespace {

/** Names of a capsule before and after its tensor was consumed. */
template <class Managed>
struct Names;
template <>
struct Names<io::DLManagedTensor> {
  static constexpr const char *kFresh = "dltensor", *kUsed = "used_dltensor";
};
template <>
struct Names<io::DLManagedTensorVersioned> {
  static constexpr const char *kFresh = "dltensor_versioned", *kUsed = "used_dltensor_versioned";
};

/** Releases a tensor that was not consumed. */
template <class Managed>
void drop_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, Names<Managed>::kFresh)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Names<Managed>::kFresh));
  managed->deleter(managed);
}

template <class Managed>
nb::object make_capsule(Managed* managed) {
  PyObject* capsule = PyCapsule_New(managed, Names<Managed>::kFresh, drop_capsule<Managed>);
  if (!capsule) managed->deleter(managed);
  return own(capsule);
}

[[noreturn]] void refuse(const char* why) {
  PyErr_SetString(PyExc_BufferError, why);
  raise_pending();
}

nb::object export_tensor(nb::handle o, bool versioned, bool copy) {
  const Tensor& t = to_tensor(o, "to_dlpack");
  if (is_sparse(t.layout())) refuse("Can't export tensors with layout other than tercel.strided");
  try {
    if (!versioned) return make_capsule(io::to_dlpack(t));
    return make_capsule(io::to_dlpack_versioned(t, copy ? io::CopyMode::Always : io::CopyMode::IfNeeded));
  } catch (const RuntimeError& e) {
    refuse(e.what());
  } catch (const TypeError& e) {
    refuse(e.what());
  }
}

/** See Note [Foreign memory]. */
template <class Managed>
struct Guarded {
  Managed managed;
  Managed* original;
};

template <class Managed>
Managed* guard(Managed* original) {
  auto* guarded = new Guarded<Managed>{*original, original};
  guarded->managed.manager_ctx = guarded;
  guarded->managed.deleter = [](Managed* self) {
    const std::unique_ptr<Guarded<Managed>> owner(static_cast<Guarded<Managed>*>(self->manager_ctx));
    if (interpreter_ends() || !owner->original->deleter) return;
    const WithGil scope;
    owner->original->deleter(owner->original);
  };
  return &guarded->managed;
}

template <class Managed>
Tensor take(PyObject* capsule, io::CopyMode copy) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Names<Managed>::kFresh));
  if (!managed) raise_pending();
  if constexpr (std::is_same_v<Managed, io::DLManagedTensorVersioned>)
    if (copy == io::CopyMode::Never && managed->version.major == 1 && (managed->flags & io::kDLFlagReadOnly) != 0)
      refuse("from_dlpack: a read-only tensor cannot be imported without a copy");
  // From here on this function owns the tensor, also if it throws.
  if (PyCapsule_SetName(capsule, Names<Managed>::kUsed) < 0) raise_pending();
  if constexpr (std::is_same_v<Managed, io::DLManagedTensorVersioned>)
    if (managed->version.major != 1)
      return io::from_dlpack(managed, copy);  // which refuses it without reading further fields
  return io::from_dlpack(guard(managed), copy);
}

nb::object import_capsule(nb::handle capsule, nb::handle copy) {
  const io::CopyMode mode = to_copy_mode(copy);
  using Old = io::DLManagedTensor;
  using New = io::DLManagedTensorVersioned;
  if (PyCapsule_IsValid(capsule.ptr(), Names<New>::kFresh)) return own(wrap(take<New>(capsule.ptr(), mode)));
  if (PyCapsule_IsValid(capsule.ptr(), Names<Old>::kFresh)) return own(wrap(take<Old>(capsule.ptr(), mode)));
  TERCEL_CHECK(PyCapsule_CheckExact(capsule.ptr()), TypeError, "from_dlpack: expected a capsule, not ",
               Py_TYPE(capsule.ptr())->tp_name);
  const char* name = PyCapsule_GetName(capsule.ptr());
  throw_error<RuntimeError>({"from_dlpack received an invalid capsule '", name ? name : "",
                             "'. Note that DLTensor capsules can be consumed only once, so you might have already "
                             "constructed a tensor from it once."});
}

}  // namespace

io::CopyMode to_copy_mode(nb::handle copy) {
  if (copy.is_none()) return io::CopyMode::IfNeeded;
  TERCEL_CHECK(PyBool_Check(copy.ptr()), TypeError, "argument 'copy' must be None, True or False, not ",
               Py_TYPE(copy.ptr())->tp_name);
  return copy.ptr() == Py_True ? io::CopyMode::Always : io::CopyMode::Never;
}

void register_dlpack(nb::module_& m) {
  m.def("_to_dlpack", export_tensor, nb::arg("tensor"), nb::arg("versioned"), nb::arg("copy"));
  m.def("_from_dlpack", import_capsule, nb::arg("capsule"), nb::arg("copy").none());
}

}  // namespace tercel::python
