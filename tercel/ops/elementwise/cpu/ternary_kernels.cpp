#include "tercel/ops/elementwise/ternary_ops.h"

#include "tercel/ops/common/cpu/contiguous_loop.h"
#include "tercel/ops/common/elementwise_functions_impl.h"
#include "tercel/ops/common/elementwise_kernels.h"

namespace tercel::TERCEL_ISA {
namespace {

constexpr auto kTable = contiguous_loops_table(TernaryOps{});

}  // namespace

void ternary(int op, const ElementwiseLoop& loop) { run_elementwise(loop, kTable.op[op][loop.compute]); }

}  // namespace tercel::TERCEL_ISA
