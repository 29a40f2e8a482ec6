#include "tercel/core/default_dtype.h"

#include <atomic>

namespace tercel {

namespace {

constinit std::atomic<ScalarType> g_default{kFloat32};

}  // namespace

ScalarType default_dtype() { return g_default.load(std::memory_order_relaxed); }

void set_default_dtype(ScalarType dtype) {
  TERCEL_CHECK(is_floating(dtype), RuntimeError, "set_default_dtype: expected a floating dtype but got ",
               to_string(dtype));
  g_default.store(dtype, std::memory_order_relaxed);
}

}  // namespace tercel
