// Views of a part of the elements, and of parts side by side.
#pragma once

#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/** Elements start to start + length of a dimension. */
TERCEL_OP_API(method, python, cheap) Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
/** The same with a start that is an integer tensor without dimensions. */
TERCEL_OP_API(method, python, cheap) Tensor narrow(const Tensor& x, int64_t dim, const Tensor& start, int64_t length);
/** One index of a dimension, which goes. IndexError when it is out of range. */
TERCEL_OP_API(method, python, cheap) Tensor select(const Tensor& x, int64_t dim, int64_t index);
/**
 * Every step-th element of a dimension from start to before end, with Python's clamping of negative and large bounds.
 * A negative step runs backwards (start defaults to the last then, with start = INT64_MAX), and the view has a negative
 * stride: to reach element 0, end is INT64_MIN.
 */
TERCEL_OP_API(method)
Tensor slice(const Tensor& x, int64_t dim, int64_t start = 0, int64_t end = INT64_MAX, int64_t step = 1);
/** Windows of `size` elements of a dimension, `step` apart; their elements are a new last dimension. */
TERCEL_OP_API(method, python_method, cheap)
Tensor unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step);

// Several views at once: none of them may be changed in place while gradients are recorded.

/** Pieces of split_size along a dimension, the last perhaps smaller. */
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> split(const Tensor& x, int64_t split_size, int64_t dim = 0);
/** Pieces of the given sizes, which add up to the dimension's. */
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> split(const Tensor& x, IntSpan split_sizes, int64_t dim = 0);
TERCEL_OP_API(method, python, cheap)
std::vector<Tensor> split_with_sizes(const Tensor& x, IntSpan split_sizes, int64_t dim = 0);
/** At most that many pieces, of one size but for the last: 5 in 4 are 2, 2 and 1. */
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim = 0);
/** Exactly that many pieces, the first ones larger by one where it does not come out even: 7 in 3 are 3, 2 and 2. */
TERCEL_OP_API(method, python, cheap)
std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t dim = 0);
/** Pieces between the given indices, by slice()'s rules. */
TERCEL_OP_API(method, python, cheap)
std::vector<Tensor> tensor_split(const Tensor& x, IntSpan indices, int64_t dim = 0);
/** One of the two, by an int64 tensor of no or one dimension. */
TERCEL_OP_API(method, python, cheap)
std::vector<Tensor> tensor_split(const Tensor& x, const Tensor& tensor_indices_or_sections, int64_t dim = 0);
/** tensor_split() along dimension 1 (0 of a vector), where a number of sections must divide the size. */
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> hsplit(const Tensor& x, int64_t sections);
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> hsplit(const Tensor& x, IntSpan indices);
/** The same along dimension 0. */
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> vsplit(const Tensor& x, int64_t sections);
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> vsplit(const Tensor& x, IntSpan indices);
/** The same along dimension 2. */
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> dsplit(const Tensor& x, int64_t sections);
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> dsplit(const Tensor& x, IntSpan indices);
/** Every index of a dimension, as select() gives it. */
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> unbind(const Tensor& x, int64_t dim = 0);

}  // namespace tercel
