#include <unistd.h>

#include "python/src/python.h"

namespace tercel::python {

void stop_thread() {
  for (;;) pause();
}

void WithoutGil::take_back() noexcept {
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {
    stop_thread();
  }
}

WithGil::WithGil() noexcept {
  try {
    state_ = PyGILState_Ensure();
  } catch (...) {
    stop_thread();
  }
}

bool interpreter_ends() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

}  // namespace tercel::python
