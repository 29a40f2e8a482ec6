// `out` variants of data-movement ops and of factories: Note [Out variants] in out.h.
//
// name_out(out, ...) takes the arguments of name(...); factories use the dtype of `out`.
#pragma once

#include "tercel/ops/common/out_macros.h"
#include "tercel/ops/elementwise/pointwise.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/index/nonzero.h"
#include "tercel/ops/index/scatter.h"
#include "tercel/ops/index/subscript.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/random/sampling.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/diagonals.h"
#include "tercel/ops/views/flip_roll_repeat.h"
#include "tercel/ops/views/view_copies.h"
#include "tercel/ops/views/view_scatter.h"

namespace tercel {

// clang-format off
/** Indexing. */
TERCEL_DEFINE_APART_OUT(gather, (const Tensor& x, int64_t dim, const Tensor& index), (x, dim, index))
TERCEL_DEFINE_APART_OUT(index_add, (const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1), (x, dim, index, source, alpha))
TERCEL_DEFINE_APART_OUT(index_copy, (const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source), (x, dim, index, source))
TERCEL_DEFINE_APART_OUT(index_fill, (const Tensor& x, int64_t dim, const Tensor& index, Scalar value), (x, dim, index, value))
TERCEL_DEFINE_APART_OUT(index_fill, (const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value), (x, dim, index, value))
TERCEL_DEFINE_APART_OUT(index_reduce, (const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, ScatterReduction reduction, bool include_self = true), (x, dim, index, source, reduction, include_self))
TERCEL_DEFINE_APART_OUT(index_select, (const Tensor& x, int64_t dim, const Tensor& index), (x, dim, index))
TERCEL_DEFINE_OUT(masked_fill, (const Tensor& x, const Tensor& mask, const Tensor& value), (x, mask, value))
TERCEL_DEFINE_OUT(masked_fill, (const Tensor& x, const Tensor& mask, Scalar value), (x, mask, value))
TERCEL_DEFINE_OUT(masked_scatter, (const Tensor& x, const Tensor& mask, const Tensor& source), (x, mask, source))
TERCEL_DEFINE_APART_OUT(masked_select, (const Tensor& x, const Tensor& mask), (x, mask))
TERCEL_DEFINE_APART_OUT(nonzero, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(put, (const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate = false), (x, index, source, accumulate))
TERCEL_DEFINE_APART_OUT(scatter, (const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source), (x, dim, index, source))
TERCEL_DEFINE_APART_OUT(scatter, (const Tensor& x, int64_t dim, const Tensor& index, Scalar value), (x, dim, index, value))
TERCEL_DEFINE_APART_OUT(scatter_add, (const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source), (x, dim, index, source))
TERCEL_DEFINE_APART_OUT(scatter_reduce, (const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, ScatterReduction reduction, bool include_self = true), (x, dim, index, source, reduction, include_self))
TERCEL_DEFINE_APART_OUT(take, (const Tensor& x, const Tensor& index), (x, index))
TERCEL_DEFINE_APART_OUT(take_along_dim, (const Tensor& x, const Tensor& indices, int64_t dim), (x, indices, dim))
TERCEL_DEFINE_APART_OUT(take_along_dim, (const Tensor& x, const Tensor& indices), (x, indices))
TERCEL_DEFINE_OUT(index, (const Tensor& x, Span<TensorIndex> items), (x, items))
TERCEL_DEFINE_OUT(index_put, (const Tensor& x, Span<TensorIndex> items, const Tensor& values, bool accumulate = false), (x, items, values, accumulate))

/** Concatenation and rearrangement. */
TERCEL_DEFINE_APART_OUT(column_stack, (Span<Tensor> tensors), (tensors))
TERCEL_DEFINE_APART_OUT(concat, (Span<Tensor> tensors, int64_t dim = 0), (tensors, dim))
TERCEL_DEFINE_APART_OUT(concatenate, (Span<Tensor> tensors, int64_t dim = 0), (tensors, dim))
TERCEL_DEFINE_APART_OUT(dstack, (Span<Tensor> tensors), (tensors))
TERCEL_DEFINE_APART_OUT(hstack, (Span<Tensor> tensors), (tensors))
TERCEL_DEFINE_APART_OUT(row_stack, (Span<Tensor> tensors), (tensors))
TERCEL_DEFINE_APART_OUT(stack, (Span<Tensor> tensors, int64_t dim = 0), (tensors, dim))
TERCEL_DEFINE_APART_OUT(vstack, (Span<Tensor> tensors), (tensors))
TERCEL_DEFINE_OUT(diag, (const Tensor& x, int64_t diagonal = 0), (x, diagonal))
TERCEL_DEFINE_OUT(diag_embed, (const Tensor& x, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1), (x, offset, dim1, dim2))
TERCEL_DEFINE_OUT(diagonal_scatter, (const Tensor& x, const Tensor& src, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1), (x, src, offset, dim1, dim2))
TERCEL_DEFINE_OUT(select_scatter, (const Tensor& x, const Tensor& src, int64_t dim, int64_t index), (x, src, dim, index))
TERCEL_DEFINE_OUT(slice_scatter, (const Tensor& x, const Tensor& src, int64_t dim = 0, int64_t start = 0, int64_t end = INT64_MAX, int64_t step = 1), (x, src, dim, start, end, step))
TERCEL_DEFINE_OUT(as_strided_scatter, (const Tensor& x, const Tensor& src, IntSpan sizes, IntSpan strides, std::optional<int64_t> storage_offset = {}), (x, src, sizes, strides, storage_offset))
TERCEL_DEFINE_OUT(flip, (const Tensor& x, IntSpan dims), (x, dims))
TERCEL_DEFINE_OUT(roll, (const Tensor& x, IntSpan shifts, IntSpan dims = {}), (x, shifts, dims))
TERCEL_DEFINE_OUT(repeat, (const Tensor& x, IntSpan repeats), (x, repeats))
TERCEL_DEFINE_OUT(repeat_interleave, (const Tensor& repeats, std::optional<int64_t> output_size = {}), (repeats, output_size))
TERCEL_DEFINE_OUT(repeat_interleave, (const Tensor& x, int64_t repeats, std::optional<int64_t> dim = {}, std::optional<int64_t> output_size = {}), (x, repeats, dim, output_size))
TERCEL_DEFINE_OUT(repeat_interleave, (const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim = {}, std::optional<int64_t> output_size = {}), (x, repeats, dim, output_size))

/** Copies of views. */
TERCEL_DEFINE_OUT(alias_copy, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(as_strided_copy, (const Tensor& x, IntSpan sizes, IntSpan strides, std::optional<int64_t> storage_offset = {}), (x, sizes, strides, storage_offset))
TERCEL_DEFINE_OUT(detach_copy, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(diagonal_copy, (const Tensor& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1), (x, offset, dim1, dim2))
TERCEL_DEFINE_OUT(expand_copy, (const Tensor& x, IntSpan sizes), (x, sizes))
TERCEL_DEFINE_OUT(narrow_copy, (const Tensor& x, int64_t dim, int64_t start, int64_t length), (x, dim, start, length))
TERCEL_DEFINE_OUT(permute_copy, (const Tensor& x, IntSpan dims), (x, dims))
TERCEL_DEFINE_OUT(select_copy, (const Tensor& x, int64_t dim, int64_t index), (x, dim, index))
TERCEL_DEFINE_OUT(slice_copy, (const Tensor& x, int64_t dim = 0, int64_t start = 0, int64_t end = INT64_MAX, int64_t step = 1), (x, dim, start, end, step))
TERCEL_DEFINE_OUT(squeeze_copy, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(squeeze_copy, (const Tensor& x, int64_t dim), (x, dim))
TERCEL_DEFINE_OUT(t_copy, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(transpose_copy, (const Tensor& x, int64_t dim0, int64_t dim1), (x, dim0, dim1))
TERCEL_DEFINE_OUT(unfold_copy, (const Tensor& x, int64_t dim, int64_t size, int64_t step), (x, dim, size, step))
TERCEL_DEFINE_OUT(unsqueeze_copy, (const Tensor& x, int64_t dim), (x, dim))
TERCEL_DEFINE_OUT(view_copy, (const Tensor& x, IntSpan sizes), (x, sizes))

/** Factories, with the dtype of `out`. */
TERCEL_DEFINE_OUT(arange, (Scalar end), (0, end, 1, out.dtype()))
TERCEL_DEFINE_OUT(arange, (Scalar start, Scalar end, Scalar step = 1), (start, end, step, out.dtype()))
TERCEL_DEFINE_OUT(range, (Scalar start, Scalar end, Scalar step = 1), (start, end, step, out.dtype()))
TERCEL_DEFINE_OUT(linspace, (Scalar start, Scalar end, int64_t steps), (start, end, steps, out.dtype()))
TERCEL_DEFINE_OUT(logspace, (Scalar start, Scalar end, int64_t steps, double base = 10), (start, end, steps, base, out.dtype()))
TERCEL_DEFINE_OUT(eye, (int64_t n, int64_t m = -1), (n, m, out.dtype()))
TERCEL_DEFINE_OUT(full, (IntSpan sizes, Scalar value), (sizes, value, out.dtype()))
TERCEL_DEFINE_OUT(ones, (IntSpan sizes), (sizes, out.dtype()))
TERCEL_DEFINE_OUT(zeros, (IntSpan sizes), (sizes, out.dtype()))

/** Random numbers, with the dtype of `out`. */
TERCEL_DEFINE_OUT(rand, (IntSpan sizes, Generator& generator = default_generator()), (sizes, out.dtype(), generator))
TERCEL_DEFINE_OUT(randn, (IntSpan sizes, Generator& generator = default_generator()), (sizes, out.dtype(), generator))
TERCEL_DEFINE_OUT(randint, (int64_t low, int64_t high, IntSpan sizes, Generator& generator = default_generator()), (low, high, sizes, out.dtype(), generator))
TERCEL_DEFINE_OUT(randperm, (int64_t n, Generator& generator = default_generator()), (n, out.dtype(), generator))
TERCEL_DEFINE_OUT(bernoulli, (const Tensor& p, Generator& generator = default_generator()), (p, generator))
TERCEL_DEFINE_OUT(multinomial, (const Tensor& weights, int64_t samples, bool replacement = false, Generator& generator = default_generator()), (weights, samples, replacement, generator))
TERCEL_DEFINE_OUT(normal, (const Tensor& mean, double stddev = 1, Generator& generator = default_generator()), (mean, stddev, generator))
TERCEL_DEFINE_OUT(normal, (double mean, const Tensor& stddev, Generator& generator = default_generator()), (mean, stddev, generator))
TERCEL_DEFINE_OUT(normal, (const Tensor& mean, const Tensor& stddev, Generator& generator = default_generator()), (mean, stddev, generator))
TERCEL_DEFINE_OUT(poisson, (const Tensor& rate, Generator& generator = default_generator()), (rate, generator))
TERCEL_DEFINE_OUT(binomial, (const Tensor& count, const Tensor& p, Generator& generator = default_generator()), (count, p, generator))

/** Ops of a list of results. */
TERCEL_DEFINE_LIST_OUT(split_copy, (const Tensor& x, int64_t split_size, int64_t dim = 0), (x, split_size, dim))
TERCEL_DEFINE_LIST_OUT(split_copy, (const Tensor& x, IntSpan sizes, int64_t dim = 0), (x, sizes, dim))
TERCEL_DEFINE_LIST_OUT(split_with_sizes_copy, (const Tensor& x, IntSpan split_sizes, int64_t dim = 0), (x, split_sizes, dim))
TERCEL_DEFINE_LIST_OUT(unbind_copy, (const Tensor& x, int64_t dim = 0), (x, dim))
// clang-format on

/** `out` with these sizes; new elements are not initialised. */
inline const Tensor& empty_out(const Tensor& out, IntSpan sizes) {
  prepare_out("empty", out, sizes);
  return out;
}

}  // namespace tercel
