#include "tercel/ops/common/cuda/elementwise.cuh"
#include "tercel/ops/common/elementwise_functions_impl.h"
#include "tercel/ops/common/elementwise_kernels.h"
// Included after the functions that its ops call on numbers.
#include "tercel/ops/elementwise/binary_ops.h"
#include "tercel/ops/elementwise/ternary_ops.h"

namespace tercel::cuda {
namespace {

template <class Op>
constexpr Launches backward_a() {
  if constexpr (has_no_grad<Op>)
    return {};
  else
    return float_launches<BackwardA<Op>::kInputs, BackwardA<Op>>();
}
template <class Op>
constexpr Launches backward_b() {
  if constexpr (has_no_grad<Op>)
    return {};
  else
    return float_launches<BackwardB<Op>::kInputs, BackwardB<Op>>();
}

template <class... Op>
struct Table;
template <class... Op>
struct Table<OpList<Op...>> {
  static constexpr Launches forward[] = {launches_for<Op, 2, Forward<Op>>()...};
};

template <class... Op>
struct BackwardTable;
template <class... Op>
struct BackwardTable<OpList<Op...>> {
  static constexpr Launches of_a[] = {backward_a<Op>()...}, of_b[] = {backward_b<Op>()...};
};

struct Identity {
  template <class V>
  TERCEL_HD V operator()(V x) const {
    return x;
  }
};
struct AnyType {
  static constexpr Domain domain = Domain::Any;
};
constexpr Launches kCopy = launches_for<AnyType, 1, Identity>();

}  // namespace

void binary(int op, const ElementwiseLoop& loop) { Table<BinaryOps>::forward[op][loop.compute](loop); }
void binary_backward(int op, const ElementwiseLoop& loop) {
  using Ops = BackwardTable<BinaryOps>;
  (op % 2 == 0 ? Ops::of_a : Ops::of_b)[op / 2][loop.compute](loop);
}
void compare(int op, const ElementwiseLoop& loop) { Table<CompareOps>::forward[op][loop.compute](loop); }

void copy(int, const ElementwiseLoop& loop) { kCopy[loop.compute](loop); }

}  // namespace tercel::cuda
