// Memory for time: parts of a graph that are calculated again when backward needs them.
#pragma once

#include <vector>

#include "tercel/core/generator.h"
#include "tercel/core/tensor.h"
#include "tercel/util/callable.h"

namespace tercel {

/** A part of a model: tensors in, tensors out. It must give the same each time it is called with the same. */
using CheckpointedFunction = Callable<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

/**
 * f(inputs), of which only the inputs are kept: backward calls f again, with the random numbers of the first time if
 * `preserve_rng_state`, and differentiates that. Also reaches leaves that f knows by itself, if an input requires a
 * gradient. RuntimeError in grad() and in backward() of given inputs, which would leave such leaves out.
 */
TERCEL_API std::vector<Tensor> checkpoint(CheckpointedFunction f, const std::vector<Tensor>& inputs,
                                          bool preserve_rng_state = true);

}  // namespace tercel
