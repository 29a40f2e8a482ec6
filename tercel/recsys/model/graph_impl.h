// A model's layer graph: the tensors that each layer reads and writes. Private.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/data/dataset.h"
#include "tercel/recsys/embedding/embedding_collection.h"
#include "tercel/recsys/layers/layer.h"
#include "tercel/recsys/model/config.h"
#include "tercel/util/json_impl.h"

namespace tercel::recsys {

/** A tensor of the graph. */
struct GraphTensor {
  std::string name;
  FeatureShape shape;
  int64_t sparse_input = -1;  ///< of a sparse input: its index; it has keys, not values
  bool absent = false;        ///< see Note [Absent tensors]; no layer computes it
};

struct GraphNode {
  std::string type, name;
  std::unique_ptr<Layer> layer;  ///< null for an embedding
  size_t lookup = 0;             ///< of an embedding
  std::vector<size_t> bottoms, tops;
};

struct Graph {
  std::vector<GraphTensor> tensors;
  size_t label = 0, dense = 0;  ///< tensors that the batch fills
  std::vector<data::SparseInput> sparse_inputs;
  EmbeddingCollection embeddings;
  std::vector<GraphNode> nodes;
  size_t loss = 0, logits = 0;  ///< tensors
  Json layers = Json::array();  ///< the configuration's list with every option written out
};

/** Builds it; ConfigError names the layer. Parameters are reserved, not allocated. */
Graph build_graph(const ModelConfig& config, const data::Schema& schema, nn::ParameterArena& parameters);

}  // namespace tercel::recsys
