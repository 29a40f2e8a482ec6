#include "tercel/ops/binary_ops.h"

#include "tercel/ops/cpu/body.h"
#include "tercel/ops/elementwise_functions.h"
#include "tercel/ops/elementwise_kernels.h"

namespace tercel::TERCEL_ISA {
namespace {

template <class... Op>
constexpr auto make_table(OpList<Op...>) {
  struct Table {
    Bodies op[sizeof...(Op)];
  };
  return Table{{bodies_for<Op, 2, Forward<Op>>()...}};
}
constexpr auto kTable = make_table(BinaryOps{});

}  // namespace

void binary(int op, const Loop& loop) { drive(loop, kTable.op[op][loop.compute]); }

}  // namespace tercel::TERCEL_ISA
