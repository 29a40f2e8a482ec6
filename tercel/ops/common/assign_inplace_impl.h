// In-place variants of ops that compute a new result first.
#pragma once

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"

namespace tercel {

/** x = result, recorded as a copy; RuntimeError unless sizes agree and the result can be cast to x's dtype. */
const Tensor& assign_inplace(const char* op, const Tensor& x, const Tensor& result);

/** x = f(x), recorded like f. RuntimeError if the result cannot be cast to x's dtype. */
template <class F>
const Tensor& assign_inplace(const char* op, const Tensor& x, F f) {
  if (has_sparse(x)) [[unlikely]] {
    const Tensor result = f(sparse_as_it_was(x, should_record(x)));  // refuses what is not implemented
    sparse_check_coalesced(op, x);
    return sparse_assign_(x, result);
  }
  check_strided(op, x);
  // Backward needs the overwritten value.
  const Tensor result = f(should_record(x) ? clone(x) : x);
  TERCEL_CHECK(can_cast(result.dtype(), x.dtype()), RuntimeError, op, ": result type ", to_string(result.dtype()),
               " can't be cast to the desired output type ", to_string(x.dtype()));
  return copy_(x, result);
}

}  // namespace tercel
