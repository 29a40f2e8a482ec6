// The geometry of views: another look at a tensor's storage.
#pragma once

#include "tercel/autograd/strided_region.h"
#include "tercel/core/tensor.h"

namespace tercel {

/** The same storage under another geometry, which the caller has checked. */
inline Tensor alias(const Tensor& x, IntSpan sizes, IntSpan strides, int64_t offset) {
  return Tensor(make_intrusive<TensorImpl>(x.impl(), sizes, strides, offset));
}

/** A view of all of x. */
inline Tensor alias(const Tensor& x) { return Tensor(make_intrusive<TensorImpl>(&x.impl())); }

/** Sizes, strides and offset: what a view sees of its storage. */
struct Geometry : StridedRegion {
  using StridedRegion::StridedRegion;
  Tensor of(const Tensor& x) const { return alias(x, sizes, strides, offset); }
};

}  // namespace tercel
