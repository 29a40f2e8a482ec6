// One layer of a recurrent network in one direction, over packed sequences.
//
// Note [Recurrent layers]
// A layer of float32 or float64 without projections is one node of the graph: a product of all inputs, then for each
// step a product of the states and a kernel (cpu/cell_kernels.cpp), on the same states from step to step;
// shorter sequences do not change the last rows. Backward computes the gradients of the sums before the gates step by
// step; those of the weights are then one product each over all steps. Other layers, and second derivatives, use ops:
// layer_of_ops() is recomputed, recorded, and differentiated.
#pragma once

#include "tercel/ops/nn/cell_kernels.h"
#include "tercel/ops/nn/recurrent.h"

namespace tercel {

/** x [rows, in] holds step after step; `state` is that before the first. `backward`: from the last step to the first.
 */
struct LayerCall {
  CellKind kind;
  Tensor x;
  DimVector batch_sizes;
  HiddenAndCell state;
  CellWeights weights;
  bool backward;
};
/** The states after each step [rows, hidden], and after the last one of each sequence. */
struct LayerResult {
  Tensor output;
  HiddenAndCell state;
};

LayerResult layer_of_ops(const LayerCall& call);
/** Whether fused_layer() supports it. */
bool can_fuse(const LayerCall& call);
/** The same result, as one node. */
LayerResult fused_layer(const LayerCall& call);

}  // namespace tercel
