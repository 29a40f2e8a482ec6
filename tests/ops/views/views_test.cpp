// Views: sizes, strides, shared memory, and gradients.
#include "tercel/ops/views/views.h"

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tests/ops/conformance.h"
#include "tests/ops/views/views_rows.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel {

namespace test {
INSTANTIATE_TEST_SUITE_P(Views, Conformance, ::testing::ValuesIn(views_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(Copy, Conformance, ::testing::ValuesIn(copy_rows()), row_name);
}  // namespace test

namespace {

using test::message_of;
using test::values_of;
using Values = std::vector<double>;

Tensor range(IntSpan sizes) { return arange(numel_of(sizes)).to(kFloat64).reshape(sizes); }

std::vector<int64_t> list(IntSpan s) { return s.to_vector(); }
using List = std::vector<int64_t>;

TEST(Views, ViewSharesStorage) {
  const Tensor x = arange(6), y = view(x, {2, -1});
  EXPECT_EQ(list(y.sizes()), (List{2, 3}));
  EXPECT_TRUE(y.is_alias_of(x));
  fill_(select(y, 0, 1), 9);
  EXPECT_EQ(values_of(x), (Values{0, 1, 2, 9, 9, 9}));
}

TEST(Views, ViewErrors) {
  const Tensor x = range({2, 3});
  EXPECT_EQ(message_of([&] { view(x, {7}); }), "shape '[7]' is invalid for input of size 6");
  EXPECT_EQ(message_of([&] { view(x, {-1, -1}); }), "only one dimension can be inferred");
  EXPECT_EQ(message_of([&] { view(x, {-2, 3}); }), "invalid shape dimension -2");
  EXPECT_EQ(
      message_of([&] {
        view(zeros({0}), {-1, 0});
      }),
      "cannot reshape tensor of 0 elements into shape [-1, 0] because the unspecified dimension size -1 can be any "
      "value and is ambiguous");
  EXPECT_TRUE(message_of([&] { view(t(x), {6}); }).starts_with("view size is not compatible with input tensor's size"));
  EXPECT_TRUE(message_of([] { view(Tensor(), {1}); }).starts_with("view: expected a tensor"));
}

TEST(Views, ReshapeCopiesOnlyWhenItMust) {
  const Tensor x = range({2, 3});
  EXPECT_TRUE(reshape(x, {3, 2}).is_alias_of(x));
  const Tensor y = reshape(t(x), {6});
  EXPECT_FALSE(y.is_alias_of(x));
  EXPECT_EQ(values_of(y), (Values{0, 3, 1, 4, 2, 5}));
}

TEST(Views, TransposeAndPermute) {
  const Tensor x = range({2, 3, 4});
  EXPECT_EQ(list(transpose(x, 0, -1).strides()), (List{1, 4, 12}));
  EXPECT_EQ(list(permute(x, {2, 0, 1}).sizes()), (List{4, 2, 3}));
  EXPECT_EQ(message_of([&] { permute(x, {0, 0, 1}); }), "permute(): duplicate dims are not allowed.");
  EXPECT_EQ(message_of([&] { t(x); }), "t() expects a tensor with <= 2 dimensions, but self is 3D");
  EXPECT_EQ(list(t(arange(3)).sizes()), (List{3}));
}

TEST(Views, NarrowAndSelect) {
  const Tensor x = range({4, 3});
  EXPECT_EQ(values_of(narrow(x, 0, 1, 2)), (Values{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(values_of(narrow(x, 0, -1, 1)), (Values{9, 10, 11}));
  EXPECT_EQ(narrow(x, 0, 4, 0).numel(), 0);
  EXPECT_EQ(message_of([&] { narrow(x, 0, 3, 3); }), "start (3) + length (3) exceeds dimension size (4).");
  EXPECT_EQ(message_of([] { narrow(scalar_tensor(1), 0, 0, 1); }), "narrow() cannot be applied to a 0-dim tensor.");
  EXPECT_EQ(values_of(select(x, 1, -1)), (Values{2, 5, 8, 11}));
  EXPECT_EQ(message_of([] { select(arange(5), 0, 5); }),
            "select(): index 5 out of range for tensor of size [5] at dimension 0");
  EXPECT_EQ(values_of(x[2]), (Values{6, 7, 8}));
}

TEST(Views, SliceByPythonsRules) {
  const Tensor x = arange(10);
  EXPECT_EQ(values_of(slice(x, 0, 2, 7, 2)), (Values{2, 4, 6}));
  EXPECT_EQ(values_of(slice(x, 0, -3)), (Values{7, 8, 9}));
  EXPECT_EQ(values_of(slice(x, 0, -100, 2)), (Values{0, 1}));
  EXPECT_EQ(slice(x, 0, 12).numel(), 0);
  EXPECT_EQ(slice(x, 0, 12).storage_offset(), 10);
  EXPECT_EQ(slice(x, 0, 5, 2).numel(), 0);
  EXPECT_EQ(values_of(slice(x, 0, INT64_MAX, INT64_MIN, -3)), (Values{9, 6, 3, 0}));
  EXPECT_EQ(values_of(slice(x, 0, 5, 2, -1)), (Values{5, 4, 3}));
  EXPECT_EQ(values_of(slice(x, 0, -2, -5, -2)), (Values{8, 6}));
  EXPECT_EQ(list(slice(x, 0, INT64_MAX, INT64_MIN, -1).strides()), (List{-1}));
  EXPECT_EQ(message_of([&] { slice(x, 0, 0, 1, 0); }), "slice step cannot be zero");
}

TEST(Views, SqueezeAndUnsqueeze) {
  const Tensor x = range({1, 3, 1});
  EXPECT_EQ(list(squeeze(x).sizes()), (List{3}));
  EXPECT_EQ(list(squeeze(x, 1).sizes()), (List{1, 3, 1}));
  EXPECT_EQ(list(squeeze(x, -1).sizes()), (List{1, 3}));
  const Tensor m = range({3, 4});
  EXPECT_EQ(list(unsqueeze(m, 0).strides()), (List{12, 4, 1}));
  EXPECT_EQ(list(unsqueeze(m, 1).strides()), (List{4, 4, 1}));
  EXPECT_EQ(list(unsqueeze(m, -1).strides()), (List{4, 1, 1}));
  EXPECT_THROW(unsqueeze(m, 4), IndexError);
}

TEST(Views, Expand) {
  const Tensor x = range({3, 1});
  const Tensor y = expand(x, {2, -1, 4});
  EXPECT_EQ(list(y.strides()), (List{0, 1, 0}));
  EXPECT_EQ(
      message_of([&] {
        expand(range({3, 2}), {3, 4});
      }),
      "The expanded size of the tensor (4) must match the existing size (2) at non-singleton dimension 1.  Target "
      "sizes: [3, 4].  Tensor sizes: [3, 2]");
  EXPECT_THROW(expand(x, {-1, 3, 1}), RuntimeError);
  EXPECT_THROW(expand(x, {3}), RuntimeError);
}

TEST(Views, Flatten) {
  const Tensor x = range({2, 3, 4});
  EXPECT_EQ(list(flatten(x).sizes()), (List{24}));
  EXPECT_EQ(list(flatten(x, 1).sizes()), (List{2, 12}));
  EXPECT_EQ(list(flatten(x, 0, 1).sizes()), (List{6, 4}));
  EXPECT_EQ(list(flatten(scalar_tensor(1)).sizes()), (List{1}));
  EXPECT_THROW(flatten(x, 2, 1), RuntimeError);
}

TEST(Views, AsStridedStaysInsideTheStorage) {
  const Tensor x = arange(5);
  EXPECT_EQ(values_of(as_strided(x, {2, 2}, {1, 2}, 1)), (Values{1, 3, 2, 4}));
  EXPECT_EQ(values_of(as_strided(x, {3}, {-1}, 4)), (Values{4, 3, 2}));
  EXPECT_TRUE(message_of([&] {
                as_strided(x, {3, 3}, {3, 1}, 0);
              })
                  .starts_with("setStorage: sizes [3, 3], strides [3, 1], storage offset 0, and itemsize 8 requiring a "
                               "storage size of 72 are out of bounds for storage of size 40"));
  EXPECT_THROW(as_strided(x, {3}, {-1}, 1), RuntimeError);
  EXPECT_THROW(as_strided(x, {2}, {1}, INT64_MAX), RuntimeError);
  EXPECT_EQ(message_of([&] { as_strided(x, {1}, {1}, -1); }), "Tensor: invalid storage offset -1");
}

TEST(Views, SameBytesAsAnotherDtype) {
  const Tensor x = range({2, 3});
  EXPECT_TRUE(view(x, kFloat64).is_same(x));
  const Tensor halves = view(x, kFloat32);
  EXPECT_EQ(list(halves.sizes()), (List{2, 6}));
  EXPECT_EQ(list(halves.strides()), (List{6, 1}));
  EXPECT_EQ(halves.dtype(), kFloat32);
  EXPECT_TRUE(view(halves, kFloat64).is_set_to(x));
  EXPECT_EQ(values_of(view(t(x), kInt64)), values_of(t(view(x, kInt64))));
  EXPECT_EQ(view(narrow(x, 1, 1, 2), kInt16).storage_offset(), 4);
  fill_(view(x, kInt64), 0);
  EXPECT_EQ(values_of(x), Values(6, 0.0));
  EXPECT_EQ(x.version(), view(x, kInt32).version());

  const Tensor f = zeros({3, 3});
  const auto refused = [](const Tensor& t, ScalarType dtype, const char* why) {
    TERCEL_EXPECT_THROW(view(t, dtype), RuntimeError, why);
  };
  refused(f, kFloat64,
          "self.size(-1) must be divisible by 2 to view Float as Double (different element sizes), but got 3");
  refused(zeros({}), kInt64, "self.dim() cannot be 0 to view Float as Long (different element sizes)");
  refused(t(zeros({4, 2})), kInt64, "self.stride(-1) must be 1 to view Float as Long (different element sizes), but");
  refused(t(zeros({4, 2})), kUInt8, "self.stride(-1) must be 1 to view Float as Byte (different element sizes), but");
  refused(narrow(zeros({5}), 0, 1, 4), kInt64, "self.storage_offset() must be divisible by 2 to view Float as Long");
  refused(narrow(f, 1, 0, 2), kInt64, "self.stride(0) must be divisible by 2 to view Float as Long");
  refused(Tensor(), kInt64, "view: expected a tensor");

  Tensor leaf = zeros({2});
  leaf.requires_grad_();
  EXPECT_FALSE(view(leaf, kInt32).requires_grad());
}

TEST(Views, UnflattenAndItsErrors) {
  const Tensor x = range({2, 6});
  EXPECT_EQ(list(unflatten(x, 1, {2, 1, 3}).sizes()), (List{2, 2, 1, 3}));
  EXPECT_EQ(list(unflatten(x, -1, {-1, 3}).sizes()), (List{2, 2, 3}));
  EXPECT_EQ(list(unflatten(zeros({0}), 0, {0, 4}).sizes()), (List{0, 4}));
  EXPECT_EQ(message_of([&] { unflatten(x, 1, {}); }), "unflatten: sizes must be non-empty");
  for (const List& sizes : {List{2, 2}, List{-1, 4}, List{0, -1}, List{-2, -3}})
    EXPECT_TRUE(message_of([&] { unflatten(x, 1, sizes); })
                    .ends_with("don't multiply up to the size of dim 1 (6) in "
                               "the input tensor"));
  EXPECT_EQ(message_of([&] { unflatten(x, 1, {-1, -1}); }), "only one dimension can be inferred");
  EXPECT_EQ(message_of([&] {
              unflatten(x, 1, {int64_t{1} << 62, 4});
            }),
            "unflatten: Provided sizes [4611686018427387904, 4] don't multiply up to the size of dim 1 (6) in the "
            "input tensor");
  EXPECT_THROW(unflatten(zeros({}), 0, {1}), IndexError);
}

TEST(Views, SqueezeOfSeveral) {
  const Tensor x = range({1, 3, 1});
  EXPECT_EQ(list(squeeze(x, {}).sizes()), (List{1, 3, 1}));
  EXPECT_EQ(list(squeeze(x, {1, 2}).sizes()), (List{1, 3}));
  EXPECT_EQ(list(squeeze(range({}), {0}).sizes()), List{});
  EXPECT_EQ(message_of([&] { squeeze(x, {0, -3}); }), "dim 0 appears multiple times in the list of dims");
  EXPECT_THROW(squeeze(x, {0, 3}), IndexError);
}

TEST(Views, Broadcasting) {
  EXPECT_EQ(broadcast_shapes({IntSpan({3, 1}), IntSpan({4}), IntSpan({2, 1, 1})}), (DimVector{2, 3, 4}));
  EXPECT_EQ(broadcast_shapes({IntSpan({0}), IntSpan({1})}), (DimVector{0}));
  EXPECT_EQ(broadcast_shapes({}), DimVector{});
  EXPECT_TRUE(message_of([] {
                broadcast_shapes({IntSpan({3}), IntSpan({4})});
              }).starts_with("Shape mismatch: objects cannot be broadcast to a single shape"));
  EXPECT_TRUE(message_of([] { broadcast_shapes({IntSpan({-1})}); })
                  .starts_with("Trying to create tensor with negative "
                               "dimension (-1)"));
  const std::vector<Tensor> both = broadcast_tensors({range({3, 1}), range({2})});
  EXPECT_EQ(list(both[1].strides()), (List{0, 1}));
  EXPECT_TRUE(
      message_of([] {
        broadcast_tensors({range({3}), range({2})});
      }).starts_with("The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension"));
}

// The gradient of an overlapping base is distributed over the elements that share a memory location.
TEST(Views, AsStridedOfAnExpandedTensor) {
  Tensor x = range({3});
  x.requires_grad_();
  const Tensor rows = expand(x, {2, 3});
  as_strided(rows, {3}, {1}).sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{1, 1, 1}));
}

TEST(Views, SplitAndUnbind) {
  const Tensor x = arange(7);
  const std::vector<Tensor> parts = split(x, 3);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(values_of(parts[2]), (Values{6}));
  EXPECT_EQ(split(x, IntSpan{2, 5}).size(), 2u);
  EXPECT_EQ(message_of([&] {
              split(x, IntSpan{3, 3});
            }),
            "split_with_sizes expects split_sizes to sum exactly to 7 (input tensor's size at dimension 0), but got "
            "split_sizes=[3, 3]");
  EXPECT_THROW(split(x, IntSpan{INT64_MAX, INT64_MAX, 9}), RuntimeError);
  EXPECT_EQ(message_of([&] { split(x, 0); }),
            "split_size can only be 0 if dimension size is 0, but got dimension size of 7");
  EXPECT_EQ(unbind(range({2, 3}), 1).size(), 3u);
}

TEST(Views, Gradients) {
  const auto input = [](std::vector<int64_t> sizes) {
    Tensor x = mul(range(sizes), 0.25);
    x.requires_grad_();
    return std::vector<Tensor>{x};
  };
  using Inputs = const std::vector<Tensor>&;
  EXPECT_TRUE(test::gradcheck([](Inputs x) { return view(x[0], {3, 2}); }, input({2, 3})));
  EXPECT_TRUE(test::gradcheck([](Inputs x) { return reshape(t(x[0]), {6}); }, input({2, 3})));
  EXPECT_TRUE(test::gradcheck([](Inputs x) { return permute(x[0], {2, 0, 1}); }, input({2, 3, 2})));
  EXPECT_TRUE(test::gradcheck([](Inputs x) { return narrow(x[0], 1, 1, 2); }, input({2, 3})));
  EXPECT_TRUE(test::gradcheck([](Inputs x) { return select(x[0], 0, 1); }, input({2, 3})));
  EXPECT_TRUE(test::gradcheck([](Inputs x) { return slice(x[0], 0, INT64_MAX, INT64_MIN, -2); }, input({5})));
  EXPECT_TRUE(test::gradcheck([](Inputs x) { return expand(x[0], {4, 3, 2}); }, input({3, 1})));
  EXPECT_TRUE(test::gradcheck([](Inputs x) { return as_strided(x[0], {3, 2}, {1, 1}, 0); }, input({4})));
  EXPECT_TRUE(test::gradcheck([](Inputs x) { return split(x[0], 2)[1]; }, input({5})));
  EXPECT_TRUE(test::gradcheck([](Inputs x) { return squeeze(unsqueeze(x[0], 1)); }, input({2, 3})));
}

TEST(Copy, CloneKeepsTheOrderOfDimensions) {
  const Tensor x = permute(range({2, 3, 4}), {2, 0, 1});
  EXPECT_EQ(list(clone(x).strides()), (List{1, 12, 4}));
  EXPECT_TRUE(clone(x, MemoryFormat::Contiguous).is_contiguous());
  EXPECT_EQ(list(clone(slice(range({4, 6}), 1, 0, 6, 2)).strides()), (List{3, 1}));
  EXPECT_EQ(list(clone(slice(t(range({6, 4})), 1, 0, 6, 2)).strides()), (List{1, 4}));
  EXPECT_EQ(list(clone(expand(range({3, 1}), {3, 4})).strides()), (List{4, 1}));
}

TEST(Copy, ContiguousAndToReturnTheTensorItselfWhenTheyCan) {
  const Tensor x = range({2, 3});
  EXPECT_TRUE(contiguous(x).is_same(x));
  EXPECT_TRUE(to(x, kFloat64).is_same(x));
  EXPECT_EQ(to(x, kInt32).dtype(), kInt32);
}

TEST(Copy, ConversionsAreDefined) {
  const Tensor x = tensor({1.9, -1.9, 1e30, -1e30, std::nan("")}, kFloat32);
  EXPECT_EQ(values_of(to(x, kInt32)), (Values{1, -1, 2147483647, -2147483648.0, 0}));
  EXPECT_EQ(values_of(to(x, kUInt8)), values_of(to(to(x, kUInt8), kInt64)));
}

TEST(Copy, CopyBroadcastsAndConverts) {
  Tensor x = zeros({2, 3});
  x.copy_(tensor({1, 2, 3}));
  EXPECT_EQ(values_of(x), (Values{1, 2, 3, 1, 2, 3}));
  EXPECT_THROW(x.copy_(zeros({4})), RuntimeError);
}

TEST(Copy, FillReachesEveryElementOfAnExpandedTensor) {
  Tensor x = expand(zeros({1, 3}), {2, 3});
  x.fill_(5);
  EXPECT_EQ(values_of(x), (Values{5, 5, 5, 5, 5, 5}));
}

TEST(Copy, Gradients) {
  using Inputs = const std::vector<Tensor>&;
  Tensor a = range({2, 3}), b = range({3});
  a.requires_grad_();
  b.requires_grad_();
  EXPECT_TRUE(test::gradcheck([](Inputs x) { return clone(x[0]); }, {a}));
  EXPECT_TRUE(test::gradcheck(
      [](Inputs x) {
        Tensor y = mul(x[0], 2.0);
        y.copy_(x[1]);
        return add(y, x[0]);
      },
      {a, b}));
}

TEST(Copy, Item) {
  EXPECT_EQ(scalar_tensor(2.5).item<double>(), 2.5);
  EXPECT_EQ(tensor({{7}}).item<int64_t>(), 7);
  EXPECT_EQ(message_of([] { item(zeros({2})); }), "a Tensor with 2 elements cannot be converted to Scalar");
}

}  // namespace
}  // namespace tercel
