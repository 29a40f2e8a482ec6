// Tensors, their ops and gradients. The trainer's headers are included one by one.
#pragma once

// IWYU pragma: begin_exports
#include "tercel/autograd/anomaly.h"
#include "tercel/autograd/autograd.h"
#include "tercel/autograd/checkpoint.h"
#include "tercel/autograd/forward_mode.h"
#include "tercel/autograd/function.h"
#include "tercel/autograd/gradcheck.h"
#include "tercel/core/allocator.h"
#include "tercel/core/tensor.h"
#include "tercel/ops/ops.h"
#include "tercel/util/error.h"
#include "tercel/util/parallel.h"
#include "tercel/util/version.h"
#include "tercel/util/warning.h"
// IWYU pragma: end_exports
