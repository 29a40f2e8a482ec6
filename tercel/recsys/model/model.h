// A model: a graph of layers over a batch, its parameters and its tables.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tercel/data/array_inputs.h"
#include "tercel/data/batch.h"
#include "tercel/data/batch_reader.h"
#include "tercel/data/dataset.h"
#include "tercel/nn/parameter_arena.h"
#include "tercel/recsys/embedding/embedding_collection.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/graph.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

class TERCEL_API Model {
 public:
  /** Builds the graph for rows of the schema, without allocating; ConfigError names the layer and shows the shapes. */
  Model(const ModelConfig& config, const data::Schema& schema);
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  /**
   * Allocates parameters, tables, the tables' optimizer states and buffers, and draws their initial values. The seed is
   * also that of masks. `place` is their dtype, float32 or float64 (ConfigError), and their device; NotImplementedError
   * for a device without memory in this build.
   */
  void initialize(uint64_t seed, const TensorOptions& place = {});
  /** The same while go_on() is true, asked regularly; false if it ended early, which leaves the model unusable. */
  bool initialize(uint64_t seed, const TensorOptions& place, FunctionRef<bool()> go_on);
  /**
   * Allocates parameters, filled with zeros, and buffers, before loading values; tables are set by
   * EmbeddingTable::set_weight(). Errors as above.
   */
  void allocate_parameters(const TensorOptions& place = {});
  /** Dtype and device of parameters, tables and buffers; float32 on the CPU before they are allocated. */
  const TensorOptions& place() const;

  /**
   * From now on batches are the parts of this rank: statistics of batches are those of all ranks, tables that grow have
   * the keys of all, and tables are where their placements say (EmbeddingCollection::set_group()). forward() must then
   * be called by all ranks together. Before initialize(); the group must outlive the model.
   */
  void set_group(distributed::ProcessGroup& group, Span<TablePlacement> placements = {});

  struct Result {
    /**
     * Scalar: the sum of the heads' losses, each with its weight. Where the batch is a rank's part, the losses of all
     * parts add up to that of the whole batch. Undefined if the batch has no labels.
     */
    Tensor loss;
    std::vector<Tensor> logits;  ///< of each head: [B, 1], or [B, n] of one with n columns
  };
  /**
   * A batch of rows that are given as arrays, named by tensors of the Data layer or by slots of the schema:
   * data::batch_from_arrays() has shapes and errors. Without labels there is no loss.
   */
  data::Batch make_batch(Span<data::ArrayInput> arrays, const Tensor& labels = {}, const Tensor& weights = {}) const;

  /**
   * One pass; `training` records gradients and runs dropout, with the masks of a step. A batch that is not where the
   * model is is taken there first, as by batch_at(). OutOfMemoryError names the layer and the batch size; RuntimeError
   * for a batch that is not in its global rows, or whose tensors do not have the dtypes and sizes that the schema and
   * the number of rows determine, ConfigError for one without an input.
   */
  Result forward(const data::Batch& batch, bool training, int64_t step);
  /** The same in evaluation. */
  Result forward(const data::Batch& batch);
  /** The same; reuses the memory of an earlier result. */
  void forward(const data::Batch& batch, bool training, int64_t step, Result& result);
  /**
   * The value of a tensor of the graph over a batch, in evaluation and without gradients: the output of a layer, a
   * loss, dense values or labels. Layers after it do not run. ConfigError for a name that there is not, for a sparse
   * input, and for a tensor that is absent without dense values or without labels; else errors as forward().
   */
  Tensor compute(const data::Batch& batch, std::string_view tensor);
  /**
   * The first layer whose output has a NaN or an infinity in the training pass of a step over this batch, as "MLP top";
   * empty if there is none: then the losses are finite, but perhaps not their sum. Like every training pass, it updates
   * running statistics.
   */
  std::string first_nonfinite_layer(const data::Batch& batch, int64_t step);

  /** The layers with their resolved shapes and options, and the heads. */
  const Graph& graph() const;
  /** The rows that it was built for. */
  const data::Schema& schema() const;
  /** Name of the Data layer's tensor of dense values. */
  const std::string& dense_name() const;
  /** How the reader must group the slots. */
  const std::vector<data::SparseInput>& sparse_inputs() const;
  nn::ParameterArena& parameters();
  /** Tables, with optimizers of their own or the model's, and lookups. */
  EmbeddingCollection& embeddings();
  /** State that is neither parameter nor table (running statistics), by name. */
  std::vector<std::pair<std::string, Tensor>> buffers();

  /**
   * ModelConfig::layers with every option written out, so that it describes the model independently of a version's
   * defaults.
   */
  std::string layers() const;
  /** One line per layer: type, name, output shape, parameters. */
  std::string summary() const;
  /** Equal for models with compatible parameters (names, shapes in order, dtype), else different. */
  std::string fingerprint() const { return fingerprint(place().dtype); }
  /** The same as if they had that dtype. */
  std::string fingerprint(ScalarType dtype) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tercel::recsys
