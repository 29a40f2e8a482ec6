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
        a(w.size(),
          options.type == Rule::AdaGrad || options.type == Rule::RowWiseAdaGrad ? options.initial_accu_value : 0),
        b(w.size(), 0),
        options_(options) {}

  /**
   * One step on element i. With `uses` false, one on an element of a row that the batch does not use: without
   * regularisation and weight decay.
   */
  void step(size_t i, double g, double rate, double t, bool uses = true) {
    const OptimizerOptions& o = options_;
    rate *= o.lr_scale;
    if (uses) g = regularized(i, g);
    if (uses && o.type == Rule::AdamW) w[i] *= 1 - rate * o.weight_decay;
    switch (o.type) {
      case Rule::Sgd: w[i] -= rate * g; break;
      case Rule::MomentumSgd:
        a[i] = o.momentum_factor * a[i] - rate * g;
        w[i] += a[i];
        break;
      case Rule::Nesterov: {  // as HugeCTR writes it
        const double before = a[i];
        a[i] = o.momentum_factor * before - rate * g;
        w[i] += -o.momentum_factor * before + (1 + o.momentum_factor) * a[i];
        break;
      }
      case Rule::RmsProp:
        a[i] = o.alpha * a[i] + (1 - o.alpha) * g * g;
        w[i] -= rate * g / (std::sqrt(a[i]) + o.epsilon);
        break;
      case Rule::AdamW:
      case Rule::Adam: {
        a[i] = o.beta1 * a[i] + (1 - o.beta1) * g;
        b[i] = o.beta2 * b[i] + (1 - o.beta2) * g * g;
        const double corrected = rate * std::sqrt(1 - std::pow(o.beta2, t)) / (1 - std::pow(o.beta1, t));
        w[i] -= corrected * a[i] / (std::sqrt(b[i]) + o.epsilon);
        break;
      }
      case Rule::RowWiseAdaGrad:  // of dense weights
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

  /** One step of row-wise AdaGrad on row r of g.size() elements; a[r] is its accumulator. */
  void step_of_row(size_t r, const std::vector<double>& g, double rate) {
    const size_t dim = g.size();
    double mean = 0;
    std::vector<double> all(dim);
    for (size_t j = 0; j < dim; ++j) {
      all[j] = regularized(r * dim + j, g[j]);
      mean += all[j] * all[j] / static_cast<double>(dim);
    }
    a[r] += mean;
    for (size_t j = 0; j < dim; ++j)
      w[r * dim + j] -= rate * options_.lr_scale * all[j] / (std::sqrt(a[r]) + options_.epsilon);
  }

  std::vector<double> w, a, b;  ///< weights, first and second state

 private:
  double regularized(size_t i, double g) const {
    return g + options_.l2 * w[i] + options_.l1 * (w[i] > 0 ? 1 : w[i] < 0 ? -1 : 0);
  }

  OptimizerOptions options_;
};

}  // namespace tercel::optim
