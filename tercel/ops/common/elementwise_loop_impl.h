// Arguments of an elementwise kernel.
#pragma once

#include <cstdint>

#include "tercel/core/scalar_type.h"

namespace tercel {

/** Compute types of elementwise kernels; other dtypes are converted on load and store. */
enum class Compute : uint8_t { I32, I64, F32, F64, U64, C64, C128 };
constexpr int kNumComputes = 7;

/** The compute type of a dtype: int32 for bool and integers of up to 16 bits, int64 for uint32, float32 for 16-bit
 * floats.
 */
constexpr Compute compute_of(ScalarType t) {
  switch (t) {
    case ScalarType::Float64: return Compute::F64;
    case ScalarType::Float32:
    case ScalarType::Float16:
    case ScalarType::BFloat16: return Compute::F32;
    case ScalarType::Int64:
    case ScalarType::UInt32: return Compute::I64;
    case ScalarType::UInt64: return Compute::U64;
    case ScalarType::Complex64: return Compute::C64;
    case ScalarType::Complex128: return Compute::C128;
    default: return Compute::I32;
  }
}

/** The dtype of the compute type, which needs no conversion. */
constexpr ScalarType native_dtype(Compute c) {
  switch (c) {
    case Compute::I32: return ScalarType::Int32;
    case Compute::I64: return ScalarType::Int64;
    case Compute::F32: return ScalarType::Float32;
    case Compute::F64: return ScalarType::Float64;
    case Compute::U64: return ScalarType::UInt64;
    case Compute::C64: return ScalarType::Complex64;
    case Compute::C128: return ScalarType::Complex128;
  }
  return ScalarType::Undefined;
}

constexpr int kMaxOperands = 5;

/**
 * Two nested loops over elements: n[0] is the inner count, n[1] the outer. Operand 0 is written, the others are read.
 * The output may be identical to an input, element by element, but never overlaps one in another way.
 */
struct ElementwiseLoop {
  char* data[kMaxOperands];
  int64_t stride[kMaxOperands][2];  ///< in bytes; 0 repeats an element
  int64_t n[2];
  ScalarType dtype[kMaxOperands];
  Compute compute;
  uint8_t nargs;         ///< operands, including the output
  uint8_t host_scalars;  ///< bit i: operand i is a single number in host memory, on any device
  bool stream;           ///< the output is large and not an input: use non-temporal stores
};

/** Signature of the kernels of an elementwise family; `op` is the index in the family's list. */
using ElementwiseFn = void(int op, const ElementwiseLoop& loop);

}  // namespace tercel
