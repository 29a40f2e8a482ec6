// Initial values of parameters, by HugeCTR's formulas.
#pragma once

#include <cstdint>

#include "tercel/core/generator.h"
#include "tercel/core/tensor.h"

namespace tercel::nn {

/** Distribution of a parameter's initial values, with parameters computed from fan-in and fan-out. */
struct Init {
  enum class Kind : uint8_t { Zero, Constant, Uniform, Normal };
  Kind kind = Kind::Zero;
  double a = 0;  ///< Constant: the value; Uniform: low; Normal: mean
  double b = 0;  ///< Uniform: high; Normal: standard deviation

  static Init zero() { return {}; }
  static Init constant(double value) { return {Kind::Constant, value, 0}; }
  static Init uniform(double bound) { return {Kind::Uniform, -bound, bound}; }
  static Init normal(double stddev) { return {Kind::Normal, 0, stddev}; }
  /** Uniform with variance 1 / max(1, (fan_in + fan_out) / 2), that is in +-sqrt(6 / (fan_in + fan_out)). */
  TERCEL_API static Init xavier_uniform(int64_t fan_in, int64_t fan_out);
  /** Normal with standard deviation sqrt(1 / max(1, (fan_in + fan_out) / 2)) / 0.8796. */
  TERCEL_API static Init xavier_normal(int64_t fan_in, int64_t fan_out);
};

/** Fills x, whose elements are floating; the numbers depend neither on threads nor on float32 or float64. */
TERCEL_API void initialize(const Tensor& x, const Init& init, Generator& generator);

}  // namespace tercel::nn
