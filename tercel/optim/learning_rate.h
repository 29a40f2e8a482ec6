// Learning rate schedule of the trainer.
#pragma once

#include <cstdint>

#include "tercel/util/export.h"
#include "tercel/util/options.h"

namespace tercel::optim {

/** HugeCTR's schedule: linear warm-up, constant, polynomial decay, constant. Steps count from 1, including the warm-up.
 */
struct LearningRateOptions {
  double lr = 0.001;
  int64_t warmup_steps = 1;
  int64_t decay_start = 0;
  int64_t decay_steps = 1;
  double decay_power = 2.0;
  double end_lr = 0.0;

  static constexpr auto fields() {
    return option_list(
        option_field<&LearningRateOptions::lr>("lr", "learning rate", at_least(0)),
        option_field<&LearningRateOptions::warmup_steps>("warmup_steps", "steps over which the rate rises to lr",
                                                         at_least(0)),
        option_field<&LearningRateOptions::decay_start>("decay_start", "step after which it decays; 0: never",
                                                        at_least(0)),
        option_field<&LearningRateOptions::decay_steps>("decay_steps", "steps over which it decays", at_least(1)),
        option_field<&LearningRateOptions::decay_power>("decay_power", "exponent of the decay", at_least(1)),
        option_field<&LearningRateOptions::end_lr>("end_lr", "final rate", at_least(0)));
  }
};

/** The learning rate of a step, counted from 1. */
TERCEL_API double learning_rate(const LearningRateOptions& options, int64_t step);

}  // namespace tercel::optim
