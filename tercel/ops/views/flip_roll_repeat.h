// Flipping, rotating and repeating elements. All return copies. Names, defaults and errors are PyTorch's.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {

/** Reverses the order of elements along the given dimensions. */
TERCEL_OP_API(method, python, out, no_python_out) Tensor flip(const Tensor& x, IntSpan dims);
/** flip() along dimension 1; requires at least two dimensions. */
TERCEL_OP_API(method, python) Tensor fliplr(const Tensor& x);
/** flip() along dimension 0; requires at least one dimension. */
TERCEL_OP_API(method, python) Tensor flipud(const Tensor& x);
/**
 * Shifts elements by shifts[i] along dims[i]; elements shifted past the end reappear at the start. Without dims there
 * is a single shift, along all elements in row-major order.
 */
TERCEL_OP_API(method, python, out, no_python_out) Tensor roll(const Tensor& x, IntSpan shifts, IntSpan dims = {});
/** Rotates k times by 90 degrees, from the first of two dimensions towards the second. */
TERCEL_OP_API(method) Tensor rot90(const Tensor& x, int64_t k = 1, IntSpan dims = {0, 1});

/** Repeats the tensor repeats[d] times along each dimension; more repeats than dimensions add leading ones. */
TERCEL_OP_API(method, python_method, out, no_python_out) Tensor repeat(const Tensor& x, IntSpan repeats);
/** Like repeat(); fewer repeats than dimensions leave the leading dimensions unchanged. */
TERCEL_OP_API(method, python) Tensor tile(const Tensor& x, IntSpan dims);
/** Index i, repeats[i] times (a vector of int32 or int64, not negative): [2, 0, 1] gives 0 0 2. */
TERCEL_OP_API(method, python_function, out, no_python_out, keyword = output_size)
Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size = std::nullopt);
/**
 * Repeats each slice of a dimension, all the same number of times or slice i repeats[i] times. Without a dimension, the
 * elements in row-major order. output_size is the resulting size of the dimension, if known.
 */
TERCEL_OP_API(method, python, out, no_python_out, keyword = output_size)
Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim = std::nullopt,
                         std::optional<int64_t> output_size = std::nullopt);
TERCEL_OP_API(method, python, out, no_python_out, keyword = output_size)
Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim = std::nullopt,
                         std::optional<int64_t> output_size = std::nullopt);

/** Interleaves channels (dimension 1): the first of each group, the second of each group, ... */
TERCEL_OP_API(python, python_nn) Tensor channel_shuffle(const Tensor& x, int64_t groups);

}  // namespace tercel
