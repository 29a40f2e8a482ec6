#include "tercel/optim/learning_rate.h"

#include <algorithm>
#include <cmath>

namespace tercel::optim {

double learning_rate(const LearningRateOptions& o, int64_t step) {
  const auto as_double = [](int64_t n) { return static_cast<double>(n); };
  if (step <= o.warmup_steps) return o.lr * as_double(step) / as_double(o.warmup_steps);
  if (o.decay_start == 0 || step <= o.decay_start) return o.lr;
  const int64_t left = o.decay_steps - (step - o.decay_start);
  if (left < 0) return o.end_lr;
  return std::max(o.end_lr, o.lr * std::pow(as_double(left) / as_double(o.decay_steps), o.decay_power));
}

}  // namespace tercel::optim
