#include "tercel/recsys/layers/loss.h"

#include <cmath>

#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/node.h"
#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

/** A loss layer, with the loss of one logit and its derivative. */
struct Reference {
  std::string_view type;
  double (*loss)(double logit, double label);
  double (*slope)(double logit, double label);
};

// A new loss layer needs a line here; everything below runs through it.
const Reference kReferences[] = {
    {"BinaryCrossEntropyLoss",
     [](double x, double y) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0) - x * y; },
     [](double x, double y) { return 1 / (1 + std::exp(-x)) - y; }},
};

const Values kLogits = {0, 2, -3, 0.5, 30, -30}, kLabels = {0, 1, 0, 0, 1, 1};

struct Outcome {
  Tensor loss;
  Values gradient;  // of the logits
};

/** The loss of rows [first, end), of a batch of `global_rows`. */
Outcome loss_of(std::string_view type, const char* options, size_t first, size_t end, int64_t global_rows) {
  Built layer(type, {{1}, {1}}, options);
  const auto rows = static_cast<int64_t>(end - first);
  const auto part = [&](const Values& all) {
    return make({rows, 1}, kFloat64,
                Values(all.begin() + static_cast<int64_t>(first), all.begin() + static_cast<int64_t>(end)));
  };
  Tensor logits = part(kLogits);
  logits.requires_grad_();
  // Labels are a column of several.
  Values columns;
  for (const double y : values_of(part(kLabels))) columns.insert(columns.end(), {7, y, 9});
  const Tensor labels = make({rows, 3}, kFloat64, columns).narrow(1, 1, 1);
  std::vector<Tensor> tops(1);
  layer.layer->forward(std::vector<Tensor>{logits, labels}, tops, {.training = true, .global_rows = global_rows});
  EXPECT_EQ(tops[0].dim(), 0);
  tops[0].backward();
  return {tops[0], values_of(logits.grad())};
}

TEST(LossLayers, EveryOneHasAReference) {
  std::vector<std::string_view> listed, referenced;
  for (const LayerEntry& entry : layer_entries())
    if (entry.is_loss) listed.push_back(entry.type);
  for (const Reference& reference : kReferences) referenced.push_back(reference.type);
  EXPECT_EQ(listed, referenced);
}

TEST(LossLayers, ValueAndGradientAreTheReferences) {
  for (const Reference& reference : kReferences)
    for (const double weight : {1.0, 2.5, 0.0})
      for (const int64_t global_rows : {0, 6, 24}) {
        SCOPED_TRACE(std::string(reference.type) + ", weight " + std::to_string(weight) + ", global rows " +
                     std::to_string(global_rows));
        const double factor = weight / static_cast<double>(global_rows == 0 ? 6 : global_rows);
        double sum = 0;
        Values slopes;
        for (size_t i = 0; i < 6; ++i) {
          sum += factor * reference.loss(kLogits[i], kLabels[i]);
          slopes.push_back(factor * reference.slope(kLogits[i], kLabels[i]));
        }
        const std::string options = "{\"weight\": " + std::to_string(weight) + "}";
        const Outcome found = loss_of(reference.type, options.c_str(), 0, 6, global_rows);
        EXPECT_NEAR(values_of(found.loss)[0], sum, 1e-12);
        expect_near(found.gradient, slopes);
      }
}

TEST(LossLayers, PartsAddUpToTheWhole) {
  for (const Reference& reference : kReferences) {
    SCOPED_TRACE(reference.type);
    const Outcome whole = loss_of(reference.type, R"({"weight": 3})", 0, 6, 6);
    double sum = 0;
    Values gradient;
    for (const auto& [first, end] : {std::pair<size_t, size_t>{0, 2}, {2, 2}, {2, 6}}) {
      const Outcome part = loss_of(reference.type, R"({"weight": 3})", first, end, 6);
      sum += values_of(part.loss)[0];
      gradient.insert(gradient.end(), part.gradient.begin(), part.gradient.end());
    }
    EXPECT_NEAR(sum, values_of(whole.loss)[0], 1e-12) << "one part has no rows";
    expect_near(gradient, whole.gradient);
  }
}

/** The op that made the loss. */
std::string op_of(std::string_view type, const char* options, int64_t global_rows) {
  return std::string(grad_fn(loss_of(type, options, 0, 6, global_rows).loss)->name());
}

TEST(LossLayers, WholeBatchesOfWeightOneHaveNoFurtherOp) {
  for (const Reference& reference : kReferences) {
    const std::string plain = op_of(reference.type, "{}", 0);
    EXPECT_EQ(op_of(reference.type, "{}", 6), plain) << reference.type;
    EXPECT_NE(op_of(reference.type, "{}", 7), plain) << reference.type;
    EXPECT_NE(op_of(reference.type, R"({"weight": 2})", 6), plain) << reference.type;
  }
}

TEST(LossLayers, Refusals) {
  for (const Reference& reference : kReferences) {
    refuses(reference.type, {{1}, {1}}, R"({"weight": -1})", "weight");
    refuses(reference.type, {{1}}, "{}", "but got [batch, 1]");
    refuses(reference.type, {{1}, {1}, {1}}, "{}", "but got [batch, 1], [batch, 1], [batch, 1]");
    refuses(reference.type, {TensorShape::with_rows({1}, 2), TensorShape::with_rows({1}, 2)}, "{}",
            "but got [batch * 2, 1], [batch * 2, 1]");
  }
}

TEST(BinaryCrossEntropyLoss, IsStable) {
  Built layer("BinaryCrossEntropyLoss", {{1}, {1}});
  const Tensor x = make({2, 1}, kFloat64, {200, -2000}), y = make({2, 1}, kFloat64, {1, 1});
  std::vector<Tensor> tops(1);
  layer.layer->forward(std::vector<Tensor>{x, y}, tops, {.training = true});
  EXPECT_NEAR(values_of(tops[0])[0], 1000, 1e-9);
  refuses("BinaryCrossEntropyLoss", {{1}}, "{}",
          "[BinaryCrossEntropyLoss x] expected a logit [batch, 1] and a label [batch, 1] but got [batch, 1]");
  refuses("BinaryCrossEntropyLoss", {{2}, {1}}, "{}", "but got [batch, 2], [batch, 1]");
  refuses("BinaryCrossEntropyLoss", {{2}, {2}}, "{}", "but got [batch, 2], [batch, 2]");
}

}  // namespace
}  // namespace tercel::recsys
