#include "tercel/ops/index/subscript.h"

#include "tercel/autograd/autograd.h"
#include "tercel/ops/ops.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/index/subscript_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

using indexing::Ellipsis;
using indexing::None;
using indexing::Slice;

INSTANTIATE_TEST_SUITE_P(Subscript, Conformance, ::testing::ValuesIn(subscript_rows()), row_name);

namespace {

Tensor cube() { return reshape(arange(24), {2, 3, 4}); }

Sizes sizes_of(const Tensor& t) { return t.sizes().to_vector(); }

}  // namespace

TEST(Subscript, BasicItemsAreViews) {
  const Tensor x = cube();
  const Tensor part = x.index({Slice(0, 1), None, "...", 2});
  EXPECT_EQ(sizes_of(part), (Sizes{1, 1, 3}));
  EXPECT_EQ(values_of(part), (std::vector<double>{2, 6, 10}));
  EXPECT_TRUE(part.is_alias_of(x));
  EXPECT_EQ(values_of(x.index({1, Slice(None, None, -1), Slice(None, None, -3)})),
            (std::vector<double>{23, 20, 19, 16, 15, 12}));
  EXPECT_EQ(values_of(x.index({-1, -1, -1})), (std::vector<double>{23}));
  EXPECT_EQ(values_of(x.index({make({}, kInt64, {1}), 0, 0})), (std::vector<double>{12}));
  EXPECT_TRUE(x.index({make({}, kInt64, {1})}).is_alias_of(x));
  const Tensor same = x.index({Ellipsis});
  EXPECT_FALSE(same.is_same(x));
  EXPECT_TRUE(same.is_set_to(x));
}

TEST(Subscript, BoolsAreNewDimensions) {
  const Tensor x = cube();
  EXPECT_EQ(sizes_of(x.index({true})), (Sizes{1, 2, 3, 4}));
  EXPECT_EQ(sizes_of(x.index({false})), (Sizes{0, 2, 3, 4}));
  EXPECT_EQ(sizes_of(x.index({make({}, kBool, {1}), 1})), (Sizes{1, 3, 4}));
  EXPECT_EQ(sizes_of(x.index({Slice(), true})), (Sizes{2, 1, 3, 4}));
}

TEST(Subscript, MasksStandForTheirDimensions) {
  const Tensor x = cube();
  EXPECT_EQ(values_of(x.index({x > 20})), (std::vector<double>{21, 22, 23}));
  const Tensor rows = make({2, 3}, kBool, {0, 1, 0, 1, 0, 0});
  EXPECT_EQ(values_of(x.index({rows, 1})), (std::vector<double>{5, 13}));
  EXPECT_EQ(values_of(x.index({rows, make({2}, kInt64, {0, -1})})), (std::vector<double>{4, 15}));
  EXPECT_EQ(values_of(x.index({1, make({3}, kUInt8, {1, 0, 1}), 0})), (std::vector<double>{12, 20}));
  EXPECT_EQ(sizes_of(x.index({Slice(), rows.index({0})})), (Sizes{2, 1, 4}));
  EXPECT_EQ(sizes_of(x.index({zeros({2, 3}, kBool)})), (Sizes{0, 4}));
}

TEST(Subscript, TensorsThatAreApartComeFirst) {
  const Tensor x = cube(), two = make({5}, kInt64, {0, 1, 0, 1, 0}), four = make({5}, kInt64, {3, 2, 1, 0, -1});
  EXPECT_EQ(sizes_of(x.index({two, Slice(), four})), (Sizes{5, 3}));
  EXPECT_EQ(sizes_of(x.index({two, None, make({5}, kInt64, {0, 1, 2, 0, 1})})), (Sizes{5, 1, 4}));
  EXPECT_EQ(sizes_of(x.index({Slice(), two, four})), (Sizes{2, 5}));
}

TEST(Subscript, NothingIsSelected) {
  const Tensor x = cube(), none = empty({0}, kInt64);
  EXPECT_EQ(sizes_of(x.index({none})), (Sizes{0, 3, 4}));
  EXPECT_EQ(sizes_of(x.index({Slice(), none, none})), (Sizes{2, 0}));
  EXPECT_EQ(sizes_of(empty({0, 3}).index({none})), (Sizes{0, 3}));
  EXPECT_EQ(sizes_of(empty({3, 0}).index({make({2}, kInt64, {0, 1})})), (Sizes{2, 0}));
  EXPECT_EQ(message_of<IndexError>([] {
              empty({0, 3}).index({make({1}, kInt64, {0})});
            }),
            "index is out of bounds for dimension with size 0");
}

TEST(Subscript, WrongItemsAreNamed) {
  const Tensor x = cube();
  EXPECT_EQ(message_of<IndexError>([&] { x.index({0, 0, 0, 0}); }), "too many indices for tensor of dimension 3");
  EXPECT_EQ(message_of<IndexError>([&] {
              x.index({Slice(), 3});
            }),
            "index 3 is out of bounds for dimension 1 with size 3");
  EXPECT_EQ(message_of<IndexError>([&] {
              x.index({None, Slice(), make({2}, kInt64, {0, -4})});
            }),
            "index -4 is out of bounds for dimension 2 with size 3");
  EXPECT_EQ(message_of<IndexError>([&] { x.index({make({1}, kFloat32, {0})}); }),
            "tensors used as indices must be long, int, byte or bool tensors");
  EXPECT_EQ(message_of<IndexError>([&] {
              x.index({make({2}, kInt64, {0, 0}), make({3}, kInt64, {0, 0, 0})});
            }),
            "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]");
  EXPECT_EQ(message_of<IndexError>([&] {
              x.index({Slice(), zeros({2}, kBool)});
            }),
            "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [2, 3, 4] at index 1");
  EXPECT_EQ(message_of<IndexError>([&] { make({}, kFloat32, {1}).index({0}); }),
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number");
  EXPECT_EQ(message_of<IndexError>([&] {
              make({}, kFloat32, {1}).index({0, 0});
            }),
            "too many indices for tensor of dimension 0");
  EXPECT_EQ(
      message_of<RuntimeError>([&] {
        make({3}, kFloat32, {1, 2, 3}).index_put_({Slice()}, zeros({2}));
      }),
      "The expanded size of the tensor (3) must match the existing size (2) at non-singleton dimension 0.  Target "
      "sizes: [3].  Tensor sizes: [2]");
  EXPECT_THROW(x.index({".."}), ValueError);
  EXPECT_THROW(x.index({Tensor()}), RuntimeError);
}

TEST(Subscript, SetItem) {
  Tensor x = zeros({3, 4});
  x.index_put_({Slice(1, 3), Slice(None, None, -2)}, make({1, 1, 2}, kInt64, {1, 2}));
  EXPECT_EQ(values_of(x), (std::vector<double>{0, 0, 0, 0, 0, 2, 0, 1, 0, 2, 0, 1}));
  x.index_put_({x > 1}, 7);
  EXPECT_EQ(values_of(x), (std::vector<double>{0, 0, 0, 0, 0, 7, 0, 1, 0, 7, 0, 1}));
  x.index_put_({make({2}, kInt64, {0, -1}), make({2}, kInt64, {3, 0})}, make({2}, kFloat32, {5, 6}));
  EXPECT_THROW(x.index_put_({make({1}, kInt64, {0})}, make({1}, kFloat64, {5})), RuntimeError);
  EXPECT_EQ(values_of(x), (std::vector<double>{0, 0, 0, 5, 0, 7, 0, 1, 6, 7, 0, 1}));
  x.index_put_({make({3}, kBool, {1, 0, 0})}, make({4}, kFloat32, {1, 2, 3, 4}));
  EXPECT_EQ(values_of(x.index({0})), (std::vector<double>{1, 2, 3, 4}));
  x.index_put_({false}, make({1}, kFloat32, {9}));
  x.index_put_({zeros({3}, kBool), 0}, 9);
  EXPECT_EQ(values_of(x.index({0})), (std::vector<double>{1, 2, 3, 4}));
}

TEST(Subscript, WrongValuesChangeNothing) {
  Tensor x = cube();
  const Tensor before = clone(x), picks = make({2}, kInt64, {0, 1});
  EXPECT_EQ(message_of<RuntimeError>([&] {
              index_put_(x, {picks}, make({5}, kInt64, {1, 2, 3, 4, 5}));
            }),
            "shape mismatch: value tensor of shape [5] cannot be broadcast to indexing result of shape [2, 3, 4]");
  EXPECT_EQ(message_of<RuntimeError>([&] { index_put_(x, {picks}, make({}, kFloat32, {1})); }),
            "Index put requires the source and destination dtypes match, got int64 for the destination and float32 for "
            "the source.");
  EXPECT_THROW(index_put_(x, {make({2}, kInt64, {0, 2})}, make({}, kInt64, {1})), IndexError);
  EXPECT_THROW(index_put_(x, {picks}, x), RuntimeError);
  EXPECT_THROW(index_put_(x.index({0, 0}), {make({1}, kInt64, {0})}, x.index({0, 0, 1})), RuntimeError);
  EXPECT_THROW(index_put_(picks, {picks}, picks), RuntimeError);
  EXPECT_THROW(index_put_(expand(make({1}, kInt64, {1}), {6}), {picks}, make({}, kInt64, {1})), RuntimeError);
  EXPECT_THROW(x.index_put_({x > 3, 0}, 1), IndexError);
  EXPECT_EQ(values_of(x), values_of(before));
}

TEST(Subscript, LastValueStandsAndAllAreAdded) {
  const Tensor picks = make({5}, kInt64, {1, 1, 0, 1, -2});
  const Tensor values = make({5}, kFloat32, {1, 2, 3, 4, 5});
  EXPECT_EQ(values_of(index_put(zeros({3}), {picks}, values)), (std::vector<double>{3, 5, 0}));
  EXPECT_EQ(values_of(index_put(ones({3}), {picks}, values, true)), (std::vector<double>{4, 13, 1}));
}

TEST(Subscript, ThreadsDoNotChangeTheResult) {
  const Tensor x = random({3000, 40}, kFloat32, -1, 1, 1), picks = random({200000}, kInt64, -3000, 2999, 2);
  const Tensor values = random({200000, 40}, kFloat32, -1, 1, 3);
  const int64_t threads = num_threads();
  std::vector<std::string> got[2];
  for (const int64_t n : {1, 4}) {
    set_num_threads(n);
    auto& out = got[n == 1 ? 0 : 1];
    out.push_back(bytes_of(index(x, {picks})));
    out.push_back(bytes_of(index_put(x, {picks}, values, true)));
    out.push_back(bytes_of(index_put(x, {picks}, values)));
    out.push_back(bytes_of(nonzero(x > 0.5)));
  }
  set_num_threads(threads);
  EXPECT_EQ(got[0], got[1]);
}

TEST(Subscript, GradientOfInPlaceOnAView) {
  Tensor x = make({2, 3}, kFloat64, {1, 2, 3, 4, 5, 6}).requires_grad_();
  Tensor y = x * 2;
  y.index_put_({1, make({3}, kBool, {1, 0, 1})}, make({2}, kFloat64, {7, 8}));
  sum(y * y).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{8, 16, 24, 0, 40, 0}));
}

}  // namespace tercel::test
