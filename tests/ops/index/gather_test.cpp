#include "tercel/ops/index/gather.h"

#include "tercel/ops/index/index_put.h"
#include "tercel/ops/index/scatter.h"

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/index/gather_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Gather, Conformance, ::testing::ValuesIn(gather_rows()), row_name);

TEST(Gather, WrongIndicesAreNamed) {
  const Tensor x = make({3, 2}, kFloat32, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(message_of<IndexError>([&] {
              index_select(x, 0, make({3}, kInt64, {0, 3, 1}));
            }),
            "index_select(): index out of range in self: expected indices in [0, 3) but got 3");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              gather(x, 1, make({1, 2}, kInt32, {0, -1}));
            }),
            "index -1 is out of bounds for dimension 1 with size 2");
  EXPECT_THROW(take(x, make({1}, kInt64, {6})), IndexError);
  EXPECT_THROW(index_select(x, 2, make({1}, kInt64, {0})), IndexError);
  EXPECT_THROW(index_select(x, 0, make({1}, kFloat32, {0})), RuntimeError);
  EXPECT_THROW(index_select(x, 0, make({1, 1}, kInt64, {0})), RuntimeError);
}

TEST(Gather, RowsOfAllSizesAreSelected) {
  constexpr int64_t kRows = 3000;  // more than stays near
  for (const int64_t width : {1, 2, 4, 7, 8, 16, 17, 64, 200}) {
    const Tensor x = reshape(to(arange(kRows * width), kFloat32), {kRows, width});
    Tensor index = empty({500}, kInt64);
    for (int64_t i = 0; i < 500; ++i) index.data<int64_t>()[i] = i * i * 7 % kRows;
    const Tensor found = index_select(x, 0, index);
    for (int64_t i = 0; i < 500; ++i)
      for (int64_t k = 0; k < width; ++k)
        ASSERT_EQ(found.data<float>()[i * width + k], static_cast<float>(index.data<int64_t>()[i] * width + k))
            << width << " " << i;
  }
}

TEST(Gather, WrongSizesAreRefused) {
  const Tensor x = empty({3, 2});
  EXPECT_THROW(gather(x, 0, make({1, 3}, kInt64, {0, 0, 0})), RuntimeError);
  EXPECT_THROW(gather(x, 0, make({3}, kInt64, {0, 0, 0})), RuntimeError);
  EXPECT_THROW(scatter_add(x, 0, make({4, 2}, kInt64, std::vector<double>(8, 0)), x), RuntimeError);
  EXPECT_THROW(scatter_add(x, 0, make({1, 2}, kInt64, {0, 0}), empty({3, 2}, kFloat64)), RuntimeError);
  EXPECT_THROW(masked_fill(x, make({3, 3}, kBool, std::vector<double>(9, 0)), 1), RuntimeError);
  EXPECT_THROW(masked_fill(x, make({3, 2}, kInt64, std::vector<double>(6, 0)), 1), RuntimeError);
  EXPECT_THROW(masked_fill(make({1}, kInt64, {0}), make({1}, kBool, {1}), 1e20), RuntimeError);
  EXPECT_EQ(masked_fill(make({1}, kInt64, {0}), make({1}, kBool, {1}), 1.5).dtype(), kInt64);
}

TEST(Gather, EmptyAndWithoutDimensions) {
  const Tensor x = make({3, 2}, kFloat32, {1, 2, 3, 4, 5, 6}), none = empty({0}, kInt64);
  EXPECT_EQ(index_select(x, 0, none).sizes(), IntSpan({0, 2}));
  EXPECT_EQ(gather(x, 0, empty({0, 2}, kInt64)).sizes(), IntSpan({0, 2}));
  EXPECT_EQ(bytes_of(scatter_add(x, 0, empty({0, 2}, kInt64), x)), bytes_of(x));
  const Tensor number = make({}, kFloat32, {4}), zero = make({}, kInt64, {0});
  EXPECT_EQ(values_of(gather(number, 0, zero)), (std::vector<double>{4}));
  EXPECT_EQ(values_of(index_select(number, 0, zero)), (std::vector<double>{4}));
  EXPECT_EQ(values_of(scatter_add(number, 0, zero, number)), (std::vector<double>{8}));
  EXPECT_EQ(values_of(index_select(x, 0, make({}, kInt64, {2}))), (std::vector<double>{5, 6}));
}

TEST(Gather, ScatterAddInPlace) {
  const Tensor x = make({3}, kFloat32, {1, 2, 3});
  EXPECT_THROW(scatter_add_(x, 0, make({3}, kInt64, {0, 1, 2}), x), RuntimeError);
  const Tensor repeated(make_intrusive<TensorImpl>(x.storage(), kFloat32, Sizes{3}, Sizes{0}, 0));
  EXPECT_THROW(scatter_add_(repeated, 0, make({1}, kInt64, {0}), make({1}, kFloat32, {1})), RuntimeError);
  const uint32_t version = x.version();
  scatter_add_(x, 0, make({3}, kInt64, {2, 2, 0}), make({4}, kFloat32, {1, 1, 1, 1}));
  EXPECT_EQ(values_of(x), (std::vector<double>{2, 2, 5}));
  EXPECT_EQ(x.version(), version + 1);
}

TEST(Gather, GradientOfTheUnusedPartOfASourceIsZero) {
  Tensor source = make({2, 3}, kFloat64, {1, 2, 3, 4, 5, 6});
  source.requires_grad_();
  const Tensor x = make({2, 3}, kFloat64, std::vector<double>(6, 0));
  const Tensor out = scatter_add(x, 0, make({1, 2}, kInt64, {1, 0}), source);
  const Tensor ones = make({2, 3}, kFloat64, std::vector<double>(6, 1));
  const Gradient g = grad(Span<Tensor>(&out, 1), Span<Tensor>(&source, 1), Span<Tensor>(&ones, 1))[0];
  EXPECT_EQ(values_of(g.values), (std::vector<double>{1, 1, 0, 0, 0, 0}));
}

TEST(Gather, MaskedFillInPlaceIsRecorded) {
  Tensor x = make({3}, kFloat64, {1, 2, 3});
  x.requires_grad_();
  const Tensor y = index_select(x, 0, make({3}, kInt64, {2, 1, 0}));
  masked_fill_(y, make({3}, kBool, {0, 1, 0}), 7);
  EXPECT_EQ(values_of(y), (std::vector<double>{3, 7, 1}));
  const Tensor ones = make({3}, kFloat64, {1, 2, 4});
  EXPECT_EQ(values_of(grad(Span<Tensor>(&y, 1), Span<Tensor>(&x, 1), Span<Tensor>(&ones, 1))[0].values),
            (std::vector<double>{4, 0, 1}));
}

TEST(GatherThreads, SameBitsForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  const Tensor x = random({500, 300}, kFloat32, -1, 1, 5), source = random({2000, 300}, kFloat32, -1, 1, 6);
  const Tensor index = random({2000, 300}, kInt64, 0, 499, 7), rows = random({3000}, kInt64, 0, 499, 8);
  std::string want;
  for (const int64_t threads : {1, 3}) {
    set_num_threads(threads);
    const std::string got = bytes_of(scatter_add(x, 0, index, source)) + bytes_of(gather(x, 0, index)) +
                            bytes_of(index_select(x, 0, rows)) +
                            bytes_of(index_select(x, 1, random({900}, kInt64, 0, 299, 9)));
    if (threads == 1) want = got;
    EXPECT_TRUE(got == want) << threads;
  }
  set_num_threads(before);
}

}  // namespace tercel::test
