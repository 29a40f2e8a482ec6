// Lookups in shared tables in a graph: which rows a table has, what its lookups may say, what a session trains.
#include <gtest/gtest.h>

#include "tercel/recsys/embedding/static_table.h"
#include "tercel/recsys/model/model.h"
#include "tercel/recsys/session.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using test::make;
using test::values_of;

/** 1 label, no dense values, slots "a" and "b" of these sizes (0: any key), with at most 2 keys. */
data::Schema schema_of(int64_t a, int64_t b) {
  data::Schema schema;
  schema.slots = {{"a", a, 0, 2}, {"b", b, 0, 2}};
  if (a > 0 && b > 0) schema.set_consecutive_keys();
  return schema;
}

const std::string kData = R"({"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"},
                              "sparse": [{"top": "x", "slot_num": 1}, {"top": "y", "slot_num": 1}]},)";
const std::string kHparam = R"("sparse_embedding_hparam": {"embedding_vec_size": 3, "max_vocabulary_size_global": 40})";
const std::string kFirst = R"({"type": "EmbeddingLookup", "bottom": "x", "top": "p", "table": "t", )" + kHparam + "},";
const std::string kSecond =
    R"({"type": "EmbeddingLookup", "bottom": "y", "top": "q", "table": "t", "combiner": "concat"},)";
const std::string kRest =
    R"({"type": "Reshape", "bottom": "p", "top": "p2"}, {"type": "Reshape", "bottom": "q", "top": "q2"},
    {"type": "Concat", "bottom": ["p2", "q2"], "top": "all"},
    {"type": "InnerProduct", "bottom": "all", "top": "logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"})";
const std::string kAll = kData + kFirst + kSecond + kRest;

ModelConfig config_of(const std::string& layers, const std::string& sections = "") {
  return parse_config("{" + sections + "\"layers\": [" + layers + "]}", "test");
}
void refuses(const std::string& layers, const char* text, const data::Schema& schema = schema_of(10, 20)) {
  TERCEL_EXPECT_THROW(Model(config_of(layers), schema), ConfigError, text);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

const StaticTable& table_of(Model& model, size_t i = 0) {
  return dynamic_cast<const StaticTable&>(*model.embeddings().tables()[i]);
}

TEST(LookupGraph, ATableHasTheKeysOfAllItsLookups) {
  const std::string without = replaced(kAll, R"(, "max_vocabulary_size_global": 40)", "");
  Model model(config_of(without), schema_of(10, 20));
  ASSERT_EQ(model.embeddings().tables().size(), 1U);
  EXPECT_EQ(table_of(model).name(), "t");
  EXPECT_EQ(table_of(model).first_key(), 0);
  EXPECT_EQ(table_of(model).rows(), 30);
  EXPECT_EQ(model.summary(),
            "EmbeddingLookup p -> [batch, 1, 3], 90 parameters\n"
            "EmbeddingLookup q -> [batch, 1, 6]\n"
            "Reshape p2 -> [batch, 3]\nReshape q2 -> [batch, 6]\nConcat all -> [batch, 9]\n"
            "InnerProduct logit -> [batch, 1], 10 parameters\nBinaryCrossEntropyLoss loss -> scalar\n");
  Model any(config_of(kAll), schema_of(0, 0));
  EXPECT_EQ(table_of(any).rows(), 40);
  EXPECT_EQ(any.sparse_inputs()[1].table, "t");
  EXPECT_EQ(any.sparse_inputs()[1].num_keys, 40);
}

TEST(LookupGraph, ResolvedLayersBuildTheSameModel) {
  ModelConfig config = config_of(kAll);
  const Model model(config, schema_of(10, 20));
  config.layers = model.layers();
  const Model again(config, schema_of(10, 20));
  EXPECT_EQ(again.layers(), model.layers());
  EXPECT_EQ(again.fingerprint(), model.fingerprint());
  for (const char* part : {R"("table": "t")", R"("combiner": "concat")", R"("embedding_vec_size": 3)"})
    EXPECT_NE(model.layers().find(part), std::string::npos) << part;
}

TEST(LookupGraph, Mistakes) {
  refuses(replaced(kAll, R"("table": "t", )", ""), "[EmbeddingLookup p]");
  refuses(replaced(kAll, R"("combiner": "concat")", R"("combiner": "max")"), "[EmbeddingLookup q]");
  refuses(replaced(kAll, R"("combiner": "concat")", R"("combinre": "concat")"), "did you mean 'combiner'?");
  refuses(replaced(kAll, R"("embedding_vec_size": 3)", R"("embedding_vec_size": 3, "combiner": "sum")"),
          "[EmbeddingLookup p] the combiner of a lookup is an option beside 'table', not of the table");
  refuses(replaced(kAll, R"("combiner": "concat")", R"("sparse_embedding_hparam": {"embedding_vec_size": 4})"),
          "[EmbeddingLookup q] says of the table 't' something else than its first lookup 'p'");
  refuses(replaced(kAll, R"("bottom": "y")", R"("bottom": "label")"), "its bottom 'label' is not a sparse input");
  refuses(replaced(kAll, R"("bottom": "y")", R"("bottom": "z")"), "no layer before it makes 'z'");
  refuses(replaced(kAll, R"("bottom": "y")", R"("bottom": ["x", "y"])"), "expected one bottom");
  refuses(replaced(kAll, "40", "29"), "max_vocabulary_size_global makes 29 rows but the dataset has 30 keys");
  refuses(replaced(kAll, R"("table": "t", )", R"("table": "logit", )"),
          "the table 'logit' has the name of a layer with parameters");
  refuses(replaced(kAll, R"("max_vocabulary_size_global": 40)", R"("table_type": "static")"),
          "the dataset does not say how many keys", schema_of(0, 20));
  refuses(replaced(kAll, "\"EmbeddingLookup\"", "\"EmbeddingLokup\""), "did you mean 'EmbeddingLookup'?");
}

TEST(LookupGraph, InputsOfATableCountOnceAndInTheirOrder) {
  const std::string layers = kData + R"(
    {"type": "EmbeddingLookup", "bottom": "y", "top": "p", "table": "t",
     "sparse_embedding_hparam": {"embedding_vec_size": 3, "init": "SlotSize", "slot_size_array": [11, 22]}},
    {"type": "EmbeddingLookup", "bottom": "x", "top": "p3", "table": "t"}, {"type": "Reshape", "bottom": "p3", "top": "p4"},
    {"type": "EmbeddingLookup", "bottom": "y", "top": "q", "table": "t", "combiner": "concat"},)" +
                             kRest;
  Model model(config_of(replaced(layers, R"("bottom": ["p2", "q2"])", R"("bottom": ["p2", "q2", "p4"])")),
              schema_of(10, 20));
  EXPECT_EQ(table_of(model).rows(), 33);
}

TEST(LookupGraph, AWorkspaceHasTheRowsThatFit) {
  const std::string layers = replaced(kAll, R"("max_vocabulary_size_global": 40)",
                                      R"("table_type": "static", "workspace_size_per_gpu_in_mb": 1)");
  Model sgd(config_of(layers, R"("optimizer": {"type": "SGD"},)"), schema_of(0, 0));
  EXPECT_EQ(table_of(sgd).rows(), (1 << 20) / (4 * 3));
  Model adam(config_of(layers), schema_of(0, 0));
  EXPECT_EQ(table_of(adam).rows(), (1 << 20) / (3 * 4 * 3));
  Model known(config_of(layers), schema_of(10, 20));
  EXPECT_EQ(table_of(known).rows(), 30);
}

TEST(LookupGraph, InputsMayBeUnreadIfTheGraphSaysSo) {
  data::Schema schema = schema_of(10, 20);
  schema.dense_dim = 2;
  refuses(kAll, "layers: nothing reads 'dense' [batch, 2]", schema);
  const std::string allowed = replaced(kAll, R"("type": "Data",)", R"("type": "Data", "allow_unread": true,)");
  EXPECT_NE(Model(config_of(allowed), schema).layers().find(R"("allow_unread": true)"), std::string::npos);
  refuses(replaced(allowed, "true", "1"), "[Data] allow_unread: expected true or false but found 1", schema);
  refuses(allowed + R"(,{"type": "ReLU", "bottom": "all", "top": "u"})", "layers: nothing reads 'u'", schema);
}

/** Two rows: keys of x 3; 1, 2. Of y 10; 29, 10. */
data::Batch batch() {
  data::Batch batch;
  batch.rows = 2;
  batch.labels = make({2, 1}, kFloat32, {1, 0});
  batch.dense = make({2, 0}, kFloat32, {});
  batch.sparse.push_back(
      {.name = "x", .slot_num = 1, .row_offsets = make({3}, kInt64, {0, 1, 3}), .keys = make({3}, kInt64, {3, 1, 2})});
  batch.sparse.push_back({.name = "y",
                          .slot_num = 1,
                          .row_offsets = make({3}, kInt64, {0, 1, 3}),
                          .keys = make({3}, kInt64, {10, 29, 10})});
  return batch;
}

TEST(LookupGraph, ASessionTrainsAndFreezesTheTable) {
  Session session(config_of(kAll, R"("optimizer": {"type": "SGD"}, "solver": {"lr": 0.5},)"), schema_of(10, 20));
  session.initialize();
  const Tensor& weight = session.model().embeddings().tables()[0]->weight();
  const std::vector<double> first = values_of(weight);
  session.step(batch());
  const std::vector<double> trained = values_of(weight);
  for (const size_t key : {size_t{1}, size_t{2}, size_t{3}, size_t{10}, size_t{29}})
    EXPECT_NE(trained[3 * key], first[3 * key]) << key;
  EXPECT_EQ(trained[3 * 11], first[3 * 11]);
  session.freeze(std::vector<std::string>{"t"});
  session.step(batch());
  EXPECT_EQ(values_of(weight), trained);
  TERCEL_EXPECT_THROW(session.freeze(std::vector<std::string>{"q"}), ConfigError,
                      "freeze: layer 'q' (EmbeddingLookup) has no parameters; known: t, logit");
  session.unfreeze(std::vector<std::string>{"t"});
  session.step(batch());
  EXPECT_NE(values_of(weight), trained);
}

TEST(LookupGraph, TensorsOfABatchCanBeComputed) {
  Session session(config_of(kAll), schema_of(10, 20));
  session.initialize();
  Model& model = session.model();
  const std::vector<double> w = values_of(model.embeddings().tables()[0]->weight());
  const std::vector<double> q = values_of(model.compute(batch(), "q"));
  EXPECT_EQ(q, (std::vector<double>{w[30], w[31], w[32], 0, 0, 0, w[87], w[88], w[89], w[30], w[31], w[32]}));
  EXPECT_EQ(values_of(model.compute(batch(), "logit")), values_of(model.forward(batch()).logits[0]));
  EXPECT_EQ(values_of(model.compute(batch(), "loss")), values_of(model.forward(batch()).loss));
  EXPECT_EQ(values_of(model.compute(batch(), "label")), (std::vector<double>{1, 0}));
  TERCEL_EXPECT_THROW(model.compute(batch(), "logti"), ConfigError,
                      "there is no tensor 'logti'; did you mean 'logit'?");
  TERCEL_EXPECT_THROW(model.compute(batch(), "dense"), ConfigError, "there is no tensor 'dense'");
  data::Batch unlabelled = batch();
  unlabelled.labels = Tensor();
  TERCEL_EXPECT_THROW(model.compute(unlabelled, "loss"), ConfigError, "the tensor 'loss' needs labels");
}

}  // namespace
}  // namespace tercel::recsys
