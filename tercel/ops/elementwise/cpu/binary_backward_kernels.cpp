#include "tercel/ops/elementwise/binary_ops.h"

#include "tercel/ops/common/cpu/contiguous_loop.h"
#include "tercel/ops/common/elementwise_functions_impl.h"
#include "tercel/ops/common/elementwise_kernels.h"

namespace tercel::TERCEL_ISA {
namespace {

struct Pair {
  ContiguousLoops of_a, of_b;
};

template <class Op>
constexpr Pair backward_loops() {
  if constexpr (has_no_grad<Op>)
    return {};
  else
    return {backward_loops_for<Op, BackwardA<Op>::kInputs, BackwardA<Op>>(),
            backward_loops_for<Op, BackwardB<Op>::kInputs, BackwardB<Op>>()};
}

template <class... Op>
constexpr auto make_table(OpList<Op...>) {
  struct Table {
    Pair op[sizeof...(Op)];
  };
  return Table{{backward_loops<Op>()...}};
}
constexpr auto kTable = make_table(BinaryOps{});

}  // namespace

void binary_backward(int op, const ElementwiseLoop& loop) {
  const Pair& pair = kTable.op[op / 2];
  run_elementwise(loop, (op % 2 == 0 ? pair.of_a : pair.of_b)[loop.compute]);
}

}  // namespace tercel::TERCEL_ISA
