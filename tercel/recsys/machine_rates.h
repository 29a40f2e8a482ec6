// What this machine and its network do in a second, for estimates of steps.
#pragma once

#include "tercel/data/dataset.h"
#include "tercel/distributed/process_group.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/placement_plan.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

/** The rates of the network: each rank sends to all others at once. All ranks must call it, and have the same. */
TERCEL_API MachineRates measure_network(distributed::ProcessGroup& group);

/** Bytes a second of rows at random places of a table that is larger than the caches. */
TERCEL_API double measure_row_rate();

/** The bytes of the model's dense gradients; the times are 0. */
TERCEL_API StepLoad step_load(Model& model);

/**
 * Sets the times of a step by training some: of batches of so many rows, and of a sixteenth. Stops early, and sets what
 * is known, once go_on() is false. Errors of Session; OutOfMemoryError for a model that this process cannot have.
 */
TERCEL_API void measure_steps(const ModelConfig& config, const data::Dataset& dataset, int64_t rows, StepLoad& load,
                              FunctionRef<bool()> go_on);

/**
 * Seconds of a step, by training some with all ranks, which must call it. Errors of Session, and OutOfMemoryError as
 * above.
 */
TERCEL_API double measure_step_of_ranks(const ModelConfig& config, const data::Dataset& dataset,
                                        distributed::ProcessGroup& group);

}  // namespace tercel::recsys
