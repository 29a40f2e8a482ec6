// Samples of distributions whose parameters are tensors, an element for each. They are constants: gradients are zero.
#pragma once

#include "tercel/core/generator.h"
#include "tercel/core/tensor.h"

namespace tercel {

/** Ones at the probabilities p, else zeros; of p's dtype. */
TERCEL_OP_API(method, out) Tensor bernoulli(const Tensor& p, Generator& generator = default_generator());
/** Fills x in the same way, with p expanded to its sizes. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& bernoulli_(const Tensor& x, const Tensor& p, Generator& generator = default_generator());

/** Normal numbers of these means and deviations, which broadcast; of the first tensor's dtype. */
TERCEL_OP_API(python, out, keyword = generator)
Tensor normal(const Tensor& mean, double std = 1, Generator& generator = default_generator());
TERCEL_OP_API(python, out, keyword = generator)
Tensor normal(double mean, const Tensor& std, Generator& generator = default_generator());
TERCEL_OP_API(python, out, keyword = generator)
Tensor normal(const Tensor& mean, const Tensor& std, Generator& generator = default_generator());

/** How often what happens `rate` times on average happens; of rate's dtype. */
TERCEL_OP_API(python, out, no_python_out)
Tensor poisson(const Tensor& input, Generator& generator = default_generator());
/** How many of `count` attempts succeed, each with probability p; both floating, they broadcast. */
TERCEL_OP_API(python, out, no_python_out)
Tensor binomial(const Tensor& count, const Tensor& prob, Generator& generator = default_generator());

/**
 * For each row of weights, or for a vector of them, `samples` indices, int64: each drawn with a probability in
 * proportion to its weight, all of them different unless with replacement.
 */
TERCEL_OP_API(method, out)
Tensor multinomial(const Tensor& weights, int64_t samples, bool replacement = false,
                   Generator& generator = default_generator());

}  // namespace tercel
