#include "tercel/ops/reduce/scan.h"

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/reduce/scan_rows.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Scan, Conformance, ::testing::ValuesIn(scan_rows()), row_name);

namespace {

using Values = std::vector<double>;
using Tensors = std::vector<Tensor>;
const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

Tensor vector(const Values& values, ScalarType dtype = kFloat32) {
  return make({static_cast<int64_t>(values.size())}, dtype, values);
}

}  // namespace

TEST(Scan, DtypesOfResults) {
  for (const ScalarType t : {kBool, kUInt8, kInt32}) EXPECT_EQ(cumsum(vector({1, 1}, t), 0).dtype(), kInt64);
  EXPECT_EQ(values_of(cumsum(vector({200, 100}, kUInt8), 0)), (Values{200, 300}));
  EXPECT_EQ(values_of(cumsum(vector({1.75, 1.75}), 0, kInt64)), (Values{1, 2}));
  EXPECT_EQ(cumprod(vector({1, 2}, kInt32), 0, kFloat64).dtype(), kFloat64);
  EXPECT_EQ(cumsum(vector({1}, kFloat16), 0).dtype(), kFloat16);
  EXPECT_EQ(cummax(vector({1, 0}, kBool), 0).values.dtype(), kBool);
  const Tensor bytes = vector({200, 100}, kUInt8);
  cumsum_(bytes, 0);
  EXPECT_EQ(values_of(bytes), (Values{200, 44}));
}

TEST(Scan, EmptyAndScalar) {
  EXPECT_EQ(cumsum(zeros({0}), 0).sizes().to_vector(), (Sizes{0}));
  EXPECT_EQ(cumprod(zeros({3, 0, 2}), 1).sizes().to_vector(), (Sizes{3, 0, 2}));
  EXPECT_EQ(cumsum(scalar_tensor(3), 0).item<int64_t>(), 3);
  EXPECT_EQ(cummax(scalar_tensor(3.5), -1).indices.item<int64_t>(), 0);
  EXPECT_EQ(cummax(zeros({2, 0}), 1).indices.dtype(), kInt64);
}

TEST(Scan, Errors) {
  EXPECT_EQ(message_of<IndexError>([] {
              cumsum(zeros({2, 3}), 2);
            }),
            "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
  EXPECT_EQ(message_of<NotImplementedError>([] { logcumsumexp(vector({1}, kInt64), 0); }),
            "\"logcumsumexp_out_cpu\" not implemented for 'Long'");
  TERCEL_EXPECT_THROW(cumsum_(zeros({2}), 0, kFloat64), RuntimeError, "Bad in-place call");
}

TEST(Scan, NanAndInfinity) {
  const ValuesAndIndices best = cummax(vector({1, 3, 3, kNan, 5, kNan}), 0);
  EXPECT_EQ(values_of(best.indices), (Values{0, 1, 2, 3, 3, 5}));
  EXPECT_TRUE(std::isnan(values_of(best.values)[4]));
  EXPECT_EQ(values_of(cummin(vector({-kInf, -kInf, 2}), 0).indices), (Values{0, 1, 1}));
  EXPECT_EQ(values_of(cummax(vector({-kInf, -kInf}), 0).indices), (Values{0, 1}));
  const Values logs = values_of(logcumsumexp(vector({-kInf, -kInf, 1000, 1000, kInf, 3}, kFloat64), 0));
  EXPECT_EQ(logs[1], -kInf);
  EXPECT_DOUBLE_EQ(logs[3], 1000 + std::log(2.0));
  EXPECT_EQ(logs[5], kInf);
  EXPECT_TRUE(std::isnan(values_of(logcumsumexp(vector({kNan, 1}), 0))[1]));
}

TEST(Scan, RowsAreScannedAsColumns) {
  for (const ScalarType t : {kFloat32, kFloat64, kInt64}) {
    for (const int64_t n : {1, 5, 16, 63, 200}) {
      Values values = values_of(random({19, n}, t, -50, 50, static_cast<uint64_t>(n)));
      if (is_floating(t)) values[values.size() / 2] = kNan, values[values.size() / 3] = -kInf;
      // Up, down, and the same again.
      for (int64_t i = 0; i < n; ++i) {
        values[static_cast<size_t>(n + i)] = static_cast<double>(i);
        values[static_cast<size_t>(2 * n + i)] = static_cast<double>(-i);
        values[static_cast<size_t>(3 * n + i)] = 7;
      }
      const Tensor x = make({19, n}, t, values), columns = contiguous(transpose(x, 0, 1));
      const auto same = [&](const Tensor& got, const Tensor& want) {
        EXPECT_EQ(bytes_of(got), bytes_of(contiguous(transpose(want, 0, 1)))) << to_string(t) << " " << n;
      };
      same(cummax(x, 1).values, cummax(columns, 0).values);
      same(cummax(x, 1).indices, cummax(columns, 0).indices);
      same(cummin(x, 1).values, cummin(columns, 0).values);
      same(cummin(x, 1).indices, cummin(columns, 0).indices);
      if (n < 64) same(cumsum(x, 1), cumsum(columns, 0));
      same(cumprod(x, 1), cumprod(columns, 0));
    }
  }
}

TEST(Scan, LongRowsStayAccurate) {
  // Sequential float32 addition of a million times 0.1 would be off by 0.9 %.
  const int64_t n = 1'000'003;
  const Tensor sums = cumsum(full({n}, 0.1), 0);
  EXPECT_FLOAT_EQ(sums[n - 1].item<float>(), 0.1f * static_cast<float>(n));
  EXPECT_FLOAT_EQ(sums[99].item<float>(), 10.f);
  // Partial products may overflow even if the product does not.
  EXPECT_EQ(values_of(cumprod(vector({1e-300, 1e200, 1e200, 1e-200}, kFloat64), 0))[2], 1e-300 * 1e200 * 1e200);
}

TEST(Scan, ProductGradientWithZeros) {
  for (const Values& at : {Values{2, 3, 4}, Values{0, 3, 4}, Values{2, 0, 4, 5}, Values{2, 0, 4, 0, 3}, Values{3, 0}}) {
    Tensor x = vector(at, kFloat64);
    x.requires_grad_();
    EXPECT_TRUE(gradcheck([](const Tensors& in) { return cumprod(in[0], 0); }, {x}));
  }
  Tensor x = make({3, 4}, kFloat64, {1, 0, 3, 4, 5, 6, 0, 0, 2, 3, 4, 0});
  x.requires_grad_();
  for (const int64_t dim : {0, 1})
    EXPECT_TRUE(gradcheck([dim](const Tensors& in) { return cumprod(in[0], dim); }, {x}));
}

TEST(Scan, InPlaceIsRecorded) {
  Tensor x = vector({0.5, -2, 3}, kFloat64);
  x.requires_grad_();
  EXPECT_TRUE(gradcheck(
      [](const Tensors& in) {
        const Tensor y = clone(in[0]);
        cumsum_(y, 0);
        cumprod_(y, 0);
        return y;
      },
      {x}));
}

TEST(ScanThreads, SameBitsForAnyNumber) {
  const int64_t before = num_threads();
  const Tensor row = random({400'123}, kFloat32, -1, 1, 1), doubles = random({2, 150'001}, kFloat64, -1, 1, 2),
               columns = random({300, 1500}, kFloat32, -1, 1, 3);
  std::vector<std::string> expected;
  for (const int64_t threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    const std::vector<std::string> got = {
        bytes_of(cumsum(row, 0)),           bytes_of(cumsum(doubles, 1)),    bytes_of(cumsum(columns, 0)),
        bytes_of(cummax(row, 0).indices),   bytes_of(cummin(row, 0).values), bytes_of(cumprod(columns, 0)),
        bytes_of(cumsum(row, 0, kFloat64)), bytes_of(logcumsumexp(row, 0)),  bytes_of(cummax(columns, 0).indices)};
    if (expected.empty()) expected = got;
    EXPECT_TRUE(got == expected) << threads << " threads";
  }
  set_num_threads(before);
  // Every block counts.
  Tensor counted = full({300'001}, 1, TensorOptions(kInt32));
  EXPECT_EQ(cumsum(counted, 0)[300'000].item<int64_t>(), 300'001);
}

}  // namespace tercel::test
