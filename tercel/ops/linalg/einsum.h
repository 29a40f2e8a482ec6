// Einstein summation.
#pragma once

#include <string_view>
#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Sums of products of operands whose dimensions are labelled by letters: "bij,bjk->bik". Letters missing in the output
 * are summed over; a letter repeated in one operand takes its diagonal; "..." stands for dimensions that are broadcast.
 * Without "->" the output is the ellipsis and then, in alphabetical order, the letters that appear once. A dimension of
 * size 1 broadcasts. More than two operands are multiplied pairwise, in the cheapest order for up to eight of them,
 * else in a greedy order. RuntimeError with PyTorch's messages.
 */
TERCEL_OP_API(python_hidden, autocast_lower) Tensor einsum(std::string_view equation, Span<Tensor> operands);

/** The ellipsis in a list of subscripts. */
constexpr int64_t kEllipsis = -1;
/** The same with numbers in [0, 52) instead of letters: one list per operand and, optionally, one for the output. */
TERCEL_OP_API(autocast_lower) Tensor einsum(Span<Tensor> operands, Span<std::vector<int64_t>> subscripts);
TERCEL_OP_API(autocast_lower)
Tensor einsum(Span<Tensor> operands, Span<std::vector<int64_t>> subscripts, Span<int64_t> output);

}  // namespace tercel
