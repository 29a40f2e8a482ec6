// Variances and standard deviations of floating or complex numbers (RuntimeError for others); for complex numbers they
// are real.
//
// `correction` is subtracted from the number of elements in the divisor: 1 for an estimate from a sample, 0 for the
// whole population; true and false mean the same. NaN if the divisor is not positive and there is nothing to divide.
// Dimensions as in reduce.h.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Mean squared distance from the mean, with divisor n - correction. */
TERCEL_OP_API(method, out) Tensor var(const Tensor& x, IntSpan dim = {}, double correction = 1, bool keepdim = false);
/** Square root of the variance; its gradient is 0 where it is 0. */
TERCEL_OP_API(method, out) Tensor std(const Tensor& x, IntSpan dim = {}, double correction = 1, bool keepdim = false);
/** A variance or standard deviation, and the mean. */
struct VarAndMean {
  Tensor var, mean;
};
TERCEL_OP_API(out) VarAndMean var_mean(const Tensor& x, IntSpan dim = {}, double correction = 1, bool keepdim = false);
struct StdAndMean {
  Tensor std, mean;
};
TERCEL_OP_API(out) StdAndMean std_mean(const Tensor& x, IntSpan dim = {}, double correction = 1, bool keepdim = false);

}  // namespace tercel
