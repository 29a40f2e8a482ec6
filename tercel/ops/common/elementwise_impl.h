// Functions shared by the front ends of elementwise families.
#pragma once

#include "tercel/autograd/record.h"
#include "tercel/core/tensor_meta.h"
#include "tercel/ops/common/elementwise_kernels.h"
#include "tercel/ops/common/tensor_iterator_impl.h"
#include "tercel/util/profile.h"

namespace tercel {

/** Returns the op's result in a new tensor. */
inline Tensor elementwise(const ElementwiseRule& rule, const KernelTable<ElementwiseFn>& kernels, int op,
                          Span<OperandRef> inputs) {
  const ProfileRange range(rule.op, RangeKind::Op);
  Tensor out;
  TensorIterator(rule, inputs, out).run(kernels, op);
  return out;
}

/** Computes the result in a temporary tensor and converts it to `out`. */
void elementwise_converted(const Tensor& out, const ElementwiseRule& rule, const KernelTable<ElementwiseFn>& kernels,
                           int op, Span<OperandRef> inputs);

/**
 * Writes the result to `out` and bumps its version. The result is first rounded to its own dtype, which may be narrower
 * than those of the kernel and of `out`.
 */
inline void elementwise_to(const Tensor& out, const ElementwiseRule& rule, const KernelTable<ElementwiseFn>& kernels,
                           int op, Span<OperandRef> inputs) {
  const ProfileRange range(rule.op, RangeKind::Op);
  TensorIterator iterator(rule, inputs, out);
  const ScalarType common = iterator.common_dtype();
  if (common != out.dtype() && !rule.predicate && native_dtype(compute_of(common)) != common) [[unlikely]]
    return elementwise_converted(out, rule, kernels, op, inputs);
  iterator.run(kernels, op);
  out.impl().bump_version();
}

/**
 * Whether the op may write directly to `out`, which has the result's sizes; otherwise the result is computed first and
 * then copied. RuntimeError if `out` is undefined, or if it or an input requires a gradient.
 */
bool takes_result(const char* op, const Tensor& out, Span<OperandRef> inputs);

/** Whether derivatives with respect to the operand may be needed. */
inline bool is_tracked(OperandRef operand) { return operand.tensor() && is_tracked(*operand.tensor()); }
/** Whether an op with these operands must be recorded. */
inline bool should_record(OperandRef a, OperandRef b) {
  return (a.tensor() && should_record(*a.tensor())) || (b.tensor() && should_record(*b.tensor()));
}

/** The gradient of an operand, given the gradient g of the broadcast operand. */
Tensor gradient_for(const TensorMeta& operand, const Tensor& g);

/** An operand saved for backward: a tensor or a number. */
struct SavedOperand {
  SavedTensor tensor;
  Scalar number;
};

/** The complex conjugate. */
inline Scalar conjugate(Scalar x) { return x.is_complex() ? Scalar(conj(x.to_complex())) : x; }

/** a / b of integers, rounded towards zero; b has no zero. special.cpp has its functor. */
Tensor divide_integers(OperandRef a, OperandRef b);

/** Saves a copy of x, which an in-place op is about to overwrite, for backward. */
SavedTensor save_before_change(const Tensor& x);

}  // namespace tercel
