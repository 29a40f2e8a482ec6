// All ops.
#pragma once

// IWYU pragma: begin_exports
#include "tercel/ops/batch_norm.h"
#include "tercel/ops/binary.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/dropout.h"
#include "tercel/ops/embedding_bag.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/indexing.h"
#include "tercel/ops/interaction.h"
#include "tercel/ops/join.h"
#include "tercel/ops/linear.h"
#include "tercel/ops/loss.h"
#include "tercel/ops/matmul.h"
#include "tercel/ops/print.h"
#include "tercel/ops/random.h"
#include "tercel/ops/reduce.h"
#include "tercel/ops/row_gradient.h"
#include "tercel/ops/softmax.h"
#include "tercel/ops/sort.h"
#include "tercel/ops/sum_to_size.h"
#include "tercel/ops/ternary.h"
#include "tercel/ops/unary.h"
#include "tercel/ops/views.h"
// IWYU pragma: end_exports
