// `out` variants: functions shared by all ops that write to a given tensor, by PyTorch's rules.
//
// Note [Out variants]
// name_out(out, ...) resizes `out` to the result's sizes (with a warning if it had elements and different sizes), and
// returns it. It keeps the dtype, the strides if the sizes agree, and the storage if that is large enough. RuntimeError
// for a dtype that the result cannot be cast to, for an `out` whose elements overlap, and, while gradients are on, if
// `out` or an operand requires one: nothing is recorded. Several results take the first arguments, in their order.
// After an error `out` is unchanged; Note [Where out may lie] covers overlap with operands. Elementwise ops and cat()
// write directly to an `out` of the right sizes; other ops (out_variants.h) copy a new result, so that they may read
// memory of `out`.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/ops/common/values_and_indices.h"

namespace tercel {

/** While they are recorded: RuntimeError if x, `out` or an operand, requires a gradient, NotImplementedError if it
 * carries a tangent. */
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
/** The overlap of `out` with operands that the operation refuses; null: none. See Note [Where out may lie]. */
TERCEL_API const OutRule* out_rule(std::string_view op);
/** Refuses tensors to write to that share memory with an argument, as far as the operation does (RuntimeError). */
TERCEL_API void check_out_apart(std::string_view op, Span<Tensor> out, Span<OutInput> arguments);

/** Copies a result to `out`; see Note [Out variants]. */
TERCEL_API const Tensor& put_out(const char* op, const Tensor& out, const Tensor& result);
/** The same for values and indices, whose dtypes the tensors must have (RuntimeError). */
TERCEL_API ValuesAndIndices put_out(const char* op, const Tensor& values, const Tensor& indices,
                                    const ValuesAndIndices& result);
/** The same for several results and the same number of tensors (RuntimeError), all checked before one is written
 * to. */
TERCEL_API std::vector<Tensor> put_out(const char* op, Span<Tensor> out, Span<Tensor> results);
/**
 * put_out() by the rules of linear algebra: most ops, named as in Python, require the result's dtype. `part` is the
 * name of one of several results in errors.
 */
TERCEL_API const Tensor& put_linalg_out(const char* op, const Tensor& out, const Tensor& result);
TERCEL_API void put_linalg_out(const char* op, Span<Tensor> out, Span<Tensor> results, Span<const char*> parts);
/** The check of put_linalg_out() alone. */
TERCEL_API void check_linalg_out(const char* op, const Tensor& out, const Tensor& result, const char* part);

/** The compute dtype: the given one, else that of `out`, if there is one. RuntimeError if both are given and differ. */
TERCEL_API ScalarType dtype_for_out(ScalarType given, const Tensor& out);

}  // namespace tercel
