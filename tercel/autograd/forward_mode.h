// Forward mode: values that carry a tangent, the derivative along a direction.
//
//   const DualLevel level;
//   const Dual y = unpack_dual(exp(make_dual(x, v)));   // y.tangent is the derivative of exp at x, times v
//
// Note [Tangents by transposition]
// An op has one derivative, its backward: a function of the gradient of its output that is linear, J^T. Forward mode
// needs J. As backward can be recorded itself, J t is the gradient of <J^T u, t> with respect to u, at any u: so an op
// whose backward can be differentiated has a tangent too, with no code of its own. It costs about three times the op's
// backward; an op need know nothing of it but to record itself when an input has a tangent. (The trick is as old as
// double backward; see J. Townsend, "A new trick for calculating Jacobian vector products", 2017.)
//
// Note [Where tangents are kept]
// A tangent has the sizes and strides of its tensor, and is kept with the tensor that is no view; a view's is the same
// view of the base's. So what is written through one view is seen through all.
#pragma once

#include <cstdint>

#include "tercel/autograd/grad_mode.h"

namespace tercel {

class Node;

/** In the scope, on this thread, tensors may carry tangents. RuntimeError for one inside another. */
class TERCEL_API DualLevel {
 public:
  DualLevel();
  ~DualLevel();
  DualLevel(const DualLevel&) = delete;
  DualLevel& operator=(const DualLevel&) = delete;
};

/** Begins a level, numbered from 0; RuntimeError when there is one on this thread. */
TERCEL_API int64_t enter_dual_level();
/** Ends it: what tangents there are, are gone. RuntimeError when there is none. */
TERCEL_API void exit_dual_level();
/** The number of this thread's level; -1 outside of any. */
TERCEL_API int64_t current_dual_level();

/** Whether ops give their results tangents, as they do in a dual level unless that is switched off. */
inline bool forward_mode_enabled() { return (detail::t_recorded & TensorImpl::kTangent) != 0; }
/** Switches that off, or on again inside a dual level, for the scope. */
class TERCEL_API ForwardModeGuard : detail::RecordedGuard<TensorImpl::kTangent> {
 public:
  explicit ForwardModeGuard(bool enabled) : RecordedGuard(enabled && current_dual_level() >= 0) {}
};

struct Dual {
  Tensor primal, tangent;
};

/**
 * A tensor over x's elements, with its history, that carries the tangent: real or complex numbers of the same dtype and
 * sizes; it is copied if its strides are others. RuntimeError outside of a dual level.
 */
TERCEL_API Tensor make_dual(const Tensor& x, const Tensor& tangent);
/** The tensor without its tangent, and the tangent; undefined where there is none. */
TERCEL_API Dual unpack_dual(const Tensor& x);

namespace detail {
/** The tangent that the tensor carries; undefined when it has none. */
TERCEL_API Tensor tangent_of(const Tensor& x);
/** Makes it the tensor's tangent, and where that is a view, its base's there. */
TERCEL_API void set_tangent(const Tensor& x, const Tensor& tangent);
/** The tensor's tangent goes when the level ends, not when the tensor does. */
void drop_tangent_at_exit(const Tensor& x);
/** Keeps the inputs' tangents in the node, until carry_tangents(). */
void remember_tangents(Node& node, Span<const Tensor*> inputs);
/**
 * Gives the outputs of a node that is to be recorded their tangents. False: the node has no other reason to be
 * recorded.
 */
bool carry_tangents(Node& node, Span<Tensor> outs);
}  // namespace detail

}  // namespace tercel
