// Special ops: their loops are compiled once (special_bodies.cpp), the tiles around them for each instruction set.
#include "tercel/ops/cpu/drive.h"
#include "tercel/ops/special_impl.h"

namespace tercel::TERCEL_ISA {

void special_elementwise(int op, const Loop& loop) { drive(loop, special_body(op, loop.compute)); }

}  // namespace tercel::TERCEL_ISA
