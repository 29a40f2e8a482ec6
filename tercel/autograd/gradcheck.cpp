#include "tercel/autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "tercel/autograd/autograd.h"

namespace tercel {

namespace {

/** Calls visit(part) for the elements of a float64 tensor in row-major order, for both parts of complex128 ones. */
template <class Visit>
void for_each_element(const Tensor& t, Visit visit) {
  if (t.numel() == 0) return;
  const int64_t parts = t.is_complex() ? 2 : 1;
  auto* base = static_cast<double*>(t.data_ptr());
  DimVector index(t.sizes().size(), 0);
  for (int64_t n = t.numel(); n-- > 0;) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * t.strides()[d];
    for (int64_t part = 0; part < parts; ++part) visit(base[at * parts + part]);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < t.sizes()[d]) break;
      index[d] = 0;
    }
  }
}

bool is_exact(const Tensor& t) { return t.dtype() == kFloat64 || t.dtype() == kComplex128; }

std::vector<double> elements_of(const Tensor& t) {
  std::vector<double> out;
  for_each_element(t, [&](double x) { out.push_back(x); });
  return out;
}

/** A gradient's elements; equal rows are added, an undefined gradient is zero. */
std::vector<double> elements_of(const Gradient& g, const Tensor& like) {
  if (g.is_coo() || g.is_compressed()) {
    const Tensor dense = empty(like.sizes(), TensorOptions(like.dtype(), like.device()));
    if (dense.numel() > 0) std::memset(dense.data_ptr(), 0, dense.nbytes());
    add_rows(dense, g);
    return elements_of(dense);
  }
  if (g.defined() && !g.is_rows()) {
    TERCEL_CHECK(g.values.sizes() == like.sizes() && g.values.dtype() == like.dtype(), RuntimeError,
                 "gradcheck: ", "the gradient is ", describe(g.values), ", the input ", describe(like));
    return elements_of(g.values);
  }
  std::vector<double> out(static_cast<size_t>(like.numel()) * (like.is_complex() ? 2 : 1), 0.0);
  if (!g.defined() || g.rows.numel() == 0) return out;
  const std::vector<double> values = elements_of(g.values);
  const Tensor rows = dense_copy(g.rows), sources = g.sources.defined() ? dense_copy(g.sources) : Tensor();
  const size_t width = out.size() / static_cast<size_t>(like.size(0));
  for (int64_t i = 0; i < rows.numel(); ++i) {
    const auto row = static_cast<size_t>(rows.data<int64_t>()[i]);
    const auto source = static_cast<size_t>(sources.defined() ? sources.data<int64_t>()[i] : i);
    for (size_t c = 0; c < width; ++c) out[row * width + c] += values[source * width + c];
  }
  return out;
}

Tensor random_like(const Tensor& t, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> real(0.5, 1.5);
  Tensor out = empty(t.sizes(), t.dtype());
  for_each_element(out, [&](double& x) { x = real(generator); });
  return out;
}

/** Weights for a sum of an output's elements. */
struct Combination {
  size_t output;
  Tensor weights;
};

std::vector<Combination> combinations(const std::vector<Tensor>& outputs, bool fast) {
  std::vector<Combination> out;
  for (size_t o = 0; o < outputs.size(); ++o) {
    TERCEL_CHECK(is_exact(outputs[o]), RuntimeError, "gradcheck: expected float64 outputs but output ", o, " is ",
                 describe(outputs[o]));
    if (fast) {
      out.push_back({o, random_like(outputs[o], 99 + o)});
      continue;
    }
    const int64_t parts = outputs[o].numel() * (outputs[o].is_complex() ? 2 : 1);
    for (int64_t i = 0; i < parts; ++i) {
      Tensor one = empty(outputs[o].sizes(), outputs[o].dtype());
      int64_t at = 0;
      for_each_element(one, [&](double& x) { x = at++ == i ? 1 : 0; });
      out.push_back({o, std::move(one)});
    }
  }
  return out;
}

double weighted_sum(const std::vector<Tensor>& outputs, const Combination& c) {
  const std::vector<double> weights = elements_of(c.weights), values = elements_of(outputs[c.output]);
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i)
    if (weights[i] != 0) sum += weights[i] * values[i];
  return sum;
}

/** Differences [input element][combination] of one input. */
std::vector<std::vector<double>> differences(const CheckedFunction& f, const std::vector<Tensor>& inputs,
                                             const Tensor& x, const std::vector<Combination>& wanted, double eps) {
  std::vector<std::vector<double>> out;
  const auto sums = [&] {
    const std::vector<Tensor> outputs = f(inputs);
    std::vector<double> all;
    for (const Combination& c : wanted) all.push_back(weighted_sum(outputs, c));
    return all;
  };
  for_each_element(x, [&](double& element) {
    const double before = element;
    element = before + eps;
    std::vector<double> above = sums();
    element = before - eps;
    const std::vector<double> below = sums();
    element = before;
    for (size_t i = 0; i < above.size(); ++i) above[i] = (above[i] - below[i]) / (2 * eps);
    out.push_back(std::move(above));
  });
  return out;
}

bool check(const CheckedFunction& f, const std::vector<Tensor>& inputs, bool may_be_constant,
           const GradcheckOptions& options) {
  std::vector<Tensor> wanted;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    TERCEL_CHECK(is_exact(inputs[i]), RuntimeError, "gradcheck: expected float64 but input ", i, " is ",
                 describe(inputs[i]));
    wanted.push_back(inputs[i]);
    numbers.push_back(i);
  }
  TERCEL_CHECK(!wanted.empty(), RuntimeError,
               "gradcheck expects at least one input tensor to require gradient, but none of the them have "
               "requires_grad=True.");
  const std::vector<Tensor> outputs = f(inputs);
  TERCEL_CHECK(
      may_be_constant || std::any_of(outputs.begin(), outputs.end(), [](const Tensor& t) { return t.requires_grad(); }),
      RuntimeError, "gradcheck: no output requires a gradient");
  const std::vector<Combination> looked_at = combinations(outputs, options.fast_mode);

  // An output without history has zero gradients.
  std::vector<std::vector<std::vector<double>>> analytic;  // [combination][input]
  for (const Combination& c : looked_at) {
    std::vector<Gradient> gradients(wanted.size());
    if (outputs[c.output].requires_grad())
      gradients = grad(Span<Tensor>(&outputs[c.output], 1), wanted, Span<Tensor>(&c.weights, 1),
                       /*retain_graph=*/true, /*create_graph=*/false, /*allow_unused=*/true);
    std::vector<std::vector<double>> of_inputs;
    for (size_t w = 0; w < wanted.size(); ++w) of_inputs.push_back(elements_of(gradients[w], wanted[w]));
    analytic.push_back(std::move(of_inputs));
  }
  for (size_t w = 0; w < wanted.size(); ++w) {
    const auto numeric = differences(f, inputs, wanted[w], looked_at, options.eps);
    for (size_t e = 0; e < numeric.size(); ++e)
      for (size_t c = 0; c < looked_at.size(); ++c) {
        const double n = numeric[e][c], a = analytic[c][w][e];
        const double allowed = options.atol + options.rtol * std::max(std::abs(n), std::abs(a));
        TERCEL_CHECK(std::abs(n - a) <= allowed, RuntimeError, "Jacobian mismatch for output ", looked_at[c].output,
                     " with respect to input ", numbers[w], ", element ", e, ": numerical ", n, ", analytical ", a);
      }
  }
  return true;
}

}  // namespace

bool gradcheck(const CheckedFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  const EnableGradGuard enable;
  return check(f, inputs, /*may_be_constant=*/false, options);
}

bool gradgradcheck(const CheckedFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& grad_outputs,
                   const GradcheckOptions& options) {
  const EnableGradGuard enable;
  const size_t count = inputs.size();
  std::vector<Tensor> all = inputs;
  uint64_t seed = 7;
  const std::vector<Tensor> outputs = f(inputs);
  for (size_t o = 0; o < outputs.size(); ++o) {
    Tensor g = grad_outputs.empty() ? random_like(outputs[o], seed++) : grad_outputs[o];
    if (grad_outputs.empty() && outputs[o].requires_grad()) g.requires_grad_();
    all.push_back(std::move(g));
  }
  const auto gradients = [&](const std::vector<Tensor>& given) {
    const std::vector<Tensor> own(given.begin(), given.begin() + static_cast<ptrdiff_t>(count));
    std::vector<Tensor> results, seeds, wanted;
    const std::vector<Tensor> values = f(own);
    for (size_t o = 0; o < values.size(); ++o) {
      if (!values[o].requires_grad()) continue;
      results.push_back(values[o]);
      seeds.push_back(given[count + o]);
    }
    for (const Tensor& t : own)
      if (t.requires_grad()) wanted.push_back(t);
    std::vector<Tensor> out;
    for (const Gradient& g : grad(results, wanted, seeds, /*retain_graph=*/true, /*create_graph=*/true,
                                  /*allow_unused=*/true, /*materialize_grads=*/true)) {
      TERCEL_CHECK(!g.is_rows(), RuntimeError, "gradgradcheck: a gradient is of rows");
      out.push_back(g.values);
    }
    return out;
  };
  return check(gradients, all, /*may_be_constant=*/true, options);
}

}  // namespace tercel
