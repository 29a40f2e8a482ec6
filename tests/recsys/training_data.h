// Small datasets and models for the tests of the recommender layer.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/data/generate.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/model.h"
#include "tercel/recsys/trainer.h"
#include "tercel/util/parallel.h"
#include "tercel/util/signals.h"
#include "tests/util/temporary_folder.h"

namespace tercel::recsys::test {

using tercel::test::TemporaryFolder;

/** Generated rows of 4 counts and 5 fields, in `folder`/data. Its test part validates runs too. */
inline data::Dataset small_dataset(const TemporaryFolder& folder, int64_t rows, double test_fraction = 0.25,
                                   const std::string& name = "data", uint64_t seed = 1) {
  data::GenerateOptions options;
  options.rows = rows;
  options.seed = seed;
  options.preset = data::GeneratePreset::Small;
  options.test_fraction = test_fraction;
  options.files = 2;
  data::Dataset dataset = data::generate_dataset(folder / name, options, /*replace=*/false, [](int64_t) {}).dataset;
  dataset.valid = dataset.test;
  return dataset;
}

inline ModelConfig preset_config(std::string_view name, const std::vector<std::string>& assignments = {}) {
  ModelConfig config = parse_config(preset(name), name);
  config.solver.batchsize = 256;  // the best options for each
  config.solver.epochs = 1;
  config.data.shuffle = false;
  for (const std::string& assignment : assignments) set_config(config, assignment);
  return config;
}

/** A shipped model for small_dataset(), of which those of histories read two fields. */
inline ModelConfig small_preset_config(std::string_view name, std::vector<std::string> assignments = {}) {
  if (name == "din" || name == "bst") {
    assignments.emplace_back(R"json(layers.history.index=["=slot(C1)"])json");
    assignments.emplace_back(R"json(layers.target.index=["=slot(C2)"])json");
  }
  return preset_config(name, assignments);
}

/** A model with every kind of state: two tables of different optimizers, dropout, running statistics. */
constexpr std::string_view kStatefulModel = R"json({
  "model_name": "stateful",
  "solver": {"batchsize": 64, "batchsize_eval": 50, "lr": 0.01, "epochs": 2},
  "data": {"shuffle": false},
  "layers": [
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"},
     "sparse": [{"top": "first", "slot_num": 2}, {"top": "others"}]},
    {"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "first", "top": "e1",
     "sparse_embedding_hparam": {"embedding_vec_size": 3}},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "others", "top": "e2",
     "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "mean"},
     "optimizer": {"type": "AdaGrad", "update_type": "Local", "adagrad_hparam": {"epsilon": 1e-6}}},
    {"type": "Reshape", "bottom": "e1", "top": "f1"},
    {"type": "Reshape", "bottom": "e2", "top": "f2"},
    {"type": "Concat", "bottom": ["f1", "f2", "dense"], "top": "all"},
    {"type": "BatchNorm", "bottom": "all", "top": "normal", "bn_param": {"factor": 0.1}},
    {"type": "Dropout", "bottom": "normal", "top": "dropped", "rate": 0.25},
    {"type": "MLP", "bottom": "dropped", "top": "logit",
     "mlp_param": {"num_outputs": [16, 1], "activations": ["Relu", "Non"]}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
})json";

inline ModelConfig stateful_config(const std::vector<std::string>& assignments = {}) {
  ModelConfig config = parse_config(kStatefulModel, "stateful");
  for (const std::string& assignment : assignments) set_config(config, assignment);
  return config;
}

/** The train batches of an epoch, or a rank's parts of them. */
inline std::vector<data::Batch> batches_of(const data::Dataset& dataset, const ModelConfig& config, int64_t rank = 0,
                                           int64_t ranks = 1) {
  data::ReaderOptions options;
  options.batch_size = config.solver.batchsize;
  options.inputs = Model(config, dataset.schema).sparse_inputs();
  options.rank = rank;
  options.ranks = ranks;
  data::BatchReader reader(dataset, data::PartName::Train, options);
  std::vector<data::Batch> all;
  for (data::Batch batch; reader.next(batch);) all.push_back(std::exchange(batch, {}));
  return all;
}

/** Resets a stop request and the number of threads on destruction. */
class CleanProcess {
 public:
  CleanProcess() = default;
  ~CleanProcess() {
    request_stop(0);
    set_num_threads(threads_);
  }
  CleanProcess(const CleanProcess&) = delete;
  CleanProcess& operator=(const CleanProcess&) = delete;

 private:
  int64_t threads_ = num_threads();
};

/** Files by name, with their content. */
using Tree = std::map<std::string, std::string>;

inline void ignore(const Progress&) {}

inline bool is_validation(const Progress& now) {
  return now.kind == Progress::Kind::Evaluation && now.part == data::PartName::Valid;
}

/** Files below a folder of `root`, without that folder's name. */
inline Tree below(const TemporaryFolder& root, const std::string& folder) {
  Tree files;
  for (const auto& [name, content] : root.tree())
    if (name.starts_with(folder + "/")) files[name.substr(folder.size() + 1)] = content;
  return files;
}

inline Tree checkpoint_files(const TemporaryFolder& root, const std::string& run) {
  Tree files = below(root, run + "/checkpoints");
  EXPECT_FALSE(files.empty());
  return files;
}

/** Names only where contents differ, since gtest would print megabytes. */
inline std::string differences(const Tree& a, const Tree& b) {
  std::string text;
  for (const auto& [name, content] : a)
    if (!b.contains(name))
      text += "only in the first: " + name + "\n";
    else if (b.at(name) != content)
      text += "differs: " + name + "\n";
  for (const auto& [name, content] : b)
    if (!a.contains(name)) text += "only in the second: " + name + "\n";
  return text;
}

/** Rows of one dense value and a key of 0 to 3; in a linear model gradients show the row that they come from. */
inline data::Dataset plain_dataset(const TemporaryFolder& root, int64_t rows, const std::string& name,
                                   float (*value)(int64_t), float (*label)(int64_t), int64_t slot_size = 4) {
  data::Dataset dataset;
  dataset.folder = root / name;
  dataset.format = data::norm_format();
  dataset.schema.dense_dim = 1;
  dataset.schema.slots = {{"slot", slot_size, 0, 1}};
  const auto part = [&](const char* prefix) {
    data::WriterOptions options;
    options.folder = dataset.folder;
    options.prefix = prefix;
    const auto writer = dataset.format->create_writer(dataset.schema, options);
    for (int64_t r = 0; r < rows; ++r) {
      const float y = label(r), x = value(r);
      const int64_t key = r % 4;
      writer->write({1, &y, &x, nullptr, &key});
    }
    return writer->finish();
  };
  dataset.train = part("train/");
  dataset.test = part("test/");
  dataset.valid = dataset.test;
  return dataset;
}

/**
 * Rows whose slots have one key, up to 12 keys that are nearly all different, up to 6 of few frequent ones; some none.
 */
inline data::Dataset bags_dataset(const TemporaryFolder& root, int64_t rows, const std::string& name = "bags") {
  data::Dataset dataset;
  dataset.folder = root / name;
  dataset.format = data::norm_format();
  dataset.schema.dense_dim = 1;
  dataset.schema.slots = {{"one", 40, 0, 1}, {"many", 5000, 40, 12}, {"frequent", 8, 5040, 6}};
  uint64_t state = 1;
  const auto draw = [&state](int64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(below));
  };
  const auto part = [&](const char* prefix, int64_t part_rows) {
    data::WriterOptions options;
    options.folder = dataset.folder;
    options.prefix = prefix;
    const auto writer = dataset.format->create_writer(dataset.schema, options);
    for (int64_t r = 0; r < part_rows; ++r) {
      const float label = static_cast<float>(draw(2)), x = static_cast<float>(draw(100)) / 100;
      std::vector<int32_t> counts;
      std::vector<int64_t> keys;
      for (const data::Slot& slot : dataset.schema.slots) {
        counts.push_back(slot.hotness == 1 ? 1 : static_cast<int32_t>(draw(slot.hotness + 1)));
        for (int32_t k = 0; k < counts.back(); ++k) keys.push_back(slot.first_key + draw(slot.size));
      }
      writer->write({1, &label, &x, counts.data(), keys.data()});
    }
    return writer->finish();
  };
  dataset.train = part("train/", rows);
  dataset.test = part("test/", rows / 4);
  dataset.valid = dataset.test;
  return dataset;
}

/** A model for bags_dataset(): two tables that read the same slots, with sums and with means. */
constexpr std::string_view kBagsModel = R"json({
  "model_name": "bags",
  "solver": {"batchsize": 64, "batchsize_eval": 50, "lr": 0.01, "epochs": 2},
  "data": {"shuffle": false},
  "layers": [
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"}, "sparse": [{"top": "bags"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "bags", "top": "sums",
     "sparse_embedding_hparam": {"embedding_vec_size": 8, "combiner": "sum"}},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "bags", "top": "means",
     "sparse_embedding_hparam": {"embedding_vec_size": 3, "combiner": "mean"},
     "optimizer": {"type": "AdaGrad", "update_type": "Local", "adagrad_hparam": {"epsilon": 1e-6}}},
    {"type": "Reshape", "bottom": "sums", "top": "f1"},
    {"type": "Reshape", "bottom": "means", "top": "f2"},
    {"type": "Concat", "bottom": ["f1", "f2", "dense"], "top": "all"},
    {"type": "MLP", "bottom": "all", "top": "logit",
     "mlp_param": {"num_outputs": [16, 1], "activations": ["Relu", "Non"]}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
})json";

inline ModelConfig bags_config(const std::vector<std::string>& assignments = {}) {
  ModelConfig config = parse_config(kBagsModel, "bags");
  for (const std::string& assignment : assignments) set_config(config, assignment);
  return config;
}

constexpr std::string_view kLinearModel = R"json({
  "solver": {"batchsize": 4, "lr": 0.5, "warmup_steps": 0, "epochs": 1},
  "data": {"shuffle": false},
  "optimizer": {"type": "SGD"},
  "layers": [
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "x"}, "sparse": [{"top": "keys"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "table",
     "sparse_embedding_hparam": {"embedding_vec_size": 1, "init_range": 0}},
    {"type": "Reshape", "bottom": "table", "top": "bias"},
    {"type": "InnerProduct", "bottom": "x", "top": "wx",
     "fc_param": {"num_output": 1, "weight_init": "Zero", "bias_init": "Zero"}},
    {"type": "Add", "bottom": ["wx", "bias"], "top": "logit"},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
})json";

}  // namespace tercel::recsys::test
