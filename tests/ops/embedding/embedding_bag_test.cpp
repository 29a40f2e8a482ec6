#include "tercel/ops/embedding/embedding_bag.h"

#include "tercel/autograd/autograd.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/embedding/embedding_bag_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(EmbeddingBag, Conformance, ::testing::ValuesIn(embedding_bag_rows()), row_name);

namespace {

/** The message of the exception of type E that f throws. */
Tensor table(int64_t rows, int64_t dim) { return random({rows, dim}, kFloat32, -1, 1, 7); }

Gradient gradient_of_sum(const Tensor& out, const Tensor& weight) {
  const Tensor ones =
      make(out.sizes().to_vector(), out.dtype(), std::vector<double>(static_cast<size_t>(out.numel()), 1));
  return grad(Span<Tensor>(&out, 1), Span<Tensor>(&weight, 1), Span<Tensor>(&ones, 1))[0];
}

}  // namespace

TEST(EmbeddingBag, GathersRowsOfEverySizeAndTable) {
  for (const int64_t dim : {1, 3, 8, 16, 17, 32, 64, 128, 130}) {
    SCOPED_TRACE(dim);
    const Tensor weight = table(50, dim);
    const Tensor index = random({100}, kInt64, 0, 49, 3);
    const Tensor got = embedding(weight, index);
    EXPECT_EQ(values_of(got), values_of(bag_reference(weight, index, each_its_own(100), BagMode::Sum)));
    Sizes ends = each_its_own(101);
    EXPECT_EQ(bytes_of(embedding_bag(weight, index, int_tensor(ends), {BagMode::Sum, true, {}, true})), bytes_of(got));
    EXPECT_EQ(bytes_of(batched_embedding_bag(weight, index, int_tensor(ends), 10)), bytes_of(got));
  }
}

TEST(EmbeddingBag, SumsOfLongBagsOfEveryWidth) {
  // More indices than are fetched ahead; whole numbers, whose sums are exact.
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

TEST(EmbeddingBag, LargeResultIsWrittenPastTheCaches) {
  const Tensor weight = table(1000, 64);
  const Tensor index = random({140000}, kInt64, 0, 999, 3);
  const Tensor got = embedding(weight, index);
  ASSERT_GT(got.nbytes(), size_t{32} << 20);
  const auto* rows = static_cast<const float*>(weight.data_ptr());
  const auto* at = static_cast<const int64_t*>(index.data_ptr());
  const auto* out = static_cast<const float*>(got.data_ptr());
  for (int64_t i = 0; i < index.numel(); ++i) ASSERT_EQ(std::memcmp(out + i * 64, rows + at[i] * 64, 256), 0) << i;
}

TEST(EmbeddingBag, EmptyBagsAndEmptyBatches) {
  const Tensor weight = table(4, 5);
  const Tensor none = empty({0}, kInt64);
  EXPECT_EQ(values_of(embedding_bag(weight, none, int_tensor({0, 0}), {})), std::vector<double>(10, 0.0));
  EXPECT_EQ(embedding_bag(weight, none, none, {}).sizes(), IntSpan({0, 5}));
  EXPECT_EQ(embedding(weight, empty({3, 0}, kInt64)).sizes(), IntSpan({3, 0, 5}));
  EXPECT_EQ(batched_embedding_bag(weight, none, int_tensor({0}), 3).sizes(), IntSpan({0, 3, 5}));
  EXPECT_EQ(embedding_bag(weight, empty({2, 0}, kInt64)).sizes(), IntSpan({2, 5}));
}

TEST(EmbeddingBag, RowsOfIndicesAreBags) {
  const Tensor weight = table(10, 16), index = random({6, 4}, kInt32, 0, 9, 5);
  const Tensor flat = make({24}, kInt32, values_of(index));
  const Tensor offsets = int_tensor({0, 4, 8, 12, 16, 20}, kInt64);
  EXPECT_EQ(bytes_of(embedding_bag(weight, index)), bytes_of(embedding_bag(weight, flat, offsets)));
}

TEST(EmbeddingBag, GradientOfRowsIsTheIncomingOneWhenBagsHoldOne) {
  Tensor weight = table(10, 16);
  weight.requires_grad_();
  const Tensor keys = int_tensor({3, 1, 3, 9}), offsets = int_tensor({0, 1, 2, 3, 4});
  const Tensor out = batched_embedding_bag(weight, keys, offsets, 2);
  const Tensor incoming = random({2, 2, 16}, kFloat32, -1, 1, 1);
  const Gradient g = grad(Span<Tensor>(&out, 1), Span<Tensor>(&weight, 1), Span<Tensor>(&incoming, 1))[0];
  ASSERT_TRUE(g.is_rows());
  EXPECT_EQ(g.values.data_ptr(), incoming.data_ptr());
  EXPECT_EQ(g.rows.data_ptr(), keys.data_ptr());
}

TEST(EmbeddingBag, PaddingGetsNoGradient) {
  Tensor weight = table(4, 2);
  weight.requires_grad_();
  const Tensor index = int_tensor({1, 3, 1, 0});
  const Gradient g = gradient_of_sum(embedding(weight, index, -1, true), weight);
  EXPECT_EQ(values_of(g.rows), (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(g.values.sizes(), IntSpan({3, 2}));
  EXPECT_EQ(values_of(embedding(weight, index, -1)), values_of(embedding(weight, index)));

  EmbeddingBagOptions options;
  options.padding_idx = 1;
  const Tensor bags = embedding_bag(weight, index, int_tensor({0, 3}), options);
  // The first bag holds 1, 3, 1: only row 3 counts.
  const std::vector<double> rows = values_of(weight);
  EXPECT_EQ(values_of(bags), (std::vector<double>{rows[6], rows[7], rows[0], rows[1]}));
  EXPECT_EQ(values_of(gradient_of_sum(bags, weight).values), (std::vector<double>{1, 1, 0, 0, 0, 0, 1, 1}));
}

TEST(EmbeddingBag, WrongIndicesAreNamed) {
  const Tensor weight = table(5, 2);
  EXPECT_EQ(message_of<IndexError>([&] {
              embedding(weight, int_tensor({0, 4, 5, 6}));
            }),
            "embedding: index 5 (at position 2) is out of range for a weight of 5 rows");
  EXPECT_EQ(message_of<IndexError>([&] { embedding(weight, int_tensor({-1}, kInt32)); }),
            "embedding: index -1 (at position 0) is out of range for a weight of 5 rows");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              embedding_bag(weight, int_tensor({0, 1, INT64_MIN}), int_tensor({0, 1}));
            }),
            "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be -9223372036854775808 (at "
            "position 2) for a weight of 5 rows");
  const std::vector<Tensor> tables = {weight, table(3, 2)};
  EXPECT_EQ(message_of<IndexError>([&] {
              batched_embedding_bag(tables, int_tensor({4, 2, 0, 4}), int_tensor({0, 1, 2, 3, 4}));
            }),
            "batched_embedding_bag: index 4 (at position 3) is out of range for weight 1 of 3 rows");
  EXPECT_EQ(message_of<RuntimeError>([&] { embedding(weight, make({1}, kFloat32, {1})); }),
            "embedding: expected indices of int64 or int32 but got [1] float32 on cpu");
}

TEST(EmbeddingBag, WrongOffsetsAreNamed) {
  const Tensor weight = table(5, 2), index = int_tensor({0, 1, 2, 3});
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
  EXPECT_NE(message_of<RuntimeError>([&] {
              batched_embedding_bag(weight, index, int_tensor({0, 2, 4}), 3);
            }).find("expected row_offsets [batch * 3 + 1]"),
            std::string::npos);
}

TEST(EmbeddingBag, SampleWeightsAreForSums) {
  const Tensor weight = table(5, 2), index = int_tensor({0, 1}), factors = make({2}, kFloat32, {1, 2});
  EXPECT_EQ(message_of<RuntimeError>([&] { embedding_bag(weight, index, int_tensor({0}), {}, factors); }),
            "embedding_bag: per_sample_weights are for mode 'sum' but the mode is 'mean'");
}

TEST(EmbeddingBag, LargestOfBags) {
  Tensor weight = make({3, 2}, kFloat32, {1, 9, 5, 2, 5, 3});
  weight.requires_grad_();
  EmbeddingBagOptions options;
  options.mode = BagMode::Max;
  const Tensor bags = embedding_bag(weight, int_tensor({0, 1, 2, 1}), int_tensor({0, 0, 3}), options);
  // An empty bag; all three rows, of which 1 and 2 begin alike: the first one gets the gradient.
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
  EXPECT_EQ(message_of<NotImplementedError>([&] {
              batched_embedding_bag(weight, int_tensor({0}), int_tensor({0, 1}), 1, BagMode::Max);
            }),
            "batched_embedding_bag: mode 'max' is for embedding_bag() alone");
}

TEST(EmbeddingBag, GradientsByFrequency) {
  Tensor weight = table(4, 1);
  weight.requires_grad_();
  const Tensor index = int_tensor({1, 1, 2, 1});
  EXPECT_EQ(values_of(gradient_of_sum(embedding(weight, index, {}, false, true), weight).values),
            (std::vector<double>{0, 1, 1, 0}));
  EmbeddingBagOptions options;
  const Tensor plain = embedding_bag(weight, index, int_tensor({0, 1}), options);
  options.scale_grad_by_freq = true;
  const Tensor bags = embedding_bag(weight, index, int_tensor({0, 1}), options);
  EXPECT_EQ(values_of(bags), values_of(plain));
  const std::vector<double> got = values_of(gradient_of_sum(bags, weight).values);
  EXPECT_NEAR(got[1], (1 + 2.0 / 3) / 3, 1e-6);
  EXPECT_NEAR(got[2], 1.0 / 3, 1e-6);
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
