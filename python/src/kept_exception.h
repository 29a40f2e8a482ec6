// Exceptions of Python's functions that the library calls within long work, which ends as after a stop before they are
// raised.
#pragma once

#include <exception>
#include <utility>

#include "python/src/python.h"

namespace tercel::python {

class KeptException {
 public:
  /** Calls a function; the first exception of all calls is kept. */
  template <class F>
  void guard(F&& f) {
    try {
      f();
    } catch (...) {
      if (!kept_) kept_ = std::current_exception();
    }
  }
  explicit operator bool() const { return kept_ != nullptr; }

  /** Raises it. */
  [[noreturn]] void raise() { std::rethrow_exception(std::exchange(kept_, nullptr)); }
  /** Raises the exception that is being handled, with the kept one as its context. */
  [[noreturn]] void raise_after() {
    set_error_from_exception();
    nb::python_error now;
    try {
      raise();
    } catch (const nb::python_error& before) {
      PyException_SetContext(now.value().ptr(), Py_NewRef(before.value().ptr()));
    } catch (...) {  // not Python's
    }
    throw nb::python_error(std::move(now));
  }

 private:
  std::exception_ptr kept_;
};

}  // namespace tercel::python
