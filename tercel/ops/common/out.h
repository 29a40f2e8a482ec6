// Functions shared by all `out` variants, which write to a given tensor by PyTorch's rules.
//
// Note [Out variants]
// name_out(out, ...) resizes `out` to the result's sizes (with a warning if it had elements and different sizes) and
// returns it. The dtype is kept, the strides if the sizes agree, and the storage if it is large enough. RuntimeError if
// the result cannot be cast to the dtype, if `out` overlaps itself, and, while gradients are enabled, if `out` or an
// operand requires one: nothing is recorded. Ops with several results take that many outputs first, in order. After an
// error `out` is unchanged; Note [Overlap with out] covers overlap with operands. Elementwise ops and cat() write
// directly to an `out` of the right sizes; other ops (out_variants.h) copy a new result, so they may read `out`'s
// memory.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/ops/common/values_and_indices.h"

namespace tercel {

/** If gradients are enabled: RuntimeError if x (`out` or an operand) requires a gradient, NotImplementedError if it has
 * a tangent. */
TERCEL_API void check_out_gradients(const char* op, const Tensor& x);
/** check_out_gradients(), then resizes `out`. */
TERCEL_API void prepare_out(const char* op, const Tensor& out, IntSpan sizes);

/** An argument of an op for check_out_apart(): the tensors it contains, if any. */
class OutInput {
 public:
  constexpr OutInput() = default;
  OutInput(const Tensor& tensor) : tensors_(&tensor, 1) {}
  OutInput(const std::optional<Tensor>& tensor) : tensors_(tensor ? &*tensor : nullptr, tensor ? 1 : 0) {}
  OutInput(Span<Tensor> tensors) : tensors_(tensors) {}
  /** Any other argument: no tensors. */
  template <class T>
  constexpr OutInput(const T&) {}

  Span<Tensor> tensors() const { return tensors_; }

 private:
  Span<Tensor> tensors_;
};
struct OutRule;
/** The rule for overlap of `out` with operands that the op refuses; null if none. See Note [Overlap with out]. */
TERCEL_API const OutRule* out_rule(std::string_view op);
/** RuntimeError if an output shares memory with an argument, as far as the op's rule refuses that. */
TERCEL_API void check_out_apart(std::string_view op, Span<Tensor> out, Span<OutInput> arguments);

/** Copies a result to `out`; see Note [Out variants]. */
TERCEL_API const Tensor& put_out(const char* op, const Tensor& out, const Tensor& result);
/** The same for values and indices; RuntimeError unless the outputs have exactly their dtypes. */
TERCEL_API ValuesAndIndices put_out(const char* op, const Tensor& values, const Tensor& indices,
                                    const ValuesAndIndices& result);
/** The same for several results and as many tensors (RuntimeError); all are checked before any is written. */
TERCEL_API std::vector<Tensor> put_out(const char* op, Span<Tensor> out, Span<Tensor> results);
/**
 * put_out() by the rules of torch.linalg: most of these ops, named as in Python, require the result's dtype. For ops
 * with several results, `part` names this one in error messages.
 */
TERCEL_API const Tensor& put_linalg_out(const char* op, const Tensor& out, const Tensor& result);
TERCEL_API void put_linalg_out(const char* op, Span<Tensor> out, Span<Tensor> results, Span<const char*> parts);
/** Only the check of put_linalg_out(). */
TERCEL_API void check_linalg_out(const char* op, const Tensor& out, const Tensor& result, const char* part);

/** The compute dtype: the given one, else that of `out` if defined. RuntimeError if both are given and differ. */
TERCEL_API ScalarType dtype_for_out(ScalarType given, const Tensor& out);

}  // namespace tercel
