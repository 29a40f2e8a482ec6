// Batches where a model is.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/data/batch.h"

namespace tercel::recsys {

/** Whether all tensors of the batch are on place.device, and the floating ones of place.dtype. */
TERCEL_API bool is_at(const data::Batch& batch, const TensorOptions& place);
/**
 * The batch with all tensors on place.device and the floating ones (labels, dense values, weights of keys) of
 * place.dtype; those that are there already are shared.
 */
TERCEL_API data::Batch batch_at(const data::Batch& batch, const TensorOptions& place);

}  // namespace tercel::recsys
