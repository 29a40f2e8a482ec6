// Sampling from distributions with one parameter per element. Parameters are constants: their gradients are zero.
#pragma once

#include "tercel/core/generator.h"
#include "tercel/core/tensor.h"

namespace tercel {

/** Ones with probabilities p, else zeros; of p's dtype. */
TERCEL_OP_API(method, out) Tensor bernoulli(const Tensor& p, Generator& generator = default_generator());
/** Fills x the same way, with p expanded to its sizes. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& bernoulli_(const Tensor& x, const Tensor& p, Generator& generator = default_generator());

/** Normal numbers with these means and standard deviations, which broadcast; of the first tensor's dtype. */
TERCEL_OP_API(python, out, keyword = generator)
Tensor normal(const Tensor& mean, double std = 1, Generator& generator = default_generator());
TERCEL_OP_API(python, out, keyword = generator)
Tensor normal(double mean, const Tensor& std, Generator& generator = default_generator());
TERCEL_OP_API(python, out, keyword = generator)
Tensor normal(const Tensor& mean, const Tensor& std, Generator& generator = default_generator());

/** Poisson-distributed numbers with the given rates; of rate's dtype. */
TERCEL_OP_API(python, out, no_python_out)
Tensor poisson(const Tensor& input, Generator& generator = default_generator());
/** Binomially distributed numbers: successes among `count` trials of probability p; both are floating and broadcast. */
TERCEL_OP_API(python, out, no_python_out)
Tensor binomial(const Tensor& count, const Tensor& prob, Generator& generator = default_generator());

/**
 * For each row of weights, or for a single vector of them, `samples` indices (int64), each drawn with probability
 * proportional to its weight; without replacement all of them differ.
 */
TERCEL_OP_API(method, out)
Tensor multinomial(const Tensor& weights, int64_t samples, bool replacement = false,
                   Generator& generator = default_generator());

}  // namespace tercel
