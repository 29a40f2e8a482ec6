#include "tercel/ops/common/cpu/contiguous_loop.h"
#include "tercel/ops/common/elementwise_functions_impl.h"
#include "tercel/ops/common/elementwise_kernels.h"
#include "tercel/ops/elementwise/unary_ops.h"

namespace tercel::TERCEL_ISA {
namespace {

template <class Op>
constexpr ContiguousLoops backward_loops() {
  if constexpr (is_predicate<Op>)
    return {};
  else
    return backward_loops_for<Op, UnaryBackward<Op>::kInputs, UnaryBackward<Op>>();
}

template <class... Op>
constexpr auto make_table(OpList<Op...>) {
  struct Table {
    ContiguousLoops op[sizeof...(Op)];
  };
  return Table{{backward_loops<Op>()...}};
}
constexpr auto kTable = make_table(UnaryOps{});

}  // namespace

void unary_backward(int op, const ElementwiseLoop& loop) { run_elementwise(loop, kTable.op[op][loop.compute]); }

}  // namespace tercel::TERCEL_ISA
