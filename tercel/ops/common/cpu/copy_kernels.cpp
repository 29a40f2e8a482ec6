#include "tercel/ops/common/cpu/elementwise_driver.h"
#include "tercel/ops/elementwise/elementwise_kernels.h"

namespace tercel::TERCEL_ISA {

void copy(int, const ElementwiseLoop& loop) { run_on_tiles(loop, nullptr); }

}  // namespace tercel::TERCEL_ISA
