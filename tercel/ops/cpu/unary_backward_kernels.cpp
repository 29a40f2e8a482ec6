#include "tercel/ops/cpu/body.h"
#include "tercel/ops/elementwise_functions.h"
#include "tercel/ops/elementwise_kernels.h"
#include "tercel/ops/unary_ops.h"

namespace tercel::TERCEL_ISA {
namespace {

template <class Op>
constexpr Bodies backward_bodies() {
  if constexpr (is_predicate<Op>)
    return {};
  else
    return backward_bodies_for<Op, UnaryBackward<Op>::kInputs, UnaryBackward<Op>>();
}

template <class... Op>
constexpr auto make_table(OpList<Op...>) {
  struct Table {
    Bodies op[sizeof...(Op)];
  };
  return Table{{backward_bodies<Op>()...}};
}
constexpr auto kTable = make_table(UnaryOps{});

}  // namespace

void unary_backward(int op, const Loop& loop) { drive(loop, kTable.op[op][loop.compute]); }

}  // namespace tercel::TERCEL_ISA
