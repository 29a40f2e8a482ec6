// Graphs with several heads, and rows of samples: labels, losses, gradients, the public graph.
#include <gtest/gtest.h>

#include <cmath>

#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/node.h"
#include "tercel/recsys/model/model.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using test::make;
using test::values_of;
using Values = std::vector<double>;

/** Labels, 6 dense values, no slots. */
data::Schema schema_of(int64_t label_dim) {
  data::Schema schema;
  schema.label_dim = label_dim;
  schema.dense_dim = 6;
  return schema;
}

Model build(const std::string& layers, int64_t label_dim) {
  Model model(parse_config("{\"layers\": [" + layers + "]}", "test"), schema_of(label_dim));
  model.initialize(1);
  return model;
}
void refuses(const std::string& layers, int64_t label_dim, const char* text) {
  TERCEL_EXPECT_THROW(build(layers, label_dim), ConfigError, text);
}

std::string data_layer(const std::string& label) {
  return R"({"type": "Data", "label": )" + label + R"(, "dense": {"top": "dense"}},)";
}
std::string tower(const std::string& name) {
  return R"({"type": "InnerProduct", "bottom": "dense", "top": ")" + name + R"(", "fc_param": {"num_output": 1}},)";
}
std::string loss(const std::string& name, const std::string& logit, const std::string& label,
                 const std::string& options = "") {
  return R"({"type": "BinaryCrossEntropyLoss", "bottom": [")" + logit + "\", \"" + label + R"("], "top": ")" + name +
         "\"" + options + "}";
}

const std::string kTwoLabels = data_layer(R"({"top": ["click", "buy"], "label_dim": [1, 1]})");
/** The first loss is not at the end. */
const std::string kTwoHeads = kTwoLabels + tower("a") + loss("loss_a", "a", "click") + "," + tower("b") +
                              loss("loss_b", "b", "buy", R"(, "weight": 0.25)");

data::Batch batch_of(int64_t rows, int64_t label_dim, int64_t first = 0) {
  data::Batch batch;
  batch.rows = rows;
  Values dense, labels;
  for (int64_t r = first; r < first + rows; ++r) {
    for (int64_t i = 0; i < 6; ++i) dense.push_back(static_cast<double>((r * 7 + i * 5) % 11) / 8 - 0.5);
    for (int64_t i = 0; i < label_dim; ++i) labels.push_back(static_cast<double>((r >> i) % 2));
  }
  batch.dense = make({rows, 6}, kFloat32, dense);
  batch.labels = make({rows, label_dim}, kFloat32, labels);
  return batch;
}

Values gradients_of(Model& model, const data::Batch& batch) {
  model.parameters().zero_gradients();
  model.forward(batch, /*training=*/true, /*step=*/1).loss.backward();
  Values all;
  for (const auto& entry : model.parameters().entries())
    for (const double g : values_of(entry.tensor.grad())) all.push_back(g);
  return all;
}

void expect_close(const Values& found, const Values& expected, double tolerance = 1e-6) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << i;
}

TEST(Heads, LossesAreSummedByWeight) {
  Model both = build(kTwoHeads, 2);
  const data::Batch batch = batch_of(8, 2);
  const Model::Result result = both.forward(batch);
  ASSERT_EQ(result.logits.size(), 2u);
  double expected = 0;
  for (size_t h = 0; h < 2; ++h)
    for (size_t r = 0; r < 8; ++r) {
      const double x = values_of(result.logits[h])[r], y = values_of(batch.labels)[2 * r + h];
      expected += (std::log1p(std::exp(x)) - x * y) / 8 * (h == 0 ? 1 : 0.25);
    }
  EXPECT_NEAR(values_of(result.loss)[0], expected, 1e-6);
  // The parameters are those of the two towers, so that the gradient is that of each head alone.
  const Values all = gradients_of(both, batch);
  for (const bool second : {false, true}) {
    data::Batch one = batch;
    one.labels = batch.labels.narrow(1, second ? 1 : 0, 1).contiguous();
    Model alone = build(data_layer(R"({"top": "y"})") + tower("a") + loss("l", "a", "y"), 1);
    const Values weights = values_of(both.parameters()[second ? 2 : 0]),
                 bias = values_of(both.parameters()[second ? 3 : 1]);
    for (size_t i = 0; i < 6; ++i) alone.parameters()[0].data<float>()[i] = static_cast<float>(weights[i]);
    alone.parameters()[1].data<float>()[0] = static_cast<float>(bias[0]);
    Values gradient = gradients_of(alone, one);
    for (double& g : gradient) g *= second ? 0.25 : 1;
    expect_close(Values(all.begin() + (second ? 7 : 0), all.begin() + (second ? 14 : 7)), gradient);
  }
}

TEST(Heads, OneHeadOfWeightOneIsItsLoss) {
  Model model = build(data_layer(R"({"top": "y"})") + tower("a") + loss("l", "a", "y"), 1);
  data::Batch batch = batch_of(8, 1);
  const Model::Result plain = model.forward(batch, /*training=*/true, /*step=*/1);
  batch.global_rows = 8;
  const Model::Result whole = model.forward(batch, /*training=*/true, /*step=*/1);
  EXPECT_EQ(values_of(plain.loss), values_of(whole.loss));
  EXPECT_EQ(grad_fn(plain.loss)->name(), grad_fn(whole.loss)->name());
}

TEST(Heads, PartsOfABatchAddUpToIt) {
  Model model = build(kTwoHeads, 2);
  data::Batch whole = batch_of(10, 2);
  whole.global_rows = 10;
  const double loss = values_of(model.forward(whole).loss)[0];
  const Values gradients = gradients_of(model, whole);
  double sum = 0;
  Values sums(gradients.size(), 0.0);
  for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, 5}, {5, 5}, {10, 0}}) {
    data::Batch part = batch_of(rows, 2, first);
    part.global_rows = 10;
    sum += values_of(model.forward(part).loss)[0];
    const Values g = gradients_of(model, part);
    for (size_t i = 0; i < g.size(); ++i) sums[i] += g[i];
  }
  EXPECT_NEAR(sum, loss, 1e-6);
  expect_close(sums, gradients);
}

TEST(Heads, LabelsTakeTheirColumns) {
  Model model = build(data_layer(R"({"top": ["x", "wide", "y"], "label_dim": [1, 2, 1]})") + tower("a") + tower("b") +
                          loss("l1", "a", "x") + "," + loss("l2", "b", "y"),
                      4);
  ASSERT_EQ(model.graph().heads.size(), 2u);
  const Head &first = model.graph().heads[0], &second = model.graph().heads[1];
  EXPECT_EQ(first.first_label, 0);
  EXPECT_EQ(second.first_label, 3);
  EXPECT_EQ(second.label_columns, 1);
  EXPECT_EQ(model.graph().tensors[second.label].name, "y");
}

TEST(Heads, WithoutLabelsThereAreOnlyLogits) {
  Model model = build(kTwoHeads, 2);
  data::Batch batch = batch_of(3, 2);
  const Model::Result with = model.forward(batch);
  batch.labels = Tensor();
  const Model::Result without = model.forward(batch);
  EXPECT_FALSE(without.loss.defined());
  ASSERT_EQ(without.logits.size(), 2u);
  for (size_t h = 0; h < 2; ++h) EXPECT_EQ(values_of(without.logits[h]), values_of(with.logits[h]));
}

TEST(Heads, Refusals) {
  const std::string rest = tower("a") + loss("l", "a", "click");
  refuses(data_layer(R"({"top": ["click", "buy"]})") + rest, 2,
          "[Data] label 'click': each of several labels needs its label_dim");
  refuses(data_layer(R"({"top": ["click", "buy"], "label_dim": [1]})") + rest, 2,
          "[Data] label: label_dim has 1 entries for 2 labels");
  refuses(data_layer(R"({"top": ["click", "buy"], "label_dim": [1, 2]})") + rest, 2,
          "[Data] label_dim is 3 in all but the dataset has 2");
  refuses(data_layer(R"({"top": ["click", "click"], "label_dim": [1, 1]})") + rest, 2, "'click' exists already");
  refuses(data_layer(R"({"top": []})") + rest, 2, "[Data label] option 'top': expected a list that is not empty");
  EXPECT_EQ(build(kTwoLabels + rest, 2).graph().heads.size(), 1u);  // no loss needs to read 'buy'
  refuses(kTwoLabels + tower("a") + R"({"type": "Add", "bottom": ["a", "buy"], "top": "leak"},)" +
              loss("l", "leak", "click"),
          2, "[Add leak] its bottom 'buy' is a label, which only losses may read, as the second bottom");
  refuses(kTwoLabels + tower("a") + loss("l", "click", "click"), 2,
          "[BinaryCrossEntropyLoss l] its bottom 'click' is a label, which only losses may read");
  refuses(kTwoLabels + tower("a") + loss("l", "a", "dense"), 2, "[BinaryCrossEntropyLoss l] expected a logit");
  refuses(kTwoLabels + tower("a") + loss("l", "a", "a"), 2,
          "[BinaryCrossEntropyLoss l] expected one of the labels 'click', 'buy' as the second bottom");
}

TEST(Heads, SuggestionsForUnknownNamesAreNotLosses) {
  const std::string text = test::message_of<ConfigError>(
      [] { build(kTwoHeads + R"(,{"type": "ReLU", "bottom": "loss_c", "top": "c"})", 2); });
  EXPECT_NE(text.find("[ReLU c]: no layer before it makes 'loss_c'"), std::string::npos) << text;
  EXPECT_EQ(text.find("loss_a"), std::string::npos) << text;
}

TEST(Heads, ResolvedLayersBuildTheSameModel) {
  ModelConfig config = parse_config("{\"layers\": [" + kTwoHeads + "]}", "test");
  const Model model(config, schema_of(2));
  config.layers = model.layers();
  const Model again(config, schema_of(2));
  EXPECT_EQ(again.layers(), model.layers());
  EXPECT_EQ(again.fingerprint(), model.fingerprint());
  EXPECT_EQ(again.graph().heads[1].weight, 0.25);
}

TEST(GraphOfAModel, HasNodesTensorsAndHeads) {
  const Model model = build(kTwoHeads, 2);
  const Graph& graph = model.graph();
  std::string text;
  for (const GraphNode& node : graph.nodes) {
    text += node.type + " " + node.name + ":";
    for (const size_t t : node.bottoms) text += " " + graph.tensors[t].name;
    text += " ->";
    for (const size_t t : node.tops) text += " " + graph.tensors[t].name + shape_text(graph.tensors[t].shape);
    for (const GraphParameter& p : node.parameters) text += ", " + p.name;
    text += "\n";
  }
  EXPECT_EQ(text,
            "Data : -> click[batch, 1] buy[batch, 1] dense[batch, 6]\n"
            "InnerProduct a: dense -> a[batch, 1], a.weight, a.bias\n"
            "BinaryCrossEntropyLoss loss_a: a click -> loss_ascalar\n"
            "InnerProduct b: dense -> b[batch, 1], b.weight, b.bias\n"
            "BinaryCrossEntropyLoss loss_b: b buy -> loss_bscalar\n");
  EXPECT_EQ(graph.tensors[0].kind, TensorKind::Label);
  EXPECT_EQ(graph.tensors[2].kind, TensorKind::Dense);
  EXPECT_EQ(graph.tensors[3].kind, TensorKind::Value);
  EXPECT_EQ(
      graph.nodes[4].options,
      R"({"type":"BinaryCrossEntropyLoss","bottom":["b","buy"],"top":"loss_b","weight":0.25,"regularizer":"None","regularizer_lambda":0.0})");
  ASSERT_EQ(graph.heads.size(), 2u);
  EXPECT_EQ(graph.heads[1].name, "loss_b");
  EXPECT_EQ(graph.tensors[graph.heads[1].logits].name, "b");
}

/** Each sample is 3 rows of 2 values, through one InnerProduct of 4, then one row of 12 again. */
const std::string kFolding = data_layer(R"({"top": "y"})") +
                             R"({"type": "Reshape", "bottom": "dense", "top": "rows", "leading_dim": 2},
    {"type": "InnerProduct", "bottom": "rows", "top": "shared", "fc_param": {"num_output": 4}},
    {"type": "ReLU", "bottom": "shared", "top": "active"},
    {"type": "Reshape", "bottom": "active", "top": "sample", "leading_dim": 12},
    {"type": "InnerProduct", "bottom": "sample", "top": "logit", "fc_param": {"num_output": 1}},)" +
                             loss("loss", "logit", "y");

TEST(RowsOfSamples, FoldAndUnfold) {
  Model model = build(kFolding, 1);
  EXPECT_EQ(model.summary(),
            "Reshape rows -> [batch * 3, 2]\n"
            "InnerProduct shared -> [batch * 3, 4], 12 parameters\n"
            "ReLU active -> [batch * 3, 4]\n"
            "Reshape sample -> [batch, 12]\n"
            "InnerProduct logit -> [batch, 1], 13 parameters\n"
            "BinaryCrossEntropyLoss loss -> scalar\n");
  const data::Batch batch = batch_of(5, 1);
  const Values x = values_of(batch.dense), w = values_of(model.parameters()[0]), b = values_of(model.parameters()[1]),
               v = values_of(model.parameters()[2]), c = values_of(model.parameters()[3]), y = values_of(batch.labels);
  const auto loss_of = [&](const Values& shared) {
    double sum = 0;
    for (size_t s = 0; s < 5; ++s) {
      double logit = c[0];
      for (size_t row = 0; row < 3; ++row)
        for (size_t j = 0; j < 4; ++j) {
          double h = b[j];
          for (size_t i = 0; i < 2; ++i) h += x[s * 6 + row * 2 + i] * shared[i * 4 + j];
          logit += std::max(h, 0.0) * v[row * 4 + j];
        }
      sum += std::log1p(std::exp(logit)) - logit * y[s];
    }
    return sum / 5;
  };
  EXPECT_NEAR(values_of(model.forward(batch).loss)[0], loss_of(w), 1e-6);
  const Values gradients = gradients_of(model, batch);
  for (size_t i = 0; i < w.size(); ++i) {
    Values low = w, high = w;
    low[i] -= 1e-5;
    high[i] += 1e-5;
    EXPECT_NEAR(gradients[i], (loss_of(high) - loss_of(low)) / 2e-5, 1e-5) << "shared.weight " << i;
  }
}

TEST(RowsOfSamples, InputsOfALayerMustAgree) {
  const std::string fold = R"({"type": "Reshape", "bottom": "dense", "top": "rows", "leading_dim": 2},)";
  const std::string end = tower("a") + loss("l", "a", "y"), data = data_layer(R"({"top": "y"})");
  refuses(data + fold + R"({"type": "Concat", "bottom": ["rows", "dense"], "top": "c"},)" + end, 1,
          "[Concat c] expected inputs with the same number of rows but got [batch * 3, 2], [batch, 6]");
  refuses(data + fold + loss("l", "rows", "y"), 1,
          "[BinaryCrossEntropyLoss l] expected inputs with the same number of rows but got [batch * 3, 2], [batch, 1]");
  refuses(
      data + fold + R"({"type": "Reshape", "bottom": "rows", "top": "c", "leading_dim": 4},)" + end, 1,
      "[Reshape c] expected an input whose samples can be divided into rows of the shape [4] but got [batch * 3, 2]");
}

}  // namespace
}  // namespace tercel::recsys
