// A model's graph with what runs it: layers and tables. Private.
#pragma once

#include <memory>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/data/dataset.h"
#include "tercel/recsys/embedding/embedding_collection.h"
#include "tercel/recsys/layers/layer.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/graph.h"

namespace tercel::recsys {

/** Computes the tops of a node. */
struct GraphStep {
  size_t node = 0;
  std::unique_ptr<Layer> layer;  ///< null for an embedding
  size_t lookup = 0;             ///< of an embedding
};

struct ModelGraph : Graph {
  std::vector<data::SparseInput> sparse_inputs;
  EmbeddingCollection embeddings;
  std::vector<GraphStep> steps;  ///< all nodes but Data
};

/** Builds it; ConfigError names the layer. Parameters are reserved, not allocated. */
ModelGraph build_graph(const ModelConfig& config, const data::Schema& schema, nn::ParameterArena& parameters);

}  // namespace tercel::recsys
