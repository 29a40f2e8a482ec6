// Models written for other programs, and runs made of their files.
#include "tercel/recsys/exchange/exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "tercel/io/pt.h"
#include "tercel/io/safetensors.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/hugectr/graph_json.h"
#include "tercel/recsys/prediction.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using test::below;
using test::CleanProcess;
using test::ignore;
using test::small_dataset;
using test::stateful_config;
using test::TemporaryFolder;

constexpr ModelFormat kFormats[] = {ModelFormat::HugeCtr, ModelFormat::Safetensors, ModelFormat::StateDict};
constexpr const char* kHashed = "layers.e2.sparse_embedding_hparam.table_type=hashed";

/** Two lookups that share a table. */
constexpr std::string_view kShared = R"json({
  "model_name": "shared",
  "solver": {"batchsize": 64, "epochs": 1},
  "layers": [
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"},
     "sparse": [{"top": "first", "slot_num": 2}, {"top": "others"}]},
    {"type": "EmbeddingLookup", "bottom": "first", "top": "a", "table": "t",
     "sparse_embedding_hparam": {"embedding_vec_size": 4, "table_type": "hashed"}},
    {"type": "EmbeddingLookup", "bottom": "others", "top": "b", "table": "t"},
    {"type": "Reshape", "bottom": "a", "top": "f1"},
    {"type": "Reshape", "bottom": "b", "top": "f2"},
    {"type": "Concat", "bottom": ["f1", "f2", "dense"], "top": "all"},
    {"type": "MLP", "bottom": "all", "top": "logit",
     "mlp_param": {"num_outputs": [8, 1], "activations": ["Relu", "Non"]}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
})json";

std::vector<float> predictions(const std::string& run, const data::Dataset& dataset) {
  LoadedModel model = load_model(run);
  std::vector<float> all;
  predict(model, dataset, data::PartName::Test, [&](const Predictions& some) {
    all.insert(all.end(), some.probabilities.begin(), some.probabilities.end());
  });
  return all;
}

class Exchange : public ::testing::Test {
 protected:
  void train(const ModelConfig& config) {
    config_ = config;
    Trainer(config_, dataset_, root_ / "run", Resume::Never).run(ignore);
    expected_ = predictions(root_ / "run", dataset_);
  }
  std::string exported(ModelFormat format) {
    const std::string name = root_ / str_cat({"out.", to_string(format)});
    std::filesystem::remove_all(name);
    export_model(root_ / "run", name, format);
    return name;
  }
  ImportedModel import(const std::string& files, ModelFormat format) {
    return import_model(config_, dataset_, files, format, root_ / "imported");
  }
  /** The error of an import, which leaves no run. */
  std::string error_of(const std::string& files, ModelFormat format) {
    const std::string text = tercel::test::message_of<DataError>([&] { import(files, format); });
    EXPECT_FALSE(std::filesystem::exists(root_ / "imported")) << text;
    return text;
  }

  const CleanProcess clean_{};
  const TemporaryFolder root_;
  const data::Dataset dataset_ = small_dataset(root_, 600);
  ModelConfig config_;
  std::vector<float> expected_;
};

TEST_F(Exchange, EveryFormatBringsTheModelBack) {
  const ModelConfig configs[] = {stateful_config(), stateful_config({kHashed}), parse_config(kShared, "shared")};
  for (const ModelConfig& config : configs) {
    train(config);
    for (const ModelFormat format : kFormats) {
      const ImportedModel imported = import(exported(format), format);
      EXPECT_EQ(predictions(root_ / "imported", dataset_), expected_) << to_string(format);
      EXPECT_EQ(imported.initial_rows, 0);
      EXPECT_GT(imported.rows, 0);
      EXPECT_EQ(imported.has_states, format == ModelFormat::HugeCtr && config.model_name != "shared");
      EXPECT_EQ(imported.step, imported.has_states ? load_model(root_ / "run").step : 0);
      EXPECT_TRUE(is_checkpoint_folder(imported.checkpoint));
      std::filesystem::remove_all(root_ / "imported");
    }
    std::filesystem::remove_all(root_ / "run");
  }
}

TEST_F(Exchange, HugeCtrsFilesHaveTheStatesOfOptimizers) {
  for (const char* rule : {"Adam", "SGD", "RowWiseAdaGrad"}) {
    train(stateful_config({str_cat({"optimizer.type=", rule})}));
    const ImportedModel imported = import(exported(ModelFormat::HugeCtr), ModelFormat::HugeCtr);
    EXPECT_TRUE(imported.has_states);
    // Weights, states and statistics: everything but the manifest, which says where the reader is.
    const std::string before = load_model(root_ / "run").checkpoint;
    int files = 0;
    for (const std::string& file : list_dir(before)) {
      if (!file.ends_with(".safetensors")) continue;
      ++files;
      EXPECT_EQ(read_file(join_path(before, file), 1 << 24), read_file(join_path(imported.checkpoint, file), 1 << 24))
          << file << " " << rule;
    }
    EXPECT_EQ(files, 3);
    // It trains on, with the steps behind it.
    ModelConfig longer = config_;
    longer.solver.epochs = 1;
    Trainer again(longer, dataset_, root_ / "imported", Resume::Auto);
    EXPECT_EQ(again.step(), imported.step);
    EXPECT_EQ(again.run(ignore), TrainEnd::Done);
    EXPECT_GT(again.step(), imported.step);
    std::filesystem::remove_all(root_ / "imported");
    std::filesystem::remove_all(root_ / "run");
  }
}

TEST_F(Exchange, AnImportedRunIsABeginning) {
  train(stateful_config());
  import(exported(ModelFormat::Safetensors), ModelFormat::Safetensors);
  LoadedModel from = load_model(root_ / "imported");
  Trainer next(config_, dataset_, root_ / "next", Resume::Never);
  EXPECT_TRUE(next.warm_start(from).left.empty());
  EXPECT_EQ(next.run(ignore), TrainEnd::Done);
}

TEST_F(Exchange, TheGraphIsTheSameModel) {
  for (const std::string_view name : preset_names()) {
    const ModelConfig config = test::small_preset_config(name);
    Model model(config, dataset_.schema);
    const std::string text = hugectr::graph_json(config, model);
    const ModelConfig again = parse_config(text, "graph.json");
    EXPECT_EQ(Model(again, dataset_.schema).fingerprint(), model.fingerprint()) << name;
    EXPECT_EQ(text.find("\"Default\""), std::string::npos) << "HugeCTR has no such initializer";
    EXPECT_EQ(text.find("regularizer\": \"None"), std::string::npos);
  }
  train(stateful_config());
  LoadedModel model = load_model(root_ / "run");
  const std::string text = hugectr::graph_json(model.config, model.model);
  for (const char* part : {"\"max_vocabulary_size_global\": ", "\"workspace_size_per_gpu_in_mb\": 1",
                           "\"adagrad_hparam\": {", "\"adam_hparam\": {", "\"leading_dim\": 6", "\"nnz_per_slot\": ["})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST_F(Exchange, OutputsAreNotReplaced) {
  train(stateful_config());
  root_.put("taken", "x");
  root_.put("full/x", "x");
  for (const ModelFormat format : kFormats) {
    TERCEL_EXPECT_THROW(export_model(root_ / "run", root_ / "taken", format), IoError, "but it exists");
    TERCEL_EXPECT_THROW(export_model(root_ / "run", root_ / "full", format), IoError, "but it exists");
  }
  TERCEL_EXPECT_THROW(export_model(root_ / "data", root_ / "new", ModelFormat::StateDict), DataError,
                      "no trained model");
  EXPECT_FALSE(std::filesystem::exists(root_ / "new"));
  const std::string files = exported(ModelFormat::Safetensors);
  TERCEL_EXPECT_THROW(import_model(config_, dataset_, files, ModelFormat::Safetensors, root_ / "run"), ConfigError,
                      "already contains a run");
  EXPECT_EQ(predictions(root_ / "run", dataset_), expected_);
  TERCEL_EXPECT_THROW(import_model(config_, dataset_, root_ / "none", ModelFormat::Safetensors, root_ / "imported"),
                      IoError, "found nothing of that name");
}

TEST_F(Exchange, TensorsThatDoNotFitAreRefused) {
  train(stateful_config({kHashed}));
  const std::string path = exported(ModelFormat::Safetensors);
  const std::vector<io::NamedTensor> whole = io::load_safetensors(path);
  const auto place = [&](std::vector<io::NamedTensor>& all, const std::string& name) -> Tensor& {
    for (io::NamedTensor& tensor : all)
      if (tensor.name == name) return tensor.tensor;
    throw InternalError(name);
  };
  const auto error = [&](auto&& change) {
    std::vector<io::NamedTensor> all = whole;
    change(all);
    io::save_safetensors(path, all);
    return error_of(path, ModelFormat::Safetensors);
  };
  using All = std::vector<io::NamedTensor>;
  const auto expect = [&](const std::string& found, const std::string& text) {
    EXPECT_NE(found.find(path + ": " + text), std::string::npos) << found;
  };
  expect(error([](All& all) { all.erase(all.begin()); }), "expected a tensor '");
  expect(error([](All& all) {
           all.push_back({"other", zeros({2}, kFloat32)});
         }),
         "has a tensor 'other' [2], which the model does not have");
  expect(error([&](All& all) { place(all, "e1") = zeros({3, 3}, kFloat32); }), "tensor 'e1': expected [");
  expect(error([&](All& all) { place(all, "normal.beta") = zeros({1}, kInt64); }), "tensor 'normal.beta': expected [");
  expect(error([&](All& all) {
           place(all, "e1") = place(all, "e1").clone();
           place(all, "e1").data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
         }),
         "expected finite numbers, found NaN or an infinity in tensor 'e1'");
  expect(error([&](All& all) {
           place(all, "e2.keys") = place(all, "e2.keys").clone();
           place(all, "e2.keys").data<int64_t>()[1] = place(all, "e2.keys").data<int64_t>()[0];
         }),
         "tensor 'e2.keys': key ");
  expect(error([&](All& all) { place(all, "e2.keys") = place(all, "e2.keys").narrow(0, 1, 2).clone(); }),
         "tensor 'e2': expected [2, 4] of floating-point numbers, found [");
  expect(error([&](All& all) { place(all, "e2.keys") = zeros({2}, kFloat32); }),
         "tensor 'e2.keys': expected [rows] of int64, found [2] of float32");
  root_.put("text.pt", "no archive");
  EXPECT_NE(error_of(root_ / "text.pt", ModelFormat::StateDict).find("text.pt"), std::string::npos);
  io::save_pt(root_ / "list.pt", io::Value::list({io::Value(1)}));
  EXPECT_NE(error_of(root_ / "list.pt", ModelFormat::StateDict).find("expected a dict of tensors with names"),
            std::string::npos);
}

TEST_F(Exchange, HugeCtrsFilesThatAreDamagedAreRefused) {
  train(stateful_config());
  const std::string folder = exported(ModelFormat::HugeCtr);
  const std::string end = str_cat({load_model(root_ / "run").step, ".model"});
  const auto expect = [&](const std::string& file, const std::string& content, const std::string& text) {
    const std::string name = file + end, before = root_.get("out.hugectr/" + name);
    root_.put("out.hugectr/" + name, content);
    const std::string found = error_of(folder, ModelFormat::HugeCtr);
    EXPECT_NE(found.find(text), std::string::npos) << found;
    EXPECT_NE(found.find(name), std::string::npos) << found;
    root_.put("out.hugectr/" + name, before);
  };
  const std::string dense = root_.get("out.hugectr/model_dense_" + end);
  expect("model_dense_", dense.substr(4), " bytes, the ");
  expect("model_dense_", "\xff\xff\xff\x7f" + dense.substr(4), "expected finite numbers, found NaN or an infinity");
  const std::string states = root_.get("out.hugectr/model_opt_dense_" + end);
  expect("model_opt_dense_", states + "1234", "the states [m, v] of ");
  expect("model0_opt_sparse_", "", "2 states of ");
  const std::string keys = root_.get("out.hugectr/model0_sparse_" + end + "/key");
  for (const auto& [content, text] : {std::pair(keys.substr(1), "expected keys of 8 bytes"),
                                      {keys.substr(8) + keys.substr(0, 7) + '\1', "no row"},
                                      {keys.substr(8), "slot_id: expected "},
                                      {keys.substr(0, 8) + keys.substr(0, keys.size() - 8), "occurs twice"}}) {
    root_.put("out.hugectr/model0_sparse_" + end + "/key", content);
    const std::string found = error_of(folder, ModelFormat::HugeCtr);
    EXPECT_NE(found.find(text), std::string::npos) << found;
  }
  root_.put("out.hugectr/model0_sparse_" + end + "/key", keys);
  // Running statistics.
  const std::string name = "out.hugectr/model_dense_" + end + ".ntp.json", json = root_.get(name);
  const auto expect_statistics = [&](const std::string& content, const std::string& text) {
    root_.put(name, content);
    const std::string found = error_of(folder, ModelFormat::HugeCtr);
    EXPECT_NE(found.find(text), std::string::npos) << found;
    EXPECT_NE(found.find(".ntp.json"), std::string::npos) << found;
  };
  expect_statistics("{", "line 1");
  expect_statistics("[]", "expected an object with a list 'layers', found a list");
  expect_statistics(R"({"layers": []})", "expected 1 layers with running statistics, found 0");
  expect_statistics(R"({"layers": [7]})", "layers[0] (normal): expected 22 numbers in 'mean', found none");
  expect_statistics(R"({"layers": [{"mean": [1, 2]}]})", "expected 22 numbers in 'mean', found 2");
  std::string words = json;
  words.insert(words.find('[', words.find("mean")) + 1, "1, ");
  expect_statistics(words, "numbers in 'mean', found 23");
  std::filesystem::remove(root_ / name);
  EXPECT_NE(error_of(folder, ModelFormat::HugeCtr).find("found no such file"), std::string::npos);
  root_.put(name, json);
  root_.put("out.hugectr/other_dense_3.model", "");
  EXPECT_NE(error_of(folder, ModelFormat::HugeCtr).find("found 2: name one of them"), std::string::npos);
  EXPECT_NE(error_of(root_ / "data", ModelFormat::HugeCtr).find("found 0"), std::string::npos);
  import(folder + "/model_dense_" + end, ModelFormat::HugeCtr);
  EXPECT_EQ(predictions(root_ / "imported", dataset_), expected_);
}

TEST_F(Exchange, RowsThatTheFilesDoNotHaveKeepTheirValues) {
  train(stateful_config());
  const std::string folder = exported(ModelFormat::HugeCtr);
  const std::string end = str_cat({load_model(root_ / "run").step, ".model"}),
                    table = "out.hugectr/model0_sparse_" + end;
  const std::string keys = root_.get(table + "/key"), vectors = root_.get(table + "/emb_vector");
  root_.put(table + "/key", keys.substr(8 * 5));
  root_.put(table + "/slot_id", keys.substr(8 * 5));
  root_.put(table + "/emb_vector", vectors.substr(12 * 5));
  for (const char* states : {"model_opt_dense_", "model0_opt_sparse_", "model1_opt_sparse_"})
    std::filesystem::remove(folder + "/" + states + end);
  const ImportedModel imported = import(folder, ModelFormat::HugeCtr);
  EXPECT_EQ(imported.initial_rows, 5);
  EXPECT_FALSE(imported.has_states);
  EXPECT_EQ(imported.step, 0);
}

}  // namespace
}  // namespace tercel::recsys
