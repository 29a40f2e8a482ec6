// The update rules in plain double arithmetic, from their formulas.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "tercel/optim/optimizer.h"

namespace tercel::optim {

/** A parameter of n elements with its state. */
class RuleReference {
 public:
  RuleReference(const OptimizerOptions& options, std::vector<double> weights)
      : w(std::move(weights)),
        a(w.size(), options.type == Rule::AdaGrad ? options.initial_accu_value : 0),
        b(w.size(), 0),
        options_(options) {}

  /** One step on element i. */
  void step(size_t i, double g, double rate, double t) {
    const OptimizerOptions& o = options_;
    switch (o.type) {
      case Rule::Sgd: w[i] -= rate * g; break;
      case Rule::MomentumSgd:
        a[i] = o.momentum_factor * a[i] - rate * g;
        w[i] += a[i];
        break;
      case Rule::Adam: {
        a[i] = o.beta1 * a[i] + (1 - o.beta1) * g;
        b[i] = o.beta2 * b[i] + (1 - o.beta2) * g * g;
        const double corrected = rate * std::sqrt(1 - std::pow(o.beta2, t)) / (1 - std::pow(o.beta1, t));
        w[i] -= corrected * a[i] / (std::sqrt(b[i]) + o.epsilon);
        break;
      }
      case Rule::AdaGrad:
        a[i] += g * g;
        w[i] -= rate * g / (std::sqrt(a[i]) + o.epsilon);
        break;
      case Rule::Ftrl: {
        const double guard = std::ldexp(1.0, -23);
        const double before = a[i];
        a[i] += g * g;
        b[i] += g + (std::sqrt(before + guard) - std::sqrt(a[i] + guard)) * w[i] / rate;
        const double z = b[i], sign = z < 0 ? -1 : 1;
        w[i] = std::abs(z) <= o.lambda1
                   ? 0
                   : (sign * o.lambda1 - z) / (std::sqrt(a[i] + guard) / rate + o.lambda2 + o.beta / rate);
        break;
      }
    }
  }

  std::vector<double> w, a, b;  ///< weights, first and second state

 private:
  OptimizerOptions options_;
};

}  // namespace tercel::optim
