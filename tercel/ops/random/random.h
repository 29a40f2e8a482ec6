// Random tensors. Numbers depend only on the generator's state and the element's index, not on threads.
#pragma once

#include <optional>

#include "tercel/core/generator.h"
#include "tercel/core/tensor.h"

namespace tercel {

/** Uniform in [0, 1); for complex numbers, both parts are. */
TERCEL_OP_API(out) Tensor rand(IntSpan sizes, TensorOptions options = {}, Generator& generator = default_generator());
/** Standard normal; for complex numbers, both parts have variance 1/2. */
TERCEL_OP_API(out) Tensor randn(IntSpan sizes, TensorOptions options = {}, Generator& generator = default_generator());
/** Integers in [low, high); int64 unless options say otherwise. */
TERCEL_OP_API(out)
Tensor randint(int64_t low, int64_t high, IntSpan sizes, TensorOptions options = kInt64,
               Generator& generator = default_generator());
/** Integers in [0, high). */
TERCEL_API Tensor randint(int64_t high, IntSpan sizes, TensorOptions options = kInt64,
                          Generator& generator = default_generator());
/** Random permutation of 0 to n - 1; int64 unless options say otherwise. */
TERCEL_API Tensor randperm(int64_t n, Generator& generator = default_generator());
TERCEL_OP_API(out)
Tensor randperm(int64_t n, TensorOptions options, Generator& generator = default_generator());

/** The same with x's sizes, and dtype, device and strides as in empty_like(). */
TERCEL_API Tensor rand_like(const Tensor& x, MemoryFormat format = MemoryFormat::Preserve,
                            Generator& generator = default_generator());
TERCEL_API Tensor rand_like(const Tensor& x, TensorOptions options, MemoryFormat format = MemoryFormat::Preserve,
                            Generator& generator = default_generator());
TERCEL_API Tensor randn_like(const Tensor& x, MemoryFormat format = MemoryFormat::Preserve,
                             Generator& generator = default_generator());
TERCEL_API Tensor randn_like(const Tensor& x, TensorOptions options, MemoryFormat format = MemoryFormat::Preserve,
                             Generator& generator = default_generator());
TERCEL_API Tensor randint_like(const Tensor& x, int64_t high, MemoryFormat format = MemoryFormat::Preserve,
                               Generator& generator = default_generator());
TERCEL_API Tensor randint_like(const Tensor& x, int64_t high, TensorOptions options,
                               MemoryFormat format = MemoryFormat::Preserve,
                               Generator& generator = default_generator());
TERCEL_API Tensor randint_like(const Tensor& x, int64_t low, int64_t high, MemoryFormat format = MemoryFormat::Preserve,
                               Generator& generator = default_generator());
TERCEL_API Tensor randint_like(const Tensor& x, int64_t low, int64_t high, TensorOptions options,
                               MemoryFormat format = MemoryFormat::Preserve,
                               Generator& generator = default_generator());

/** Fills with uniform numbers in [from, to). */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& uniform_(const Tensor& x, double from = 0, double to = 1, Generator& generator = default_generator());
/** Fills with normal numbers; for complex numbers, each part has half of the variance. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& normal_(const Tensor& x, double mean = 0, double std = 1, Generator& generator = default_generator());
/** Fills with log-normal numbers. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& log_normal_(const Tensor& x, double mean = 1, double std = 2, Generator& generator = default_generator());
/** Fills with exponentially distributed numbers, density lambd * exp(-lambd * x); never 0 for a finite rate. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& exponential_(const Tensor& x, double lambd = 1, Generator& generator = default_generator());
/** Fills with Cauchy-distributed numbers. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& cauchy_(const Tensor& x, double median = 0, double sigma = 1, Generator& generator = default_generator());
/** Fills with geometrically distributed numbers: attempts (1 or more) until a first success of probability p. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& geometric_(const Tensor& x, double p, Generator& generator = default_generator());
/** Fills with ones with the given probability, else zeros. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& bernoulli_(const Tensor& x, double p = 0.5, Generator& generator = default_generator());

/** Fills with integers from 0 to the dtype's maximum, or for floating dtypes, to the end of its exact integers. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& random_(const Tensor& x, Generator& generator = default_generator());
/** Fills with integers in [low, high), or from low to the upper end of random_(x). */
TERCEL_OP_API(method)
const Tensor& random_(const Tensor& x, int64_t low, std::optional<int64_t> high,
                      Generator& generator = default_generator());

}  // namespace tercel
