// Update rules: what one step does to one element.
//
// A rule is a type. It is instantiated with float, double or a vector of them, for the dense arena, for rows of a
// table, and for CUDA; nothing else knows it. `state` holds kStates values of the element; `h` what is the same for the
// step. Formulas are HugeCTR's, Adam's with epsilon outside the bias correction, as TensorFlow has it. Numbers below
// the least normal one count as 0.
#pragma once

#include <cstdint>

#include "tercel/util/macros.h"

namespace tercel::optim {

/** What a step is computed with; each rule uses some of it. */
template <class V>
struct Step {
  V rate;          ///< learning rate; for Adam with the bias corrections of both moments in it
  V beta1;         ///< Adam; the factor of MomentumSGD
  V beta2;         ///< Adam
  V epsilon;       ///< Adam, AdaGrad
  V inverse_rate;  ///< Ftrl, like the rest
  V beta;
  V lambda1;
  V lambda2;
};

/** w -= rate g */
struct SgdRule {
  static constexpr int kStates = 0;
  template <class V>
  static TERCEL_HD void update(V& w, V*, V g, const Step<V>& h) {
    w = w - h.rate * g;
  }
};

/** m = factor m - rate g; w += m */
struct MomentumSgdRule {
  static constexpr int kStates = 1;
  template <class V>
  static TERCEL_HD void update(V& w, V* state, V g, const Step<V>& h) {
    state[0] = h.beta1 * state[0] - h.rate * g;
    w = w + state[0];
  }
};

/** m, v: moving means of g and g^2; w -= rate m / (sqrt(v) + epsilon) */
struct AdamRule {
  static constexpr int kStates = 2;
  template <class V>
  static TERCEL_HD void update(V& w, V* state, V g, const Step<V>& h) {
    state[0] = h.beta1 * state[0] + (V(1) - h.beta1) * g;
    state[1] = h.beta2 * state[1] + (V(1) - h.beta2) * (g * g);
    w = w - h.rate * state[0] / (sqrt(state[1]) + h.epsilon);
  }
};

/** s += g^2; w -= rate g / (sqrt(s) + epsilon) */
struct AdaGradRule {
  static constexpr int kStates = 1;
  template <class V>
  static TERCEL_HD void update(V& w, V* state, V g, const Step<V>& h) {
    state[0] = state[0] + g * g;
    w = w - h.rate * g / (sqrt(state[0]) + h.epsilon);
  }
};

/** McMahan et al., "Ad click prediction: a view from the trenches" (KDD 2013), with HugeCTR's guard under the root. */
struct FtrlRule {
  static constexpr int kStates = 2;  // n, z
  template <class V>
  static TERCEL_HD void update(V& w, V* state, V g, const Step<V>& h) {
    const V guard = V(1.1920929e-7f);
    const V n = state[0] + g * g;
    const V root = sqrt(n + guard);
    state[1] = state[1] + g + (sqrt(state[0] + guard) - root) * h.inverse_rate * w;
    state[0] = n;
    const V z = state[1];
    const V shrunk = (copysign(h.lambda1, z) - z) / (root * h.inverse_rate + h.lambda2 + h.beta * h.inverse_rate);
    w = where(abs(z) <= h.lambda1, V(0), shrunk);
  }
};

template <class... Rule>
struct RuleList {
  static constexpr int kSize = sizeof...(Rule);
};
/** In the order of enum Rule (optimizer.h). */
using Rules = RuleList<SgdRule, MomentumSgdRule, AdamRule, AdaGradRule, FtrlRule>;

}  // namespace tercel::optim
