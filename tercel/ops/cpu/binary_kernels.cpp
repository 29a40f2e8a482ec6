#include "tercel/ops/binary_ops.h"

#include "tercel/ops/cpu/body.h"
#include "tercel/ops/elementwise_functions.h"
#include "tercel/ops/elementwise_kernels.h"

namespace tercel::TERCEL_ISA {
namespace {

constexpr auto kTable = bodies_table(BinaryOps{});

}  // namespace

void binary(int op, const Loop& loop) { drive(loop, kTable.op[op][loop.compute]); }

}  // namespace tercel::TERCEL_ISA
