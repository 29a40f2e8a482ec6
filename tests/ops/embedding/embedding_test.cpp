#include "tercel/ops/embedding/embedding.h"

#include <cstring>

#include "tercel/ops/embedding/batched_embedding_bag.h"
#include "tercel/ops/factories/factories.h"
#include "tests/ops/conformance.h"
#include "tests/ops/embedding/embedding_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Embedding, Conformance, ::testing::ValuesIn(embedding_rows()), row_name);

TEST(Embedding, GathersRowsOfEverySizeAndTable) {
  for (const int64_t dim : {1, 3, 8, 16, 17, 32, 64, 128, 130}) {
    SCOPED_TRACE(dim);
    const Tensor weight = random_table(50, dim);
    const Tensor index = random({100}, kInt64, 0, 49, 3);
    const Tensor got = embedding(weight, index);
    EXPECT_EQ(values_of(got), values_of(bag_reference(weight, index, each_its_own(100), BagMode::Sum)));
    Sizes ends = each_its_own(101);
    EXPECT_EQ(bytes_of(embedding_bag(weight, index, int_tensor(ends), {BagMode::Sum, true, {}, true})), bytes_of(got));
    EXPECT_EQ(bytes_of(batched_embedding_bag(weight, index, int_tensor(ends), 10)), bytes_of(got));
  }
}

TEST(Embedding, LargeResultIsWrittenPastTheCaches) {
  const Tensor weight = random_table(1000, 64);
  const Tensor index = random({140000}, kInt64, 0, 999, 3);
  const Tensor got = embedding(weight, index);
  ASSERT_GT(got.nbytes(), size_t{32} << 20);
  const auto* rows = static_cast<const float*>(weight.data_ptr());
  const auto* at = static_cast<const int64_t*>(index.data_ptr());
  const auto* out = static_cast<const float*>(got.data_ptr());
  for (int64_t i = 0; i < index.numel(); ++i) ASSERT_EQ(std::memcmp(out + i * 64, rows + at[i] * 64, 256), 0) << i;
}

TEST(Embedding, EmptyIndices) {
  EXPECT_EQ(embedding(random_table(4, 5), empty({3, 0}, kInt64)).sizes(), IntSpan({3, 0, 5}));
}

TEST(Embedding, PaddingGetsNoGradient) {
  Tensor weight = random_table(4, 2);
  weight.requires_grad_();
  const Tensor index = int_tensor({1, 3, 1, 0});
  const Gradient g = gradient_of_sum(embedding(weight, index, -1, true), weight);
  EXPECT_EQ(values_of(g.rows), (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(values_of(g.sources), (std::vector<double>{0, 2, 3}));
  EXPECT_EQ(g.values.sizes(), IntSpan({4, 2}));
  EXPECT_EQ(values_of(embedding(weight, index, -1)), values_of(embedding(weight, index)));
}

TEST(Embedding, WrongIndicesAreNamed) {
  const Tensor weight = random_table(5, 2);
  EXPECT_EQ(message_of<IndexError>([&] {
              embedding(weight, int_tensor({0, 4, 5, 6}));
            }),
            "embedding: index 5 (at position 2) is out of range for a weight of 5 rows");
  EXPECT_EQ(message_of<IndexError>([&] { embedding(weight, int_tensor({-1}, kInt32)); }),
            "embedding: index -1 (at position 0) is out of range for a weight of 5 rows");
  EXPECT_EQ(message_of<RuntimeError>([&] { embedding(weight, make({1}, kFloat32, {1})); }),
            "embedding(): Expected dtype int32/int64 for indices but got: Float");
}

TEST(Embedding, GradientsByFrequency) {
  Tensor weight = random_table(4, 1);
  weight.requires_grad_();
  const Tensor index = int_tensor({1, 1, 2, 1});
  EXPECT_EQ(values_of(gradient_of_sum(embedding(weight, index, {}, false, true), weight).values),
            (std::vector<double>{0, 1, 1, 0}));
  EXPECT_EQ(message_of<IndexError>([&] {
              embedding(weight, int_tensor({1, 4}), {}, false, true);
            }),
            "embedding: index 4 (at position 1) is out of range for a weight of 4 rows");
}

}  // namespace tercel::test
