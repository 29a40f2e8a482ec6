#include "tercel/ops/common/cuda/elementwise.cuh"
#include "tercel/ops/common/elementwise_functions_impl.h"
#include "tercel/ops/common/elementwise_kernels.h"
#include "tercel/ops/elementwise/unary_ops.h"

namespace tercel::cuda {
namespace {

template <class Op>
constexpr Launches backward_launches() {
  if constexpr (is_predicate<Op>)
    return {};
  else
    return float_launches<UnaryBackward<Op>::kInputs, UnaryBackward<Op>>();
}

template <class... Op>
struct Table;
template <class... Op>
struct Table<OpList<Op...>> {
  static constexpr Launches forward[] = {launches_for<Op, num_inputs<Op>, Forward<Op>>()...};
  static constexpr Launches backward[] = {backward_launches<Op>()...};
};

}  // namespace

void unary(int op, const ElementwiseLoop& loop) { Table<UnaryOps>::forward[op][loop.compute](loop); }
void unary_backward(int op, const ElementwiseLoop& loop) { Table<UnaryOps>::backward[op][loop.compute](loop); }

}  // namespace tercel::cuda
