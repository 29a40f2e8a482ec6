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

#include "tercel/core/tensor.h"
#include "tercel/nn/parameter_arena.h"
#include "tercel/recsys/layers/tensor_shape.h"

namespace tercel::distributed {
class ProcessGroup;
}

namespace tercel::recsys {

/** Arguments for building a layer. */
struct BuildContext {
  std::string_view type;             ///< "InnerProduct"
  std::string_view name;             ///< of the layer, for parameters and errors: its first top
  std::vector<TensorShape> bottoms;  ///< shapes of the inputs
  nn::ParameterArena& parameters;
};

/** Throws ConfigError: "[InnerProduct fc1] expected one input [batch, n] but got [batch, 3, 4]". */
[[noreturn]] TERCEL_API void refuse_inputs(const BuildContext& context, std::string_view expected);

/** Settings of a forward pass. */
struct ForwardContext {
  bool training = false;
  uint64_t seed = 0;        ///< of the run, for masks: see Note [Masks]
  int64_t step = 0;         ///< for masks
  int64_t first_row = 0;    ///< samples of the step that come before this batch, in the parts of other ranks
  int64_t global_rows = 0;  ///< samples that a loss is the mean over, if the batch is a part of them; 0: its own
  Tensor weights = {};      ///< [B] of the samples, for losses; undefined: 1 each
  /** The ranks that have the other parts, for statistics of the whole batch; null: the batch is whole. */
  distributed::ProcessGroup* group = nullptr;
};

// Note [Masks]
// A mask, as of dropout, is a function of (seed, layer, step, row of the step, column): the layer's seed (Note [Seeds
// of parts]) and, as the stream, the step. No generator's state is saved with a model, a pass can be repeated, and
// ranks that have parts of a batch have the parts of its mask.

// Note [Rows of samples]
// Most layers treat each row of the batch alike. A layer may also fold a dimension of its input into the rows, so that
// a sample has several, and another one unfold it again. Layer checks that all inputs have equally many rows per sample
// and gives the outputs of add_top() as many; only layers that fold state another number.
class TERCEL_API Layer {
 public:
  virtual ~Layer();
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /** Shapes of the outputs; fixed when the layer was built. */
  const std::vector<TensorShape>& tops() const { return tops_; }
  /** Outputs of inputs with the shapes that it was built for. */
  virtual void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) = 0;
  /** Allocates the buffers, with their first values. */
  virtual void allocate(const TensorOptions& /*place*/) {}
  /** State besides the parameters (running statistics), by name; saved with the model. Undefined before allocate(). */
  virtual std::vector<std::pair<std::string, Tensor>> buffers() { return {}; }

 protected:
  /** ConfigError if the inputs differ in their rows per sample. */
  explicit Layer(const BuildContext& context);
  /** For a layer whose inputs may differ in them; rows_per_sample() is that of the first. */
  struct AnyRows {};
  Layer(const BuildContext& context, AnyRows /*inputs*/);
  /** Adds an output with the inputs' rows per sample. */
  void add_top(DimVector sizes) { tops_.push_back(TensorShape::with_rows(std::move(sizes), rows_per_sample_)); }
  /** Adds an output of any shape. */
  void add_top(TensorShape shape) { tops_.push_back(std::move(shape)); }
  /** Of the inputs. */
  int64_t rows_per_sample() const { return rows_per_sample_; }

 private:
  int64_t rows_per_sample_ = 1;
  std::vector<TensorShape> tops_;
};

}  // namespace tercel::recsys
