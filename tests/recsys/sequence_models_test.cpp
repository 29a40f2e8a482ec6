// Models of sequences and of other labels, from a dataset to a checkpoint: layers together, on data with a truth.
#include <gtest/gtest.h>

#include <cmath>

#include "tercel/recsys/prediction.h"
#include "tercel/recsys/session.h"
#include "tercel/util/error.h"
#include "tests/recsys/session_state.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

using tercel::test::values_of;
using test::saved_state;
using test::TemporaryFolder;

constexpr int64_t kItems = 24, kCategories = 4, kHistory = 4, kRows = 3000;

/** Numbers that look random, a function of row and place. */
int64_t draw(int64_t row, int64_t place, int64_t bound) {
  uint64_t x = static_cast<uint64_t>(row) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(place) * 0xbf58476d1ce4e5b9u;
  x ^= x >> 29;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 32;
  return static_cast<int64_t>(x % static_cast<uint64_t>(bound));
}

/**
 * Rows of a history of up to 4 items (the others are item 0), its length as the dense value, and a target item. An
 * item's category is the rest of its number divided by 4. `label` makes the labels from the number of items of the
 * target's category in the history.
 */
data::Dataset history_dataset(const TemporaryFolder& root, int64_t label_dim, void (*label)(int64_t, int64_t, float*)) {
  data::Dataset dataset;
  dataset.folder = root / "data";
  dataset.format = data::norm_format();
  dataset.schema.label_dim = label_dim;
  dataset.schema.dense_dim = 1;
  for (int64_t i = 0; i < kHistory; ++i) dataset.schema.slots.push_back({"seen" + std::to_string(i), kItems + 1, 0, 1});
  dataset.schema.slots.push_back({"target", kItems + 1, 0, 1});
  const auto part = [&](const char* prefix, int64_t first) {
    data::WriterOptions options;
    options.folder = dataset.folder;
    options.prefix = prefix;
    options.binary_labels = false;
    const auto writer = dataset.format->create_writer(dataset.schema, options);
    for (int64_t row = first; row < first + kRows; ++row) {
      const int64_t length = 1 + draw(row, 0, kHistory), target = 1 + draw(row, 1, kItems);
      int64_t keys[kHistory + 1] = {}, matches = 0;
      for (int64_t i = 0; i < length; ++i) {
        keys[i] = 1 + draw(row, 2 + i, kItems);
        matches += keys[i] % kCategories == target % kCategories ? 1 : 0;
      }
      keys[kHistory] = target;
      const auto dense = static_cast<float>(length);
      float labels[3] = {};
      label(row, matches, labels);
      writer->write({1, labels, &dense, nullptr, keys});
    }
    return writer->finish();
  };
  dataset.train = part("train/", 0);
  dataset.test = part("test/", kRows);
  data::save_dataset(dataset, dataset.folder);
  return dataset;
}

void click(int64_t, int64_t matches, float* labels) { labels[0] = matches > 0 ? 1.0f : 0.0f; }

constexpr std::string_view kHead = R"json({
  "solver": {"batchsize": 64, "batchsize_eval": 500, "lr": 0.01, "epochs": 8},
  "optimizer": {"type": "Adam"},
  "data": {"validation": "none"},
  "layers": [
)json";

/** DIN as HugeCTR's sample writes it: the target beside each row of the history gives its weight. */
constexpr std::string_view kDin = R"json(
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "length"}, "sparse": [{"top": "items"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "items", "top": "vectors",
     "sparse_embedding_hparam": {"embedding_vec_size": 8, "init_range": 0.5}},
    {"type": "FusedReshapeConcat", "bottom": "vectors", "top": ["history", "target"]},
    {"type": "Scale", "bottom": "target", "top": "targets", "scale_param": {"axis": 1, "factor": 4}},
    {"type": "Sub", "bottom": ["targets", "history"], "top": "difference"},
    {"type": "ElementwiseMultiply", "bottom": ["targets", "history"], "top": "product"},
    {"type": "Concat", "bottom": ["targets", "history", "difference", "product"], "top": "pairs"},
    {"type": "InnerProduct", "bottom": "pairs", "top": "att1", "fc_param": {"num_output": 16}},
    {"type": "ELU", "bottom": "att1", "top": "att2"},
    {"type": "InnerProduct", "bottom": "att2", "top": "att3", "fc_param": {"num_output": 1}},
    {"type": "Reshape", "bottom": "att3", "top": "scores", "leading_dim": 4},
    {"type": "Softmax", "bottom": "scores", "top": "attention"},
    {"type": "Scale", "bottom": "attention", "top": "weights", "scale_param": {"axis": 0, "factor": 8}},
    {"type": "Reshape", "bottom": "history", "top": "flat_history", "leading_dim": 32},
    {"type": "ElementwiseMultiply", "bottom": ["weights", "flat_history"], "top": "weighted"},
    {"type": "Reshape", "bottom": "weighted", "top": "steps", "leading_dim": 8, "time_step": 4},
    {"type": "ReduceSum", "bottom": "steps", "top": "interest3", "axis": 1},
    {"type": "Reshape", "bottom": "interest3", "top": "interest", "leading_dim": 8},
    {"type": "ElementwiseMultiply", "bottom": ["interest", "target"], "top": "match"},
    {"type": "Concat", "bottom": ["interest", "target", "match", "length"], "top": "all"},
    {"type": "InnerProduct", "bottom": "all", "top": "fc1", "fc_param": {"num_output": 32}},
    {"type": "PReLU_Dice", "bottom": "fc1", "top": "dice1", "prelu_dice_param": {"alpha": 0.2, "eps": 1e-8}},
    {"type": "InnerProduct", "bottom": "dice1", "top": "logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
})json";

/** BST: attention of the target and its history to each other, with a mask of the history's length. */
constexpr std::string_view kBst = R"json(
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "length"},
     "sparse": [{"top": "items"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "items", "top": "vectors",
     "sparse_embedding_hparam": {"embedding_vec_size": 8, "init_range": 0.5}},
    {"type": "Select", "bottom": "vectors", "top": "history", "dim": 1, "index": [0, 1, 2, 3]},
    {"type": "Select", "bottom": "vectors", "top": "target3", "dim": 1, "index": [4]},
    {"type": "Reshape", "bottom": "target3", "top": "target", "leading_dim": 8},
    {"type": "SequenceMask", "bottom": ["length", "length"], "top": "mask", "max_sequence_len_from": 1,
     "max_sequence_len_to": 4},
    {"type": "InnerProduct", "bottom": "target3", "top": "query", "fc_param": {"num_output": 8}},
    {"type": "InnerProduct", "bottom": "history", "top": "key", "fc_param": {"num_output": 8}},
    {"type": "InnerProduct", "bottom": "history", "top": "value", "fc_param": {"num_output": 8}},
    {"type": "MultiHeadAttention", "bottom": ["query", "key", "value", "mask"], "top": "attended",
     "num_attention_heads": 2},
    {"type": "Add", "bottom": ["attended", "query"], "top": "shortcut"},
    {"type": "LayerNorm", "bottom": "shortcut", "top": "normal"},
    {"type": "InnerProduct", "bottom": "normal", "top": "ffn1", "fc_param": {"num_output": 16}},
    {"type": "ReLU", "bottom": "ffn1", "top": "ffn2"},
    {"type": "InnerProduct", "bottom": "ffn2", "top": "ffn3", "fc_param": {"num_output": 8}},
    {"type": "Add", "bottom": ["ffn3", "normal"], "top": "block"},
    {"type": "ReduceMean", "bottom": "block", "top": "pooled3", "axis": 1},
    {"type": "Reshape", "bottom": "pooled3", "top": "pooled", "leading_dim": 8},
    {"type": "Concat", "bottom": ["pooled", "target"], "top": "all"},
    {"type": "InnerProduct", "bottom": "all", "top": "fc1", "fc_param": {"num_output": 32}},
    {"type": "PReLU_Dice", "bottom": "fc1", "top": "dice1", "prelu_dice_param": {"alpha": 0.2, "eps": 1e-8}},
    {"type": "InnerProduct", "bottom": "dice1", "top": "logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
})json";

/** A GRU over the history, of which each step is multiplied by the target. */
constexpr std::string_view kGru = R"json(
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "length"}, "sparse": [{"top": "items"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "items", "top": "vectors",
     "sparse_embedding_hparam": {"embedding_vec_size": 8, "init_range": 0.5}},
    {"type": "FusedReshapeConcat", "bottom": "vectors", "top": ["history", "target"]},
    {"type": "Scale", "bottom": "target", "top": "targets", "scale_param": {"axis": 1, "factor": 4}},
    {"type": "ElementwiseMultiply", "bottom": ["targets", "history"], "top": "product"},
    {"type": "Reshape", "bottom": "product", "top": "steps", "leading_dim": 32},
    {"type": "GRU", "bottom": "steps", "top": "state",
     "gru_param": {"num_output": 16, "batchsize": 64, "SeqLength": 4, "vector_size": 8}},
    {"type": "Concat", "bottom": ["state", "length"], "top": "all"},
    {"type": "InnerProduct", "bottom": "all", "top": "logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
})json";

ModelConfig config_of(std::string_view layers, const std::vector<std::string>& assignments = {}) {
  ModelConfig config = parse_config(std::string(kHead) + std::string(layers), "test");
  for (const std::string& assignment : assignments) set_config(config, assignment);
  return config;
}

double value_of(const MetricValues& values, std::string_view name) {
  for (const auto& [found, value] : values)
    if (found == name) return value;
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

/** Trains to the end; returns the mean loss of the first and of the last 20 steps. */
std::pair<double, double> train(Session& session) {
  std::vector<double> losses;
  while (session.step()) losses.push_back(session.loss());
  double first = 0, last = 0;
  for (size_t i = 0; i < 20; ++i) {
    first += losses[i] / 20;
    last += losses[losses.size() - 1 - i] / 20;
  }
  return {first, last};
}

struct Sequence {
  const char* name;
  std::string_view layers;
  double auc;  // that the model reaches; the truth is without noise
};

class SequenceModels : public testing::TestWithParam<Sequence> {};

TEST_P(SequenceModels, FindTheTruth) {
  const TemporaryFolder root;
  Session session(config_of(GetParam().layers), history_dataset(root, 1, click));
  session.initialize();
  const auto [first, last] = train(session);
  EXPECT_LT(last, 0.5 * first);
  EXPECT_GT(value_of(session.evaluate([](int64_t) { return true; }), "auc"), GetParam().auc);
}

TEST_P(SequenceModels, ContinueWithTheSameBits) {
  const TemporaryFolder root;
  const data::Dataset dataset = history_dataset(root, 1, click);
  const ModelConfig config = config_of(GetParam().layers, {"solver.max_iter=60", "solver.epochs=0"});
  Session whole(config, dataset), first(config, dataset), second(config, dataset);
  for (Session* session : {&whole, &first, &second}) session->initialize();
  while (whole.step()) {
  }
  for (int i = 0; i < 25; ++i) ASSERT_TRUE(first.step());
  CheckpointStore store(root / "checkpoints", 1);
  first.save(store);
  second.load(Checkpoint(*store.latest()));
  while (second.step()) {
  }
  EXPECT_EQ(second.steps(), 60);
  EXPECT_EQ(saved_state(second, root / "a"), saved_state(whole, root / "b"));
}

INSTANTIATE_TEST_SUITE_P(All, SequenceModels,
                         testing::Values(Sequence{"din", kDin, 0.95}, Sequence{"bst", kBst, 0.95},
                                         Sequence{"gru", kGru, 0.9}),
                         [](const auto& one) { return std::string(one.param.name); });

/** Layers from the items to `fc`, of the inputs of a head. */
constexpr std::string_view kTrunk = R"json(
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "items", "top": "vectors",
     "sparse_embedding_hparam": {"embedding_vec_size": 8, "init_range": 0.5}},
    {"type": "FusedReshapeConcat", "bottom": "vectors", "top": ["history", "target"]},
    {"type": "Reshape", "bottom": "history", "top": "steps", "leading_dim": 8, "time_step": 4},
    {"type": "Reshape", "bottom": "target", "top": "column", "leading_dim": 1, "time_step": 8},
    {"type": "MatrixMultiply", "bottom": ["steps", "column"], "top": "products3"},
    {"type": "Reshape", "bottom": "products3", "top": "products", "leading_dim": 4},
    {"type": "Concat", "bottom": ["products", "length"], "top": "all"},
    {"type": "MLP", "bottom": "all", "top": "fc", "mlp_param": {"num_outputs": [32]}},
)json";

/** Classes: none, one, or more items of the target's category. */
void classes(int64_t, int64_t matches, float* labels) {
  labels[0] = matches > 0 ? 1.0f : 0.0f;
  labels[1] = static_cast<float>(std::min<int64_t>(matches, 2));
}

const std::string kClasses =
    R"({"type": "Data", "label": {"top": ["click", "class"], "label_dim": [1, 1]}, "dense": {"top": "length"},
        "sparse": [{"top": "items"}]},)" +
    std::string(kTrunk) + R"(
    {"type": "InnerProduct", "bottom": "fc", "top": "logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "click"], "top": "click_loss"},
    {"type": "InnerProduct", "bottom": "fc", "top": "logits", "fc_param": {"num_output": 3}},
    {"type": "CrossEntropyLoss", "bottom": ["logits", "class"], "top": "class_loss"}]})";

TEST(OtherLabels, NumbersOfClasses) {
  const TemporaryFolder root;
  const data::Dataset dataset = history_dataset(root, 2, classes);
  Session session(config_of(kClasses), dataset);
  session.initialize();
  const auto [first, last] = train(session);
  EXPECT_LT(last, 0.6 * first);
  const MetricValues metrics = session.evaluate([](int64_t) { return true; });
  EXPECT_GT(value_of(metrics, "auc/click_loss"), 0.9);
  EXPECT_GT(value_of(metrics, "auc/class_loss"), 0.9) << "the mean over the classes";

  // A column for the first head, three for the second, which add up to 1.
  int64_t rows = 0;
  const auto sink = [&](const Predictions& predictions) {
    const Span<float> probabilities = predictions.probabilities;
    for (size_t i = 0; i < probabilities.size(); i += 4) {
      EXPECT_NEAR(probabilities[i + 1] + probabilities[i + 2] + probabilities[i + 3], 1, 1e-5);
      ++rows;
    }
  };
  data::BatchReader reader(dataset, data::PartName::Test, evaluation_reading(session.model(), config_of(kClasses)));
  EXPECT_EQ(predict(session.model(), reader, sink), kRows);
  EXPECT_EQ(rows, kRows);
  EXPECT_EQ(session.model().graph().prediction_columns(), 4);
}

TEST(OtherLabels, ALabelThatFitsNoHeadIsNamed) {
  const TemporaryFolder root;
  const data::Dataset dataset = history_dataset(root, 2, [](int64_t row, int64_t, float* labels) {
    labels[0] = row % 3 == 2 ? 2.0f : 1.0f;
    labels[1] = 1;
  });
  Session session(config_of(kClasses, {"data.shuffle=false"}), dataset);
  session.initialize();
  TERCEL_EXPECT_THROW(session.step(), DataError,
                      "[Data] label 'click' of head 'click_loss': expected 0 or 1, found 2 in row 2 of the batch");
  // With losses of 0 and 1 alone the reader names record and file.
  std::string binary = kClasses.substr(0, kClasses.find(R"({"type": "InnerProduct", "bottom": "fc", "top": "logits")"));
  binary.erase(binary.rfind(','));
  Session plain(config_of(binary + "]}", {"data.shuffle=false"}), dataset);
  plain.initialize();
  TERCEL_EXPECT_THROW(plain.step(), DataError, "train/0.data");
}

/** Two columns, of which each is unknown in a third of the rows. */
void columns(int64_t row, int64_t matches, float* labels) {
  labels[0] = draw(row, 50, 3) == 0 ? -1.0f : matches > 0 ? 1.0f : 0.0f;
  labels[1] = draw(row, 51, 3) == 0 ? -1.0f : matches > 1 ? 1.0f : 0.0f;
}

TEST(OtherLabels, ColumnsWithUnknownLabels) {
  const TemporaryFolder root;
  const data::Dataset dataset = history_dataset(root, 2, columns);
  const std::string layers =
      R"({"type": "Data", "label": {"top": "labels"}, "dense": {"top": "length"}, "sparse": [{"top": "items"}]},)" +
      std::string(kTrunk) + R"(
      {"type": "InnerProduct", "bottom": "fc", "top": "logits", "fc_param": {"num_output": 2}},
      {"type": "MultiCrossEntropyLoss", "bottom": ["logits", "labels"], "top": "loss", "target_weight": [1, 2]}]})";
  Session session(config_of(layers), dataset);
  session.initialize();
  const auto [first, last] = train(session);
  EXPECT_LT(last, 0.6 * first);
  EXPECT_GT(value_of(session.evaluate([](int64_t) { return true; }), "auc"), 0.9);
}

}  // namespace
}  // namespace tercel::recsys
