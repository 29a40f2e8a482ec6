// One layer of a recurrent network in one direction, over packed sequences.
//
// Note [Recurrent layers]
// A layer of float32 or float64 without projections is one node of the graph: a product over all inputs, then for each
// step a product of the states and a kernel (cpu/cell_kernels.cpp), which updates the states in place; finished
// sequences leave the last rows unchanged. Backward computes the gradients of the gates' sums step by step; the
// weights' gradients are then one product each over all steps. Other layers, and second derivatives, use ops:
// layer_of_ops() is recomputed, recorded, and differentiated.
#pragma once

#include "tercel/ops/nn/cell_kernels.h"
#include "tercel/ops/nn/recurrent.h"

namespace tercel {

/** x [rows, in] is ordered by step; `state` is the initial state. `backward`: from the last step to the first. */
struct LayerCall {
  CellKind kind;
  Tensor x;
  DimVector batch_sizes;
  HiddenAndCell state;
  CellWeights weights;
  bool backward;
};
/** The states after each step [rows, hidden], and the final states of all sequences. */
struct LayerResult {
  Tensor output;
  HiddenAndCell state;
};

LayerResult layer_of_ops(const LayerCall& call);
/** Whether fused_layer() supports this call. */
bool can_fuse(const LayerCall& call);
/** The same result as one node of the graph. */
LayerResult fused_layer(const LayerCall& call);

}  // namespace tercel
