// HugeCTR's defaults, for front ends that take its scripts and configurations.
#pragma once

#include "tercel/recsys/model/config.h"

namespace tercel::recsys {

/**
 * What an option means in HugeCTR where a script says nothing, as far as that is not our default: update type Global,
 * momentum_factor 0, batchsize_eval 2048, no short batches in training (drop_incomplete_batch), rows in the order of
 * the files, none held out. Our own defaults train every row and do not touch rows without a gradient. The seed is
 * ours: HugeCTR's, 0, stands for any.
 */
TERCEL_API ModelConfig hugectr_defaults();

}  // namespace tercel::recsys
