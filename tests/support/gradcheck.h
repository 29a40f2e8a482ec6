// Gradients against central differences.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "tercel/autograd/autograd.h"
#include "tests/support/tensors.h"

namespace tercel::test {

/** A gradient's elements in row-major order; rows are added up, a missing one is zero. */
inline std::vector<double> dense_values(const Gradient& g, const Tensor& like) {
  if (!g.defined()) return std::vector<double>(static_cast<size_t>(like.numel()), 0.0);
  if (!g.is_rows()) return values_of(g.values);
  std::vector<double> out(static_cast<size_t>(like.numel()), 0.0);
  const std::vector<double> rows = values_of(g.rows), values = values_of(g.values);
  const size_t width = rows.empty() ? 0 : values.size() / rows.size();
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t c = 0; c < width; ++c) out.at(static_cast<size_t>(rows[r]) * width + c) += values[r * width + c];
  return out;
}

/**
 * Whether backward gives the derivatives of a fixed random weighting of f's elements. Inputs that require a gradient
 * are float64 leaves; each of their elements is moved by +-step.
 */
inline ::testing::AssertionResult gradcheck(const Function& f, const std::vector<Tensor>& inputs,
                                            const GradcheckOptions& options = {}) {
  const Tensor out = f(inputs);
  if (out.dtype() != kFloat64) return ::testing::AssertionFailure() << "the result is " << describe(out);
  if (!out.requires_grad()) return ::testing::AssertionFailure() << "the result does not require a gradient";
  const Tensor weights = random(out.sizes().to_vector(), kFloat64, 0.5, 1.5, 99);
  const std::vector<double> weight = values_of(weights);
  const auto weighted = [&] {
    const NoGradGuard guard;
    const std::vector<double> values = values_of(f(inputs));
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += weight[i] * values[i];
    return sum;
  };

  std::vector<Tensor> wanted;
  for (const Tensor& t : inputs)
    if (t.requires_grad()) wanted.push_back(t);
  const std::vector<Gradient> gradients = grad(Span<Tensor>(&out, 1), wanted, Span<Tensor>(&weights, 1));
  for (size_t w = 0; w < wanted.size(); ++w) {
    const Tensor& x = wanted[w];
    const Gradient& g = gradients[w];
    if (g.defined() && !g.is_rows() && (g.values.sizes() != x.sizes() || g.values.dtype() != x.dtype()))
      return ::testing::AssertionFailure()
             << "gradient " << w << " is " << describe(g.values) << ", the input " << describe(x);
    const std::vector<double> analytic = dense_values(g, x);
    auto* base = static_cast<char*>(x.data_ptr());
    size_t i = 0;
    std::string wrong;
    for_each_offset(x, [&](int64_t offset) {
      auto* element = reinterpret_cast<double*>(base + offset);
      const double before = *element;
      *element = before + options.step;
      const double above = weighted();
      *element = before - options.step;
      const double below = weighted();
      *element = before;
      const double numeric = (above - below) / (2 * options.step);
      const double allowed = options.absolute + options.relative * std::max(std::abs(numeric), std::abs(analytic[i]));
      if (wrong.empty() && !(std::abs(numeric - analytic[i]) <= allowed)) {
        std::ostringstream message;
        message << "gradient " << w << ", element " << i << " at x = " << before << ": backward gives " << analytic[i]
                << ", differences give " << numeric;
        wrong = message.str();
      }
      ++i;
    });
    if (!wrong.empty()) return ::testing::AssertionFailure() << wrong;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tercel::test
