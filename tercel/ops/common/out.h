// Results that go into a tensor of the caller's: what all variants with an `out` have in common, by PyTorch's rules.
//
// Note [Out variants]
// name_out(out, ...) gives `out` the result's sizes (with a warning, if it had elements and other ones), keeps its
// dtype, strides where the sizes agree, and storage where that is large enough, and returns it. RuntimeError for a
// dtype that the result cannot be cast to, for an `out` whose elements overlap, and, while gradients are on, where
// `out` or an operand requires one: nothing is recorded. Several results have as many tensors in front, in their order.
// An `out` that cannot take the result stays as it was; where in memory it may lie is another note. Elementwise ops and
// cat() write straight into one that has the sizes; otherwise (out_variants.h) a fresh result is copied, so that ops
// may read what they write to.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/ops/common/values_and_indices.h"

namespace tercel {

/** RuntimeError where x, `out` or what goes into it, requires a gradient, and NotImplementedError where it carries a
 * tangent, while these are recorded. */
TERCEL_API void check_out_gradients(const char* op, const Tensor& x);
/** check_out_gradients(), then gives `out` these sizes. */
TERCEL_API void prepare_out(const char* op, const Tensor& out, IntSpan sizes);

/** An argument of an op, for check_out_apart(): the tensors that it is, if any. */
class OutInput {
 public:
  constexpr OutInput() = default;
  OutInput(const Tensor& tensor) : tensors_(&tensor, 1) {}
  OutInput(const std::optional<Tensor>& tensor) : tensors_(tensor ? &*tensor : nullptr, tensor ? 1 : 0) {}
  OutInput(Span<Tensor> tensors) : tensors_(tensors) {}
  /** Anything else. */
  template <class T>
  constexpr OutInput(const T&) {}

  Span<Tensor> tensors() const { return tensors_; }

 private:
  Span<Tensor> tensors_;
};
struct OutRule;
/** What the operation refuses of the memory of `out`; null: nothing. See Note [Where out may lie]. */
TERCEL_API const OutRule* out_rule(std::string_view op);
/** Refuses tensors to write to that share memory with an argument, as far as the operation does (RuntimeError). */
TERCEL_API void check_out_apart(std::string_view op, Span<Tensor> out, Span<OutInput> arguments);

/** Puts a finished result into `out`; see Note [Out variants]. */
TERCEL_API const Tensor& put_out(const char* op, const Tensor& out, const Tensor& result);
/** The same for the results of a search, whose dtypes `values` and `indices` must have (RuntimeError). */
TERCEL_API ValuesAndIndices put_out(const char* op, const Tensor& values, const Tensor& indices,
                                    const ValuesAndIndices& result);
/** The same for several results, into as many tensors (RuntimeError), all of which are checked before one is written
 * to. */
TERCEL_API std::vector<Tensor> put_out(const char* op, Span<Tensor> out, Span<Tensor> results);
/**
 * put_out() by the rules of linear algebra: most ops, named as in Python, ask for the result's very dtype. `part` is
 * what the error calls one of several results.
 */
TERCEL_API const Tensor& put_linalg_out(const char* op, const Tensor& out, const Tensor& result);
TERCEL_API void put_linalg_out(const char* op, Span<Tensor> out, Span<Tensor> results, Span<const char*> parts);
/** The check of put_linalg_out() alone. */
TERCEL_API void check_linalg_out(const char* op, const Tensor& out, const Tensor& result, const char* part);

/** The dtype to calculate in: the given one, else that of `out`, if there is one. RuntimeError for two that differ. */
TERCEL_API ScalarType dtype_for_out(ScalarType given, const Tensor& out);

}  // namespace tercel
