// A layer of a model graph.
//
// A layer is built once, from its options and the shapes of its inputs, and reserves its parameters; then it runs
// forward on any number of batches, with ops that autograd records. It stores no activations. A new layer is a header
// and a source in this folder, and a line in layers.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/core/generator.h"
#include "tercel/core/tensor.h"
#include "tercel/nn/parameter_arena.h"

namespace tercel::recsys {

/** Sizes of a tensor in the graph without its first dimension, which is the batch. */
using FeatureShape = DimVector;

/** Arguments for building a layer. */
struct BuildContext {
  std::string_view type;              ///< "InnerProduct"
  std::string_view name;              ///< of the layer, for parameters and errors: its first top
  std::vector<FeatureShape> bottoms;  ///< shapes of the inputs
  nn::ParameterArena& parameters;
};

/** Throws ConfigError: "[InnerProduct fc1] expected one input [batch, n] but got [batch, 3, 4]". */
[[noreturn]] TERCEL_API void refuse_inputs(const BuildContext& context, std::string_view expected);
/** "[batch, 3, 4]". */
TERCEL_API std::string shape_text(const FeatureShape& shape);

/** Settings of a forward pass. */
struct ForwardContext {
  bool training = false;
  Generator& generator;  ///< of dropout
};

class TERCEL_API Layer {
 public:
  virtual ~Layer();

  /** Shapes of the outputs; fixed when the layer was built. */
  const std::vector<FeatureShape>& tops() const { return tops_; }
  /** Outputs [B, ...] of inputs [B, ...]. */
  virtual void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) = 0;
  /** State besides the parameters (running statistics), by name; saved with the model. */
  virtual std::vector<std::pair<std::string, Tensor>> buffers() { return {}; }

 protected:
  std::vector<FeatureShape> tops_;
};

}  // namespace tercel::recsys
