// The graph: names, shapes, inputs, tables; every mistake is a ConfigError that names the layer.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <utility>

#include "tercel/ops/factories/factories.h"
#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/recsys/embedding/initialize_rows.h"
#include "tercel/recsys/embedding/static_table.h"
#include "tercel/recsys/model/model.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using test::make;
using test::values_of;

/** 1 label, 2 dense values, slots of 10, 20 and 30 keys. */
data::Schema schema_of(std::vector<int64_t> sizes = {10, 20, 30}) {
  data::Schema schema;
  schema.dense_dim = 2;
  for (size_t s = 0; s < sizes.size(); ++s) schema.slots.push_back({"s" + std::to_string(s), sizes[s], 0, 1});
  schema.set_consecutive_keys();
  return schema;
}

Model build(const std::string& layers, const data::Schema& schema = schema_of()) {
  return Model(parse_config("{\"layers\": [" + layers + "]}", "test"), schema);
}
void refuses(const std::string& layers, const char* text, const data::Schema& schema = schema_of()) {
  TERCEL_EXPECT_THROW(build(layers, schema), ConfigError, text);
}

const std::string kData = R"({"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"},
                              "sparse": [{"top": "keys"}]},)";
const std::string kTable = R"({"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "emb",
                               "sparse_embedding_hparam": {"embedding_vec_size": 4}},)";
const std::string kJoin = R"({"type": "Reshape", "bottom": "emb", "top": "flat"},
                             {"type": "Concat", "bottom": ["flat", "dense"], "top": "all"},)";
const std::string kHead =
    R"({"type": "InnerProduct", "bottom": "all", "top": "logit", "fc_param": {"num_output": 1}},)";
const std::string kLoss = R"({"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"})";
const std::string kAll = kData + kTable + kJoin + kHead + kLoss;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Graph, SummaryHasALineForEachLayer) {
  EXPECT_EQ(build(kAll).summary(),
            "DistributedSlotSparseEmbeddingHash emb -> [batch, 3, 4], 240 parameters\n"
            "Reshape flat -> [batch, 12]\n"
            "Concat all -> [batch, 14]\n"
            "InnerProduct logit -> [batch, 1], 15 parameters\n"
            "BinaryCrossEntropyLoss loss -> scalar\n");
}

TEST(Graph, ResolvedLayersHaveEveryOption) {
  const std::string text = build(kAll).layers();
  for (const char* part : {R"("slot_num": 3)", R"("dense_dim": 2)", R"("combiner": "sum")", R"("init_range": 0.05)",
                           R"("type": "Adam")", R"("bias_init": "Default")"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
  data::Schema schema = schema_of();
  schema.slots[0].name = "history";  // which din and bst read
  schema.slots[1].name = "item";
  for (const std::string_view name : preset_names()) {
    ModelConfig config = parse_config(preset(name), name);
    const Model model(config, schema);
    config.layers = model.layers();
    const Model again(config, schema);
    EXPECT_EQ(again.layers(), model.layers()) << name;
    EXPECT_EQ(again.fingerprint(), model.fingerprint()) << name;
    EXPECT_EQ(again.summary(), model.summary()) << name;
  }
}

TEST(Graph, TheListItself) {
  refuses("", "the list is empty");
  refuses("5", "layers[0]: expected an object with a 'type' but found 5");
  refuses(R"({"bottom": "x"})", "layers[0]: expected an object with a 'type'");
  refuses(kData + "null", "layers[1]: expected an object with a 'type' but found null");
  refuses(kTable + kAll, "layers[0]: the first layer is Data, not DistributedSlotSparseEmbeddingHash");
  refuses(kData + kAll, "layers[1]: expected only one Data layer, the first, but found another");
  refuses(kData + kTable + kJoin + R"({"type": "ReLU", "bottom": "all", "top": "y"})",
          "layers: expected a loss layer: BinaryCrossEntropyLoss");
  refuses(kAll + R"(,{"type": "ReLU", "bottom": "logit", "top": "y"})", "layers: nothing reads 'y' [batch, 1]");
  refuses(kAll + R"(,{"type": "ReLU", "bottom": "loss", "top": "y"})",
          "[ReLU y] its bottom 'loss' is a loss, which no layer may read: losses are summed");
}

TEST(Graph, UnknownNamesSuggestTheNearest) {
  refuses(replaced(kAll, "\"Concat\"", "\"Concatt\""),
          "[Concatt all] unknown layer type 'Concatt'; did you mean 'Concat'?");
  refuses(replaced(kAll, "DistributedSlotSparseEmbeddingHash", "DistributedSlotSparseEmbedingHash"),
          "did you mean 'DistributedSlotSparseEmbeddingHash'?");
  refuses(replaced(kAll, "[\"flat\", \"dense\"]", "[\"flta\", \"dense\"]"),
          "[Concat all]: no layer before it makes 'flta'; did you mean 'flat'?");
  refuses(replaced(kAll, "\"bottom\": \"keys\"", "\"bottom\": \"kyes\""),
          "[DistributedSlotSparseEmbeddingHash emb]: no layer before it makes 'kyes'; did you mean 'keys'?");
  refuses(replaced(kAll, "\"sparse\"", "\"sprase\""), "[Data] unknown option 'sprase'; did you mean 'sparse'?");
  refuses(replaced(kAll, "sparse_embedding_hparam", "sparse_embeding_hparam"),
          "[DistributedSlotSparseEmbeddingHash emb] unknown option 'sparse_embeding_hparam'; did you mean "
          "'sparse_embedding_hparam'?");
  refuses(replaced(kAll, "embedding_vec_size", "embeding_vec_size"),
          "[DistributedSlotSparseEmbeddingHash emb] unknown option 'embeding_vec_size'; did you mean "
          "'embedding_vec_size'?");
  refuses(replaced(kAll, "{\"top\": \"label\"}", "{\"top\": \"label\", \"label_dmi\": 1}"),
          "did you mean 'label_dim'?");
}

TEST(Graph, TensorsAreReadAndNamedOnce) {
  refuses(replaced(kAll, kHead, kHead + R"({"type": "ReLU", "bottom": "all", "top": "unused"},)"),
          "layers: nothing reads 'unused' [batch, 14]");
  refuses(replaced(kAll, "[\"flat\", \"dense\"]", "[\"flat\"]"), "layers: nothing reads 'dense' [batch, 2]");
  refuses(kData + kTable + kTable + kJoin + kHead + kLoss,
          "[DistributedSlotSparseEmbeddingHash emb]: a tensor 'emb' exists already");
  refuses(replaced(kAll, "\"top\": \"flat\"", "\"top\": \"dense\""),
          "[Reshape dense]: a tensor 'dense' exists already");
  refuses(replaced(kAll, "\"bottom\": \"all\", ", ""), "[InnerProduct logit]: 'bottom' is missing");
  refuses(replaced(kAll, "\"top\": \"flat\"", "\"top\": 5"), "Reshape: top: expected a name but found 5");
  refuses(replaced(kAll, "\"top\": \"flat\"", "\"top\": []"), "Reshape: 'top' is empty");
  refuses(replaced(kAll, "\"top\": \"flat\"", "\"top\": \"\""), "Reshape: top: expected a name but found \"\"");
  refuses(replaced(kAll, "\"top\": \"flat\"", "\"top\": [\"flat\", \"more\"]"),
          "[Reshape flat] makes 1 tensors, but 2 tops are named");
  refuses(replaced(kAll, "\"top\": \"emb\"", "\"top\": [\"emb\", \"more\"]"), "2 tops are named");
  refuses(replaced(kAll, "\"bottom\": \"keys\"", "\"bottom\": [\"keys\", \"dense\"]"), "expected one bottom");
}

TEST(Graph, ParametersOfTwoLayersWithOneName) {
  const std::string two = R"({"type": "MLP", "bottom": "all", "top": "m", "mlp_param": {"num_outputs": [3]}},
                             {"type": "InnerProduct", "bottom": "m", "top": "m.0", "fc_param": {"num_output": 1}},)";
  refuses(kData + kTable + kJoin + two + replaced(kLoss, "logit", "m.0"),
          "[InnerProduct m.0] parameter 'm.0.weight' exists");
}

TEST(Graph, SizesThatNothingCanHold) {
  const std::string wide =
      R"({"type": "InnerProduct", "bottom": "all", "top": "w", "fc_param": {"num_output": 16777216}},)";
  const std::string wider =
      R"({"type": "InnerProduct", "bottom": "w", "top": "w2", "fc_param": {"num_output": 16777216}},)";
  refuses(kData + kTable + kJoin + wide + wider + kLoss,
          "[InnerProduct w2] parameter 'w2.weight': with [16777216, 16777216] there would be more than");
  refuses(
      kData + kTable + kJoin +
          R"({"type": "Slice", "bottom": "all", "top": "s", "ranges": [[0, 1]]},
                 {"type": "WeightMultiply", "bottom": "s", "top": "m", "weight_dims": [1, 16777216]},
                 {"type": "Concat", "bottom": [)" +
          [] {
            std::string list = "\"m\"";
            for (int i = 0; i < 200; ++i) list += ", \"m\"";
            return list;
          }() +
          R"(], "top": "c"},)" + kLoss,
      "[Concat c] makes 'c' [batch, 3372220416]");
  refuses(replaced(kAll, "\"embedding_vec_size\": 4", "\"max_vocabulary_size_global\": 4611686018427387904"),
          "[DistributedSlotSparseEmbeddingHash emb] a table of 4611686018427387904 rows is too large");
  refuses(replaced(kAll, "\"embedding_vec_size\": 4", "\"embedding_vec_size\": 1000000"), "embedding_vec_size");
}

TEST(Graph, DataMustFitTheDataset) {
  refuses(replaced(kAll, "{\"top\": \"dense\"}", "{\"top\": \"dense\", \"dense_dim\": 3}"),
          "[Data] dense_dim is 3 but the dataset has 2");
  refuses(replaced(kAll, "{\"top\": \"label\"}", "{\"top\": \"label\", \"label_dim\": 2}"),
          "[Data] label_dim is 2 but the dataset has 1");
  refuses(replaced(kAll, "{\"top\": \"keys\"}", "{\"top\": \"keys\", \"slot_num\": 2}"),
          "[Data] the sparse inputs take 2 slots but the dataset has 3");
  refuses(replaced(kAll, "{\"top\": \"keys\"}", "{\"top\": \"keys\", \"slot_num\": 4}"),
          "[Data sparse keys] takes 4 slots but 3 of the dataset's 3 are left");
  refuses(replaced(kAll, "{\"top\": \"keys\"}", "{\"top\": \"keys\"}, {\"top\": \"none\"}"),
          "[Data sparse none] takes 0 slots");
  refuses(replaced(kAll, "[{\"top\": \"keys\"}]", "{\"top\": \"keys\"}"),
          "[Data] sparse: expected a list but found an object");
  refuses(replaced(kAll, "[{\"top\": \"keys\"}]", "[]"), "[Data] the sparse inputs take 0 slots but the dataset has 3");
  refuses(replaced(kAll, "{\"top\": \"keys\"}", "{\"top\": \"keys\", \"nnz_per_slot\": [1, 1]}"),
          "[Data sparse keys] nnz_per_slot has 2 entries for 3 slots");
  data::Schema multi_hot = schema_of();
  multi_hot.slots[1].hotness = 4;
  refuses(replaced(kAll, "{\"top\": \"keys\"}", "{\"top\": \"keys\", \"nnz_per_slot\": [1, 3, 1]}"),
          "[Data sparse keys] nnz_per_slot allows 3 keys in slot 's1' but the dataset has up to 4", multi_hot);
  refuses(replaced(kAll, "{\"top\": \"label\"}", "{\"top\": [\"a\", \"b\"], \"label_dim\": [1, 1]}"),
          "[Data] label_dim is 2 in all but the dataset has 1");
  EXPECT_NO_THROW(build(replaced(kAll, "{\"top\": \"label\"}", "{\"top\": [\"label\"], \"label_dim\": [1]}")));
  EXPECT_EQ(build(replaced(kAll, "\"label\": {\"top\": \"label\"}, ", "")).layers(), build(kAll).layers());
  EXPECT_NO_THROW(
      build(replaced(kAll, "{\"top\": \"keys\"}",
                     "{\"top\": \"keys\", \"slot_num\": 3, \"nnz_per_slot\": [1, 1, 1], \"is_fixed_length\": true}")));
}

TEST(Graph, SparseInputsNeedAnEmbedding) {
  refuses(kData + R"({"type": "ReLU", "bottom": "keys", "top": "y"},)" + kLoss,
          "[ReLU y] its bottom 'keys' is a sparse input; an embedding is needed between them");
  refuses(replaced(kAll, "\"bottom\": \"keys\"", "\"bottom\": \"dense\""),
          "[DistributedSlotSparseEmbeddingHash emb] its bottom 'dense' is not a sparse input but [batch, 2]");
  refuses(replaced(kAll, kTable, ""), "no layer before it makes 'emb'");
  refuses(replaced(kAll, "[\"logit\", \"label\"]", "[\"logit\", \"logit\"]"),
          "[BinaryCrossEntropyLoss loss] expected the label 'label' as the second bottom");
  refuses(replaced(kAll, "[\"logit\", \"label\"]", "[\"logit\"]"), "[BinaryCrossEntropyLoss loss] expected a logit");
}

TEST(Graph, TablesHaveARowForEveryKey) {
  const auto rows = [](const std::string& hparam, const data::Schema& schema = schema_of()) {
    return build(replaced(kAll, "\"embedding_vec_size\": 4", "\"embedding_vec_size\": 4" + hparam), schema)
        .embeddings()
        .tables()[0]
        ->rows();
  };
  EXPECT_EQ(rows(""), 60);
  EXPECT_EQ(rows(", \"slot_size_array\": [10, 20, 30]"), 60);
  EXPECT_EQ(rows(", \"slot_size_array\": [10, 20, 300]"), 330) << "more is allowed";
  EXPECT_EQ(rows(", \"max_vocabulary_size_global\": 1000"), 1000);
  EXPECT_EQ(rows(", \"workspace_size_per_gpu_in_mb\": 1"), 60) << "accepted, not needed";
  EXPECT_EQ(rows(", \"max_vocabulary_size_global\": 77", schema_of({0, 0, 0})), 77);
  EXPECT_EQ(rows(", \"slot_size_array\": [1, 2, 3]", schema_of({0, 0, 0})), 6);
  const auto wrong = [](const std::string& hparam, const char* text, const data::Schema& schema = schema_of()) {
    refuses(replaced(kAll, "\"embedding_vec_size\": 4", "\"embedding_vec_size\": 4" + hparam), text, schema);
  };
  wrong(", \"slot_size_array\": [10, 20]", "emb] slot_size_array has 2 entries for 3 slots");
  wrong(", \"slot_size_array\": [10, 20, 29]",
        "emb] slot_size_array makes 59 rows but the dataset has 60 keys in these slots");
  wrong(", \"slot_size_array\": [10, 20, 0]", "slot_size_array[2]");
  wrong(", \"slot_size_array\": [9223372036854775807, 20, 5]", "slot_size_array overflows");
  wrong(", \"max_vocabulary_size_global\": 59",
        "emb] max_vocabulary_size_global makes 59 rows but the dataset has 60 keys");
  wrong(", \"table_type\": \"static\"",
        "slot_size_array, max_vocabulary_size_global or workspace_size_per_gpu_in_mb is needed", schema_of({0, 0, 0}));
  wrong(", \"combiner\": \"max\"", "combiner");
}

TEST(Graph, ATableIsHashedWhereItIsAskedForOrNoRangeIsKnown) {
  const auto options = [](const std::string& hparam, const data::Schema& schema) -> std::optional<HashedTableOptions> {
    Model model = build(replaced(kAll, "\"embedding_vec_size\": 4", "\"embedding_vec_size\": 4" + hparam), schema);
    const auto* const table = dynamic_cast<const HashedTable*>(model.embeddings().tables()[0].get());
    if (!table) return std::nullopt;
    EXPECT_EQ(model.sparse_inputs()[0].num_keys, 0) << "any key may occur";
    return table->options();
  };
  const data::Schema known = schema_of(), unknown = schema_of({0, 0, 0});
  EXPECT_FALSE(options("", known));
  EXPECT_FALSE(options(", \"max_vocabulary_size_global\": 77", unknown));
  ASSERT_TRUE(options("", unknown));
  EXPECT_EQ(options("", unknown)->capacity, 0);
  const auto all = options(
      ", \"table_type\": \"hashed\", \"max_vocabulary_size_global\": 9, \"workspace_size_per_gpu_in_mb\": 1, "
      "\"eviction\": \"age\", \"admission\": 3, \"default_value\": 0.5",
      known);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->capacity, 9);
  EXPECT_EQ(all->eviction, Eviction::Age);
  EXPECT_EQ(all->admission, 3);
  EXPECT_EQ(all->default_value, 0.5);
  const auto workspace = options(", \"table_type\": \"hashed\", \"workspace_size_per_gpu_in_mb\": 3", known);
  ASSERT_TRUE(workspace);
  EXPECT_EQ(workspace->capacity, 3 * (1 << 20) / (4 * 3 * 4)) << "Adam: weight and two states";
  const auto wrong = [](const std::string& hparam, const char* text) {
    refuses(replaced(kAll, "\"embedding_vec_size\": 4", "\"embedding_vec_size\": 4" + hparam), text);
  };
  wrong(", \"admission\": 2", "emb] eviction, admission and default_value need a hashed table");
  wrong(", \"table_type\": \"hashed\", \"eviction\": \"age\"", "emb] eviction needs max_vocabulary_size_global or");
  wrong(", \"table_type\": \"hashed\", \"admission\": 0", "admission");
}

TEST(Graph, EveryEmbeddingTypeIsOneStaticTable) {
  for (const char* type : {"LocalizedSlotSparseEmbeddingHash", "LocalizedSlotSparseEmbeddingOneHot",
                           "HybridSparseEmbedding", "SparseEmbedding"})
    EXPECT_EQ(build(replaced(kAll, "DistributedSlotSparseEmbeddingHash", type)).embeddings().tables()[0]->rows(), 60)
        << type;
}

/** Two inputs, of slots 0 and of 1 and 2, each with a table; the second one averages. */
const std::string kTwoInputs = R"(
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"},
     "sparse": [{"top": "a", "slot_num": 1}, {"top": "b", "slot_num": 2}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "a", "top": "ea",
     "sparse_embedding_hparam": {"embedding_vec_size": 2}},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "b", "top": "eb",
     "sparse_embedding_hparam": {"embedding_vec_size": 3, "combiner": "mean"},
     "optimizer": {"type": "SGD", "update_type": "Local", "sgd_hparam": {"atomic_update": true}}},
    {"type": "Reshape", "bottom": "ea", "top": "fa"}, {"type": "Reshape", "bottom": "eb", "top": "fb"},
    {"type": "Concat", "bottom": ["fa", "fb", "dense"], "top": "all"},
    {"type": "InnerProduct", "bottom": "all", "top": "logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"})";

int64_t first_key(Model& model, size_t table) {
  return dynamic_cast<const StaticTable&>(*model.embeddings().tables()[table]).first_key();
}

TEST(Graph, SeveralSparseInputs) {
  Model model = build(kTwoInputs);
  ASSERT_EQ(model.sparse_inputs().size(), 2u);
  EXPECT_EQ(model.sparse_inputs()[1].name, "b");
  EXPECT_EQ(model.sparse_inputs()[1].slot_num, 2);
  EXPECT_EQ(model.embeddings().tables()[0]->rows(), 10);
  EXPECT_EQ(first_key(model, 0), 0);
  EXPECT_EQ(model.embeddings().tables()[1]->rows(), 50);
  EXPECT_EQ(first_key(model, 1), 10);

  model.initialize(1);
  data::Batch batch;
  batch.rows = 2;
  batch.dense = make({2, 2}, kFloat32, {1, 2, 3, 4});
  batch.labels = make({2, 1}, kFloat32, {0, 1});
  // Inputs are found by name, in any order.
  batch.sparse.resize(2);
  data::SparseBatch &input_a = batch.sparse[1], &input_b = batch.sparse[0];
  input_a = {
      .name = "a", .slot_num = 1, .row_offsets = make({3}, kInt64, {0, 1, 2}), .keys = make({2}, kInt64, {3, 9})};
  // Row 0: slot 1 has keys 10 and 12, slot 2 none; row 1: slot 1 has 29, slot 2 has 30, 30, 59.
  input_b = {.name = "b",
             .slot_num = 2,
             .row_offsets = make({5}, kInt64, {0, 2, 2, 3, 6}),
             .keys = make({6}, kInt64, {10, 12, 29, 30, 30, 59})};
  const std::vector<double> a = values_of(model.embeddings().tables()[0]->weight()),
                            b = values_of(model.embeddings().tables()[1]->weight());
  const auto row_of = [&](std::vector<double> keys_a, const std::vector<std::vector<size_t>>& slots,
                          const std::vector<double>& dense) {
    std::vector<double> row;
    for (size_t j = 0; j < 2; ++j) row.push_back(a[static_cast<size_t>(keys_a[0]) * 2 + j]);
    for (const auto& keys : slots)
      for (size_t j = 0; j < 3; ++j) {
        double sum = 0;
        for (const size_t key : keys) sum += b[(key - 10) * 3 + j];
        row.push_back(keys.empty() ? 0 : sum / static_cast<double>(keys.size()));
      }
    row.insert(row.end(), dense.begin(), dense.end());
    return row;
  };
  const std::vector<double> rows[] = {row_of({3}, {{10, 12}, {}}, {1, 2}), row_of({9}, {{29}, {30, 30, 59}}, {3, 4})};
  const std::vector<double> w = values_of(model.parameters()[0]), bias = values_of(model.parameters()[1]);
  const Model::Result result = model.forward(batch);
  double loss = 0;
  for (size_t r = 0; r < 2; ++r) {
    double logit = bias[0];
    for (size_t i = 0; i < rows[r].size(); ++i) logit += w[i] * rows[r][i];
    EXPECT_NEAR(values_of(result.logits[0])[r], logit, 1e-5);
    loss += std::log1p(std::exp(r == 0 ? logit : -logit)) / 2;
  }
  EXPECT_NEAR(values_of(result.loss)[0], loss, 1e-5);

  batch.labels = Tensor();
  EXPECT_FALSE(model.forward(batch).loss.defined()) << "without labels there is no loss";
  input_a.keys = make({2}, kInt64, {3, 10});
  TERCEL_EXPECT_THROW(model.forward(batch), IndexError,
                      "embedding table 'ea': no row for key 10 (at position 1); it has the keys from 0 to 9");
  input_a.keys = make({2}, kInt64, {3, 9});
  input_b.keys = make({6}, kInt64, {9, 12, 29, 30, 30, 59});
  TERCEL_EXPECT_THROW(model.forward(batch), IndexError,
                      "embedding table 'eb': no row for key 9 (at position 0); it has the keys from 10 to 59");
}

TEST(Graph, TablesMayHaveAnOptimizerOfTheirOwn) {
  Model model = build(kTwoInputs);
  EXPECT_EQ(model.embeddings().optimizer(0).type, optim::Rule::Adam) << "the model's, here by default";
  EXPECT_EQ(model.embeddings().optimizer(1).type, optim::Rule::Sgd);
  refuses(replaced(kTwoInputs, "\"SGD\"", "\"SDG\""), "[DistributedSlotSparseEmbeddingHash eb optimizer]");
  refuses(replaced(kTwoInputs, "\"sgd_hparam\"", "\"sgd_hparams\""), "did you mean 'sgd_hparam'?");
  refuses(replaced(kTwoInputs, "\"sgd_hparam\": {\"atomic_update\": true}", "\"adam_hparam\": {\"beta3\": 0.5}"),
          "'beta3'");
}

TEST(Graph, InitialRowsMayDependOnTheSizeOfTheirSlotOrTable) {
  const auto rows_of = [](const std::string& options) {
    Model model = build(R"({"type": "Data", "sparse": [{"top": "a", "slot_num": 1}, {"top": "b"}]},
        {"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "a", "top": "ea",
         "sparse_embedding_hparam": {"embedding_vec_size": 3}},
        {"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "b", "top": "eb",
         "sparse_embedding_hparam": {"embedding_vec_size": 3, )" +
                        options + R"(}},
        {"type": "Reshape", "bottom": "ea", "top": "fa"}, {"type": "Reshape", "bottom": "eb", "top": "fb"},
        {"type": "Concat", "bottom": ["fa", "fb", "dense"], "top": "all"},
        {"type": "InnerProduct", "bottom": "all", "top": "logit", "fc_param": {"num_output": 1}},
        {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"})");
    model.initialize(5);
    return model.embeddings().tables()[1]->weight().detach();
  };
  // Slots of 20 and 30 keys from 10 on; the table may have more rows.
  const auto expect = [&](const std::string& options, const std::vector<std::pair<int64_t, double>>& parts) {
    const Tensor found = rows_of(options);
    int64_t row = 0;
    for (const auto& [rows, size] : parts) {
      const Tensor expected = empty({rows, 3});
      initialize_rows(expected, nn::Init::uniform(std::sqrt(1 / size)), 5, "eb", 10 + row);
      EXPECT_EQ(values_of(found.narrow(0, row, rows)), values_of(expected)) << options;
      row += rows;
    }
    EXPECT_EQ(row, found.size(0)) << options;
  };
  expect(R"("init": "SlotSize")", {{20, 20}, {30, 30}});
  expect(R"("init": "SlotSize", "slot_size_array": [24, 40])", {{20, 24}, {44, 40}});
  expect(R"("init": "TableSize")", {{50, 50}});
  expect(R"("init": "TableSize", "max_vocabulary_size_global": 60)", {{60, 60}});
  expect(R"("init": "Range", "init_range": 0.5)", {{50, 4}});
  TERCEL_EXPECT_THROW(rows_of(R"("init": "Slot")"), ConfigError, "SlotSize");
}

TEST(Graph, WithoutDenseValuesLayersOfThemAreLeftOut) {
  data::Schema schema = schema_of();
  schema.dense_dim = 0;
  EXPECT_EQ(build(replaced(kAll, "[\"flat\", \"dense\"]", "[\"flat\"]"), schema).embeddings().tables().size(), 1u);
  const std::string alone =
      "DistributedSlotSparseEmbeddingHash emb -> [batch, 3, 4], 240 parameters\n"
      "Reshape flat -> [batch, 12]\n"
      "Concat all -> [batch, 12]\n"
      "InnerProduct logit -> [batch, 1], 13 parameters\n"
      "BinaryCrossEntropyLoss loss -> scalar\n";
  EXPECT_EQ(build(kAll, schema).summary(), alone);
  // Layers with only absent inputs are absent: the two before the Concat, and the sum with the logit.
  const std::string tower = R"({"type": "MLP", "bottom": "dense", "top": "m", "mlp_param": {"num_outputs": [4]}},
                               {"type": "Slice", "bottom": "m", "top": ["left", "right"], "ranges": [[0, 1], [1, 4]]},)";
  const std::string sum = R"({"type": "Add", "bottom": ["left", "y"], "top": "logit"},)";
  const std::string towers = replaced(replaced(kAll, kJoin, tower + kJoin), "\"dense\"], \"top\": \"all\"",
                                      "\"right\", \"m\"], \"top\": \"all\"");
  const std::string model = replaced(towers, kHead, replaced(kHead, "\"logit\"", "\"y\"") + sum);
  EXPECT_EQ(build(model).embeddings().tables().size(), 1u);
  EXPECT_EQ(build(model, schema).summary(), replaced(replaced(alone, "InnerProduct logit", "InnerProduct y"),
                                                     "BinaryCross", "Add logit -> [batch, 1]\nBinaryCross"));
  // Mistakes in absent layers are still errors.
  refuses(replaced(model, "num_outputs", "num_output_s"), "[MLP m] unknown option 'mlp_param.num_output_s'", schema);
  refuses(replaced(model, "\"bottom\": \"m\"", "\"bottom\": \"n\""), "no layer before it makes 'n'", schema);
  refuses(replaced(model, "\"left\", \"right\"", "\"left\", \"left\""), "'left' exists already", schema);
  // Layers that do not combine their inputs need all of them.
  const std::string product = replaced(model, "\"Add\"", "\"ElementwiseMultiply\"");
  EXPECT_EQ(build(product).embeddings().tables().size(), 1u);
  refuses(product,
          "[ElementwiseMultiply logit] its bottom 'left' depends only on dense values, and the dataset has none",
          schema);
  refuses(replaced(model, "[\"logit\", \"label\"]", "[\"left\", \"label\"]"),
          "[BinaryCrossEntropyLoss loss] its bottom 'left' depends only on dense values, and the dataset has none",
          schema);
}

TEST(Graph, DatasetsWithoutSlots) {
  data::Schema plain = schema_of({});
  Model no_slots =
      build(R"({"type": "Data", "label": {"top": "label"}, "dense": {"top": "all"}},)" + kHead + kLoss, plain);
  EXPECT_TRUE(no_slots.embeddings().tables().empty());
  EXPECT_TRUE(no_slots.sparse_inputs().empty());
}

TEST(Graph, FingerprintsTellGraphsApart) {
  const std::string base = build(kAll).fingerprint();
  EXPECT_EQ(build(kAll).fingerprint(), base);
  EXPECT_EQ(build(kAll).fingerprint(kFloat32), base);
  EXPECT_EQ(build(kAll).fingerprint(kFloat64), base + "-float64");
  EXPECT_EQ(build(replaced(kAll, "\"top\": \"all\"", "\"top\": \"all\"")).fingerprint(), base);
  EXPECT_NE(build(replaced(kAll, "\"embedding_vec_size\": 4", "\"embedding_vec_size\": 5")).fingerprint(), base);
  EXPECT_NE(build(kAll, schema_of({10, 20, 31})).fingerprint(), base);
  EXPECT_NE(
      build(replaced(replaced(kAll, "\"top\": \"logit\"", "\"top\": \"y\""), "[\"logit\"", "[\"y\"")).fingerprint(),
      base);
  EXPECT_EQ(base.size(), 16u);
}

TEST(Graph, InitialRowsOfTables) {
  const auto rows = [](const std::string& hparam) {
    Model model = build(replaced(kAll, "\"embedding_vec_size\": 4",
                                 "\"embedding_vec_size\": 4, \"max_vocabulary_size_global\": 5000" + hparam));
    model.initialize(3);
    return values_of(model.embeddings().tables()[0]->weight());
  };
  const auto largest = [](const std::vector<double>& v) {
    double most = 0;
    for (const double x : v) most = std::max(most, std::abs(x));
    return most;
  };
  EXPECT_LE(largest(rows("")), 0.05);
  EXPECT_GT(largest(rows("")), 0.0499);
  EXPECT_GT(largest(rows(", \"init_range\": 0.5")), 0.499);
  EXPECT_EQ(largest(rows(", \"init_range\": 0")), 0);
  EXPECT_GT(largest(rows(", \"init_stddev\": 0.01")), 0.03);
  EXPECT_LT(largest(rows(", \"init_stddev\": 0.01")), 0.06);
}

}  // namespace
}  // namespace tercel::recsys
