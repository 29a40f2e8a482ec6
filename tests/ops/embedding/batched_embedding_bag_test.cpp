#include "tercel/ops/embedding/batched_embedding_bag.h"

#include "tercel/autograd/autograd.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tests/ops/conformance.h"
#include "tests/ops/embedding/batched_embedding_bag_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(BatchedEmbeddingBag, Conformance, ::testing::ValuesIn(batched_embedding_bag_rows()), row_name);

TEST(BatchedEmbeddingBag, EmptyBatches) {
  EXPECT_EQ(batched_embedding_bag(random_table(4, 5), empty({0}, kInt64), int_tensor({0}), 3).sizes(),
            IntSpan({0, 3, 5}));
}

// A gradient that only the engine has is not copied, one that the caller has is.
TEST(BatchedEmbeddingBag, GradientOfRowsIsTheIncomingOneUnlessOthersHaveIt) {
  Tensor weight = random_table(10, 16);
  weight.requires_grad_();
  const Tensor keys = int_tensor({3, 1, 3, 9}), offsets = int_tensor({0, 1, 2, 3, 4});
  const Tensor out = batched_embedding_bag(weight, keys, offsets, 2);
  const Tensor factor = random({2, 2, 16}, kFloat32, -1, 1, 1);
  const void* incoming = nullptr;
  register_hook(out, [&](const Tensor& g) {
    incoming = g.data_ptr();
    return Tensor();
  });
  sum(mul(out, factor)).backward();
  Gradient g = gradient_of(weight);
  ASSERT_TRUE(g.is_rows());
  EXPECT_EQ(g.values.data_ptr(), incoming);
  EXPECT_EQ(g.rows.data_ptr(), keys.data_ptr());
  EXPECT_EQ(values_of(g.values), values_of(factor));
  const Tensor again = batched_embedding_bag(weight, keys, offsets, 2);
  g = grad(Span<Tensor>(&again, 1), Span<Tensor>(&weight, 1), Span<Tensor>(&factor, 1))[0];
  EXPECT_NE(g.values.data_ptr(), factor.data_ptr());
  EXPECT_EQ(values_of(g.values), values_of(factor));
}

TEST(BatchedEmbeddingBag, KeysMayHaveWeights) {
  Tensor table = random_table(10, 3);
  table.requires_grad_();
  // The weights of the third bag cancel, the second has no keys.
  const Tensor keys = int_tensor({3, 1, 3, 9, 2}), offsets = int_tensor({0, 2, 2, 4, 5});
  const Tensor weights = make({5}, kFloat32, {0.5, 2, 1, -1, 0});
  const Tensor incoming = random({2, 2, 3}, kFloat32, -1, 1, 1);
  for (const BagMode mode : {BagMode::Sum, BagMode::Mean}) {
    const Tensor out = batched_embedding_bag(table, keys, offsets, 2, mode, weights);
    const std::vector<double> found = values_of(out), rows = values_of(table);
    const std::vector<double> scale = mode == BagMode::Sum ? std::vector<double>{0.5, 2, 1, -1, 0}
                                                           : std::vector<double>{0.5 / 2.5, 2 / 2.5, 1, -1, 0};
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(found[c], scale[0] * rows[9 + c] + scale[1] * rows[3 + c], 1e-6);
      EXPECT_EQ(found[3 + c], 0);
      EXPECT_NEAR(found[6 + c], scale[2] * rows[9 + c] + scale[3] * rows[27 + c], 1e-6);
      EXPECT_EQ(found[9 + c], 0);
    }
    const Gradient g = grad(Span<Tensor>(&out, 1), Span<Tensor>(&table, 1), Span<Tensor>(&incoming, 1))[0];
    ASSERT_TRUE(g.is_rows());
    EXPECT_EQ(g.rows.data_ptr(), keys.data_ptr());
    EXPECT_FALSE(g.sources.defined());
    const size_t bag_of[] = {0, 0, 2, 2, 3};
    for (size_t i = 0; i < 5; ++i)
      for (size_t c = 0; c < 3; ++c)
        EXPECT_NEAR(values_of(g.values)[3 * i + c], scale[i] * values_of(incoming)[3 * bag_of[i] + c], 1e-6);
  }
  TERCEL_EXPECT_THROW(batched_embedding_bag(table, keys, offsets, 2, BagMode::Sum, make({2}, kFloat32, {1, 2})),
                      RuntimeError, "batched_embedding_bag: expected key_weights [5] of dtype float32 but got");
  TERCEL_EXPECT_THROW(
      batched_embedding_bag(table, keys, offsets, 2, BagMode::Sum, make({5}, kFloat64, {1, 2, 3, 4, 5})), RuntimeError,
      "batched_embedding_bag: expected key_weights [5] of dtype float32 but got");
}

// The keys of a bag share one value.
TEST(BatchedEmbeddingBag, GradientsHaveAValueForEachBag) {
  const Tensor keys = int_tensor({3, 1, 3, 9, 2}), offsets = int_tensor({0, 2, 2, 3, 5});
  const Tensor incoming = random({2, 2, 3}, kFloat32, -1, 1, 1);
  const auto first_gradient = [&](const Tensor& out, const Tensor& weight) {
    return grad(Span<Tensor>(&out, 1), Span<Tensor>(&weight, 1), Span<Tensor>(&incoming, 1))[0];
  };
  Tensor weight = random_table(10, 3);
  weight.requires_grad_();
  const Gradient sum = first_gradient(batched_embedding_bag(weight, keys, offsets, 2), weight);
  EXPECT_EQ(values_of(sum.values), values_of(incoming));
  EXPECT_EQ(values_of(sum.rows), values_of(keys));
  EXPECT_EQ(values_of(sum.sources), (std::vector<double>{0, 0, 2, 3, 3}));
  const Gradient mean = first_gradient(batched_embedding_bag(weight, keys, offsets, 2, BagMode::Mean), weight);
  EXPECT_EQ(mean.values.sizes(), IntSpan({4, 3}));
  EXPECT_EQ(values_of(mean.sources), values_of(sum.sources));
  EXPECT_EQ(values_of(select(mean.values, 0, 3)), values_of(div(select(view(incoming, {4, 3}), 0, 3), 2.0)));

  // Several tables: those of the second are bags 1 and 3.
  const std::vector<Tensor> tables = {random_table(10, 3).requires_grad_(), random_table(10, 3).requires_grad_()};
  const Tensor out = batched_embedding_bag(tables, keys, offsets);
  const Gradient second = grad(Span<Tensor>(&out, 1), tables, Span<Tensor>(&incoming, 1))[1];
  EXPECT_EQ(values_of(second.rows), (std::vector<double>{9, 2}));
  EXPECT_EQ(values_of(second.sources), (std::vector<double>{1, 1}));
  EXPECT_EQ(second.values.sizes(), IntSpan({2, 3}));
  EXPECT_EQ(values_of(second.values), values_of(select(incoming, 1, 1)));
}

TEST(BatchedEmbeddingBag, WrongIndicesAreNamed) {
  const std::vector<Tensor> tables = {random_table(5, 2), random_table(3, 2)};
  EXPECT_EQ(message_of<IndexError>([&] {
              batched_embedding_bag(tables, int_tensor({4, 2, 0, 4}), int_tensor({0, 1, 2, 3, 4}));
            }),
            "batched_embedding_bag: index 4 (at position 3) is out of range for weight 1 of 3 rows");
}

TEST(BatchedEmbeddingBag, WrongOffsetsAreNamed) {
  const Tensor weight = random_table(5, 2), index = int_tensor({0, 1, 2, 3});
  EXPECT_NE(message_of<RuntimeError>([&] {
              batched_embedding_bag(weight, index, int_tensor({0, 2, 4}), 3);
            }).find("expected row_offsets [batch * 3 + 1]"),
            std::string::npos);
}

TEST(BatchedEmbeddingBag, TakesNoLargest) {
  EXPECT_EQ(message_of<NotImplementedError>([&] {
              batched_embedding_bag(random_table(3, 2), int_tensor({0}), int_tensor({0, 1}), 1, BagMode::Max);
            }),
            "batched_embedding_bag: mode 'max' is supported only by embedding_bag()");
}

}  // namespace tercel::test
