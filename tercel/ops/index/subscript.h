// The index expression x[1, 2:, None, ..., mask, [0, 2]].
//
// Note [Indexing]
// Items are applied from the left, each to the next dimension: an integer selects one index and drops the dimension, a
// Slice selects a range, None inserts a dimension of size 1, "..." skips all dimensions that the other items leave, a
// bool inserts a dimension of size 1 or 0. Up to here the result is a view. An integer tensor (negative indices count
// from the end) selects along a dimension; a bool tensor selects where it is true, and indexes as many dimensions as it
// has. Index tensors are broadcast together. Their common shape replaces the dimensions that they index, or comes first
// if those are not adjacent; the result is then a copy. A 0-dimensional integer tensor counts as an integer. These are
// the rules of PyTorch and NumPy, except that only NumPy treats an integer beside a tensor as a tensor.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {

namespace indexing {

/** A new dimension of size 1, or an omitted bound of a Slice. */
inline constexpr std::nullopt_t None = std::nullopt;  // NOLINT(readability-identifier-naming): as users write it

struct EllipsisType {};
/** All remaining dimensions. */
inline constexpr EllipsisType Ellipsis;  // NOLINT(readability-identifier-naming)

/** start:stop:step; the step may be negative, and an omitted bound is the first or last element in its direction. */
struct Slice {
  int64_t start, stop, step;

  constexpr Slice(std::optional<int64_t> first = None, std::optional<int64_t> last = None,
                  std::optional<int64_t> stride = None)
      : start(first.value_or(stride.value_or(1) < 0 ? INT64_MAX : 0)),
        stop(last.value_or(stride.value_or(1) < 0 ? INT64_MIN : INT64_MAX)),
        step(stride.value_or(1)) {}
};

}  // namespace indexing

/** One item of an index. */
class TERCEL_API TensorIndex {
 public:
  enum class Kind : uint8_t { None, Ellipsis, Integer, Boolean, Slice, Tensor };

  TensorIndex(std::nullopt_t) : kind_(Kind::None) {}
  TensorIndex(indexing::EllipsisType) : kind_(Kind::Ellipsis) {}
  /** "..."; ValueError for other strings. */
  TensorIndex(const char* text);
  template <std::integral T>
  requires(!std::same_as<T, bool>) TensorIndex(T index) : kind_(Kind::Integer), integer_(index) {}
  TensorIndex(std::same_as<bool> auto value) : kind_(Kind::Boolean), integer_(value) {}
  TensorIndex(indexing::Slice slice) : kind_(Kind::Slice), slice_(slice) {}
  TensorIndex(Tensor tensor) : kind_(Kind::Tensor), tensor_(std::move(tensor)) {}

  Kind kind() const { return kind_; }
  int64_t integer() const { return integer_; }
  bool boolean() const { return integer_ != 0; }
  const indexing::Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_;
  int64_t integer_ = 0;
  indexing::Slice slice_;
  Tensor tensor_;
};

/** x[items], see Note [Indexing]. IndexError for too many items, indices out of range or shape mismatch. */
TERCEL_OP_API(method, out) Tensor index(const Tensor& x, Span<TensorIndex> items);
/**
 * x[items] = value, broadcast; leading dimensions of size 1 of the value are ignored. The value is converted to x's
 * dtype, unless the items contain an index tensor: then RuntimeError if the dtypes differ.
 */
TERCEL_API const Tensor& set_item(const Tensor& x, Span<TensorIndex> items, const Tensor& value);
TERCEL_API const Tensor& set_item(const Tensor& x, Span<TensorIndex> items, Scalar value);
/**
 * x[items] = values; these have x's dtype (RuntimeError) and broadcast to the shape of x[items]. If an element is
 * indexed several times, the last value wins; with `accumulate`, all are added to it, in the order of their positions.
 * RuntimeError if x overlaps itself, or shares memory with a value or an index.
 */
TERCEL_OP_API(method)
const Tensor& index_put_(const Tensor& x, Span<TensorIndex> items, const Tensor& values, bool accumulate = false);
/** index_put_() on a copy. */
TERCEL_OP_API(method, out)
Tensor index_put(const Tensor& x, Span<TensorIndex> items, const Tensor& values, bool accumulate = false);

}  // namespace tercel
