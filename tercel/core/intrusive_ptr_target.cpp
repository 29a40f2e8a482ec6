#include "tercel/core/intrusive_ptr_target.h"

namespace tercel {

void intrusive_ptr_target::release_resources() {}

namespace detail {

void Counts::die(intrusive_ptr_target* t, uint64_t counts_before) {
  if (weak_of(counts_before) != 1) t->release_resources();
  decrement_weak(t);
}

}  // namespace detail

}  // namespace tercel
