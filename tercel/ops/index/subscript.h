// What stands between brackets: x[1, 2:, None, ..., mask, [0, 2]].
//
// Note [Indexing]
// Items are applied from the left, each to the next dimension: an integer picks one index and drops the dimension, a
// Slice takes a part, None puts in a dimension of size 1, "..." passes over as many dimensions as are left, a bool puts
// in a dimension of size 1 or 0. Up to here the result is a view. A tensor of integers (negative ones count from the
// end) picks along a dimension, a bool tensor picks where it is true and stands for as many dimensions as it has.
// Tensors are broadcast together, and their common shape takes the place of the dimensions that they index, or comes
// first if those are not next to each other; the result is then a copy. A tensor of integers without dimensions is an
// integer. These are the rules of PyTorch and NumPy; only NumPy's counts an integer beside a tensor as a tensor.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {

namespace indexing {

/** A new dimension of size 1, or an absent bound of a Slice. */
inline constexpr std::nullopt_t None = std::nullopt;  // NOLINT(readability-identifier-naming): as users write it

struct EllipsisType {};
/** All dimensions that are left. */
inline constexpr EllipsisType Ellipsis;  // NOLINT(readability-identifier-naming)

/** start:stop:step; a step may be negative, and an absent bound is the end that the step comes from or goes to. */
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
  /** "..."; ValueError for another text. */
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

/** x[items], see Note [Indexing]. IndexError for too many items, an index out of range, shapes that do not fit. */
TERCEL_OP_API(method, out) Tensor index(const Tensor& x, Span<TensorIndex> items);
/**
 * x[items] = value, broadcast; leading dimensions of size 1 of the value do not count. It is converted to x's dtype,
 * but where tensors of indices stand among the items: then RuntimeError unless it has that dtype.
 */
TERCEL_API const Tensor& set_item(const Tensor& x, Span<TensorIndex> items, const Tensor& value);
TERCEL_API const Tensor& set_item(const Tensor& x, Span<TensorIndex> items, Scalar value);
/**
 * x[items] = values, which are of x's dtype (RuntimeError) and broadcast to the shape of x[items]. Where an element is
 * named several times, its last value stands; with `accumulate`, all are added to it, in the order of their positions.
 * RuntimeError if x holds an element twice, or shares memory with a value or an index.
 */
TERCEL_OP_API(method)
const Tensor& index_put_(const Tensor& x, Span<TensorIndex> items, const Tensor& values, bool accumulate = false);
/** index_put_() on a copy. */
TERCEL_OP_API(method, out)
Tensor index_put(const Tensor& x, Span<TensorIndex> items, const Tensor& values, bool accumulate = false);

}  // namespace tercel
