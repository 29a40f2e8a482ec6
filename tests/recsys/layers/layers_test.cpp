// Shapes, values against plain loops, gradients against central differences, refusals: each layer in its own file.
#include "tercel/recsys/layers/layers_impl.h"

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(Layers, EveryOneIsTested) {
  // A layer that is added to the list needs its tests in this folder, and then its name here.
  const char* tested[] = {"Add",       "BatchNorm",     "BinaryCrossEntropyLoss",
                          "Concat",    "Dropout",       "ElementwiseMultiply",
                          "FmOrder2",  "InnerProduct",  "Interaction",
                          "MLP",       "MultiCross",    "ReLU",
                          "ReduceSum", "Reshape",       "Sigmoid",
                          "Slice",     "WeightMultiply"};
  std::vector<std::string> listed, expected(std::begin(tested), std::end(tested));
  for (const LayerEntry& entry : layer_entries()) listed.emplace_back(entry.type);
  EXPECT_EQ(listed, expected);
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
