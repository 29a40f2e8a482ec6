#include "tercel/ops/cpu/body.h"
#include "tercel/ops/elementwise_functions.h"
#include "tercel/ops/elementwise_kernels.h"
#include "tercel/ops/unary_ops.h"

namespace tercel::TERCEL_ISA {
namespace {

constexpr auto kTable = bodies_table(UnaryOps{});

}  // namespace

void unary(int op, const Loop& loop) { drive(loop, kTable.op[op][loop.compute]); }

}  // namespace tercel::TERCEL_ISA
