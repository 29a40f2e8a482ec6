// Update rules: one optimizer step on one element.
//
// A rule is a type. It is instantiated with vectors of float and double on the CPU, and with plain numbers elsewhere;
// no other code contains formulas, except Python's recorded steps (python/tercel/optim/optimizers.py). Rules are
// stateless: `state` holds kStates values of the element, `h` the numbers common to a step. A state that is not finite
// makes the new weight not finite too, except for the first kHidden states. HugeCTR's and PyTorch's optimizers share a
// rule where they differ only in these numbers:
//
//   Adam      HugeCTR adds epsilon to sqrt(v), PyTorch to sqrt(v / (1 - beta2^t)): the latter is the same with
//             epsilon sqrt(1 - beta2^t), once the rate has both corrections in it
//   Momentum, Nesterov
//             HugeCTR's state is -rate times PyTorch's: rest1 is -rate and rate -1, where PyTorch's step has
//             1 - dampening and lr
//   AdaGrad   PyTorch divides the rate by 1 + (t - 1) lr_decay
//
// AdamW is Adam with `shrink`, L1 and L2 regularisation any rule with `l1` and `decay`, clipping one with `limit` and
// `scale`, and maximisation one with `scale` -1; see prepare(). Subnormal numbers count as 0. Two rules are elsewhere,
// because they need more than an element: row-wise AdaGrad (row_wise.h), and Adam's steps on rows without a gradient
// (lazy_adam.h).
#pragma once

#include <cstdint>
#include <limits>

#include "tercel/util/macros.h"

namespace tercel::optim {

/** The numbers of a step; each rule uses some of them. */
template <class V>
struct Step {
  V rate = V(0);          ///< learning rate; for Adam including the bias corrections of both moments
  V beta1 = V(0);         ///< decay of the first moment or momentum
  V rest1 = V(0);         ///< factor of the gradient in it: 1 - beta1, 1 - dampening
  V beta2 = V(0);         ///< decay of the second moment
  V rest2 = V(0);         ///< 1 - beta2
  V epsilon = V(0);       ///< added to the square root
  V inverse_rate = V(0);  ///< Ftrl, like the next three
  V beta = V(0);
  V lambda1 = V(0);
  V lambda2 = V(0);
  V limit = V(std::numeric_limits<float>::infinity());  ///< largest magnitude of the gradient; more is cut off
  V scale = V(1);   ///< factor of the gradient after that: of clipping by the norm, or -1 for maximisation
  V decay = V(0);   ///< L2 regularisation: factor of the weight that is added to the gradient
  V l1 = V(0);      ///< L1 regularisation: added to the gradient with the weight's sign, unless the weight is 0
  V shrink = V(1);  ///< AdamW: factor of the weight
};

/** Whether a step begins with prepare(). */
inline bool is_prepared(const Step<double>& h) {
  return h.limit < std::numeric_limits<double>::infinity() || h.scale != 1 || h.decay != 0 || h.l1 != 0 ||
         h.shrink != 1;
}

/** Applied before any rule if one of its numbers differs from its default. */
template <class V>
inline TERCEL_HD void prepare(V& w, V& g, const Step<V>& h) {
  g = where(g > h.limit, h.limit, where(g < -h.limit, -h.limit, g));  // NaN is kept
  g = h.scale * g;
  g = where(h.decay == V(0), g, g + h.decay * w);  // 0 * w is NaN where the weight is infinite
  g = g + where(w == V(0), V(0), copysign(h.l1, w));
  w = h.shrink * w;
}

/** w -= rate g */
struct SgdRule {
  static constexpr int kStates = 0;
  static constexpr int kHidden = 0;
  template <class V>
  static TERCEL_HD void update(V& w, V*, V g, const Step<V>& h) {
    w = w - h.rate * g;
  }
};

/** m = beta1 m + rest1 g; w -= rate m */
struct MomentumRule {
  static constexpr int kStates = 1;
  static constexpr int kHidden = 0;
  template <class V>
  static TERCEL_HD void update(V& w, V* state, V g, const Step<V>& h) {
    state[0] = h.beta1 * state[0] + h.rest1 * g;
    w = w - h.rate * state[0];
  }
};

/** m = beta1 m + rest1 g; w -= rate (rest1 g + beta1 m) */
struct NesterovRule {
  static constexpr int kStates = 1;
  static constexpr int kHidden = 0;
  template <class V>
  static TERCEL_HD void update(V& w, V* state, V g, const Step<V>& h) {
    const V part = h.rest1 * g;
    state[0] = h.beta1 * state[0] + part;
    w = w - h.rate * (part + h.beta1 * state[0]);
  }
};

/** m, v: moving averages of g and g^2; w -= rate m / (sqrt(v) + epsilon), with amsgrad the largest v so far. */
template <bool kAmsgrad>
struct AdamRule {
  static constexpr int kStates = kAmsgrad ? 3 : 2;
  static constexpr int kHidden = kStates;
  template <class V>
  static TERCEL_HD void update(V& w, V* state, V g, const Step<V>& h) {
    state[0] = h.beta1 * state[0] + h.rest1 * g;
    state[1] = h.beta2 * state[1] + h.rest2 * (g * g);
    V v = state[1];
    if constexpr (kAmsgrad) v = state[2] = where((state[2] < v) | (v != v), v, state[2]);  // NaN is kept
    w = w - h.rate * state[0] / (sqrt(v) + h.epsilon);
  }
};

/** s += g^2; w -= rate g / (sqrt(s) + epsilon) */
struct AdaGradRule {
  static constexpr int kStates = 1;
  static constexpr int kHidden = kStates;
  template <class V>
  static TERCEL_HD void update(V& w, V* state, V g, const Step<V>& h) {
    state[0] = state[0] + g * g;
    w = w - h.rate * g / (sqrt(state[0]) + h.epsilon);
  }
};

/**
 * s: moving average of g^2; u = g / (sqrt(s) + epsilon); w -= rate u. Centred: s - m^2 instead of s, with m the moving
 * average of g. Momentum: b = beta1 b + u; w -= rate b. The states are s, m, b, as far as they are used.
 */
template <bool kCentered, bool kMomentum>
struct RmsPropRule {
  static constexpr int kStates = 1 + (kCentered ? 1 : 0) + (kMomentum ? 1 : 0);
  static constexpr int kHidden = kStates;
  template <class V>
  static TERCEL_HD void update(V& w, V* state, V g, const Step<V>& h) {
    state[0] = h.beta2 * state[0] + h.rest2 * (g * g);
    V square = state[0];
    if constexpr (kCentered) {
      state[1] = state[1] + h.rest2 * (g - state[1]);
      square = square - state[1] * state[1];
    }
    const V root = sqrt(square) + h.epsilon;
    if constexpr (kMomentum) {
      V& buffer = state[kStates - 1];
      buffer = h.beta1 * buffer + g / root;
      w = w - h.rate * buffer;
    } else {
      w = w - h.rate * g / root;
    }
  }
};

/** McMahan et al., "Ad click prediction: a view from the trenches" (KDD 2013), with HugeCTR's guard under the root. */
struct FtrlRule {
  static constexpr int kStates = 2;  // n, z
  static constexpr int kHidden = kStates;
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
using Rules = RuleList<SgdRule, MomentumRule, NesterovRule, AdamRule<false>, AdamRule<true>, AdaGradRule,
                       RmsPropRule<false, false>, RmsPropRule<true, false>, RmsPropRule<false, true>,
                       RmsPropRule<true, true>, FtrlRule>;

/** Indices in Rules. */
enum class RuleId : uint8_t {
  Sgd,
  Momentum,
  Nesterov,
  Adam,
  AdamAmsgrad,
  AdaGrad,
  RmsProp,
  RmsPropCentered,
  RmsPropMomentum,
  RmsPropCenteredMomentum,
  Ftrl
};
constexpr int kMostStates = 3;

}  // namespace tercel::optim
