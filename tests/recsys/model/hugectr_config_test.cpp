// Configurations of HugeCTR's command line, translated.
#include <gtest/gtest.h>

#include "tercel/recsys/model/model.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

const std::string kOld = R"({
  "solver": {"lr_policy": "fixed", "display": 200, "max_iter": 300, "gpu": [0, 1], "batchsize": 256, "snapshot": 1000,
             "snapshot_prefix": "./", "eval_interval": 100, "max_eval_batches": 8, "mixed_precision": 1024,
             "eval_metrics": ["AUC:0.8"], "input_key_type": "I64"},
  "optimizer": {"type": "MomentumSGD", "update_type": "Local",
                "momentum_sgd_hparam": {"learning_rate": 0.5, "warmup_steps": 20, "decay_start": 100, "decay_steps": 50,
                                        "decay_power": 3.0, "end_lr": 0.01}},
  "layers": [
    {"name": "data", "type": "Data", "source": "./list.txt", "eval_source": "./test.txt", "check": "Sum",
     "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 2},
     "sparse": [{"top": "wide", "type": "DistributedSlot", "max_feature_num_per_sample": 30, "slot_num": 1},
                {"top": "deep", "slot_num": 2, "is_fixed_length": true, "nnz_per_slot": 1}]},
    {"name": "e1", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "wide", "top": "e1",
     "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 100, "load_factor": 0.75, "embedding_vec_size": 1,
                                 "combiner": 1}},
    {"name": "e2", "type": "LocalizedSlotSparseEmbeddingHash", "bottom": "deep", "top": "e2",
     "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 100, "embedding_vec_size": 4, "combiner": 0},
     "optimizer": {"type": "SGD", "global_update": false, "sgd_hparam": {"learning_rate": 0.1}}},
    {"name": "r1", "type": "Reshape", "bottom": "e1", "top": "r1", "leading_dim": 1},
    {"name": "r2", "type": "Reshape", "bottom": "e2", "top": "r2", "leading_dim": 8},
    {"name": "f1", "type": "FusedInnerProduct", "bottom": "r2", "top": "f1", "fc_param": {"num_output": 4}},
    {"name": "f2", "type": "InnerProduct", "bottom": "f1", "top": "f2", "fc_param": {"num_output": 1}},
    {"name": "m", "type": "DotProduct", "bottom": ["f2", "r1"], "top": "m"},
    {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["m", "label"], "top": "loss"}]})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

data::Schema schema() {
  data::Schema schema;
  schema.dense_dim = 2;
  schema.slots = {{"a", 10, 0, 1}, {"b", 20, 0, 1}, {"c", 30, 0, 1}};
  schema.set_consecutive_keys();
  return schema;
}

TEST(HugeCtrConfig, SolverAndOptimizerAreTranslated) {
  const ModelConfig config = parse_config(kOld, "old.json");
  EXPECT_EQ(config.solver.max_iter, 300);
  EXPECT_EQ(config.solver.batchsize, 256);
  EXPECT_EQ(config.solver.batchsize_eval, 256);
  EXPECT_EQ(config.solver.eval_interval, 100);
  EXPECT_EQ(config.solver.lr, 0.5);
  EXPECT_EQ(config.solver.warmup_steps, 20);
  EXPECT_EQ(config.solver.decay_start, 100);
  EXPECT_EQ(config.solver.decay_steps, 50);
  EXPECT_EQ(config.solver.decay_power, 3);
  EXPECT_EQ(config.solver.end_lr, 0.01);
  EXPECT_EQ(config.optimizer.type, optim::Rule::MomentumSgd);
  EXPECT_EQ(config.optimizer.momentum_factor, 0);  // HugeCTR's default, not Tercel's
  EXPECT_TRUE(config.data.drop_last);
}

TEST(HugeCtrConfig, TheGraphIsBuilt) {
  const Model model(parse_config(kOld, "old.json"), schema());
  EXPECT_EQ(model.summary(),
            "DistributedSlotSparseEmbeddingHash e1 -> [batch, 1, 1], 10 parameters\n"
            "LocalizedSlotSparseEmbeddingHash e2 -> [batch, 2, 4], 200 parameters\n"
            "Reshape r1 -> [batch, 1]\nReshape r2 -> [batch, 8]\nMLP f1 -> [batch, 4], 36 parameters\n"
            "InnerProduct f2 -> [batch, 1], 5 parameters\nElementwiseMultiply m -> [batch, 1]\n"
            "BinaryCrossEntropyLoss loss -> scalar\n");
  const std::string layers = model.layers();
  EXPECT_NE(layers.find(R"("combiner": "mean")"), std::string::npos);
  EXPECT_NE(layers.find(R"("type": "SGD")"), std::string::npos);
}

TEST(HugeCtrConfig, UpdateTypes) {
  const auto of = [](const std::string& entry) {
    return parse_config(replaced(kOld, R"("update_type": "Local",)", entry), "old.json").optimizer.update_type;
  };
  EXPECT_EQ(of(""), optim::UpdateType::Global);
  EXPECT_EQ(of(R"("global_update": false,)"), optim::UpdateType::Local);
  EXPECT_EQ(of(R"("global_update": true,)"), optim::UpdateType::Global);
}

TEST(HugeCtrConfig, UnknownEntriesAreNamedByTheirPath) {
  const auto refuses = [](const std::string& from, const std::string& to, const char* text) {
    TERCEL_EXPECT_THROW(parse_config(replaced(kOld, from, to), "old.json"), ConfigError, text);
  };
  refuses("\"snapshot\"", "\"snapshto\"", "old.json: solver.snapshto: unknown entry; did you mean 'snapshot'?");
  refuses("\"eval_source\"", "\"evla_source\"", "old.json: layers[0].evla_source: unknown entry");
  refuses("\"global_update\"", "\"global_updaet\"", "old.json: layers[2].optimizer.global_updaet: unknown entry");
  refuses("\"fixed\"", "\"cyclic\"", "old.json: solver.lr_policy: expected \"fixed\" but found \"cyclic\"");
  refuses("\"combiner\": 1", "\"combiner\": 2", "old.json: layers[1].sparse_embedding_hparam.combiner: expected 0");
  refuses("\"display\": 200", "\"dense_model_file\": \"d\"", "old.json: solver.dense_model_file: a run does not begin");
  refuses("\"global_update\": false", "\"global_update\": 0",
          "layers[2].optimizer.global_update: expected true or false");
  refuses("\"solver\": {", "\"solver\": 5, \"x\": {", "old.json: solver: expected an object but found 5");
  refuses("\"sparse\": [", "\"sparse\": 5, \"name2\": [", "old.json: layers[0].sparse: expected a list but found 5");
}

TEST(HugeCtrConfig, ConfigurationsOfTercelAreLeftAlone) {
  for (const std::string_view name : preset_names())
    EXPECT_EQ(to_json(parse_config(to_json(parse_config(preset(name), name)), name)),
              to_json(parse_config(preset(name), name)));
  TERCEL_EXPECT_THROW(parse_config(R"({"solver": {"display": 5}, "layers": []})", "mine.json"), ConfigError,
                      "unknown option 'display'");
}

}  // namespace
}  // namespace tercel::recsys
