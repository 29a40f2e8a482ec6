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
//
// Note [Derived entries]
// An op with one of these columns is bound to Python without a handwritten entry (tools/make_op_entries.py). Names,
// types and defaults of the Python parameters are those of the declaration, so parameters have PyTorch's names; only a
// first tensor `x` or `a` is called input, and `b` after an `a` other. Ops with an out variant have `out=None`.
// Overloads with a tensor come before those with a number in its place, because a 0-dimensional tensor is also a
// number.
//
//   python           a function of tercel, of tercel.linalg or of tercel.fft, by namespace; with `method` and a tensor
//                    as first parameter also a method of Tensor
//   python_function  only the function
//   python_method    a method of Tensor
//   python_nn        a function of tercel.nn.functional
//   python_hidden    tercel._C._name, for the Python files of the package
//   keyword = name   this parameter and those after it are keyword-only
//   no_python_out    no `out` in Python, as in PyTorch's function
//   cheap            computes nothing (views, queries): a call keeps the GIL
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
//
// Note [Layouts]
// Operands are strided: an op throws NotImplementedError "op: not implemented for layout ..." for tensors of another
// layout (layout.h) before it reads anything. Front ends call check_strided(), or TensorIterator, which does; calls
// from Python check all operands before the op runs (call.h).
//
//   layout_any   operands may have any layout: the op looks only at sizes, dtype and device, or checks layouts itself
//   layout_sparse   operands may be sparse, of the layouts that the op has code for (Note [Sparse operands])
