// Helpers shared by the tables of factories.
#pragma once

#include <utility>

#include "python/src/op.h"
#include "python/src/out.h"
#include "python/src/package_name.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sparse/compressed.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/views/resize.h"

namespace tercel::python {

#define TERCEL_LIKE_OPTIONS TERCEL_FACTORY_OPTIONS ", memory_format memory_format=None"

/** Resizes `out` without a warning, for a factory that fills it. RuntimeError if the options request another dtype or
 * device. */
inline const Tensor& sized(const char* op, const Tensor& out, IntSpan sizes, const FactoryOptions& o) {
  TERCEL_CHECK(!o.dtype || *o.dtype == out.dtype(), RuntimeError, "dtype ", legacy_name(o.dtype.value_or(kFloat32)),
               " does not match dtype of out parameter (", legacy_name(out.dtype()), ")");
  TERCEL_CHECK(!o.has_device || o.device == out.device(), RuntimeError, "device ", to_string(o.device),
               " does not match device of out parameter (", to_string(out.device()), ")");
  if (out.layout() == Layout::SparseCoo)  // zeros, the only fill that it has
    return sparse_resize_and_clear_(out, sizes, static_cast<int64_t>(sizes.size()), 0);
  if (out.sizes() != sizes && !out.requires_grad()) resize_(out, sizes);
  prepare_out(op, out, sizes);
  return out;
}

/** `out`, filled, with requires_grad set as requested. */
inline Tensor finished(const Tensor& out, const FactoryOptions& o) {
  return o.requires_grad ? Tensor(out).requires_grad_() : out;
}

/** Returns make(options), or writes it to `out`, whose dtype then applies. */
template <class Make>
Tensor made(const char* op, const Tensor& out, const FactoryOptions& o, ScalarType otherwise, Make make) {
  if (!out.defined()) return make(o.resolve(otherwise));
  const Tensor result = make(TensorOptions(out.dtype()));
  sized(op, out, result.sizes(), o);
  return finished(into(op, out, result), o);
}

/**
 * The empty tensor of a sparse layout that the options ask for, with as many sparse dimensions as `like`, if that is
 * COO, and its indices if it has a compressed layout, with values that are not set; undefined for the strided layout.
 */
inline Tensor empty_sparse(IntSpan sizes, const TensorOptions& options, const Tensor& like = Tensor()) {
  if (options.layout == Layout::Strided) return {};
  if (like.defined() && like.sizes() == sizes &&
      (like.layout() == options.layout || (is_compressed(like.layout()) && is_compressed(options.layout))))
    return empty_like(like, options);
  TERCEL_CHECK(!is_compressed(options.layout) || sizes.size() >= 2, RuntimeError, package_name(),
               ".empty: Only batched sparse compressed (non-block) tensors are supported, but got size ", sizes);
  if (is_compressed(options.layout)) return sparse_compressed_tensor(sizes, options);
  return sparse_coo_tensor(sizes, options);
}

/** A new tensor like x, with its order of dimensions unless a format is given. */
inline Tensor fresh_like(const Tensor& x, const FactoryOptions& o, std::optional<MemoryFormat> format) {
  if (Tensor out = empty_sparse(x.sizes(), o.resolve(x), x); out.defined()) {
    TERCEL_CHECK(!format, RuntimeError, "memory format option is only supported by strided tensors");
    return out;
  }
  if (x.layout() != Layout::Strided) return empty(x.sizes(), o.resolve(x));
  return empty_like(x, o.resolve(x), format.value_or(MemoryFormat::Preserve));
}

/** A new tensor like x, filled by fill(tensor) before requires_grad is set. */
template <class Fill>
Tensor filled_like(const Tensor& x, FactoryOptions o, std::optional<MemoryFormat> format, Fill fill) {
  const bool requires_grad = std::exchange(o.requires_grad, false);
  Tensor out = fresh_like(x, o, format);
  fill(out);
  return requires_grad ? out.requires_grad_() : out;
}

}  // namespace tercel::python
