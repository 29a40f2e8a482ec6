// out=: results into a tensor that the caller has.
#pragma once

#include <algorithm>

#include "python/src/call.h"
#include "tercel/ops/common/out.h"

namespace tercel::python {

/** A UserWarning; from inside an operation, which may have released the GIL. Warnings of the library go here too. */
void warn(const std::string& text);
/** The warning for an index of bytes, which is an older program's mask. */
void warn_of_bytes();

/**
 * Refuses an `out` that shares memory with an input, as far as the operation of that signature does (Note [Where out
 * may lie]).
 */
void check_out_apart(std::string_view operation, const Signature& signature, const Arguments& arguments);

/**
 * What an operation that takes a dtype calculates in: that, else the dtype of `out`, where there is one. RuntimeError
 * for two that differ.
 */
ScalarType dtype_of(std::optional<ScalarType> given, const Tensor& out);

/** Puts a finished result into `out`, or gives it back where there is none. RuntimeError for a dtype it cannot go to.
 */
Tensor into(const char* op, const Tensor& out, const Tensor& result);
/** The same for several results, and as many tensors. */
std::vector<Tensor> into(const char* op, const std::vector<Tensor>& out, Span<Tensor> results);
/** The results, or what they were put into. */
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

}  // namespace tercel::python
