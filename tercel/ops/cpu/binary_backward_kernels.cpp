#include "tercel/ops/binary_ops.h"

#include "tercel/ops/cpu/body.h"
#include "tercel/ops/elementwise_functions.h"
#include "tercel/ops/elementwise_kernels.h"

namespace tercel::TERCEL_ISA {
namespace {

struct Pair {
  Bodies of_a, of_b;
};

template <class Op>
constexpr Pair backward_bodies() {
  if constexpr (has_no_grad<Op>)
    return {};
  else
    return {backward_bodies_for<Op, BackwardA<Op>::kInputs, BackwardA<Op>>(),
            backward_bodies_for<Op, BackwardB<Op>::kInputs, BackwardB<Op>>()};
}

template <class... Op>
constexpr auto make_table(OpList<Op...>) {
  struct Table {
    Pair op[sizeof...(Op)];
  };
  return Table{{backward_bodies<Op>()...}};
}
constexpr auto kTable = make_table(BinaryOps{});

}  // namespace

void binary_backward(int op, const Loop& loop) {
  const Pair& pair = kTable.op[op / 2];
  drive(loop, (op % 2 == 0 ? pair.of_a : pair.of_b)[loop.compute]);
}

}  // namespace tercel::TERCEL_ISA
