#include "tercel/recsys/layers/loss.h"

#include <cmath>

#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/node.h"
#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

using Row = const double*;

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double binary_loss(double x, double y) { return softplus(x) - x * y; }

/** A loss layer with its options, and the loss of a row of logits and its derivatives. */
struct Reference {
  std::string_view type;
  const char* options;  // besides the weight
  int64_t columns, label_columns;
  Values logits, labels;  // of 6 rows
  double (*loss)(Row logits, Row labels);
  double (*slope)(Row logits, Row labels, int64_t column);
};

double softmax_of(Row logits, int64_t classes, int64_t column) {
  double sum = 0;
  for (int64_t i = 0; i < classes; ++i) sum += std::exp(logits[i]);
  return std::exp(logits[column]) / sum;
}

double class_slope(Row x, int64_t classes, int64_t column, double share) {
  return softmax_of(x, classes, column) - share;
}

// A new loss layer needs lines here; everything below runs through them.
const Reference kReferences[] = {
    {"BinaryCrossEntropyLoss",
     "",
     1,
     1,
     {0, 2, -3, 0.5, 30, -30},
     {0, 1, 0, 0, 1, 1},
     [](Row x, Row y) { return binary_loss(x[0], y[0]); },
     [](Row x, Row y, int64_t) { return sigmoid_of(x[0]) - y[0]; }},
    {"CrossEntropyLoss",  // two classes, labels of one column: HugeCTR's rule
     "",
     2,
     1,
     {0, 1, 2, -1, 0.5, 0.5, -3, 0, 4, 9, 1, -1},
     {0, 1, 1, 0, 1, 0},
     [](Row x, Row y) { return -std::log(softmax_of(x, 2, y[0] < 0.5 ? 0 : 1)); },
     [](Row x, Row y, int64_t c) { return class_slope(x, 2, c, (y[0] < 0.5 ? 0 : 1) == c ? 1 : 0); }},
    {"CrossEntropyLoss",  // two classes, a column of labels for each
     "",
     2,
     2,
     {0, 1, 2, -1, 0.5, 0.5, -3, 0, 4, 9, 1, -1},
     {1, 0, 0, 1, 0, 1, 0.25, 0.75, 1, 0, 0.5, 0.5},
     [](Row x, Row y) { return -y[0] * std::log(softmax_of(x, 2, 0)) - y[1] * std::log(softmax_of(x, 2, 1)); },
     [](Row x, Row y, int64_t c) { return class_slope(x, 2, c, y[c]); }},
    {"CrossEntropyLoss",  // numbers of three classes
     "",
     3,
     1,
     {0, 1, -1, 2, -1, 0, 0.5, 0.5, 0.5, -3, 0, 3, 1, 2, 3, -4, 0, 5},
     {0, 1, 2, 2, 1, 0},
     [](Row x, Row y) { return -std::log(softmax_of(x, 3, static_cast<int64_t>(y[0]))); },
     [](Row x, Row y, int64_t c) { return class_slope(x, 3, c, static_cast<int64_t>(y[0]) == c ? 1 : 0); }},
    {"MultiCrossEntropyLoss",
     R"("target_weight": [2, 0.5], )",
     2,
     2,
     {0, 1, 2, -1, 0.5, 0.5, -3, 0, 4, 9, 1, -1},
     {0, 1, -1, 1, 1, -1, -1, -1, 0, 0, 1, 0.25},
     [](Row x, Row y) {
       const double first = y[0] < -0.5 ? 0 : 2 * binary_loss(x[0], y[0]);
       return (first + (y[1] < -0.5 ? 0 : 0.5 * binary_loss(x[1], y[1]))) / 2;
     },
     [](Row x, Row y, int64_t c) { return y[c] < -0.5 ? 0 : (c == 0 ? 2 : 0.5) * (sigmoid_of(x[c]) - y[c]) / 2; }},
};

struct Outcome {
  Tensor loss;
  Values gradient;  // of the logits
};

std::string name_of(const Reference& reference) {
  return std::string(reference.type) + " of " + std::to_string(reference.columns) + " and " +
         std::to_string(reference.label_columns) + " columns";
}

std::string options_of(const Reference& reference, double weight) {
  return std::string("{") + reference.options + "\"weight\": " + std::to_string(weight) + "}";
}

/** The loss of rows [first, end), of a batch of `global_rows`, with weights of these rows or without. */
Outcome loss_of(const Reference& of, double weight, int64_t first, int64_t end, int64_t global_rows,
                const Values& row_weights = {}) {
  Built layer(of.type, {{of.columns}, {of.label_columns}}, options_of(of, weight).c_str());
  const int64_t rows = end - first;
  Tensor logits = make({rows, of.columns}, kFloat64,
                       Values(of.logits.begin() + first * of.columns, of.logits.begin() + end * of.columns));
  logits.requires_grad_();
  // Labels are columns among others.
  Values columns;
  for (int64_t r = first; r < end; ++r) {
    columns.push_back(7);
    for (int64_t i = 0; i < of.label_columns; ++i)
      columns.push_back(of.labels[static_cast<size_t>(r * of.label_columns + i)]);
    columns.push_back(9);
  }
  const Tensor labels = make({rows, of.label_columns + 2}, kFloat64, columns).narrow(1, 1, of.label_columns);
  const Tensor weights = row_weights.empty() ? Tensor() : make({rows}, kFloat64, row_weights);
  std::vector<Tensor> tops(1);
  layer.layer->forward(std::vector<Tensor>{logits, labels}, tops,
                       {.training = true, .global_rows = global_rows, .weights = weights});
  EXPECT_EQ(tops[0].dim(), 0);
  tops[0].backward();
  return {tops[0], values_of(logits.grad())};
}

TEST(LossLayers, EveryOneHasAReference) {
  std::vector<std::string_view> listed, referenced;
  for (const LayerEntry& entry : layer_entries())
    if (entry.is_loss) listed.push_back(entry.type);
  for (const Reference& reference : kReferences)
    if (referenced.empty() || referenced.back() != reference.type) referenced.push_back(reference.type);
  EXPECT_EQ(listed, referenced);
}

TEST(LossLayers, ValueAndGradientAreTheReferences) {
  for (const Reference& reference : kReferences)
    for (const double weight : {1.0, 2.5, 0.0})
      for (const int64_t rows : {1, 6})
        for (const int64_t global_rows : {int64_t{0}, rows, int64_t{24}}) {
          SCOPED_TRACE(name_of(reference) + ", weight " + std::to_string(weight) + ", rows " + std::to_string(rows) +
                       " of " + std::to_string(global_rows));
          const double factor = weight / static_cast<double>(global_rows == 0 ? rows : global_rows);
          double sum = 0;
          Values slopes;
          for (int64_t r = 0; r < rows; ++r) {
            const double *x = reference.logits.data() + r * reference.columns,
                         *y = reference.labels.data() + r * reference.label_columns;
            sum += factor * reference.loss(x, y);
            for (int64_t c = 0; c < reference.columns; ++c) slopes.push_back(factor * reference.slope(x, y, c));
          }
          const Outcome found = loss_of(reference, weight, 0, rows, global_rows);
          EXPECT_NEAR(values_of(found.loss)[0], sum, 1e-12);
          expect_near(found.gradient, slopes);
        }
}

TEST(LossLayers, PartsAddUpToTheWhole) {
  for (const Reference& reference : kReferences) {
    SCOPED_TRACE(name_of(reference));
    const Outcome whole = loss_of(reference, 3, 0, 6, 6);
    double sum = 0;
    Values gradient;
    for (const auto& [first, end] : {std::pair<int64_t, int64_t>{0, 2}, {2, 2}, {2, 6}}) {
      const Outcome part = loss_of(reference, 3, first, end, 6);
      sum += values_of(part.loss)[0];
      gradient.insert(gradient.end(), part.gradient.begin(), part.gradient.end());
    }
    EXPECT_NEAR(sum, values_of(whole.loss)[0], 1e-12) << "one part has no rows";
    expect_near(gradient, whole.gradient);
  }
}

TEST(LossLayers, WeightsOfRowsMultiplyTheirLosses) {
  const Values weights = {1, 0, 2.5, 0.25, 3, 1};
  for (const Reference& reference : kReferences)
    for (const int64_t global_rows : {0, 6, 24}) {
      SCOPED_TRACE(name_of(reference) + " of " + std::to_string(global_rows));
      const double factor = 2 / static_cast<double>(global_rows == 0 ? 6 : global_rows);
      double sum = 0;
      Values slopes;
      for (int64_t r = 0; r < 6; ++r) {
        const double *x = reference.logits.data() + r * reference.columns,
                     *y = reference.labels.data() + r * reference.label_columns;
        const double w = factor * weights[static_cast<size_t>(r)];
        sum += w * reference.loss(x, y);
        for (int64_t c = 0; c < reference.columns; ++c) slopes.push_back(w * reference.slope(x, y, c));
      }
      const Outcome found = loss_of(reference, 2, 0, 6, global_rows, weights);
      EXPECT_NEAR(values_of(found.loss)[0], sum, 1e-12);
      expect_near(found.gradient, slopes);
    }
}

/** The op that made the loss. */
std::string op_of(const Reference& reference, double weight, int64_t global_rows) {
  return std::string(grad_fn(loss_of(reference, weight, 0, 6, global_rows).loss)->name());
}

TEST(LossLayers, WholeBatchesOfWeightOneHaveNoFurtherOp) {
  for (const Reference& reference : kReferences) {
    const std::string plain = op_of(reference, 1, 0);
    EXPECT_EQ(op_of(reference, 1, 6), plain) << name_of(reference);
    EXPECT_NE(op_of(reference, 1, 7), plain) << name_of(reference);
    EXPECT_NE(op_of(reference, 2, 6), plain) << name_of(reference);
  }
}

TEST(LossLayers, Refusals) {
  for (const Reference& reference : kReferences) {
    const TensorShape logits{reference.columns}, labels{reference.label_columns};
    refuses(reference.type, {logits, labels}, R"({"weight": -1})", "weight");
    refuses(reference.type, {logits}, "{}", "but got [batch, ");
    refuses(reference.type, {logits, labels, labels}, "{}", "but got [batch, ");
    refuses(reference.type, {TensorShape::with_rows({2}, 2), TensorShape::with_rows({2}, 2)}, "{}",
            "but got [batch * 2, 2], [batch * 2, 2]");
    refuses(reference.type, {{2, 3}, {2, 3}}, "{}", "but got [batch, 2, 3], [batch, 2, 3]");
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

/** The error for labels in a batch. */
void refuses_labels(std::string_view type, int64_t columns, int64_t label_columns, const Values& labels,
                    const char* text) {
  Built layer(type, {{columns}, {label_columns}});
  const auto rows = static_cast<int64_t>(labels.size()) / label_columns;
  std::vector<Tensor> tops(1);
  TERCEL_EXPECT_THROW(
      layer.layer->forward(std::vector<Tensor>{numbers({rows, columns}), make({rows, label_columns}, kFloat64, labels)},
                           tops, {.training = true}),
      DataError, text);
}

TEST(CrossEntropyLoss, IsStableAndRefusesOtherLabels) {
  Built layer("CrossEntropyLoss", {{3}, {1}});
  std::vector<Tensor> tops(1);
  layer.layer->forward(std::vector<Tensor>{make({1, 3}, kFloat64, {2000, 0, -2000}), make({1, 1}, kFloat64, {2})}, tops,
                       {.training = true});
  EXPECT_NEAR(values_of(tops[0])[0], 4000, 1e-9) << "HugeCTR's exponentials overflow";
  refuses_labels("CrossEntropyLoss", 3, 1, {0, 3},
                 "[CrossEntropyLoss x] expected labels that are numbers of classes, 0 to 2, found 3 in row 1 of");
  refuses_labels("CrossEntropyLoss", 3, 1, {-1}, "found -1 in row 0");
  refuses_labels("CrossEntropyLoss", 3, 1, {0.5}, "found 0.5 in row 0");
  refuses_labels("CrossEntropyLoss", 3, 1, {std::nan("")}, "in row 0");
  refuses_labels("CrossEntropyLoss", 2, 2, {1, 0, 1, 1}, "the shares of classes, of sum 1, found 2 in row 1");
  refuses_labels("CrossEntropyLoss", 2, 2, {2, -1}, "shares of classes that are not negative, found -1 in row 0");
  refuses("CrossEntropyLoss", {{1}, {1}}, "{}",
          "[CrossEntropyLoss x] expected logits [batch, n] of at least 2 classes and a label [batch, 1] or [batch, n] "
          "but got [batch, 1], [batch, 1]");
  refuses("CrossEntropyLoss", {{3}, {2}}, "{}", "but got [batch, 3], [batch, 2]");
}

TEST(CrossEntropyLoss, OnlyTwoClassesInOneColumnAreBinaryLabels) {
  const auto is_binary = [](const char* type, int64_t columns, int64_t label_columns) {
    Built layer(type, {{columns}, {label_columns}});
    return static_cast<const LossLayer&>(*layer.layer).has_binary_labels();
  };
  EXPECT_TRUE(is_binary("BinaryCrossEntropyLoss", 1, 1));
  EXPECT_TRUE(is_binary("CrossEntropyLoss", 2, 1));
  EXPECT_FALSE(is_binary("CrossEntropyLoss", 2, 2));
  EXPECT_FALSE(is_binary("CrossEntropyLoss", 3, 1));
  EXPECT_FALSE(is_binary("MultiCrossEntropyLoss", 3, 3));
}

TEST(MultiCrossEntropyLoss, CountsUnknownLabelsAndRefusesOthers) {
  Built layer("MultiCrossEntropyLoss", {{2}, {2}});
  std::vector<Tensor> tops(1);
  const Tensor x = make({1, 2}, kFloat64, {0, 0});
  layer.layer->forward(std::vector<Tensor>{x, make({1, 2}, kFloat64, {1, -1})}, tops, {.training = true});
  EXPECT_NEAR(values_of(tops[0])[0], std::log(2.0) / 2, 1e-12) << "the unknown one is in the denominator";
  layer.layer->forward(std::vector<Tensor>{x, make({1, 2}, kFloat64, {-1, -2})}, tops, {.training = true});
  EXPECT_EQ(values_of(tops[0])[0], 0);
  refuses_labels(
      "MultiCrossEntropyLoss", 2, 2, {0, 1, 3, 0},
      "[MultiCrossEntropyLoss x] expected labels in [0, 1], or below -0.5 where they are unknown, found 3 in "
      "row 1 of the batch");
  refuses_labels("MultiCrossEntropyLoss", 1, 1, {-0.25}, "found -0.25 in row 0");
  refuses("MultiCrossEntropyLoss", {{2}, {1}}, "{}",
          "[MultiCrossEntropyLoss x] expected logits [batch, n] and labels [batch, n] but got [batch, 2], [batch, 1]");
  refuses("MultiCrossEntropyLoss", {{2}, {2}}, R"({"target_weight": [1, 2, 3]})",
          "[MultiCrossEntropyLoss x] target_weight has 3 entries for 2 columns");
  refuses("MultiCrossEntropyLoss", {{2}, {2}}, R"({"target_weight": [1, -2]})", "target_weight");
}

}  // namespace
}  // namespace tercel::recsys
