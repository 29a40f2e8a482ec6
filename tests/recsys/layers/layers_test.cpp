// Shapes, values against plain loops, gradients against central differences, refusals: each layer in its own file.
#include "tercel/recsys/layers/layers_impl.h"

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

/** A layer that is not a loss, for inputs of these shapes. */
struct Case {
  std::string_view type;
  Shapes bottoms;
  const char* options = "{}";
};

/** Every layer that is not a loss needs a line, and its own tests in this folder. */
std::vector<Case> cases() {
  const TensorShape rows = TensorShape::with_rows({3}, 2), more_rows = TensorShape::with_rows({4}, 3);
  return {
      {"Add", {{3}, {3}}},
      {"BatchNorm", {{3}}},
      {"Cast", {{3}}},
      {"CompressedInteraction", {{3, 2}}, R"({"num_outputs": [2, 4]})"},
      {"Concat", {{3}, {2}}},
      {"Dropout", {{3}}},
      {"ELU", {{3}}},
      {"ElementwiseMultiply", {{3}, {3}}},
      {"FieldAwareInteraction", {{3, 6}}},
      {"FmOrder2", {{6}}, R"({"out_dim": 2})"},
      {"FusedReshapeConcat", {{3, 2}, {3, 1}}},
      {"FusedReshapeConcatGeneral", {{3, 2}, {3, 1}}},
      {"GRU", {{4, 3}}, R"({"gru_param": {"num_output": 2}})"},
      {"GRU", {{4, 3}}, R"({"gru_param": {"num_output": 2, "sequence": true}})"},
      {"Gather", {{4}}, R"({"indices": [2, 0]})"},
      {"GroupedInnerProduct", {{3, 2}}, R"({"fc_param": {"num_output": 4}})"},
      {"InnerProduct", {{3}}, R"({"fc_param": {"num_output": 2}})"},
      {"Interaction", {{2}, {3, 2}}},
      {"LayerNorm", {{2, 3}}},
      {"MLP", {{3}}, R"({"mlp_param": {"num_outputs": [4, 2]}})"},
      {"MatrixMultiply", {{2, 3}, {3, 4}}},
      {"MatrixMultiply", {rows, more_rows}},
      {"MultiCross", {{3}}, R"({"mc_param": {"num_layers": 2}})"},
      {"MultiHeadAttention", {{3, 4}, {3, 4}, {3, 4}, {1, 3, 3}}, R"({"num_attention_heads": 2})"},
      {"PReLU_Dice", {{3}}, R"({"prelu_dice_param": {"alpha": 0.2}})"},
      {"PaddingMask", {{3, 2}}},
      {"ReLU", {{3}}},
      {"ReduceMean", {{2, 3}}},
      {"ReduceSum", {{2, 3}}},
      {"Reshape", {{2, 3}}, R"({"leading_dim": 3})"},
      {"Scale", {{3}}, R"({"scale_param": {"factor": 4}})"},
      {"Scale", {{3}}, R"({"scale_param": {"axis": 0, "factor": 4}})"},
      {"Select", {{3, 2}}, R"({"dim": 1, "index": [2, 0]})"},
      {"SequenceMask", {{1}, {1}}, R"({"max_sequence_len_from": 3, "max_sequence_len_to": 2})"},
      {"Sigmoid", {{3}}},
      {"Slice", {{3}}, R"({"ranges": [[0, 2], [1, 3]]})"},
      {"Softmax", {{2, 3}, {2, 3}}},
      {"Sub", {{3}, {3}}},
      {"WeightMultiply", {{3}}, R"({"weight_dims": [3, 2]})"},
  };
}

TEST(Layers, EveryOneIsTested) {
  std::vector<std::string_view> listed, expected;
  for (const LayerEntry& entry : layer_entries())
    if (!entry.is_loss) listed.push_back(entry.type);
  for (const Case& c : cases())
    if (expected.empty() || expected.back() != c.type) expected.push_back(c.type);
  EXPECT_EQ(listed, expected);
}

/** Inputs of `batch` samples, of which the first is number `first`; a sample's values depend on its number only. */
std::vector<Tensor> inputs_of(const Case& c, int64_t first, int64_t batch) {
  std::vector<Tensor> inputs;
  for (const TensorShape& shape : c.bottoms) {
    const int64_t rows = shape.rows_per_sample;
    Sizes sizes = {batch * rows};
    for (const int64_t size : shape.sizes) sizes.push_back(size);
    Values values;
    for (int64_t sample = first; sample < first + batch; ++sample)
      for (const double v : values_of(numbers({rows * numel_of(shape.sizes)}, static_cast<uint64_t>(sample) + 1)))
        values.push_back(v);
    inputs.push_back(make(sizes, kFloat64, values));
  }
  return inputs;
}

TEST(Layers, KeepSamplesApartInEvaluation) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(std::string(c.type) + " " + c.options);
    Built layer(c.type, c.bottoms, c.options);
    layer.forward(inputs_of(c, 20, 5));  // running statistics
    const std::vector<Tensor> all = layer.forward(inputs_of(c, 0, 4), false);
    for (int64_t sample = 0; sample < 4; ++sample) {
      const std::vector<Tensor> alone = layer.forward(inputs_of(c, sample, 1), false);
      for (size_t top = 0; top < all.size(); ++top) {
        const int64_t rows = layer.layer->tops()[top].rows_per_sample;
        expect_near(values_of(alone[top]), values_of(all[top].narrow(0, sample * rows, rows)), 1e-13);
      }
    }
  }
}

TEST(Layers, TakeBatchesWithoutRows) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(std::string(c.type) + " " + c.options);
    Built layer(c.type, c.bottoms, c.options);
    std::vector<Tensor> inputs = inputs_of(c, 0, 0);
    for (Tensor& t : inputs) t.requires_grad_();
    for (const bool training : {false, true})
      for (const Tensor& top : layer.forward(inputs, training)) {
        EXPECT_EQ(top.numel(), 0);
        if (top.requires_grad()) top.sum().backward();
      }
    for (const auto& entry : layer.parameters.entries())
      EXPECT_EQ(largest_of(values_of(entry.tensor.grad())), 0) << entry.name;
  }
}

TEST(Layers, ResolvedOptionsMakeTheSameLayer) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(std::string(c.type) + " " + c.options);
    Built layer(c.type, c.bottoms, c.options);
    const std::string resolved = dump_json_line(layer.resolved);
    Built again(c.type, c.bottoms, resolved.c_str());
    EXPECT_EQ(dump_json_line(again.resolved), resolved);
    const std::vector<Tensor> inputs = inputs_of(c, 0, 3);
    const std::vector<Tensor> a = layer.forward(inputs), b = again.forward(inputs);
    ASSERT_EQ(a.size(), b.size());
    for (size_t top = 0; top < a.size(); ++top) EXPECT_EQ(values_of(a[top]), values_of(b[top]));
  }
}

TEST(Layers, UnknownOptionsSuggestTheNearest) {
  refuses("ReduceSum", {{3}}, R"({"axes": 1})", "[ReduceSum x] unknown option 'axes'; did you mean 'axis'?");
  refuses("InnerProduct", {{3}}, R"({"fc_param": {"num_outputs": 4}})", "did you mean 'num_output'?");
  refuses("MLP", {{3}}, R"({"mlp_param": {"num_output": 4, "activatoin": "Relu"}})", "did you mean 'activation'?");
  refuses("MultiCross", {{3}}, R"({"mc_param": {"num_layer": 4}})", "did you mean 'num_layers'?");
  refuses("Dropout", {{3}}, R"({"rat": 0.1})", "did you mean 'rate'?");
  refuses("ReLU", {{3}}, R"({"alpha": 0.1})", "[ReLU x] unknown option 'alpha'");
  EXPECT_NO_THROW(Built("ReLU", {{3}}, R"({"type": "ReLU", "bottom": "a", "top": "x"})")) << "the graph's own keys";
}

}  // namespace
}  // namespace tercel::recsys
