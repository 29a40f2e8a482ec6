// All modules, initial values and losses.
#pragma once

// IWYU pragma: begin_exports
#include "tercel/nn/adaptive_softmax.h"
#include "tercel/nn/conv_layers.h"
#include "tercel/nn/function_layers.h"
#include "tercel/nn/init_functions.h"
#include "tercel/nn/layers.h"
#include "tercel/nn/losses.h"
#include "tercel/nn/module.h"
#include "tercel/nn/recurrent.h"
#include "tercel/nn/transformer.h"
// IWYU pragma: end_exports
