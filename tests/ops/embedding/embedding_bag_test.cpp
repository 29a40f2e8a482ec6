#include "tercel/ops/embedding/embedding_bag.h"

#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/embedding/embedding_bag_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(EmbeddingBag, Conformance, ::testing::ValuesIn(embedding_bag_rows()), row_name);

TEST(EmbeddingBag, SumsOfLongBagsOfEveryWidth) {
  // More indices than are prefetched; integers, whose sums are exact.
  const Sizes starts = {0, 3, 3, 40, 41, 141, 160};
  const Tensor index = random({200}, kInt64, 0, 29, 5);
  for (const ScalarType t : {kFloat32, kFloat64, kBFloat16}) {
    for (const int64_t dim : {1, 7, 16, 31, 64, 65, 128, 200, 300}) {
      SCOPED_TRACE(::testing::Message() << to_string(t) << " " << dim);
      const Tensor weight = to(random({30, dim}, kInt32, -1, 1, 7), t), factor = to(random({200}, kInt32, 0, 1, 8), t);
      EXPECT_EQ(values_of(embedding_bag(weight, index, int_tensor(starts), {BagMode::Sum, false, 4})),
                values_of(bag_reference(weight, index, starts, BagMode::Sum, {}, 4)));
      EXPECT_EQ(values_of(embedding_bag(weight, index, int_tensor(starts), {BagMode::Sum, false, {}}, factor)),
                values_of(bag_reference(weight, index, starts, BagMode::Sum, factor)));
    }
  }
}

TEST(EmbeddingBag, EmptyBagsAndEmptyBatches) {
  const Tensor weight = random_table(4, 5);
  const Tensor none = empty({0}, kInt64);
  EXPECT_EQ(values_of(embedding_bag(weight, none, int_tensor({0, 0}), {})), std::vector<double>(10, 0.0));
  EXPECT_EQ(embedding_bag(weight, none, none, {}).sizes(), IntSpan({0, 5}));
  EXPECT_EQ(embedding_bag(weight, empty({2, 0}, kInt64)).sizes(), IntSpan({2, 5}));
}

TEST(EmbeddingBag, RowsOfIndicesAreBags) {
  const Tensor weight = random_table(10, 16), index = random({6, 4}, kInt32, 0, 9, 5);
  const Tensor flat = make({24}, kInt32, values_of(index));
  const Tensor offsets = int_tensor({0, 4, 8, 12, 16, 20}, kInt64);
  EXPECT_EQ(bytes_of(embedding_bag(weight, index)), bytes_of(embedding_bag(weight, flat, offsets)));
}

TEST(EmbeddingBag, PaddingGetsNoGradient) {
  Tensor weight = random_table(4, 2);
  weight.requires_grad_();
  const Tensor index = int_tensor({1, 3, 1, 0});
  EmbeddingBagOptions options;
  options.padding_idx = 1;
  const Tensor bags = embedding_bag(weight, index, int_tensor({0, 3}), options);
  // The first bag holds 1, 3, 1: only row 3 counts.
  const std::vector<double> rows = values_of(weight);
  EXPECT_EQ(values_of(bags), (std::vector<double>{rows[6], rows[7], rows[0], rows[1]}));
  EXPECT_EQ(values_of(gradient_of_sum(bags, weight).values), (std::vector<double>{1, 1, 0, 0, 0, 0, 1, 1}));
}

TEST(EmbeddingBag, WrongIndicesAreNamed) {
  const Tensor weight = random_table(5, 2);
  EXPECT_EQ(message_of<RuntimeError>([&] {
              embedding_bag(weight, int_tensor({0, 1, INT64_MIN}), int_tensor({0, 1}));
            }),
            "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be -9223372036854775808 (at "
            "position 2) for a weight of 5 rows");
}

TEST(EmbeddingBag, WrongOffsetsAreNamed) {
  const Tensor weight = random_table(5, 2), index = int_tensor({0, 1, 2, 3});
  const EmbeddingBagOptions last{BagMode::Sum, true, {}, false};
  const auto refuse = [&](const Sizes& offsets, const EmbeddingBagOptions& options) {
    return message_of<RuntimeError>([&] { embedding_bag(weight, index, int_tensor(offsets), options); });
  };
  EXPECT_EQ(
      refuse({1, 2}, {}),
      "embedding_bag: offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position "
      "0. However, got 1");
  EXPECT_EQ(refuse({0, 5}, {}),
            "embedding_bag: offsets[-1] can not be greater than input's length 4 but got offsets[-1] of 5");
  EXPECT_EQ(refuse({0, 3, 2}, {}), "embedding_bag: expected offsets that ascend from 0 to 4 but bag 1 is [3, 2)");
  EXPECT_EQ(refuse({0, INT64_MAX, INT64_MIN, 4}, last),
            "embedding_bag: expected offsets that ascend from 0 to 4 but bag 0 is [0, 9223372036854775807)");
  EXPECT_EQ(refuse({0, -1, 4}, last), "embedding_bag: expected offsets that ascend from 0 to 4 but bag 0 is [0, -1)");
  EXPECT_EQ(refuse({0, 3}, last), "embedding_bag: expected offsets[-1] to be the number of indices, 4, but got 3");
  EXPECT_EQ(refuse({}, last), "embedding_bag: expected offsets with the end of the last bag but got none at all");
}

TEST(EmbeddingBag, SampleWeightsAreForSums) {
  const Tensor weight = random_table(5, 2), index = int_tensor({0, 1}), factors = make({2}, kFloat32, {1, 2});
  EXPECT_EQ(message_of<RuntimeError>([&] { embedding_bag(weight, index, int_tensor({0}), {}, factors); }),
            "embedding_bag: per_sample_weights are for mode 'sum' but the mode is 'mean'");
}

TEST(EmbeddingBag, LargestOfBags) {
  Tensor weight = make({3, 2}, kFloat32, {1, 9, 5, 2, 5, 3});
  weight.requires_grad_();
  EmbeddingBagOptions options;
  options.mode = BagMode::Max;
  const Tensor bags = embedding_bag(weight, int_tensor({0, 1, 2, 1}), int_tensor({0, 0, 3}), options);
  // An empty bag; all three rows, of which 1 and 2 tie in the first elements: the first one gets the gradient.
  EXPECT_EQ(values_of(bags), (std::vector<double>{0, 0, 5, 9, 5, 2}));
  EXPECT_EQ(values_of(gradient_of_sum(bags, weight).values), (std::vector<double>{0, 1, 2, 1, 0, 0}));
  EXPECT_EQ(message_of<RuntimeError>([&] {
              embedding_bag(weight, int_tensor({0, 3}), int_tensor({0}), options);
            }),
            "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be 3 (at position 1) for a "
            "weight of 3 rows");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              embedding_bag(weight, int_tensor({0, 1, 1}), int_tensor({0, 2, 1}), options);
            }),
            "embedding_bag: expected offsets that ascend from 0 to 3 but bag 1 is [2, 1)");
  options.sparse = true;
  EXPECT_EQ(message_of<ValueError>([&] { embedding_bag(weight, int_tensor({0}), int_tensor({0}), options); }),
            "max mode does not support sparse weights");
}

TEST(EmbeddingBag, GradientsByFrequency) {
  Tensor weight = random_table(4, 1);
  weight.requires_grad_();
  const Tensor index = int_tensor({1, 1, 2, 1});
  EmbeddingBagOptions options;
  const Tensor plain = embedding_bag(weight, index, int_tensor({0, 1}), options);
  options.scale_grad_by_freq = true;
  const Tensor bags = embedding_bag(weight, index, int_tensor({0, 1}), options);
  EXPECT_EQ(values_of(bags), values_of(plain));
  const std::vector<double> got = values_of(gradient_of_sum(bags, weight).values);
  EXPECT_NEAR(got[1], (1 + 2.0 / 3) / 3, 1e-6);
  EXPECT_NEAR(got[2], 1.0 / 3, 1e-6);
  EXPECT_EQ(message_of<RuntimeError>([&] {
              embedding_bag(weight, int_tensor({1, 4}), int_tensor({0, 1}), options);
            }),
            "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be 4 (at position 1) for a "
            "weight of 4 rows");
  options.sparse = true;
  EXPECT_EQ(message_of<RuntimeError>([&] {
              embedding_bag(weight, index, int_tensor({0, 1}), options);
            }),
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients");
}

TEST(EmbeddingBagThreads, SameBitsForAnyNumberOfThreads) {
  Tensor weight = random({3000, 24}, kFloat32, -1, 1, 2);
  weight.requires_grad_();
  const int64_t bags = 9000;
  Sizes offsets = {0};
  for (int64_t b = 0; b < bags; ++b) offsets.push_back(offsets.back() + b % 4);
  const Tensor index = random({offsets.back()}, kInt64, 0, 2999, 4);
  const int64_t before = num_threads();
  std::string want, want_grad;
  for (const int64_t threads : {1, 2, 5}) {
    set_num_threads(threads);
    EmbeddingBagOptions options;
    options.include_last_offset = true;
    const Tensor out = embedding_bag(weight, index, int_tensor(offsets), options);
    const std::string got = bytes_of(out), got_grad = bytes_of(gradient_of_sum(out, weight).values);
    if (threads == 1) {
      want = got;
      want_grad = got_grad;
    }
    EXPECT_EQ(got, want) << threads;
    EXPECT_EQ(got_grad, want_grad) << threads;
  }
  set_num_threads(before);
}

}  // namespace tercel::test
