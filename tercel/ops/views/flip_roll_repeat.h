// Elements in other places: mirrored, rotated, repeated. Always copies. Names, defaults and errors are PyTorch's.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {

/** The given dimensions in reverse order. */
TERCEL_OP_API(method, python, out, no_python_out) Tensor flip(const Tensor& x, IntSpan dims);
/** flip() of dimension 1; at least two dimensions. */
TERCEL_OP_API(method, python) Tensor fliplr(const Tensor& x);
/** flip() of dimension 0; at least one dimension. */
TERCEL_OP_API(method, python) Tensor flipud(const Tensor& x);
/**
 * Elements moved on by shifts[i] along dims[i]; what leaves at the end comes in at the start. Without dims there is one
 * shift, along all elements in row-major order.
 */
TERCEL_OP_API(method, python, out, no_python_out) Tensor roll(const Tensor& x, IntSpan shifts, IntSpan dims = {});
/** Turned k times by 90 degrees, from the first of two dimensions towards the second. */
TERCEL_OP_API(method) Tensor rot90(const Tensor& x, int64_t k = 1, IntSpan dims = {0, 1});

/** The tensor side by side repeats[d] times along each dimension; more repeats than dimensions add leading ones. */
TERCEL_OP_API(method, python_method, out, no_python_out) Tensor repeat(const Tensor& x, IntSpan repeats);
/** repeat(); fewer repeats than dimensions leave the leading ones as they are. */
TERCEL_OP_API(method, python) Tensor tile(const Tensor& x, IntSpan dims);
/** Index i as often as repeats[i] (a vector of int32 or int64, not negative) says: [2, 0, 1] gives 0 0 2. */
TERCEL_OP_API(method, python_function, out, no_python_out, keyword = output_size)
Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size = std::nullopt);
/**
 * Each slice of a dimension several times, one after the other: as often for all, or as repeats[i] says. Without a
 * dimension, the elements in row-major order. output_size is the size of the dimension then, if it is known.
 */
TERCEL_OP_API(method, python, out, no_python_out, keyword = output_size)
Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim = std::nullopt,
                         std::optional<int64_t> output_size = std::nullopt);
TERCEL_OP_API(method, python, out, no_python_out, keyword = output_size)
Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim = std::nullopt,
                         std::optional<int64_t> output_size = std::nullopt);

/** Channels (dimension 1) in another order: the first of each group, the second of each ... */
TERCEL_OP_API(python, python_nn) Tensor channel_shuffle(const Tensor& x, int64_t groups);

}  // namespace tercel
