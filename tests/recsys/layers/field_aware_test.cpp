#include "tercel/recsys/layers/field_aware.h"

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(FieldAwareInteractionLayer, SumsTheProductsOfPairs) {
  for (const size_t fields : {1, 2, 4}) {
    const size_t k = 3, width = fields * k;
    Built layer("FieldAwareInteraction", {{static_cast<int64_t>(fields), static_cast<int64_t>(width)}});
    const Tensor x = numbers({5, static_cast<int64_t>(fields), static_cast<int64_t>(width)});
    const Values v = values_of(x);
    Values expected;
    for (size_t r = 0; r < 5; ++r) {
      double sum = 0;
      for (size_t i = 0; i < fields; ++i)
        for (size_t j = 0; j < i; ++j)
          for (size_t e = 0; e < k; ++e)
            sum += v[(r * fields + i) * width + j * k + e] * v[(r * fields + j) * width + i * k + e];
      expected.push_back(sum);
    }
    expect_near(values_of(layer.run({x})), expected);
    EXPECT_TRUE(layer.gradients({x}));
  }
}

TEST(FieldAwareInteractionLayer, RefusesOtherShapes) {
  for (const Shapes& shapes : {Shapes{{6}}, Shapes{{4, 6}}, Shapes{{2, 2}, {2, 2}}})
    refuses("FieldAwareInteraction", shapes, "{}", "expected one input [batch, fields, fields * k]");
}

}  // namespace
}  // namespace tercel::recsys
