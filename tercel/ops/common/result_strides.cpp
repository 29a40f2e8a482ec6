// Strides of new results with dimensions of size 1.
//
// Note [Dimensions of size 1]
// The strides of dimensions of size 1 do not matter to loops, but are visible, and decide whether a result is
// channels-last. PyTorch's rule: if all operands have one layout (a number has a different one), the result has it too;
// else all dimensions, including those of size 1, are sorted by the strides of the first operand that distinguishes two
// of them. Insertion sort is used, as not every pair is comparable.
#include <cstdlib>

#include "tercel/core/geometry.h"
#include "tercel/ops/common/tensor_iterator_impl.h"

namespace tercel {

namespace {

/** The common layout of all operands, if there is one and all have the result's sizes. */
bool common_layout(const ElementwiseRule& rule, Span<OperandRef> inputs, IntSpan sizes, int64_t* strides) {
  bool contiguous = true, channels_last = true, dense = true;
  const Tensor* first = nullptr;
  for (const OperandRef& input : inputs) {
    const Tensor* t = input.tensor();
    if (!t && !numbers_are_operands(rule, inputs)) continue;
    if (!t || t->sizes() != sizes) return false;
    if (!first) first = t;
    contiguous &= t->is_contiguous();
    channels_last &= sizes.size() == 4 && t->is_contiguous(MemoryFormat::ChannelsLast);
    dense &= t->impl().is_non_overlapping_and_dense() && t->strides() == first->strides();
  }
  if (!first || !(contiguous || channels_last || dense)) return false;
  const DimVector format =
      strides_for(sizes, !contiguous && channels_last ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous);
  const IntSpan taken = contiguous || channels_last ? IntSpan(format) : first->strides();
  for (size_t d = 0; d < sizes.size(); ++d) strides[d] = taken[d];
  return true;
}

/** The operand's stride along a dimension of the result; 0 if it is broadcast. */
int64_t step_of(const Tensor& t, IntSpan sizes, size_t dim) {
  const size_t missing = sizes.size() - t.sizes().size();
  if (dim < missing) return 0;
  const size_t own = dim - missing;
  return t.sizes()[own] == 1 && sizes[dim] != 1 ? 0 : std::abs(t.strides()[own]);
}

/** Negative: dim lies inside other; positive: outside; 0: no operand distinguishes them. */
int compare_dims(Span<OperandRef> inputs, IntSpan sizes, size_t dim, size_t other) {
  for (const OperandRef& input : inputs) {
    const Tensor* t = input.tensor();
    if (!t) continue;
    const int64_t a = step_of(*t, sizes, dim), b = step_of(*t, sizes, other);
    if (a == 0 || b == 0) continue;
    if (a != b) return a < b ? -1 : 1;
    if (sizes[dim] > sizes[other]) return 1;
  }
  return 0;
}

}  // namespace

void result_strides(const ElementwiseRule& rule, Span<OperandRef> inputs, IntSpan sizes, int64_t* strides) {
  if (common_layout(rule, inputs, sizes, strides)) return;
  // Dimensions, innermost first.
  SmallVector<size_t, 8> order;
  for (size_t d = sizes.size(); d-- > 0;) order.push_back(d);
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t below = i; below-- > 0;) {
      const int relation = compare_dims(inputs, sizes, order[below], order[at]);
      if (relation < 0) break;
      if (relation == 0) continue;
      std::swap(order[below], order[at]);
      at = below;
    }
  }
  int64_t step = 1;
  for (const size_t d : order) {
    strides[d] = step;
    step *= sizes[d];
  }
}

}  // namespace tercel
