// Support for out= arguments.
#pragma once

#include <algorithm>

#include "python/src/call.h"
#include "tercel/ops/common/out.h"

namespace tercel::python {

/** A UserWarning; from inside an operation, which may have released the GIL. Warnings of the library go here too. */
void warn(const std::string& text);
/** The warning for a uint8 index, which older programs use as a mask. */
void warn_of_bytes();

/**
 * RuntimeError if `out` shares memory with an input in a way that the operation does not support (Note [Overlap
 * with out]).
 */
void check_out_apart(std::string_view operation, const Signature& signature, const Arguments& arguments);

/**
 * The compute dtype of an operation with a dtype argument: the argument, else the dtype of `out`, if any. RuntimeError
 * if they differ.
 */
ScalarType dtype_of(std::optional<ScalarType> given, const Tensor& out);

/** Copies a result to `out`, or returns it if there is none. RuntimeError if it cannot be cast to the dtype of `out`.
 */
Tensor into(const char* op, const Tensor& out, const Tensor& result);
/** The same for several results, and as many tensors. */
std::vector<Tensor> into(const char* op, const std::vector<Tensor>& out, Span<Tensor> results);
/** The results, or the tensors they were copied to. */
std::vector<Tensor> into_each(const char* op, const std::optional<std::vector<Tensor>>& out,
                              const std::vector<Tensor>& results);
template <size_t N>
Named<N> into(const char* op, const std::optional<std::vector<Tensor>>& out, Named<N> result) {
  if (!out) return result;
  const std::vector<Tensor> filled = into(op, *out, Span<Tensor>(result.values));
  std::copy(filled.begin(), filled.end(), result.values.begin());
  return result;
}
ValuesAndIndices into(const char* op, const std::optional<std::vector<Tensor>>& out, const ValuesAndIndices& result);

/** into() for ops whose `out` must have the result's dtype (column out_exact of the table of ops). */
Tensor into_exact(const char* op, const Tensor& out, const Tensor& result);
template <size_t N>
Named<N> into_exact(const char* op, const std::optional<std::vector<Tensor>>& out, Named<N> result) {
  for (size_t i = 0; out && i < std::min(N, out->size()); ++i)
    check_linalg_out(op, (*out)[i], result.values[i], result.names[i]);
  return into(op, out, std::move(result));
}

}  // namespace tercel::python
