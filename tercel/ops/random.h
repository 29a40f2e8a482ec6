// Random tensors. Numbers depend on the generator's state and the element's index alone, not on threads.
#pragma once

#include "tercel/core/generator.h"
#include "tercel/core/tensor.h"

namespace tercel {

/** Uniform in [0, 1). */
TERCEL_API Tensor rand(IntSpan sizes, TensorOptions options = {}, Generator& generator = default_generator());
/** Standard normal. */
TERCEL_API Tensor randn(IntSpan sizes, TensorOptions options = {}, Generator& generator = default_generator());
/** Integers in [low, high); int64 unless options say otherwise. */
TERCEL_API Tensor randint(int64_t low, int64_t high, IntSpan sizes, TensorOptions options = kInt64,
                          Generator& generator = default_generator());
/** The numbers 0 to n - 1 in random order, int64. */
TERCEL_API Tensor randperm(int64_t n, Generator& generator = default_generator());

/** Fills with uniform numbers in [low, high). */
TERCEL_API const Tensor& uniform_(const Tensor& x, double low = 0, double high = 1,
                                  Generator& generator = default_generator());
/** Fills with normal numbers. */
TERCEL_API const Tensor& normal_(const Tensor& x, double mean = 0, double stddev = 1,
                                 Generator& generator = default_generator());
/** Fills with ones at the given probability, else zeros. */
TERCEL_API const Tensor& bernoulli_(const Tensor& x, double p = 0.5, Generator& generator = default_generator());

}  // namespace tercel
