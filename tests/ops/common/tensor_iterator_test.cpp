#include "tercel/ops/common/tensor_iterator_impl.h"

#include <gtest/gtest.h>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/copy_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel {
namespace {

using test::bytes_of;
using test::make;
using test::make_strided;
using test::message_of;
using test::random;
using test::Sizes;
using test::values_of;

Tensor of(ScalarType dtype, const Sizes& sizes = {2}) { return random(sizes, dtype, 0, 1, 1); }

// Promotion.

TEST(Promotion, TiersOfDimensionedZeroDimensionalAndBare) {
  EXPECT_EQ(add(of(kInt64), of(kFloat32, {})).dtype(), kFloat32);
  EXPECT_EQ(add(of(kInt32), of(kInt64, {})).dtype(), kInt32);
  EXPECT_EQ(add(of(kFloat16), of(kFloat64, {})).dtype(), kFloat16);
  EXPECT_EQ(add(of(kUInt8), -2).dtype(), kUInt8);
  EXPECT_EQ(add(of(kBool), 2).dtype(), kInt64);
  EXPECT_EQ(add(of(kBool), 2.5).dtype(), kFloat32);
  EXPECT_EQ(add(of(kInt32, {}), 2.5).dtype(), kFloat32);
  EXPECT_EQ(add(of(kFloat64), 2.5).dtype(), kFloat64);
  EXPECT_EQ(add(of(kInt32, {}), of(kInt64, {})).dtype(), kInt64);
  EXPECT_EQ(add(of(kInt64), of(kFloat64, {})).dtype(), kFloat64);
  // An empty tensor has dimensions.
  EXPECT_EQ(add(of(kInt32, {0}), of(kInt64, {})).dtype(), kInt32);
}

TEST(Promotion, OfTwoTensorsFollowsTheTable) {
  EXPECT_EQ(add(of(kUInt8), of(kInt8)).dtype(), kInt16);
  EXPECT_EQ(add(of(kFloat16), of(kBFloat16)).dtype(), kFloat32);
  EXPECT_EQ(add(of(kInt64), of(kFloat16)).dtype(), kFloat16);
  EXPECT_EQ(add(of(kBool), of(kUInt8)).dtype(), kUInt8);
  EXPECT_EQ(add(of(kFloat32), of(kFloat64)).dtype(), kFloat64);
}

TEST(Promotion, ResultTypesOfOps) {
  EXPECT_EQ(div(of(kInt64), make({2}, kInt64, {1, 2})).dtype(), kFloat32);
  EXPECT_EQ(exp(of(kInt32)).dtype(), kFloat32);
  EXPECT_EQ(exp(of(kBool)).dtype(), kFloat32);
  EXPECT_EQ(sqrt(of(kFloat64)).dtype(), kFloat64);
  EXPECT_EQ(lt(of(kFloat64), of(kInt8)).dtype(), kBool);
  EXPECT_EQ(where(of(kBool), of(kInt8), of(kFloat32)).dtype(), kFloat32);
  EXPECT_EQ(maximum(of(kBool), of(kBool)).dtype(), kBool);
  EXPECT_EQ(values_of(add(make({2}, kBool, {1, 1}), make({2}, kBool, {1, 0}))), (std::vector<double>{1, 1}));
}

TEST(Promotion, NumbersAreConvertedToTheTensorsDtype) {
  EXPECT_EQ(values_of(add(make({1}, kUInt8, {1}), 300)), std::vector<double>{45});
  EXPECT_EQ(values_of(mul(make({1}, kInt8, {100}), 2)), std::vector<double>{-56});
  EXPECT_EQ(values_of(maximum(make({1}, kUInt8, {7}), -2)), std::vector<double>{254});
  EXPECT_EQ(values_of(add(make({1}, kUInt8, {7}), make({}, kInt64, {-2}))), std::vector<double>{5});
  EXPECT_EQ(values_of(div(make({1}, kFloat32, {1}), make({}, kFloat64, {3})))[0], static_cast<double>(1.0f / 3.0f));
}

TEST(Promotion, ComparisonWithANumberThatDoesNotFitIsExact) {
  const Tensor x = make({2}, kUInt8, {44, 200});
  EXPECT_EQ(values_of(lt(x, 300)), (std::vector<double>{1, 1}));
  EXPECT_EQ(values_of(eq(x, 300)), (std::vector<double>{0, 0}));
  EXPECT_EQ(values_of(gt(x, -1)), (std::vector<double>{1, 1}));
  EXPECT_EQ(values_of(le(-1, x)), (std::vector<double>{1, 1}));
  EXPECT_EQ(values_of(eq(make({1}, kInt32, {0}), int64_t{1} << 32)), std::vector<double>{0});
}

TEST(Promotion, InPlaceNeverCastsDown) {
  EXPECT_EQ(message_of<RuntimeError>([] { add_(of(kInt64), of(kFloat32)); }),
            "add: result type Float can't be cast to the desired output type Long");
  EXPECT_EQ(message_of<RuntimeError>([] { exp_(of(kInt64)); }),
            "exp: result type Float can't be cast to the desired output type Long");
  EXPECT_EQ(message_of<RuntimeError>([] { add_(of(kBool), of(kInt64)); }),
            "add: result type Long can't be cast to the desired output type Bool");
  const Tensor half = make({2}, kFloat16, {1, 2});
  add_(half, make({2}, kFloat64, {0.5, 0.25}));
  EXPECT_EQ(values_of(half), (std::vector<double>{1.5, 2.25}));
  const Tensor small = make({2}, kUInt8, {250, 1});
  add_(small, make({2}, kInt64, {10, 1}));
  EXPECT_EQ(values_of(small), (std::vector<double>{4, 2}));
}

TEST(Promotion, DomainsAreHeld) {
  EXPECT_EQ(message_of<RuntimeError>([] { sub(of(kBool), of(kBool)); }),
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead.");
  const char* const one_bool =
      "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the "
      "`~` or `logical_not()` operator instead.";
  EXPECT_EQ(message_of<RuntimeError>([] { sub(of(kFloat32), of(kBool)); }), one_bool);
  EXPECT_EQ(message_of<RuntimeError>([] { sub(1, of(kBool)); }), one_bool);
  EXPECT_EQ(
      message_of<RuntimeError>([] { neg(of(kBool)); }),
      "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
      "`~` or `logical_not()` operator instead.");
  EXPECT_EQ(message_of<RuntimeError>([] { bitwise_and(of(kFloat32), of(kInt32)); }),
            "\"bitwise_and_cpu\" not implemented for 'Float'");
  EXPECT_EQ(message_of<RuntimeError>([] { bitwise_not(of(kFloat64)); }),
            "\"bitwise_not_cpu\" not implemented for 'Double'");
  EXPECT_EQ(message_of<RuntimeError>([] { where(of(kUInt8), of(kInt8), of(kInt8)); }),
            "where expected condition to be a boolean tensor, but got a tensor with dtype Byte");
}

// Shapes.

TEST(Broadcast, RefusesSizesThatDoNotFit) {
  EXPECT_EQ(message_of<RuntimeError>([] {
              add(of(kFloat32, {2, 3}), of(kFloat32, {2, 4}));
            }),
            "add: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1");
  EXPECT_EQ(message_of<RuntimeError>([] { add(of(kFloat32, {0}), of(kFloat32, {2})); }),
            "add: The size of tensor a (0) must match the size of tensor b (2) at non-singleton dimension 0");
  EXPECT_EQ(message_of<RuntimeError>([] {
              add_(of(kFloat32, {3}), of(kFloat32, {2, 3}));
            }),
            "add: output with shape [3] doesn't match the broadcast shape [2, 3]");
  EXPECT_EQ(message_of<RuntimeError>([] { add(Tensor(), of(kFloat32)); }),
            "add: expected a tensor but got an undefined one");
}

TEST(Broadcast, EmptyMeetsOne) {
  EXPECT_EQ(add(of(kFloat32, {0}), of(kFloat32, {1})).sizes(), IntSpan({0}));
  EXPECT_EQ(add(of(kFloat32, {2, 0}), of(kFloat32, {})).sizes(), IntSpan({2, 0}));
}

TEST(Broadcast, OutGetsTheBroadcastSizes) {
  const Tensor out = of(kFloat32, {2, 3});
  add_out(out, make({3}, kFloat32, {1, 2, 3}), make({1}, kFloat32, {10}));
  EXPECT_EQ(out.sizes(), IntSpan({3}));
  EXPECT_EQ(values_of(out), (std::vector<double>{11, 12, 13}));
}

TEST(Broadcast, ManyDimensions) {
  // More dimensions than any fixed small number, none of which can be joined with the next.
  Sizes sizes(20, 1), strides(20, 0);
  for (const size_t d : {1, 4, 7, 9, 12, 15, 19}) sizes[d] = 2;
  const Tensor a = random(sizes, kFloat32, -1, 1, 1);
  Sizes other = sizes;
  other[4] = other[12] = 1;
  const Tensor b = random(other, kFloat32, -1, 1, 2);
  const Tensor sum = add(a, b);
  const std::vector<double> got = values_of(sum), x = values_of(a), y = values_of(b);
  ASSERT_EQ(got.size(), 128u);
  for (size_t i = 0; i < got.size(); ++i) {
    // Bits of i, high to low, index the seven dimensions; b lacks the second and the fifth.
    const size_t in_b = (i >> 6 & 1) << 4 | (i >> 3 & 3) << 2 | (i & 3);
    EXPECT_EQ(got[i], static_cast<double>(static_cast<float>(x[i]) + static_cast<float>(y[in_b])));
  }
}

// Layout of fresh outputs.

TEST(OutputLayout, KeepsTheInputsOrder) {
  const Tensor x = random({4, 3, 5}, kFloat32, -1, 1, 1);
  EXPECT_EQ(exp(x.permute({2, 0, 1})).strides(), IntSpan({1, 15, 5}));
  EXPECT_EQ(add(x.transpose(0, 2), x.transpose(0, 2)).strides(), IntSpan({1, 5, 15}));
  // The first operand determines the order; where it leaves two dimensions ambiguous, the next one does.
  EXPECT_EQ(add(x.transpose(0, 2), random({5, 3, 4}, kFloat32, 0, 1, 2)).strides(), IntSpan({1, 5, 15}));
  EXPECT_EQ(add(make({}, kFloat32, {1}), x.transpose(0, 2)).strides(), IntSpan({1, 5, 15}));
  // Layouts that are not dense become dense.
  EXPECT_EQ(exp(x.slice(2, 0, 5, 2)).strides(), IntSpan({9, 3, 1}));
  EXPECT_EQ(exp(x.transpose(0, 2).slice(0, 0, 5, 2)).strides(), IntSpan({1, 3, 9}));
  EXPECT_EQ(lt(x.transpose(0, 2), 0).strides(), IntSpan({1, 5, 15}));
  EXPECT_TRUE(exp(x.slice(0, INT64_MAX, INT64_MIN, -1)).is_contiguous());
}

// Overlap.

TEST(ElementwiseOverlap, RefusesWhatWouldBeReadAfterItWasWritten) {
  const std::string partial =
      "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
      "location. Please clone() the tensor before performing the operation.";
  const std::string internal =
      "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
      "Please "
      "clone() the tensor before performing the operation.";
  const Tensor x = random({4, 4}, kFloat32, 0, 1, 1);
  EXPECT_EQ(message_of<RuntimeError>([&] { add_(x, x.t()); }), "add: " + partial);
  EXPECT_EQ(message_of<RuntimeError>([&] { add_(x, x[0]); }), "add: " + partial);
  EXPECT_EQ(message_of<RuntimeError>([&] { exp_out(x.narrow(0, 1, 3), x.narrow(0, 0, 3)); }), "exp: " + partial);
  EXPECT_EQ(message_of<RuntimeError>([&] { x.slice(1, 0, 3).copy_(x.slice(1, 1, 4)); }), "copy_: " + partial);
  EXPECT_EQ(message_of<RuntimeError>([&] { add_(x[0].expand({4, 4}), x); }), "add: " + internal);
  // Sliding windows: no stride is zero, but elements coincide.
  EXPECT_EQ(message_of<RuntimeError>([&] {
              add_(make_strided({3, 3}, {1, 1}, 0, 5, kFloat32), 1);
            }),
            "add: " + internal);
  // Narrower elements over the same bytes, through a separate storage.
  const Tensor alias = from_blob(x.data_ptr(), {4, 4}, TensorOptions(kFloat16));
  EXPECT_EQ(message_of<RuntimeError>([&] { exp_out(x, alias); }), "exp: " + partial);
}

TEST(ElementwiseOverlap, AllowsTheSameElementsAndInterleavedOnes) {
  const Tensor x = make({4}, kFloat32, {1, 2, 3, 4});
  add_(x, x);
  EXPECT_EQ(values_of(x), (std::vector<double>{2, 4, 6, 8}));
  add_(x.slice(0, 0, 4, 2), x.slice(0, 1, 4, 2));
  EXPECT_EQ(values_of(x), (std::vector<double>{6, 4, 14, 8}));
  const Tensor alias = from_blob(x.data_ptr(), {4}, TensorOptions(kFloat32));
  mul_(x, alias);
  EXPECT_EQ(values_of(x), (std::vector<double>{36, 16, 196, 64}));
}

// Loops.

TEST(IteratorThreads, ResultDoesNotDependOnTheirNumber) {
  const int64_t before = num_threads();
  const Tensor a = random({300, 7, 100}, kFloat32, -2, 2, 1), b = random({100, 7, 300}, kFloat32, -2, 2, 2);
  const auto results = [&] {
    std::string all = bytes_of(exp(a)) + bytes_of(add(a, b.transpose(0, 2))) + bytes_of(a < b.permute({2, 1, 0}));
    all += bytes_of(mul(a.slice(2, INT64_MAX, INT64_MIN, -3), b.transpose(0, 2).slice(2, 0, 100, 3)));
    all += bytes_of(add(random({4, 70'000}, kFloat32, 0, 1, 3), random({4, 1}, kFloat32, 0, 1, 4)));
    all += bytes_of(a.to(kFloat64)) + bytes_of(clone(b.transpose(0, 2), MemoryFormat::Contiguous));
    return all;
  };
  set_num_threads(1);
  const std::string alone = results();
  for (const int64_t n : {2, 3, 7}) {
    set_num_threads(n);
    EXPECT_TRUE(results() == alone) << n << " threads";
  }
  set_num_threads(before);
}

TEST(Iterator, LargeOutputsAreWrittenPastTheCaches) {
  // Large enough for streaming stores, with a length and address that are no multiples of a vector.
  const int64_t n = (int64_t{9} << 20) + 5;
  const Tensor source = empty({n + 1}), target = empty({n + 1});
  for (int64_t i = 0; i <= n; ++i) source.data<float>()[i] = static_cast<float>(i % 1000);
  target.data<float>()[0] = 17;
  const Tensor a = source.narrow(0, 1, n), out = target.narrow(0, 1, n);
  add_out(out, a, make({}, kFloat32, {1}));
  EXPECT_EQ(target.data<float>()[0], 17);
  const float *x = a.data<float>(), *y = out.data<float>();
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; ++i) wrong += y[i] != x[i] + 1;
  EXPECT_EQ(wrong, 0);
  // In place nothing is streamed, and the result is the same.
  const Tensor copy = clone(a);
  add_(copy, 1);
  EXPECT_EQ(std::memcmp(copy.data_ptr(), y, static_cast<size_t>(n) * 4), 0);
}

// Long rows combined with an operand that is constant along each row.
TEST(Iterator, LongRowsBesideNumbers) {
  for (const ScalarType dtype : {kFloat32, kFloat64, kInt32, kInt64, kFloat16, kComplex128}) {
    const Tensor x = to(remainder(arange(3 * 9001), 100), dtype).view({3, 9001}).narrow(1, 1, 9000);
    const Tensor column = to(arange(3), dtype).view({3, 1});
    const Tensor expanded = column.expand({3, 9000}).contiguous();
    EXPECT_TRUE(bytes_of(x + column) == bytes_of(x + expanded)) << to_string(dtype);
    EXPECT_TRUE(bytes_of(column - x) == bytes_of(expanded - x)) << to_string(dtype);
    EXPECT_TRUE(bytes_of(x * 3) == bytes_of(x + x + x)) << to_string(dtype);
    EXPECT_TRUE(bytes_of(addcmul(x, column, x)) == bytes_of(addcmul(x, expanded, x))) << to_string(dtype);
    const Tensor y = x.clone();
    y.mul_(3);
    EXPECT_TRUE(bytes_of(y) == bytes_of(x * 3)) << to_string(dtype);
  }
}

TEST(Iterator, OutputsOfEveryStride) {
  const Tensor x = random({70, 3, 66}, kFloat32, -2, 2, 1);
  const std::string want = bytes_of(exp(x));
  for (const test::Placement placement : test::placements()) {
    const Tensor out = test::placed(x, placement);
    exp_out(out, x);
    EXPECT_TRUE(bytes_of(out) == want) << name_of(placement);
  }
}

// Copies.

TEST(CopyElements, ConvertsEveryDtypeIntoEveryOther) {
  const std::vector<ScalarType> types = {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64,
                                         kInt32,   kInt16,   kInt8,    kUInt8,    kBool};
  for (const ScalarType from : types) {
    const Tensor source = random({37, 5}, from, from == kBool || from == kUInt8 ? 0 : -100, from == kBool ? 1 : 100, 3);
    for (const ScalarType to : types) {
      for (const test::Placement placement : test::placements()) {
        const Tensor target = test::placed(make({37, 5}, to, std::vector<double>(185, 1)), placement);
        copy_elements_out(target, source);
        std::vector<double> want;
        for (const double v : values_of(source)) {
          unsigned char element[16];  // of any dtype
          // Through int64 where both are integers: conversion between those wraps.
          if (is_integral(from, true) && is_integral(to, false))
            visit_all_types("test", to, [&]<class T>() {
              const T wrapped = convert<T>(static_cast<int64_t>(v));
              std::memcpy(element, &wrapped, sizeof(T));
            });
          else
            test::write_element(to, element, v);
          want.push_back(test::read_element(to, element));
        }
        EXPECT_EQ(values_of(target), want) << to_string(from) << " to " << to_string(to) << ", " << name_of(placement);
      }
    }
  }
}

TEST(CopyElements, KeepsEveryBitOfTheSameDtype) {
  // A signalling NaN, which arithmetic would make quiet.
  const uint16_t bits[] = {0x7d01, 0xfc01, 0x0001, 0x8000};
  const Tensor half = empty({4}, TensorOptions(kFloat16));
  std::memcpy(half.data_ptr(), bits, sizeof bits);
  const Tensor target = make_strided({4}, {2}, 1, 8, kFloat16);
  copy_elements_out(target, half);
  EXPECT_EQ(bytes_of(target), bytes_of(half));
}

TEST(CopyElements, TransposesLargeMatrices) {
  // Rows of whole cache lines, of others, and edges of every kind; a batch; an output that is not dense.
  for (const Sizes& sizes : {Sizes{1, 2951, 2992}, Sizes{1, 2990, 2951}, Sizes{3, 1777, 1600}, Sizes{1, 17, 600'000}}) {
    for (const ScalarType t : {kFloat32, kFloat64}) {
      const int64_t batch = sizes[0], rows = sizes[1], columns = sizes[2];
      const Tensor x = to(view(arange(0, batch * columns * rows), {batch, columns, rows}), t);
      const Tensor wide = empty({batch, rows + 1, columns + 16}, x.options());
      const Tensor dense = contiguous(transpose(x, 1, 2)), some = narrow(narrow(wide, 1, 1, rows), 2, 16, columns);
      copy_elements_out(some, transpose(x, 1, 2));
      const auto same = [&]<class T>(const Tensor& got) {
        const int64_t row_stride = got.stride(1), batch_stride = got.stride(0);
        const T *in = x.data<T>(), *out = got.data<T>();
        for (int64_t b = 0; b < batch; ++b)
          for (int64_t c = 0; c < columns; ++c)
            for (int64_t r = 0; r < rows; ++r)
              if (out[b * batch_stride + r * row_stride + c] != in[(b * columns + c) * rows + r]) return false;
        return true;
      };
      for (const Tensor& got : {dense, some}) {
        const bool right = t == kFloat32 ? same.template operator()<float>(got) : same.template operator()<double>(got);
        EXPECT_TRUE(right) << to_string(t) << " " << rows << " x " << columns;
      }
    }
  }
}

TEST(CopyElements, FillsAnExpandedTensor) {
  const Tensor x = random({3, 1}, kInt16, 0, 5, 1);
  fill_elements_out(x.expand({3, 4}), make({}, kInt16, {-7}));
  EXPECT_EQ(values_of(x), (std::vector<double>{-7, -7, -7}));
}

}  // namespace
}  // namespace tercel
