// Forward-mode differentiation: tensors carry a tangent, the derivative along a direction.
//
//   const DualLevel level;
//   const Dual y = unpack_dual(exp(make_dual(x, v)));   // y.tangent is the derivative of exp at x, times v
//
// Note [Tangents by transposition]
// An op defines one derivative, its backward: a linear function J^T of the output's gradient. Forward mode needs J.
// Since backward can be recorded itself, J t is the gradient of <J^T u, t> with respect to u, at any u: so every op
// whose backward is differentiable supports forward mode without further code. It costs about three times the op's
// backward; the op only has to record itself if an input has a tangent. (See J. Townsend, "A new trick for calculating
// Jacobian vector products", 2017.)
//
// Note [Where tangents are kept]
// A tangent has the sizes and strides of its tensor and is stored in the base; a view's tangent is the same view of the
// base's tangent. So a write through one view is visible through all.
#pragma once

#include <cstdint>

#include "tercel/autograd/grad_mode.h"

namespace tercel {

class Node;

/** In the scope, on this thread, tensors may carry tangents. RuntimeError if nested. */
class TERCEL_API DualLevel {
 public:
  DualLevel();
  ~DualLevel();
  DualLevel(const DualLevel&) = delete;
  DualLevel& operator=(const DualLevel&) = delete;
};

/** Begins a level, numbered from 0; RuntimeError if this thread is in one. */
TERCEL_API int64_t enter_dual_level();
/** Ends the level and drops all tangents. RuntimeError if there is none. */
TERCEL_API void exit_dual_level();
/** The number of this thread's level; -1 outside of any. */
TERCEL_API int64_t current_dual_level();

/** Whether ops compute tangents: true in a dual level unless disabled. */
inline bool forward_mode_enabled() { return (detail::t_recorded & TensorImpl::kTangent) != 0; }
/** Disables tangents, or enables them again inside a dual level, for the scope. */
class TERCEL_API ForwardModeGuard : detail::RecordedGuard<TensorImpl::kTangent> {
 public:
  explicit ForwardModeGuard(bool enabled) : RecordedGuard(enabled && current_dual_level() >= 0) {}
};

struct Dual {
  Tensor primal, tangent;
};

/**
 * A tensor over x's elements, with x's history, that carries the tangent, which has the same floating or complex dtype
 * and sizes; it is copied if its strides differ. RuntimeError outside of a dual level.
 */
TERCEL_API Tensor make_dual(const Tensor& x, const Tensor& tangent);
/** The tensor without its tangent, and the tangent, undefined if there is none. */
TERCEL_API Dual unpack_dual(const Tensor& x);

namespace detail {
/** The tangent that the tensor carries; undefined when it has none. */
TERCEL_API Tensor tangent_of(const Tensor& x);
/** Sets the tensor's tangent; for a view, that part of its base's tangent. */
TERCEL_API void set_tangent(const Tensor& x, const Tensor& tangent);
/** Drops the tensor's tangent when the level ends, even if the tensor lives on. */
void drop_tangent_at_exit(const Tensor& x);
/** Keeps the inputs' tangents in the node, until carry_tangents(). */
void remember_tangents(Node& node, Span<const Tensor*> inputs);
/**
 * Sets the tangents of the outputs of a node that is being recorded. False: the node need not be recorded for any other
 * reason.
 */
bool carry_tangents(Node& node, Span<Tensor> outs);
}  // namespace detail

}  // namespace tercel
