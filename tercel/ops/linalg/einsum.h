// Sums of products in Einstein's notation.
#pragma once

#include <string_view>
#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Sums of products of operands whose dimensions are named by letters: "bij,bjk->bik". Letters that the output does not
 * name are summed over; a letter repeated in one operand takes its diagonal; "..." stands for dimensions that are
 * broadcast. Without "->" the output is the ellipsis and then, in alphabetical order, the letters that appear once.
 * A dimension of size 1 goes with any size. More than two operands are multiplied pair by pair, in the cheapest order
 * for up to eight of them, else in a greedy one. RuntimeError with PyTorch's sentences.
 */
TERCEL_OP_API(python_hidden, autocast_lower) Tensor einsum(std::string_view equation, Span<Tensor> operands);

/** In a list of subscripts: the ellipsis. */
constexpr int64_t kEllipsis = -1;
/** The same with numbers in [0, 52) in the place of letters: one list for each operand and, perhaps, for the output. */
TERCEL_OP_API(autocast_lower) Tensor einsum(Span<Tensor> operands, Span<std::vector<int64_t>> subscripts);
TERCEL_OP_API(autocast_lower)
Tensor einsum(Span<Tensor> operands, Span<std::vector<int64_t>> subscripts, Span<int64_t> output);

}  // namespace tercel
