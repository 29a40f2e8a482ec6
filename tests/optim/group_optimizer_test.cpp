#include "tercel/optim/group_optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/gradient.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/embedding/embedding.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/factories/tensor_of.h"
#include "tercel/ops/nn/linear.h"
#include "tercel/ops/nn/loss.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/optim/optimizer.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::optim {
namespace {

using test::values_of;

// Three steps on sum(w^2 / 2 * k), whose gradient is k w, and the same by a plain function of one number.
template <class Optimizer>
void expect_steps(const GroupOptions& options, const std::function<void(double& w, double g, int step)>& reference) {
  Tensor w = test::make({2}, kFloat64, {1, -2}).requires_grad_();
  Optimizer optimizer({w}, options);
  double want = 1;
  for (int step = 1; step <= 3; ++step) {
    optimizer.zero_grad();
    sum(square(w) * 1.5).backward();
    optimizer.step();
    reference(want, 3 * want, step);
    EXPECT_NEAR(values_of(w)[0], want, 1e-12) << step;
  }
}

TEST(GroupOptimizer, SgdIsPyTorchs) {
  double buffer = 0;
  expect_steps<SGD>({.lr = 0.1}, [](double& w, double g, int) { w -= 0.1 * g; });
  expect_steps<SGD>({.lr = 0.1, .weight_decay = 0.2, .momentum = 0.9, .dampening = 0.5},
                    [&](double& w, double g, int step) {
                      g += 0.2 * w;
                      buffer = step == 1 ? g : 0.9 * buffer + 0.5 * g;
                      w -= 0.1 * buffer;
                    });
  expect_steps<SGD>({.lr = 0.1, .momentum = 0.9, .nesterov = true}, [&](double& w, double g, int step) {
    buffer = step == 1 ? g : 0.9 * buffer + g;
    w -= 0.1 * (g + 0.9 * buffer);
  });
  expect_steps<SGD>({.lr = 0.1, .maximize = true}, [](double& w, double g, int) { w += 0.1 * g; });
}

TEST(GroupOptimizer, ChecksAllRowsBeforeTheFirstUpdate) {
  const Tensor good = ones({3, 2}).requires_grad_(), bad = ones({3, 2}).requires_grad_();
  set_gradient(good, {ones({1, 2}), tensor({1})});
  set_gradient(bad, {ones({1, 2}), tensor({9})});
  SGD optimizer({good, bad}, {.lr = 0.1});
  EXPECT_THROW(optimizer.step(), IndexError);
  EXPECT_EQ(values_of(good), std::vector<double>(6, 1));
  EXPECT_TRUE(optimizer.state_dict().empty());
}

TEST(GroupOptimizer, AdamAndAdamWArePyTorchs) {
  double m = 0, v = 0;
  const auto adam = [&](double& w, double g, int step) {
    m = step == 1 ? 0.1 * g : 0.9 * m + 0.1 * g;
    v = step == 1 ? 0.001 * g * g : 0.999 * v + 0.001 * g * g;
    w -= 0.01 * m / (1 - std::pow(0.9, step)) / (std::sqrt(v / (1 - std::pow(0.999, step))) + 1e-8);
  };
  expect_steps<Adam>({.lr = 0.01}, adam);
  expect_steps<Adam>({.lr = 0.01, .weight_decay = 0.3},
                     [&](double& w, double g, int step) { adam(w, g + 0.3 * w, step); });
  expect_steps<AdamW>({.lr = 0.01, .weight_decay = 0.3}, [&](double& w, double g, int step) {
    w *= 1 - 0.01 * 0.3;
    adam(w, g, step);
  });
  double largest = 0;
  expect_steps<Adam>({.lr = 0.01, .amsgrad = true}, [&](double& w, double g, int step) {
    m = step == 1 ? 0.1 * g : 0.9 * m + 0.1 * g;
    v = step == 1 ? 0.001 * g * g : 0.999 * v + 0.001 * g * g;
    largest = std::max(largest, v);
    w -= 0.01 * m / (1 - std::pow(0.9, step)) / (std::sqrt(largest / (1 - std::pow(0.999, step))) + 1e-8);
  });
}

TEST(GroupOptimizer, AdagradAndRmspropArePyTorchs) {
  double s = 0.5, mean = 0, buffer = 0;
  expect_steps<Adagrad>({.lr = 0.1, .eps = 1e-10, .lr_decay = 0.1, .initial_accumulator_value = 0.5},
                        [&](double& w, double g, int step) {
                          s += g * g;
                          w -= 0.1 / (1 + 0.1 * (step - 1)) * g / (std::sqrt(s) + 1e-10);
                        });
  s = 0;
  expect_steps<RMSprop>({.lr = 0.1}, [&](double& w, double g, int) {
    s = 0.99 * s + 0.01 * g * g;
    w -= 0.1 * g / (std::sqrt(s) + 1e-8);
  });
  s = 0;
  expect_steps<RMSprop>({.lr = 0.1, .momentum = 0.5, .centered = true}, [&](double& w, double g, int) {
    s = 0.99 * s + 0.01 * g * g;
    mean = 0.99 * mean + 0.01 * g;
    buffer = 0.5 * buffer + g / (std::sqrt(s - mean * mean) + 1e-8);
    w -= 0.1 * buffer;
  });
}

TEST(GroupOptimizer, FtrlIsTheTrainers) {
  Tensor w = test::random({50}, kFloat32, -1, 1, 1).requires_grad_();
  const Tensor trained = test::make({50}, kFloat32, values_of(w));
  Ftrl ftrl({w}, {.lr = 0.1, .beta = 0.5, .lambda1 = 0.05, .lambda2 = 0.1});
  OptimizerOptions options;
  options.type = Rule::Ftrl;
  options.beta = 0.5;
  options.lambda1 = 0.05;
  options.lambda2 = 0.1;
  Optimizer optimizer(options, trained);
  for (int64_t step = 1; step <= 3; ++step) {
    const Tensor g = test::random({50}, kFloat32, -1, 1, 10 + static_cast<uint64_t>(step));
    w.set_grad(g);
    ftrl.step();
    optimizer.update_dense(g, 0.1, step);
  }
  EXPECT_EQ(values_of(w), values_of(trained));
  TERCEL_EXPECT_THROW(Ftrl({ones({1}).requires_grad_()}, {.lambda1 = -1}), ValueError, "Invalid lambda1 value: -1");
}

TEST(GroupOptimizer, RowsChangeAloneAndAsDenseOnesDo) {
  for (const bool adagrad : {false, true}) {
    std::vector<std::vector<double>> results;
    for (const bool sparse : {false, true}) {
      Tensor w = test::make({4, 2}, kFloat32, {1, 2, 3, 4, 5, 6, 7, 8}).requires_grad_();
      SGD sgd({w}, {.lr = 0.5});
      Adagrad ada({w}, {.lr = 0.5});
      for (int step = 0; step < 2; ++step) {
        sgd.zero_grad();
        sum(square(embedding(w, tensor({2, 0, 2}), {}, sparse))).backward();
        adagrad ? ada.step() : sgd.step();
      }
      results.push_back(values_of(w));
    }
    for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(results[0][i], results[1][i], 1e-5);
    EXPECT_EQ(results[1][2], 3);
  }
  Tensor w = ones({2, 2}).requires_grad_();
  Adam adam({w});
  sum(embedding(w, tensor({1}), {}, true)).backward();
  TERCEL_EXPECT_THROW(adam.step(), RuntimeError, "Adam does not support sparse gradients");
  // Before another parameter, which comes first, has changed; also for a gradient with two sparse dimensions.
  Tensor first = ones({2}).requires_grad_();
  RMSprop others({first, w});
  sum(first).backward();
  w.set_grad(to_sparse(ones({2, 2})));
  TERCEL_EXPECT_THROW(others.step(), RuntimeError, "RMSprop does not support sparse gradients");
  EXPECT_EQ(values_of(first)[0], 1);
  GroupOptions decayed;
  decayed.weight_decay = 0.1;
  Adagrad adagrad_with_decay({w}, decayed);
  TERCEL_EXPECT_THROW(adagrad_with_decay.step(), RuntimeError, "weight_decay option is not compatible");
}

TEST(GroupOptimizer, GroupsHaveTheirOwnOptions) {
  Tensor a = ones({1}).requires_grad_(), b = ones({1}).requires_grad_(), idle = ones({1}).requires_grad_();
  SGD sgd({{{a, idle}, {.lr = 0.5}}, {{b}, {.lr = 0.25}}});
  (a * b).sum().backward();
  sgd.step();
  EXPECT_EQ(values_of(a)[0], 0.5);
  EXPECT_EQ(values_of(b)[0], 0.75);
  EXPECT_EQ(values_of(idle)[0], 1);
  TERCEL_EXPECT_THROW(sgd.add_param_group({{a}, {}}), ValueError,
                      "some parameters appear in more than one parameter group");
  TERCEL_EXPECT_THROW(sgd.add_param_group({{a * 2}, {}}), ValueError, "can't optimize a non-leaf Tensor");
  TERCEL_EXPECT_THROW(SGD({a}, {.lr = -1}), ValueError, "Invalid learning rate: -1");
  TERCEL_EXPECT_THROW(SGD({a}, {.nesterov = true}), ValueError,
                      "Nesterov momentum requires a momentum and zero dampening");
}

TEST(GroupOptimizer, DefaultsAreEachOptimizersOwn) {
  const auto options = [](auto& optimizer) {
    const GroupOptions& o = optimizer.param_groups()[0].options;
    return std::vector<double>{o.lr, o.weight_decay, o.eps};
  };
  const Tensor w = ones({2}).requires_grad_();
  SGD sgd({w});
  Adam adam({w});
  AdamW adamw({w});
  Adagrad adagrad({w});
  RMSprop rmsprop({w});
  AdamW given({w}, {.lr = 0.5, .weight_decay = 0, .eps = 1e-3});
  EXPECT_EQ(options(sgd), (std::vector<double>{1e-3, 0, 1e-8}));
  EXPECT_EQ(options(adam), (std::vector<double>{1e-3, 0, 1e-8}));
  EXPECT_EQ(options(adamw), (std::vector<double>{1e-3, 0.01, 1e-8}));
  EXPECT_EQ(options(adagrad), (std::vector<double>{0.01, 0, 1e-10}));
  EXPECT_EQ(options(rmsprop), (std::vector<double>{0.01, 0, 1e-8}));
  EXPECT_EQ(options(given), (std::vector<double>{0.5, 0, 1e-3}));
}

TEST(GroupOptimizer, StateDictContinuesWhereItWas) {
  const auto steps = [](GroupOptimizer& optimizer, const Tensor& w, int count) {
    for (int i = 0; i < count; ++i) {
      optimizer.zero_grad();
      sum(square(w)).backward();
      optimizer.step();
    }
  };
  Tensor whole = ones({3}).requires_grad_(), first = ones({3}).requires_grad_();
  Adam straight({whole}, {.lr = 0.1}), before({first}, {.lr = 0.1});
  steps(straight, whole, 5);
  steps(before, first, 2);
  Tensor second = test::make({3}, kFloat32, values_of(first)).requires_grad_();
  Adam after({second}, {.lr = 0.1});
  after.load_state_dict(before.state_dict());
  steps(after, second, 3);
  EXPECT_EQ(values_of(second), values_of(whole));
  TERCEL_EXPECT_THROW(after.load_state_dict({{"1.exp_avg", ones({3})}}), RuntimeError, "belongs to no parameter");
  TERCEL_EXPECT_THROW(after.load_state_dict({{"0.exp_avg", ones({2})}}), RuntimeError, "is [2] but its parameter [3]");
}

TEST(GroupOptimizer, AnOrdinaryLoopLearns) {
  const Tensor x = randn({64, 3}), want = test::make({1, 3}, kFloat32, {1, -2, 3});
  const Tensor y = linear(x, want);
  Tensor w = zeros({1, 3}).requires_grad_();
  Adam adam({w}, {.lr = 0.1});
  for (int i = 0; i < 300; ++i) {
    adam.zero_grad();
    mse_loss(linear(x, w), y).backward();
    adam.step();
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(values_of(w)[i], values_of(want)[i], 0.02);
}

TEST(ClipGrad, NormAndValue) {
  Tensor a = zeros({2}).requires_grad_(), b = zeros({1}).requires_grad_();
  const std::vector<Tensor> parameters = {a, b};
  const auto set = [&] {
    a.set_grad(test::make({2}, kFloat32, {2, -6}));
    b.set_grad(test::make({1}, kFloat32, {3}));
  };
  set();
  EXPECT_EQ(clip_grad_norm_(parameters, 1).item<float>(), 7);
  EXPECT_NEAR(values_of(a.grad())[1], -6.0 / 7, 1e-6);
  set();
  EXPECT_EQ(clip_grad_norm_(parameters, 100, INFINITY).item<float>(), 6);
  EXPECT_EQ(values_of(b.grad())[0], 3);
  clip_grad_value_(parameters, 2.5);
  EXPECT_EQ(values_of(a.grad()), (std::vector<double>{2, -2.5}));
  b.set_grad(test::make({1}, kFloat32, {INFINITY}));
  TERCEL_EXPECT_THROW(clip_grad_norm_(parameters, 1, 2, true), RuntimeError, "is non-finite, so it cannot be clipped");
}

}  // namespace
}  // namespace tercel::optim
