#include "tercel/ops/common/cuda/elementwise.cuh"
#include "tercel/ops/common/elementwise_functions_impl.h"
#include "tercel/ops/common/elementwise_kernels.h"
#include "tercel/ops/elementwise/ternary_ops.h"

namespace tercel::cuda {
namespace {

template <class... Op>
struct Table;
template <class... Op>
struct Table<OpList<Op...>> {
  static constexpr Launches forward[] = {launches_for<Op, num_inputs<Op>, Forward<Op>>()...};
};

}  // namespace

void ternary(int op, const ElementwiseLoop& loop) { Table<TernaryOps>::forward[op][loop.compute](loop); }

}  // namespace tercel::cuda
