// Row-wise AdaGrad: one accumulator for each row of a table.
#pragma once

#include "tercel/autograd/gradient.h"
#include "tercel/core/tensor.h"
#include "tercel/optim/rules.h"

namespace tercel::optim {

/**
 * One step of row-wise AdaGrad, as in FBGEMM and TorchRec (EXACT_ROWWISE_ADAGRAD), in place and without recording:
 * a += mean of the squares of the row's gradient; w -= rate g / (sqrt(a) + epsilon). `weight` [n, ...] and
 * `accumulator`, a number for each of its rows, have contiguous rows and one dtype, float32 or float64; the rows of a
 * row gradient are unique and ascend. RuntimeError for other operands, IndexError for a row out of range. Returns
 * whether every stored value is finite.
 */
TERCEL_API bool apply_row_wise_adagrad(const char* name, const Step<double>& step, const Tensor& weight,
                                       const Tensor& accumulator, const Gradient& gradient);

}  // namespace tercel::optim
