#include "tercel/ops/common/cpu/tiled_loop.h"
#include "tercel/ops/common/elementwise_kernels.h"

namespace tercel::TERCEL_ISA {

void copy(int, const ElementwiseLoop& loop) { run_on_tiles(loop, nullptr); }

}  // namespace tercel::TERCEL_ISA
