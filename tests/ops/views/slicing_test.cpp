#include "tercel/ops/views/slicing.h"

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tests/ops/conformance.h"
#include "tests/ops/views/slicing_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Slicing, Conformance, ::testing::ValuesIn(slicing_rows()), row_name);

namespace {

using List = std::vector<int64_t>;

List lengths(const std::vector<Tensor>& parts, int64_t dim = 0) {
  List out;
  for (const Tensor& part : parts) out.push_back(part.size(dim));
  return out;
}

TEST(Slicing, HowManyChunks) {
  EXPECT_EQ(lengths(chunk(arange(7), 3)), (List{3, 3, 1}));
  EXPECT_EQ(lengths(chunk(arange(5), 4)), (List{2, 2, 1}));
  EXPECT_EQ(lengths(chunk(arange(6), 4)), (List{2, 2, 2}));
  EXPECT_EQ(lengths(chunk(empty({0, 2}), 3)), (List{0, 0, 0}));
  EXPECT_EQ(lengths(chunk(arange(3), INT64_MAX)), (List{1, 1, 1}));
  EXPECT_EQ(lengths(tensor_split(arange(7), 3)), (List{3, 2, 2}));
  EXPECT_EQ(lengths(tensor_split(arange(2), 3)), (List{1, 1, 0}));
  EXPECT_EQ(lengths(tensor_split(arange(7), IntSpan{2, 5, 9})), (List{2, 3, 2, 0}));
  EXPECT_EQ(lengths(tensor_split(arange(7), IntSpan{-2, 1})), (List{5, 0, 6}));
  EXPECT_EQ(lengths(tensor_split(arange(7), scalar_tensor(int64_t{2}))), (List{4, 3}));
  EXPECT_EQ(lengths(tensor_split(arange(7), tensor({1, 3}))), (List{1, 2, 4}));
  EXPECT_EQ(lengths(split(empty({0}), 3)), (List{0}));
  EXPECT_EQ(lengths(split(empty({0}), 0)), (List{0}));
}

TEST(Slicing, SplittingErrors) {
  const Tensor x = arange(7), none = empty({}), matrix = empty({4, 6});
  TERCEL_EXPECT_THROW(chunk(x, 0), RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0");
  TERCEL_EXPECT_THROW(chunk(none, 1), RuntimeError, "chunk expects at least a 1-dimensional tensor");
  TERCEL_EXPECT_THROW(split(x, -1), RuntimeError, "split expects split_size be non-negative, but got split_size=-1");
  TERCEL_EXPECT_THROW(
      split_with_sizes(x, {8, -1}), RuntimeError,
      "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=[8, -1]");
  TERCEL_EXPECT_THROW(split_with_sizes(x, {3, 3}), RuntimeError,
                      "split_with_sizes expects split_sizes to sum exactly to 7 (input tensor's size at dimension 0), "
                      "but got split_sizes=[3, 3]");
  TERCEL_EXPECT_THROW(tensor_split(none, 2), RuntimeError,
                      "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  TERCEL_EXPECT_THROW(tensor_split(x, 0), RuntimeError, "number of sections must be larger than 0, got 0");
  TERCEL_EXPECT_THROW(tensor_split(x, int64_t{1} << 62), RuntimeError, "tensor_split: 4611686018427387904 tensors");
  TERCEL_EXPECT_THROW(tensor_split(x, tensor({1.0})), RuntimeError,
                      "tensor_split expected tensor_indices_or_sections to have dtype of long, but got Float");
  TERCEL_EXPECT_THROW(tensor_split(x, tensor({{1}})), RuntimeError,
                      "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
                      "tensor, but got a tensor with 2 dims");
  TERCEL_EXPECT_THROW(hsplit(none, 2), RuntimeError,
                      "hsplit() requires a tensor with at least 1 dimension, but got a tensor with 0 dimensions!");
  TERCEL_EXPECT_THROW(vsplit(x, 2), RuntimeError,
                      "vsplit() requires a tensor with at least 2 dimension, but got a tensor with 1 dimensions!");
  TERCEL_EXPECT_THROW(dsplit(matrix, IntSpan{1}), RuntimeError, "dsplit() requires a tensor with at least 3");
  TERCEL_EXPECT_THROW(hsplit(matrix, 4), RuntimeError,
                      "hsplit() attempted to split along dimension 1, but the size of the dimension 6 is not "
                      "divisible by the split_size 4!");
  TERCEL_EXPECT_THROW(unbind(none), IndexError, "Dimension specified as 0 but tensor has no dimensions");
}

TEST(Slicing, Unfold) {
  const Tensor x = arange(12).view({3, 4});
  EXPECT_EQ(unfold(x, 1, 2, 2).sizes(), IntSpan({3, 2, 2}));
  EXPECT_EQ(unfold(x, 1, 2, INT64_MAX).sizes(), IntSpan({3, 1, 2}));
  EXPECT_EQ(unfold(empty({}), 0, 1, 1).sizes(), IntSpan({1}));
  TERCEL_EXPECT_THROW(unfold(arange(2), 0, 3, 1), RuntimeError,
                      "maximum size for tensor at dimension 0 is 2 but size is 3");
  TERCEL_EXPECT_THROW(unfold(arange(2), 0, 1, 0), RuntimeError, "step is 0 but must be > 0");
  TERCEL_EXPECT_THROW(unfold(arange(2), 0, -1, 1), RuntimeError, "size is -1 but must be >= 0");
}

TEST(Slicing, NarrowFromATensor) {
  EXPECT_EQ(values_of(narrow(arange(5), 0, scalar_tensor(int64_t{-3}), 2)), (std::vector<double>{2, 3}));
  TERCEL_EXPECT_THROW(narrow(arange(5), 0, tensor({1}), 2), RuntimeError, "start must be an 0-dim integral Tensor.");
  TERCEL_EXPECT_THROW(narrow(arange(5), 0, scalar_tensor(1.0), 2), RuntimeError,
                      "start must be an 0-dim integral Tensor.");
}

TEST(Slicing, NoneOfSeveralIsChangedInPlace) {
  Tensor x = zeros({4, 4});
  x.requires_grad_();
  const Tensor y = x * 2.0;
  std::vector<std::vector<Tensor>> all = {split(y, 2), chunk(y, 2), tensor_split(y, 2), tensor_split(y, IntSpan{1}),
                                          unbind(y),   hsplit(y, 2)};
  for (std::vector<Tensor>& parts : all)
    TERCEL_EXPECT_THROW(parts[0].add_(1), RuntimeError,
                        "is a view and is being modified inplace. This view is the output of a function that returns "
                        "multiple views.");
}

}  // namespace
}  // namespace tercel::test
