// The panels of a packed weight, for the ops that multiply by it.
//
// Note [Packed weights]
// A packed weight [out, in] has one part (SparseData::values, see sparse_data.h): its panels [panels, in, columns], a
// strided tensor in the order of gemm's packed B, with gemm's gap behind each panel and zeros for the columns that the
// last panel lacks. No op changes them, so copies of the weight share them. Their number of columns tells for which
// instruction set they were packed.
#pragma once

#include "tercel/ops/linalg/gemm_impl.h"
#include "tercel/ops/linalg/packed_weight.h"

namespace tercel {

/** The panels, of any instruction set. NotImplementedError of refuse_layout() if the weight has none. */
const Tensor& panels_of(const char* op, const Tensor& weight);

/** RuntimeError that says how to pack again, unless the panels have the columns of the instruction set in use. */
void check_columns(const char* op, const Tensor& panels, int64_t columns);

/** Makes the packed weight, transposed, the product's B. */
template <class T>
void set_packed(const char* op, const Tensor& weight, Gemm<T>& g) {
  const Tensor& panels = panels_of(op, weight);
  check_columns(op, panels, gemm_panel<T>().columns);
  g.b = panels.data<T>();
  g.b_panel_step = panels.stride(0);
}

}  // namespace tercel
