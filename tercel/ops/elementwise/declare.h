// Macros that declare all variants of an elementwise op by its name. See Note [The table of ops] in tercel/core/op.h.
//
//   TERCEL_UNARY, TERCEL_BINARY                      new, in place (name_) and out (name_out), and methods
//   TERCEL_UNARY_FUNCTION, TERCEL_BINARY_FUNCTION    the same without methods
//   TERCEL_UNARY_PREDICATE, TERCEL_BINARY_RESULT     new and out; a method
//   TERCEL_BINARY_METHOD                             like TERCEL_BINARY, without the in-place method
#pragma once

#include "tercel/core/op.h"
#include "tercel/core/tensor.h"

#define TERCEL_UNARY_OUT(name) TERCEL_API const Tensor& name##_out(const Tensor& out, const Tensor& x);
#define TERCEL_UNARY_PREDICATE(name)                  \
  TERCEL_OP_API(method) Tensor name(const Tensor& x); \
  TERCEL_UNARY_OUT(name)
#define TERCEL_UNARY(name)     \
  TERCEL_UNARY_PREDICATE(name) \
  TERCEL_OP_API(method) const Tensor& name##_(const Tensor& x);
#define TERCEL_UNARY_FUNCTION(name)        \
  TERCEL_API Tensor name(const Tensor& x); \
  TERCEL_UNARY_OUT(name)                   \
  TERCEL_API const Tensor& name##_(const Tensor& x);

#define TERCEL_BINARY_OUT(name)                                                             \
  TERCEL_API const Tensor& name##_out(const Tensor& out, const Tensor& a, const Tensor& b); \
  TERCEL_API const Tensor& name##_out(const Tensor& out, const Tensor& a, Scalar b);        \
  TERCEL_API const Tensor& name##_out(const Tensor& out, Scalar a, const Tensor& b);
#define TERCEL_BINARY_RESULT(name)                                     \
  TERCEL_OP_API(method) Tensor name(const Tensor& a, const Tensor& b); \
  TERCEL_OP_API(method) Tensor name(const Tensor& a, Scalar b);        \
  TERCEL_API Tensor name(Scalar a, const Tensor& b);                   \
  TERCEL_BINARY_OUT(name)
#define TERCEL_BINARY_INPLACE(name)                                              \
  TERCEL_OP_API(method) const Tensor& name##_(const Tensor& a, const Tensor& b); \
  TERCEL_OP_API(method) const Tensor& name##_(const Tensor& a, Scalar b);
#define TERCEL_BINARY(name)  \
  TERCEL_BINARY_RESULT(name) \
  TERCEL_BINARY_INPLACE(name)
#define TERCEL_BINARY_METHOD(name)                                    \
  TERCEL_BINARY_RESULT(name)                                          \
  TERCEL_API const Tensor& name##_(const Tensor& a, const Tensor& b); \
  TERCEL_API const Tensor& name##_(const Tensor& a, Scalar b);
#define TERCEL_BINARY_FUNCTION(name)                                  \
  TERCEL_API Tensor name(const Tensor& a, const Tensor& b);           \
  TERCEL_API Tensor name(const Tensor& a, Scalar b);                  \
  TERCEL_API Tensor name(Scalar a, const Tensor& b);                  \
  TERCEL_BINARY_OUT(name)                                             \
  TERCEL_API const Tensor& name##_(const Tensor& a, const Tensor& b); \
  TERCEL_API const Tensor& name##_(const Tensor& a, Scalar b);
