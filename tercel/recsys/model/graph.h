// A model's graph, resolved for a dataset: what its layers are, read and make. For summaries and exporters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tercel/recsys/layers/loss_kind.h"
#include "tercel/recsys/layers/tensor_shape.h"
#include "tercel/util/export.h"

namespace tercel::recsys {

/** Where a tensor of the graph comes from: from the batch, or from a layer. */
enum class TensorKind : uint8_t { Label, Dense, SparseInput, Value };

struct GraphTensor {
  std::string name;
  TensorShape shape;  ///< of a sparse input: [batch, slots]
  TensorKind kind = TensorKind::Value;
  bool absent = false;  ///< it depends only on dense values, which the dataset does not have: no layer makes it
};

/** A parameter of a layer. */
struct GraphParameter {
  std::string name;  ///< as in Model::parameters() and in checkpoints
  DimVector sizes;
};

struct GraphNode {
  std::string type;                   ///< "InnerProduct"
  std::string name;                   ///< its first top; "" of Data
  std::string options;                ///< its JSON object in ModelConfig::layers, every option written out
  std::vector<size_t> bottoms, tops;  ///< tensors
  std::vector<GraphParameter> parameters;
  int64_t table = -1;      ///< of an embedding: its table in EmbeddingCollection::tables()
  std::string table_name;  ///< of an embedding: its table's, which lookups may share; else ""

  /** By what freezing names its parameters: the name of the layer, or that of its table. */
  const std::string& trained_name() const { return table >= 0 ? table_name : name; }
};

/** A loss with its logits and label. */
struct Head {
  std::string name;                            ///< of its loss
  size_t loss = 0, logits = 0, label = 0;      ///< tensors
  int64_t first_label = 0, label_columns = 1;  ///< columns of the dataset's labels
  double weight = 1;
  /** What its loss asks for: lambda times the magnitudes (l1) or half the squares (l2) of all dense weights, divided by
   * solver.batchsize. */
  double l1 = 0, l2 = 0;
  LossKind kind = LossKind::Binary;
  int64_t columns = 1;            ///< of the logits
  bool has_binary_labels = true;  ///< all labels are 0 or 1
};

struct Graph {
  std::vector<GraphTensor> tensors;
  std::vector<GraphNode> nodes;  ///< in the order in which they run; Data first
  std::vector<Head> heads;       ///< at least one

  /** Whether all labels that heads read are 0 or 1: ReaderOptions::binary_labels of rows for this graph. */
  TERCEL_API bool has_binary_labels() const;
  /** Columns of predictions: those of all heads' logits, in order. */
  TERCEL_API int64_t prediction_columns() const;
};

}  // namespace tercel::recsys
