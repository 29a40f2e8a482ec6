// Views of some of the elements, and splitting into such views.
#pragma once

#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/** Elements start to start + length - 1 of a dimension. */
TERCEL_OP_API(method, python, cheap, layout_sparse)
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
/** The same with a 0-dimensional integer tensor as start. */
TERCEL_OP_API(method, python, cheap, layout_sparse)
Tensor narrow(const Tensor& x, int64_t dim, const Tensor& start, int64_t length);
/** Selects one index of a dimension, which is dropped. IndexError if it is out of range. */
TERCEL_OP_API(method, python, cheap, layout_sparse) Tensor select(const Tensor& x, int64_t dim, int64_t index);
/**
 * Every step-th element of a dimension from start to before end, with Python's clamping of negative and large bounds. A
 * negative step goes backwards and gives the view a negative stride; start = INT64_MAX is then the last element, and
 * end = INT64_MIN includes element 0.
 */
TERCEL_OP_API(method)
Tensor slice(const Tensor& x, int64_t dim, int64_t start = 0, int64_t end = INT64_MAX, int64_t step = 1);
/** Windows of `size` elements of a dimension, `step` apart; the elements of a window form a new last dimension. */
TERCEL_OP_API(method, python_method, cheap)
Tensor unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step);

// Functions that return several views, which may not be changed in place while gradients are recorded.

/** Pieces of split_size along a dimension; the last may be smaller. */
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> split(const Tensor& x, int64_t split_size, int64_t dim = 0);
/** Pieces of the given sizes, which add up to the size of the dimension. */
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> split(const Tensor& x, IntSpan split_sizes, int64_t dim = 0);
TERCEL_OP_API(method, python, cheap)
std::vector<Tensor> split_with_sizes(const Tensor& x, IntSpan split_sizes, int64_t dim = 0);
/** At most `chunks` pieces of equal size, except for the last: 5 into 4 gives 2, 2 and 1. */
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim = 0);
/** Exactly `sections` pieces; the first ones are larger by one if needed: 7 into 3 gives 3, 2 and 2. */
TERCEL_OP_API(method, python, cheap)
std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t dim = 0);
/** Pieces between the given indices, with slice()'s rules. */
TERCEL_OP_API(method, python, cheap)
std::vector<Tensor> tensor_split(const Tensor& x, IntSpan indices, int64_t dim = 0);
/** Either of the two, given an int64 tensor with zero or one dimensions. */
TERCEL_OP_API(method, python, cheap)
std::vector<Tensor> tensor_split(const Tensor& x, const Tensor& tensor_indices_or_sections, int64_t dim = 0);
/** tensor_split() along dimension 1 (0 for a vector); a number of sections must divide the size. */
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> hsplit(const Tensor& x, int64_t sections);
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> hsplit(const Tensor& x, IntSpan indices);
/** The same along dimension 0. */
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> vsplit(const Tensor& x, int64_t sections);
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> vsplit(const Tensor& x, IntSpan indices);
/** The same along dimension 2. */
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> dsplit(const Tensor& x, int64_t sections);
TERCEL_OP_API(method, python, cheap) std::vector<Tensor> dsplit(const Tensor& x, IntSpan indices);
/** select() of every index of a dimension. */
TERCEL_OP_API(method, python, cheap, layout_sparse) std::vector<Tensor> unbind(const Tensor& x, int64_t dim = 0);

}  // namespace tercel
