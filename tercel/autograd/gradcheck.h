// Checks gradients against finite differences.
#pragma once

#include <vector>

#include "tercel/autograd/gradient.h"
#include "tercel/util/callable.h"

namespace tercel {

/** The function to check; called with the inputs, one element of which is perturbed. */
using CheckedFunction = Callable<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

struct GradcheckOptions {
  double eps = 1e-6;   ///< perturbation of an element in either direction
  double atol = 1e-5;  ///< allowed difference, absolute
  double rtol = 1e-3;  ///< and relative to the larger of the two
  /** Checks one random combination of the outputs' elements instead of each of them. */
  bool fast_mode = false;
};

/**
 * Compares backward's gradients with central differences, for every float64 or complex128 input that requires a
 * gradient (of a complex number z = x + iy, d/dx + i d/dy of the real part). RuntimeError "Jacobian mismatch for output
 * 0 with respect to input 0 ..." if they differ, and if no input or output requires a gradient.
 * Returns true.
 */
TERCEL_API bool gradcheck(const CheckedFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {});

/**
 * The same for second derivatives: gradcheck() of the gradients of f, as functions of the inputs and of the gradients
 * of f's outputs, which are `grad_outputs` or random numbers.
 */
TERCEL_API bool gradgradcheck(const CheckedFunction& f, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& grad_outputs = {}, const GradcheckOptions& options = {});

}  // namespace tercel
