// Variances and standard deviations, of floating and complex numbers (RuntimeError), of
// which they are real.
//
// `correction` is what is taken off the number of elements in the divisor: 1 for an estimate from a sample, 0 for the
// whole; true and false say the same. NaN where the divisor is not positive and there is nothing to divide. Dimensions
// as in reduce.h.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Mean square distance from the mean, with n - correction in the place of n. */
TERCEL_OP_API(method, out) Tensor var(const Tensor& x, IntSpan dim = {}, double correction = 1, bool keepdim = false);
/** The root of the variance; its gradient is 0 where it is 0. */
TERCEL_OP_API(method, out) Tensor std(const Tensor& x, IntSpan dim = {}, double correction = 1, bool keepdim = false);
/** Both at once. */
struct VarAndMean {
  Tensor var, mean;
};
TERCEL_OP_API(out) VarAndMean var_mean(const Tensor& x, IntSpan dim = {}, double correction = 1, bool keepdim = false);
struct StdAndMean {
  Tensor std, mean;
};
TERCEL_OP_API(out) StdAndMean std_mean(const Tensor& x, IntSpan dim = {}, double correction = 1, bool keepdim = false);

}  // namespace tercel
