#include "tercel/ops/nn/ctc_loss.h"

#include <cmath>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/ctc_loss_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(CtcLoss, Conformance, ::testing::ValuesIn(ctc_rows()), row_name);

TEST(CtcLoss, WithoutAnyPath) {
  Tensor x = log_softmax(random({2, 1, 3}, kFloat64, -1, 1, 1), 2).detach().requires_grad_();
  const Tensor target = make({1, 2}, kInt64, {1, 1});  // needs a blank between
  EXPECT_TRUE(std::isinf(values_of(ctc_loss(x, target, {2}, {2}, 0, Reduction::None))[0]));
  const Tensor loss = ctc_loss(x, target, {2}, {2}, 0, Reduction::Sum, true);
  EXPECT_EQ(values_of(loss), (std::vector<double>{0}));
  const Tensor one = make({}, kFloat64, {1});
  EXPECT_EQ(values_of(grad(Span<Tensor>(&loss, 1), Span<Tensor>(&x, 1), Span<Tensor>(&one, 1))[0].values),
            std::vector<double>(6, 0));
  // No steps: only the empty target has a path.
  EXPECT_EQ(values_of(ctc_loss(x, target, {0}, {0}, 0, Reduction::None))[0], 0);
  EXPECT_TRUE(std::isinf(values_of(ctc_loss(x, target, {0}, {1}, 0, Reduction::None))[0]));
}

TEST(CtcLoss, RefusesOperandsThatWereChangedSince) {
  for (const bool targets_too : {false, true}) {
    const Tensor x = log_softmax(random({4, 1, 3}, kFloat64, -1, 1, 1), 2).requires_grad_();
    const Tensor target = make({1, 2}, kInt64, {1, 2});
    const Tensor probs = mul(x, 1.0), loss = ctc_loss(probs, target, {4}, {2}, 0);
    if (targets_too)
      zero_(target);
    else
      mul_(probs, 2.0);
    TERCEL_EXPECT_THROW(loss.backward(), RuntimeError, "has been modified by an inplace operation");
  }
}

TEST(CtcLoss, OneSample) {
  const Tensor x = log_softmax(random({4, 1, 3}, kFloat64, -1, 1, 1), 2), target = make({2}, kInt64, {1, 2});
  const Tensor alone = make({4, 3}, kFloat64, values_of(x));
  EXPECT_EQ(values_of(ctc_loss(alone, target, {4}, {2}, 0, Reduction::None)),
            values_of(ctc_loss(x, target, {4}, {2}, 0, Reduction::None)));
  EXPECT_EQ(ctc_loss(alone, target, {4}, {2}, 0, Reduction::None).dim(), 0);
}

TEST(CtcLoss, Errors) {
  const Tensor x = random({4, 2, 3}, kFloat64, -1, 0, 1), targets = make({2, 2}, kInt64, {1, 2, 1, 2});
  const auto refuse = [&](const Tensor& t, const Sizes& times, const Sizes& lengths, int64_t blank) {
    return message_of<RuntimeError>([&] { ctc_loss(x, t, times, lengths, blank); });
  };
  EXPECT_EQ(refuse(targets, {4, 4}, {2, 2}, 3), "blank must be in label range");
  EXPECT_EQ(refuse(targets, {4}, {2, 2}, 0), "input_lengths must be of size batch_size");
  EXPECT_EQ(refuse(targets, {4, 4}, {2}, 0), "target_lengths must be of size batch_size");
  EXPECT_EQ(refuse(targets, {5, 4}, {2, 2}, 0), "Expected input_lengths to have value at most 4, but got value 5");
  EXPECT_EQ(refuse(targets, {4, 4}, {2, -1}, 0), "Expected target_lengths to have value at least 0, but got value -1");
  EXPECT_EQ(refuse(targets, {4, 4}, {3, 1}, 0),
            "Expected tensor to have size at least 3 at dimension 1, but got size 2 for argument #2 'targets'");
  EXPECT_EQ(refuse(make({3}, kInt64, {1, 2, 1}), {4, 4}, {2, 2}, 0),
            "Expected tensor to have size 4 at dimension 0, but got size 3 for argument #2 'targets'");
  EXPECT_EQ(refuse(make({2, 2}, kInt64, {1, 7, 1, 1}), {4, 4}, {2, 2}, 0),
            "ctc_loss: target 7 of sample 0 is out of range for 3 classes");
}

}  // namespace tercel::test
