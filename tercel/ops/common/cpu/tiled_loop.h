// Runs a contiguous loop over operands of any dtype, stride and order.
//
// Note [Tiles]
// An op has one loop per compute type, over contiguous arrays of that type (contiguous_loop.h). run_elementwise() calls
// it directly if the operands have this form, and otherwise on tiles that fit the L1 cache: other dtypes, strides,
// repeated and transposed operands are loaded into tiles and results are stored back. So the instructions for an
// element do not depend on its position, and an op compiles to one loop, not to one per dtype and layout.
#pragma once

#include "tercel/ops/common/elementwise_loop_impl.h"

namespace tercel::TERCEL_ISA {

/** Computes out[i] from in[0][i], in[1][i] ... for n elements; out may be one of the inputs. */
using ContiguousLoop = void (*)(void* out, const void* const* in, int64_t n);

/** run_elementwise() for loops that need tiles. A null loop copies the single input. */
void run_on_tiles(const ElementwiseLoop& loop, ContiguousLoop loop_over_tile);

/** run_elementwise() for one short row of native operands, some of which are single numbers. */
void run_beside_numbers(const ElementwiseLoop& loop, ContiguousLoop loop_over_tile);
constexpr int64_t kMaxBesideNumbers = 256;

namespace {

/** Runs loop_over_tile over all elements of an elementwise loop. */
inline void run_elementwise(const ElementwiseLoop& loop, ContiguousLoop loop_over_tile) {
  const ScalarType native = native_dtype(loop.compute);
  const int64_t item = static_cast<int64_t>(item_size(native));
  bool native_dtypes = true, dense = true, numbers = true;
  for (int a = 0; a < loop.nargs; ++a) {
    native_dtypes &= loop.dtype[a] == native;
    dense &= loop.stride[a][0] == item;
    numbers &= loop.stride[a][0] == item || (a > 0 && loop.stride[a][0] == 0);
  }
  const bool one_row = native_dtypes && loop.n[1] == 1 && !loop.stream;
  if (one_row && dense) [[likely]]
    loop_over_tile(loop.data[0], reinterpret_cast<const void* const*>(loop.data + 1), loop.n[0]);
  else if (one_row && numbers && loop.n[0] <= kMaxBesideNumbers)
    run_beside_numbers(loop, loop_over_tile);
  else
    run_on_tiles(loop, loop_over_tile);
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
