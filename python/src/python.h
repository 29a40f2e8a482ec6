// Python.h, helpers that every binding file needs, and conversion of errors.
//
// Note [Errors at the border]
// A function that Python calls catches every exception and converts it to a Python exception: at_border(). Inside, an
// error that is already set in Python propagates as nb::python_error. Otherwise only the library's types are thrown.
#pragma once

#include <nanobind/nanobind.h>
#include <structmember.h>

#include <utility>

#include "tercel/util/error.h"

#if PY_VERSION_HEX < 0x030a0000
inline PyObject* Py_NewRef(PyObject* o) {
  Py_INCREF(o);
  return o;
}
#endif

namespace tercel::python {

namespace nb = nanobind;

/** Makes the exception that is being handled the Python error; call in a catch block. */
void set_error_from_exception() noexcept;

/** Throws the Python error that is set. */
[[noreturn]] inline void raise_pending() { throw nb::python_error(); }

/** Takes ownership of a new reference; throws the Python error if it is null. */
inline nb::object own(PyObject* fresh) {
  if (!fresh) [[unlikely]]
    raise_pending();
  return nb::steal(fresh);
}

/** Whether it is an initialised object of a nanobind class; __new__ alone leaves it empty. */
inline bool is_ready(PyObject* o, PyTypeObject* type) { return Py_TYPE(o) == type && nb::inst_ready(o); }

/** The result of body(), or `failure` with Python's error set. */
template <class R, class F>
R at_border(R failure, F&& body) noexcept {
  try {
    return std::forward<F>(body)();
  } catch (...) {
    set_error_from_exception();
    return failure;
  }
}
template <class F>
PyObject* at_border(F&& body) noexcept {
  return at_border<PyObject*>(nullptr, std::forward<F>(body));
}

/** Counts nested calls for data that Python can nest without limit: RecursionError before the stack overflows. */
class RecursionGuard {
 public:
  /** `where`: the end of the error's sentence, as " while a list is read". */
  explicit RecursionGuard(const char* where) {
    if (Py_EnterRecursiveCall(where) != 0) raise_pending();
  }
  ~RecursionGuard() { Py_LeaveRecursiveCall(); }
  RecursionGuard(const RecursionGuard&) = delete;
  RecursionGuard& operator=(const RecursionGuard&) = delete;
};

// Note [Threads at the end]
// During shutdown, Python ends a thread that waits for the GIL by unwinding our code, as by an exception that must not
// be caught; in a destructor that terminates the process. Such a thread blocks here forever instead, and the process
// exits without it.
[[noreturn]] void stop_thread();

/** Releases the GIL for the length of a scope, if asked to. */
class WithoutGil {
 public:
  explicit WithoutGil(bool release) : state_(release ? PyEval_SaveThread() : nullptr) {}
  ~WithoutGil() {
    if (state_) [[unlikely]]
      take_back();
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  void take_back() noexcept;

  PyThreadState* state_;
};

/** Runs body() without the GIL, as for files: disks are slow. */
template <class F>
auto released(F&& body) {
  const WithoutGil scope(true);
  return std::forward<F>(body)();
}

/** Holds the GIL for the length of a scope, on any thread. */
class WithGil {
 public:
  WithGil() noexcept;
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

/** Whether Python is shutting down, so that threads must not wait for the GIL and nothing need be freed. */
bool interpreter_ends();

/** Minimum number of elements for which a call releases the GIL: about ten microseconds of work. */
constexpr int64_t kGilGrain = 16384;

/** A type made from a spec, added to the module under its last name. */
PyTypeObject* make_type(nb::module_& m, PyType_Spec* spec, PyTypeObject* base = nullptr);

void register_errors(nb::module_& m);

}  // namespace tercel::python
