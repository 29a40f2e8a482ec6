// Configurations: reading, printing, changes by --set; HugeCTR's files are accepted.
#include "tercel/recsys/model/config.h"

#include <gtest/gtest.h>

#include "tercel/recsys/embedding/static_table.h"
#include "tercel/recsys/model/model.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

data::Schema criteo_schema() {
  data::Schema schema;
  schema.dense_dim = 13;
  for (int s = 0; s < 26; ++s) schema.slots.push_back({"C" + std::to_string(s), 10, 0, 1});
  schema.slots[4].name = "history";  // which din and bst read
  schema.slots[5].name = "item";
  schema.set_consecutive_keys();
  return schema;
}

void refuses(const std::string& json, const char* text) {
  TERCEL_EXPECT_THROW(parse_config(json, "model.json"), ConfigError, text);
}

TEST(Presets, ParsePrintAndParseBackTheSame) {
  EXPECT_EQ(preset_names().size(), 16u);
  for (const std::string_view name : preset_names()) {
    const ModelConfig config = parse_config(preset(name), name);
    EXPECT_EQ(config.model_name, name);
    const std::string printed = to_json(config);
    const ModelConfig again = parse_config(printed, "again");
    EXPECT_EQ(to_json(again), printed);
    EXPECT_EQ(again.layers, config.layers);
    EXPECT_EQ(again.solver.batchsize, config.solver.batchsize);
    EXPECT_EQ(again.optimizer.type, config.optimizer.type);
    EXPECT_EQ(again.optimizer.epsilon, config.optimizer.epsilon);
    EXPECT_EQ(Model(config, criteo_schema()).fingerprint(), Model(again, criteo_schema()).fingerprint());
  }
}

TEST(Presets, HaveTheSizesOfTheirPapers) {
  const auto parameters = [](const char* name) {
    int64_t n = 0;
    Model model(parse_config(preset(name), name), criteo_schema());
    for (const auto& entry : model.parameters().entries()) n += numel_of(entry.sizes);
    return n;
  };
  // dlrm: 13-256-128-16, then 16 + 27 * 26 / 2 + 1 = 368 to 256-128-1.
  const auto layer = [](int64_t in, int64_t out) { return in * out + out; };
  EXPECT_EQ(parameters("dlrm"),
            layer(13, 256) + layer(256, 128) + layer(128, 16) + layer(368, 256) + layer(256, 128) + layer(128, 1));
  const int64_t deep = layer(26 * 16 + 13, 256) + layer(256, 128);
  EXPECT_EQ(parameters("wdl"), deep + layer(128, 1));
  EXPECT_EQ(parameters("deepfm"), deep + layer(128, 1) + layer(13, 1));
  const int64_t cross = 3 * (429 * 64 + 64 * 429 + 429);  // of rank 64
  EXPECT_EQ(parameters("dcn"), deep + cross + layer(429 + 128, 1));
  EXPECT_EQ(parameters("dcnv2"), cross + deep + layer(128, 1));
  EXPECT_EQ(parameters("lr"), layer(13, 1));
  EXPECT_EQ(parameters("fm"), layer(13, 1) + 13 * 16);
  EXPECT_EQ(parameters("ffm"), layer(13, 1) + 13 * 39 * 8);
  EXPECT_EQ(parameters("neumf"), deep + layer(16 + 128, 1) + layer(13, 1));
  const int64_t fields = 13 * 16, deep_of_fields = layer(39 * 16, 256) + layer(256, 128) + layer(128, 1);
  EXPECT_EQ(parameters("autoint"), fields + 4 * layer(16, 32) + 4 * layer(32, 32) + layer(39 * 32, 1) + deep_of_fields);
  EXPECT_EQ(parameters("xdeepfm"), layer(13, 1) + fields + 39 * 16 * 39 + 16 * 16 * 39 + layer(32, 1) + deep_of_fields);
}

TEST(Presets, SayWhatTheyAre) {
  for (const std::string_view name : preset_names()) {
    const std::string_view text = preset(name);
    for (const char* part : {R"("about": {)", R"("paper": ")", R"("parameters": ")"})
      EXPECT_NE(text.find(part), std::string_view::npos) << name << " has no " << part;
  }
  refuses(R"({"layers": [], "about": "x"})", "model.json: about: expected an object of strings but found");
  refuses(R"({"layers": [], "about": {"paper": 5}})", "model.json: about: expected an object of strings but found");
}

TEST(Presets, UnknownOnesSuggestTheNearest) {
  TERCEL_EXPECT_THROW(preset("dlmr"), ConfigError, "unknown model 'dlmr'; did you mean 'dlrm'?");
  TERCEL_EXPECT_THROW(preset("DeepFM2"), ConfigError, "did you mean 'deepfm'?");
  TERCEL_EXPECT_THROW(preset("transformer"), ConfigError, "known: autoint, bst, dcn,");
}

TEST(Config, NamesWhatIsWrong) {
  refuses("", "model.json");
  refuses("{", "model.json");
  refuses("[]", "model.json: expected an object but found a list");
  refuses("{}", "model.json: expected a list 'layers'");
  refuses(R"({"layers": {}})", "model.json: expected a list 'layers'");
  refuses(R"({"layers": [], "solvr": {}})", "model.json: unknown section 'solvr'; did you mean 'solver'?");
  refuses(R"({"layers": [], "model_name": 5})", "model.json: model_name: expected a string but found 5");
  for (const char* path : {"/tmp/evil", "a/b", "..", "."})
    refuses(R"({"layers": [], "model_name": ")" + std::string(path) + R"("})",
            ("model.json: model_name: expected the name of a folder, without '/', found '" + std::string(path) + "'")
                .c_str());
  refuses(R"({"layers": [], "solver": {"batch_size": 5}})",
          "[model.json: solver] unknown option 'batch_size'; did you mean 'batchsize'?");
  refuses(R"({"layers": [], "solver": {"batchsize": 0}})", "[model.json: solver] option 'batchsize'");
  refuses(R"({"layers": [], "solver": {"batchsize": 2.5}})", "'batchsize'");
  refuses(R"({"layers": [], "solver": {"lr": -1}})", "'lr'");
  refuses(R"({"layers": [], "solver": {"lr": "fast"}})", "'lr'");
  refuses(R"({"layers": [], "solver": {"epochs": -1}})", "'epochs'");
  refuses(R"({"layers": [], "solver": {"checkpoint_minutes": -1}})", "'checkpoint_minutes'");
  refuses(R"({"layers": [], "solver": {"keep_checkpoints": 0}})", "'keep_checkpoints'");
  refuses(R"({"layers": [], "solver": []})", "[model.json: solver]");
  refuses(R"({"layers": [], "data": {"shufle": true}})", "did you mean 'shuffle'?");
  refuses(R"({"layers": [], "data": {"num_workers": 0}})", "'num_workers'");
  refuses(R"({"layers": [], "data": {"num_workers": 1025}})", "[model.json: data] option 'num_workers'");
  refuses(R"({"layers": [], "data": {"prefetch": 1025}})", "[model.json: data] option 'prefetch'");
  refuses(R"({"layers": [], "data": {"shuffle_window": 67108865}})", "[model.json: data] option 'shuffle_window'");
  refuses(R"({"layers": [], "optimizer": {"type": "Adagrad2"}})", "AdaGrad");
  refuses(R"({"layers": [], "optimizer": {"bta1": 0.5}})", "did you mean 'beta1'?");
  refuses(R"({"layers": [], "optimizer": {"adam_hparam": {"beta1": 1}}})", "'beta1'");
  refuses(R"({"layers": [], "optimizer": {"adam_hparam": 5}})", "adam_hparam");
  refuses(R"({"layers": [], "optimizer": 5})", "[model.json: optimizer]");
}

TEST(Config, OptimizersAsHugeCtrWritesThem) {
  const auto optimizer = [](const std::string& json) {
    return parse_config(R"({"layers": [], "optimizer": )" + json + "}", "x").optimizer;
  };
  const optim::OptimizerOptions adam = optimizer(
      R"({"type": "Adam", "update_type": "Global", "adam_hparam": {"beta1": 0.8, "beta2": 0.9, "epsilon": 0.001}})");
  EXPECT_EQ(adam.type, optim::Rule::Adam);
  EXPECT_EQ(adam.update_type, optim::UpdateType::Global);
  EXPECT_EQ(adam.beta1, 0.8);
  EXPECT_EQ(adam.beta2, 0.9);
  EXPECT_EQ(adam.epsilon, 0.001);
  EXPECT_EQ(optimizer(R"({"type": "Adam", "beta1": 0.7})").beta1, 0.7) << "flat is accepted too";
  EXPECT_EQ(optimizer(R"({"type": "AdaGrad", "adagrad_hparam": {"initial_accu_value": 0.5}})").initial_accu_value, 0.5);
  EXPECT_EQ(optimizer(R"({"type": "MomentumSGD", "momentum_sgd_hparam": {"momentum_factor": 0.5}})").momentum_factor,
            0.5);
  EXPECT_EQ(optimizer(R"({"type": "Ftrl", "ftrl_hparam": {"beta": 1, "lambda1": 2, "lambda2": 3}})").lambda2, 3);
  EXPECT_EQ(optimizer(R"({"type": "SGD", "sgd_hparam": {"atomic_update": true}})").type, optim::Rule::Sgd);
  EXPECT_EQ(optimizer(R"({"type": "Nesterov", "nesterov_hparam": {"momentum_factor": 0.5}})").momentum_factor, 0.5);
  const optim::OptimizerOptions rms = optimizer(R"({"type": "RMSProp", "rmsprop_hparam": {"beta": 0.7}})");
  EXPECT_EQ(rms.alpha, 0.7);
  EXPECT_EQ(rms.beta, 0) << "which is Ftrl's";
  EXPECT_EQ(optimizer(R"({"type": "AdamW", "adamw_hparam": {"weight_decay": 0.1}})").weight_decay, 0.1);
}

// graph_to_json of a model as in HugeCTR's samples, its keys in the order in which HugeCTR writes them.
constexpr std::string_view kHugeCtrGraph = R"json({
  "layers": [
    {"name": "data", "type": "Data"},
    {"type": "x"}
  ]
})json";

constexpr std::string_view kFromHugeCtr = R"json({
  "model_name": "wdl",
  "layers": [
    {"type": "Data",
     "label": {"top": "label", "label_dim": 1},
     "dense": {"top": "dense", "dense_dim": 13},
     "sparse": [
       {"top": "wide_data", "nnz_per_slot": [2], "is_fixed_length": true, "slot_num": 1},
       {"top": "deep_data", "nnz_per_slot": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        "is_fixed_length": true, "slot_num": 25}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "wide_data", "top": "sparse_embedding2",
     "sparse_embedding_hparam": {"workspace_size_per_gpu_in_mb": 75, "max_vocabulary_size_global": 0,
                                 "embedding_vec_size": 1, "combiner": "sum"},
     "optimizer": {"update_type": "Local", "type": "Adam",
                   "adam_hparam": {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-07}}},
    {"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "deep_data", "top": "sparse_embedding1",
     "sparse_embedding_hparam": {"workspace_size_per_gpu_in_mb": 1000, "embedding_vec_size": 16, "combiner": "mean",
       "slot_size_array": [10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10]},
     "optimizer": {"update_type": "Local", "type": "SGD", "sgd_hparam": {"atomic_update": false}}},
    {"type": "Reshape", "bottom": "sparse_embedding1", "top": "reshape1", "leading_dim": 400},
    {"type": "Reshape", "bottom": "sparse_embedding2", "top": "reshape2", "leading_dim": 1},
    {"type": "Concat", "bottom": ["reshape1", "dense"], "top": "concat1", "axis": 1},
    {"type": "BatchNorm", "bottom": "concat1", "top": "bn", "bn_param": {"factor": 0.9, "eps": 1e-05}},
    {"type": "InnerProduct", "bottom": "bn", "top": "fc1",
     "fc_param": {"num_output": 64, "weight_init": "XavierUniform", "bias_init": "Zero"}},
    {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
    {"type": "Dropout", "bottom": "relu1", "top": "dropout1", "rate": 0.5},
    {"type": "MultiCross", "bottom": "dropout1", "top": "cross", "mc_param": {"num_layers": 2, "projection_dim": 8}},
    {"type": "MLP", "bottom": "cross", "top": "fc3",
     "mlp_param": {"num_outputs": [32, 1], "use_bias": true, "activations": ["Relu", "Non"]}},
    {"type": "ReduceSum", "bottom": "reshape2", "top": "reducesum1", "axis": 1},
    {"type": "Add", "bottom": ["fc3", "reducesum1"], "top": "add1"},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["add1", "label"], "top": "loss"}
  ]
})json";

TEST(Config, AcceptsWhatHugeCtrWrites) {
  const ModelConfig config = parse_config(kFromHugeCtr, "hugectr.json");
  Model model(config, criteo_schema());
  ASSERT_EQ(model.embeddings().tables().size(), 2u);
  EXPECT_EQ(model.embeddings().tables()[0]->rows(), 10);
  EXPECT_EQ(model.embeddings().tables()[1]->rows(), 250);
  EXPECT_EQ(dynamic_cast<const StaticTable&>(*model.embeddings().tables()[1]).first_key(), 10);
  EXPECT_EQ(model.embeddings().optimizer(0).type, optim::Rule::Adam);
  EXPECT_EQ(model.embeddings().optimizer(1).type, optim::Rule::Sgd);
  EXPECT_EQ(to_json(parse_config(to_json(config), "again")), to_json(config));
  // Names of layers are those of HugeCTR's former command line.
  TERCEL_EXPECT_THROW(Model(parse_config(kHugeCtrGraph, "x"), criteo_schema()), ConfigError,
                      "[Data] the sparse inputs take 0 slots but the dataset has 26");
}

TEST(SetConfig, EverySection) {
  ModelConfig config = parse_config(preset("dlrm"), "dlrm");
  set_config(config, "solver.lr=0.02");
  set_config(config, "solver.batchsize=512");
  set_config(config, "solver.seed=18446744073709551615");
  set_config(config, "optimizer.type=Ftrl");
  set_config(config, "optimizer.lambda1=0.5");
  set_config(config, "data.shuffle=true");
  EXPECT_EQ(config.solver.lr, 0.02);
  EXPECT_EQ(config.solver.batchsize, 512);
  EXPECT_EQ(config.solver.seed, UINT64_MAX);
  EXPECT_EQ(config.optimizer.type, optim::Rule::Ftrl);
  EXPECT_EQ(config.optimizer.lambda1, 0.5);
  EXPECT_TRUE(config.data.shuffle);
  EXPECT_EQ(to_json(parse_config(to_json(config), "again")), to_json(config));
}

TEST(SetConfig, EntriesOfLayers) {
  const auto changed = [](const char* assignment) {
    ModelConfig config = parse_config(preset("dlrm"), "dlrm");
    set_config(config, assignment);
    return config;
  };
  const auto width = [&](const char* assignment, const char* name) {
    Model model(changed(assignment), criteo_schema());
    for (const auto& entry : model.parameters().entries())
      if (entry.name == name) return entry.sizes[1];
    return int64_t{-1};
  };
  EXPECT_EQ(width("layers.logit.mlp_param.num_outputs=64,32,1", "logit.0.weight"), 64);
  EXPECT_EQ(width("layers.logit.mlp_param.num_outputs=[64, 32, 1]", "logit.1.weight"), 32);
  const ModelConfig both = changed("layers.embedding.sparse_embedding_hparam.combiner=mean");
  EXPECT_NE(both.layers.find("\"combiner\": \"mean\""), std::string::npos) << both.layers;
  const ModelConfig fresh = changed("layers.embedding.optimizer.type=SGD");
  EXPECT_EQ(Model(fresh, criteo_schema()).embeddings().optimizer(0).type, optim::Rule::Sgd) << "objects are created";
  EXPECT_EQ(
      Model(changed("layers.bottom.mlp_param.activations=Relu,Non,Relu"), criteo_schema()).embeddings().tables().size(),
      1u);
  const auto refused = [&](const char* assignment, const char* text) {
    TERCEL_EXPECT_THROW(Model(changed(assignment), criteo_schema()), ConfigError, text);
  };
  refused("layers.botom.mlp_param.num_outputs=5",
          "--set layers.botom.mlp_param.num_outputs=5: unknown layer 'botom'; did you mean 'bottom'?");
  refused("layers.bottom=5", "expected layers.NAME.OPTION=VALUE");
  refused("layers.bottom.mlp_parm.num_outputs=5", "did you mean 'mlp_param'?");
  refused("layers.bottom.mlp_param.num_output.x=5", "mlp_param");
  refused("layers.bottom.type.x=5", "'type' has no entries");
  refused("layers.bottom.mlp_param.num_outputs=16,wide", "num_outputs");
  refused("layers.bottom.=5", "expected layers.NAME.OPTION=VALUE");
  refused("layers.bottom.mlp_param..x=5", "expected layers.NAME.OPTION=VALUE");
  refused("layers.bottom.mlp_param.=5", "expected layers.NAME.OPTION=VALUE");
}

TEST(SetConfig, NamesWhatIsWrong) {
  ModelConfig config = parse_config(preset("dlrm"), "dlrm");
  const auto refused = [&](const char* assignment, const char* text) {
    TERCEL_EXPECT_THROW(set_config(config, assignment), ConfigError, text);
  };
  refused("", "expected SECTION.OPTION=VALUE");
  refused("solver.lr", "expected SECTION.OPTION=VALUE, as in solver.lr=0.01");
  refused("lr=0.1", "expected SECTION.OPTION=VALUE");
  refused("lr=0.1.2", "expected SECTION.OPTION=VALUE");
  refused("slover.lr=1", "--set slover.lr=1: unknown section 'slover'; did you mean 'solver'?");
  refused("solver.lrr=1", "[--set solver] unknown option 'lrr'; did you mean 'lr'?");
  refused("solver.lr=fast", "'lr'");
  refused("solver.batchsize=0", "'batchsize'");
  refused("solver.=1", "--set solver");
  refused("optimizer.type=Adm", "did you mean 'Adam'?");
  refused("data.shuffle=maybe", "'shuffle'");
  refused("model_name.x=5", "unknown section 'model_name'");
}

}  // namespace
}  // namespace tercel::recsys
