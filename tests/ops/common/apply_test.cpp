#include "tercel/ops/common/apply.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel {
namespace {

using test::message_of;
using test::values_of;
using Values = std::vector<double>;

/** The elements as apply() visits them. */
Values visited(const Tensor& t) {
  Values out;
  apply<const double>(t, [&](double x) { out.push_back(x); });
  return out;
}

TEST(Apply, VisitsRowMajorWhateverThePlacement) {
  for (const test::Sizes& sizes : {test::Sizes{}, test::Sizes{0, 3}, test::Sizes{7}, test::Sizes{3, 1, 4},
                                   test::Sizes{2, 3, 4, 5}, test::Sizes{1, 1}, test::Sizes{1, 2, 1, 2, 1, 2}}) {
    const Tensor x = test::random(sizes, kFloat64, -1, 1, 1);
    EXPECT_EQ(visited(x), values_of(x));
    for (const test::Placement placement : test::placements())
      EXPECT_EQ(visited(test::placed(x, placement)), values_of(x)) << test::name_of(placement);
  }
  const Tensor row = test::random({1, 3}, kFloat64, -1, 1, 1);
  EXPECT_EQ(visited(expand(row, {4, 3})), values_of(expand(row, {4, 3})));
}

TEST(Apply2, MeetsByIndexNotByShape) {
  const Tensor a = arange(6).view({2, 3}), b = mul(arange(6), 10).view({3, 1, 2});
  const Tensor out = zeros({6}, kInt64);
  apply3<int64_t, const int64_t, const int64_t>(out, a, b, [](int64_t& o, int64_t x, int64_t y) { o = x + y; });
  EXPECT_EQ(values_of(out), (Values{0, 11, 22, 33, 44, 55}));
  // Contiguous runs of different lengths: [3, 2] transposed with [2, 3].
  Values pairs;
  apply2<const int64_t, const int64_t>(t(a), a,
                                       [&](int64_t x, int64_t y) { pairs.push_back(static_cast<double>(10 * x + y)); });
  EXPECT_EQ(pairs, (Values{0, 31, 12, 43, 24, 55}));
}

TEST(Apply2, WritesThroughViews) {
  const Tensor x = zeros({3, 4}), part = narrow(x, 1, 1, 2), y = arange(0, 6, 1, kFloat32);
  const uint32_t version = x.version();
  apply2<float, const float>(part, y, [](float& a, float b) { a = b; });
  EXPECT_EQ(values_of(x), (Values{0, 0, 1, 0, 0, 2, 3, 0, 0, 4, 5, 0}));
  EXPECT_EQ(x.version(), version + 1);
  EXPECT_EQ(y.version(), 0u);
}

TEST(Apply, CountsAVersionThoughTheFunctionThrows) {
  const Tensor x = zeros({3});
  const uint32_t version = x.version();
  EXPECT_THROW(apply<float>(x,
                            [](float& a) {
                              a = 1;
                              throw std::runtime_error("stop");
                            }),
               std::runtime_error);
  EXPECT_EQ(x.version(), version + 1);
}

TEST(Apply2, EqualNumberOfElementsOnly) {
  const auto nothing = [](float, float) { FAIL(); };
  EXPECT_TRUE(message_of<RuntimeError>([&] {
                apply2<const float, const float>(zeros({2, 3}), zeros({1, 3}), nothing);
              }).starts_with("apply2: inconsistent tensor size"));
  apply2<const float, const float>(zeros({0}), zeros({3, 0}), nothing);
}

TEST(Apply, Refuses) {
  const auto nothing = [](auto&) { FAIL(); };
  EXPECT_EQ(message_of<RuntimeError>([&] { apply<float>(zeros({2}, kFloat64), nothing); }),
            "apply: Tensor type mismatch, caller expects elements to be float32, while tensor contains float64. ");
  EXPECT_THROW(apply<float>(Tensor(), nothing), RuntimeError);
  Tensor leaf = zeros({2});
  leaf.requires_grad_();
  EXPECT_THROW(apply<float>(leaf, nothing), RuntimeError);
  EXPECT_THROW(apply<float>(mul(leaf, 2), nothing), RuntimeError);
  {
    const NoGradGuard no_grad;
    apply<float>(leaf, [](float& x) { x = 3; });
  }
  apply<const float>(leaf, [](float x) { EXPECT_EQ(x, 3); });
  alignas(8) char bytes[16] = {};
  const Tensor odd = from_blob(bytes + 1, {8}, kUInt8);
  EXPECT_THROW(apply<const float>(Tensor(make_intrusive<TensorImpl>(odd.storage(), kFloat32, IntSpan({2}))), nothing),
               RuntimeError);
}

}  // namespace
}  // namespace tercel
