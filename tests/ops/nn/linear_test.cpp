#include "tercel/ops/nn/linear.h"

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/linear_rows.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Linear, Conformance, ::testing::ValuesIn(linear_rows()), row_name);

namespace {

struct Stack {
  Tensor x;
  std::vector<Tensor> weights, biases;
  std::vector<Activation> activations = {Activation::Relu, Activation::Relu, Activation::None};

  explicit Stack(ScalarType dtype) : x(random({20, 33}, dtype, -1, 1, 1)) {
    const Sizes widths = {33, 40, 17, 5};
    for (size_t i = 0; i < 3; ++i) {
      weights.push_back(random({widths[i], widths[i + 1]}, dtype, -0.4, 0.4, 10 + i));
      biases.push_back(random({widths[i + 1]}, dtype, -1, 1, 20 + i));
    }
    for (Tensor* t : parameters()) t->requires_grad_();
  }
  std::vector<Tensor*> parameters() {
    std::vector<Tensor*> out = {&x};
    for (size_t i = 0; i < weights.size(); ++i) out.insert(out.end(), {&weights[i], &biases[i]});
    return out;
  }
  Tensor together() const { return mlp(x, weights, biases, activations); }
  Tensor one_by_one() const {
    Tensor h = x;
    for (size_t i = 0; i < weights.size(); ++i) h = inner_product(h, weights[i], biases[i], activations[i]);
    return h;
  }
  std::vector<Tensor> gradients(const Tensor& out) {
    const Tensor incoming = random(out.sizes().to_vector(), out.dtype(), -1, 1, 99);
    std::vector<Tensor> inputs, values;
    for (Tensor* t : parameters()) inputs.push_back(*t);
    for (Gradient& g : grad(Span<Tensor>(&out, 1), inputs, Span<Tensor>(&incoming, 1))) values.push_back(g.values);
    return values;
  }
};

}  // namespace

TEST(Linear, LayersTogetherAreTheSameAsOneByOne) {
  for (const ScalarType dtype : {kFloat32, kFloat64}) {
    Stack stack(dtype);
    const Tensor together = stack.together(), one_by_one = stack.one_by_one();
    EXPECT_EQ(bytes_of(together), bytes_of(one_by_one));
    const std::vector<Tensor> a = stack.gradients(together), b = stack.gradients(one_by_one);
    for (size_t i = 0; i < a.size(); ++i) {
      const std::vector<double> left = values_of(a[i]), right = values_of(b[i]);
      ASSERT_EQ(left.size(), right.size());
      for (size_t k = 0; k < left.size(); ++k) EXPECT_NEAR(left[k], right[k], 1e-5) << "gradient " << i;
    }
  }
}

TEST(Linear, OneNodeForAnMlp) {
  Stack stack(kFloat32);
  const Tensor out = stack.together();
  EXPECT_STREQ(gradient_edge(out).node->name(), "MlpBackward0");
  EXPECT_STREQ(gradient_edge(inner_product(stack.x, stack.weights[0])).node->name(), "InnerProductBackward0");
}

TEST(Linear, OnlyWhatIsAskedForIsComputed) {
  Stack stack(kFloat64);
  for (Tensor* t : stack.parameters()) t->requires_grad_(false);
  EXPECT_FALSE(stack.together().requires_grad());
  stack.biases[1].requires_grad_();
  const Tensor out = stack.together(), incoming = random({20, 5}, kFloat64, -1, 1, 99);
  backward(Span<Tensor>(&out, 1), Span<Tensor>(&incoming, 1));
  EXPECT_EQ(stack.biases[1].grad().sizes(), IntSpan({17}));
  EXPECT_FALSE(stack.weights[1].grad().defined());
}

TEST(Linear, BiasGradientsOfSinglesAreSums) {
  // With one row or column the incoming gradient equals its transpose, for which products compute no sums.
  for (const int64_t batch : {1, 5})
    for (const int64_t outputs : {1, 3})
      for (const int64_t inputs : {1, 2}) {
        const Tensor x = ones({batch, inputs}), seed = expand(full({1, 1}, 2.0), {batch, outputs});
        const std::vector<double> expected(static_cast<size_t>(outputs), 2.0 * static_cast<double>(batch));
        const Tensor weight = ones({outputs, inputs}).requires_grad_(), bias = zeros({outputs}).requires_grad_();
        for (const Tensor& g : {seed, contiguous(seed)}) {
          clear_gradient(bias);
          linear(x, weight, bias).backward(g);
          EXPECT_EQ(values_of(bias.grad()), expected) << batch << " x " << inputs << " -> " << outputs;
          clear_gradient(bias);
          const Tensor kernel = ones({inputs, outputs}).requires_grad_();
          inner_product(x, kernel, bias, Activation::None).backward(g);
          EXPECT_EQ(values_of(bias.grad()), expected) << batch << " x " << inputs << " -> " << outputs;
        }
      }
}

TEST(Linear, ReluStopsNanNeitherWayAndInfinityGoesThrough) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const Tensor x = make({3, 1}, kFloat32, {nan, -inf, inf}), w = make({1, 1}, kFloat32, {1});
  const std::vector<double> got = values_of(inner_product(x, w, {}, Activation::Relu));
  EXPECT_TRUE(std::isnan(got[0]));
  EXPECT_EQ(got[1], 0);
  EXPECT_EQ(got[2], inf);
}

TEST(Linear, EmptyBatches) {
  Tensor w = random({3, 2}, kFloat32, -1, 1, 1), b = random({2}, kFloat32, -1, 1, 2);
  w.requires_grad_();
  b.requires_grad_();
  const Tensor out = inner_product(empty({0, 3}), w, b, Activation::Relu), incoming = empty({0, 2});
  EXPECT_EQ(out.sizes(), IntSpan({0, 2}));
  backward(Span<Tensor>(&out, 1), Span<Tensor>(&incoming, 1));
  EXPECT_EQ(values_of(w.grad()), std::vector<double>(6, 0));
  EXPECT_EQ(values_of(b.grad()), std::vector<double>(2, 0));
  EXPECT_EQ(linear(empty({0, 4, 3}), empty({2, 3})).sizes(), IntSpan({0, 4, 2}));
  // Without input columns the result is the bias.
  EXPECT_EQ(values_of(linear(empty({2, 0}), empty({1, 0}), make({1}, kFloat32, {7}))), (std::vector<double>{7, 7}));
}

TEST(Linear, ChangesAreSeenBeforeBackward) {
  Stack stack(kFloat32);
  const Tensor incoming = random({20, 5}, kFloat32, -1, 1, 99);
  const Tensor out = stack.together();
  {
    const NoGradGuard no_grad;
    zero_(stack.weights[1]);
  }
  EXPECT_THROW(backward(Span<Tensor>(&out, 1), Span<Tensor>(&incoming, 1)), RuntimeError);
  stack.activations.back() = Activation::Relu;
  const Tensor relu = stack.together();
  {
    const NoGradGuard no_grad;
    zero_(relu);
  }
  EXPECT_THROW(backward(Span<Tensor>(&relu, 1), Span<Tensor>(&incoming, 1)), RuntimeError);
}

TEST(Linear, WrongOperands) {
  const Tensor x = empty({4, 3}), w = empty({3, 2}), three = empty({3});
  EXPECT_THROW(inner_product(x, empty({2, 3})), RuntimeError);
  EXPECT_THROW(inner_product(x, w, three), RuntimeError);
  EXPECT_THROW(inner_product(three, w), RuntimeError);
  EXPECT_THROW(inner_product(x, three), RuntimeError);
  EXPECT_THROW(inner_product(x, empty({3, 2}, kFloat64)), RuntimeError);
  EXPECT_THROW(inner_product(empty({4, 3}, kInt64), empty({3, 2}, kInt64)), Error);
  EXPECT_THROW(linear(x, w), RuntimeError);
  EXPECT_THROW(linear(x, empty({2, 3}), three), RuntimeError);
  EXPECT_THROW(linear(empty({}), empty({2, 3})), RuntimeError);
  EXPECT_THROW(linear(x, Tensor()), RuntimeError);
  const std::vector<Tensor> weights = {w}, none;
  const std::vector<Activation> one = {Activation::None};
  EXPECT_THROW(mlp(x, none, none, {}), RuntimeError);
  EXPECT_THROW(mlp(x, weights, none, one), RuntimeError);
  EXPECT_THROW(mlp(x, std::vector<Tensor>{w, w}, std::vector<Tensor>(2),
                   std::vector<Activation>{Activation::None, Activation::None}),
               RuntimeError);
}

TEST(LinearThreads, SameBitsForTheSameNumberOfThreads) {
  const int64_t before = num_threads();
  Stack stack(kFloat32);
  for (const int64_t threads : {1, 2, 5}) {
    set_num_threads(threads);
    const Tensor first = stack.together(), second = stack.together();
    EXPECT_EQ(bytes_of(first), bytes_of(second));
    const std::vector<Tensor> a = stack.gradients(first), b = stack.gradients(second);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(bytes_of(a[i]) == bytes_of(b[i])) << "gradient " << i;
  }
  set_num_threads(before);
}

}  // namespace tercel::test
