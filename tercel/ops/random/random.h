// Random tensors. Numbers depend on the generator's state and the element's index alone, not on threads.
#pragma once

#include <optional>

#include "tercel/core/generator.h"
#include "tercel/core/tensor.h"

namespace tercel {

/** Uniform in [0, 1); of a complex number both parts are. */
TERCEL_OP_API(out) Tensor rand(IntSpan sizes, TensorOptions options = {}, Generator& generator = default_generator());
/** Standard normal; of a complex number both parts have variance 1/2. */
TERCEL_OP_API(out) Tensor randn(IntSpan sizes, TensorOptions options = {}, Generator& generator = default_generator());
/** Integers in [low, high); int64 unless options say otherwise. */
TERCEL_OP_API(out)
Tensor randint(int64_t low, int64_t high, IntSpan sizes, TensorOptions options = kInt64,
               Generator& generator = default_generator());
/** Integers in [0, high). */
TERCEL_API Tensor randint(int64_t high, IntSpan sizes, TensorOptions options = kInt64,
                          Generator& generator = default_generator());
/** The numbers 0 to n - 1 in random order; int64 unless options say otherwise. */
TERCEL_API Tensor randperm(int64_t n, Generator& generator = default_generator());
TERCEL_OP_API(out)
Tensor randperm(int64_t n, TensorOptions options, Generator& generator = default_generator());

/** The same with the sizes of x, and its dtype, device and strides as empty_like() has them. */
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
/** Fills with normal numbers; the deviation of a complex number is shared by its parts. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& normal_(const Tensor& x, double mean = 0, double std = 1, Generator& generator = default_generator());
/** Fills with numbers whose logarithms are normal. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& log_normal_(const Tensor& x, double mean = 1, double std = 2, Generator& generator = default_generator());
/** Fills with numbers of density lambd * exp(-lambd * x), none of them 0 for a finite rate. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& exponential_(const Tensor& x, double lambd = 1, Generator& generator = default_generator());
/** Fills with numbers of the Cauchy distribution. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& cauchy_(const Tensor& x, double median = 0, double sigma = 1, Generator& generator = default_generator());
/** Fills with how often one tries, 1 or more, until what succeeds with probability p has succeeded. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& geometric_(const Tensor& x, double p, Generator& generator = default_generator());
/** Fills with ones at the given probability, else zeros. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& bernoulli_(const Tensor& x, double p = 0.5, Generator& generator = default_generator());

/** Fills with integers from 0 to the highest of the dtype; of a floating one, to the end of the range it has all of. */
TERCEL_OP_API(method, python_method, keyword = generator)
const Tensor& random_(const Tensor& x, Generator& generator = default_generator());
/** Fills with integers in [low, high), or from low up to the end that random_(x) has. */
TERCEL_OP_API(method)
const Tensor& random_(const Tensor& x, int64_t low, std::optional<int64_t> high,
                      Generator& generator = default_generator());

}  // namespace tercel
