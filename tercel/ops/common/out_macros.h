// How a variant with an `out` is made of the op that gives a fresh result: a line for each.
//
// TERCEL_DEFINE_OUT(op, (parameters), (arguments)) defines op_out(out, parameters), which puts op(arguments) into
// `out`; arguments may speak of `out`. The others are for ops of several results. Functions, not templates that deduce
// their parameters: braces, numbers and defaults are taken as op() takes them.
#pragma once

#include "tercel/ops/common/out.h"

#define TERCEL_UNWRAP(...) __VA_ARGS__
#define TERCEL_DEFINE_OUT(name, parameters, arguments)                           \
  inline const Tensor& name##_out(const Tensor& out, TERCEL_UNWRAP parameters) { \
    return put_out(#name, out, tercel::name arguments);                          \
  }
#define TERCEL_DEFINE_VALUES_OUT(name, parameters, arguments)                                                 \
  inline ValuesAndIndices name##_out(const Tensor& values, const Tensor& indices, TERCEL_UNWRAP parameters) { \
    return put_out(#name, values, indices, tercel::name arguments);                                           \
  }
#define TERCEL_DEFINE_OUT2(name, Result, first, second, parameters, arguments)                    \
  inline Result name##_out(const Tensor& first, const Tensor& second, TERCEL_UNWRAP parameters) { \
    const auto [result0, result1] = tercel::name arguments;                                       \
    put_out(#name, {first, second}, {result0, result1});                                          \
    return {first, second};                                                                       \
  }
// The same for ops that have a rule of where `out` may lie (out.cpp): tools/check_op_rows.py compares. Of their own, as
// looking at the arguments of every op would take a tenth of the time that the headers take.
#define TERCEL_DEFINE_APART_OUT(name, parameters, arguments)                     \
  inline const Tensor& name##_out(const Tensor& out, TERCEL_UNWRAP parameters) { \
    check_out_apart(#name, {out}, {TERCEL_UNWRAP arguments});                    \
    return put_out(#name, out, tercel::name arguments);                          \
  }
#define TERCEL_DEFINE_APART_VALUES_OUT(name, parameters, arguments)                                           \
  inline ValuesAndIndices name##_out(const Tensor& values, const Tensor& indices, TERCEL_UNWRAP parameters) { \
    check_out_apart(#name, {values, indices}, {TERCEL_UNWRAP arguments});                                     \
    return put_out(#name, values, indices, tercel::name arguments);                                           \
  }
#define TERCEL_DEFINE_APART_OUT2(name, Result, first, second, parameters, arguments)              \
  inline Result name##_out(const Tensor& first, const Tensor& second, TERCEL_UNWRAP parameters) { \
    check_out_apart(#name, {first, second}, {TERCEL_UNWRAP arguments});                           \
    const auto [result0, result1] = tercel::name arguments;                                       \
    put_out(#name, {first, second}, {result0, result1});                                          \
    return {first, second};                                                                       \
  }
#define TERCEL_DEFINE_LIST_OUT(name, parameters, arguments)                           \
  inline std::vector<Tensor> name##_out(Span<Tensor> out, TERCEL_UNWRAP parameters) { \
    return put_out(#name, out, Span<Tensor>(tercel::name arguments));                 \
  }
