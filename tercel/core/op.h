// The columns of the table of ops.
//
// Note [The table of ops]
// The public headers of tercel/ops are the table: a declaration is a row. TERCEL_OP_API(columns) is written in place of
// TERCEL_API before a declaration from which more follows; tools/make_ops.py reads the headers before the build and
// writes tercel/core/tensor_methods.h, tercel/ops/out_variants.h and their definitions.
//
//   method     x.name(...), a method of Tensor, whose object is the first tensor among the parameters
//   out        name_out(out, ...), into tensors that the caller has (Note [Out variants] in ops/common/out.h); a
//              parameter `TensorOptions` is left out, as numbers that are made have the dtype of `out`
//   out_apart  the same, for an op with a rule of where `out` may lie (ops/common/out.cpp)
//   out_exact  the same; dtypes must agree, as they must for all of namespace linalg
//   out_dtype  in addition: the parameter `ScalarType` defaults to the dtype of `out`
#pragma once

#include "tercel/util/export.h"

#define TERCEL_OP_API(...) TERCEL_API

// Note [Columns of autocast]
// How a call from Python casts its floating-point operands inside amp.autocast; there is no autocast in C++. All
// overloads of a name have the same column. Out variants, in-place ops and float64 are not affected.
// tools/make_ops.py writes python/src/autocast_ops.inc from it.
//
//   autocast_lower   operands become the 16-bit dtype of the context
//   autocast_f32     16-bit operands become float32
//   autocast_widest  operands become the widest dtype among them, at most float32
//   autocast_first   operands become the dtype of the first
