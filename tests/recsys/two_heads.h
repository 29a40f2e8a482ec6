// A dataset of two labels and a model with a head for each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/recsys/model/config.h"

namespace tercel::recsys::test {

/**
 * Rows of 2 dense values and a key of 0 to 9 in slot "f0", written to a folder. The first label is whether the dense
 * values' sum is positive, the second whether the key is odd.
 */
inline data::Dataset two_labels_dataset(const std::string& folder, int64_t rows) {
  data::Dataset dataset;
  dataset.folder = folder;
  dataset.format = data::norm_format();
  dataset.schema.label_dim = 2;
  dataset.schema.dense_dim = 2;
  dataset.schema.slots = {{"f0", 10, 0, 1}};
  const auto part = [&](const char* prefix, int64_t seed) {
    data::WriterOptions options;
    options.folder = folder;
    options.prefix = prefix;
    const auto writer = dataset.format->create_writer(dataset.schema, options);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t n = (r + seed) * 7919 % 10007, key = n % 10;
      const float dense[] = {static_cast<float>(n % 101) / 50 - 1.01f, static_cast<float>(n % 37) / 18 - 1.01f};
      const float labels[] = {dense[0] + dense[1] > 0 ? 1.0f : 0.0f, key % 2 == 1 ? 1.0f : 0.0f};
      writer->write({1, labels, dense, nullptr, &key});
    }
    return writer->finish();
  };
  dataset.train = part("train/", 0);
  dataset.test = part("test/", 4000);
  data::save_dataset(dataset, folder);
  return dataset;
}

constexpr std::string_view kTwoHeads = R"json({
  "model_name": "two_heads",
  "solver": {"batchsize": 32, "batchsize_eval": 100, "lr": 0.05, "epochs": 2},
  "layers": [
    {"type": "Data", "label": {"top": ["click", "buy"], "label_dim": [1, 1]}, "dense": {"top": "dense"},
     "sparse": [{"top": "keys"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "embedding",
     "sparse_embedding_hparam": {"embedding_vec_size": 4}},
    {"type": "Reshape", "bottom": "embedding", "top": "vector"},
    {"type": "Concat", "bottom": ["vector", "dense"], "top": "all"},
    {"type": "MLP", "bottom": "all", "top": "shared", "mlp_param": {"num_outputs": [8]}},
    {"type": "InnerProduct", "bottom": "shared", "top": "click_logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["click_logit", "click"], "top": "click_loss"},
    {"type": "InnerProduct", "bottom": "shared", "top": "buy_logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["buy_logit", "buy"], "top": "buy_loss", "weight": 0.5}
  ]
})json";

inline ModelConfig two_heads_config(const std::vector<std::string>& assignments = {}) {
  ModelConfig config = parse_config(kTwoHeads, "two_heads");
  config.data.shuffle = false;
  for (const std::string& assignment : assignments) set_config(config, assignment);
  return config;
}

}  // namespace tercel::recsys::test
