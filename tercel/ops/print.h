// Tensors as text.
#pragma once

#include <iosfwd>
#include <string>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Formats a tensor as PyTorch prints it: `tensor([[1.0000, 0.2500]], dtype=float64)`. Four digits after the decimal
 * point; above 1000 elements only the first and last three along each dimension; lines of 80 characters.
 */
TERCEL_API std::string to_string(const Tensor& t);
TERCEL_API std::ostream& operator<<(std::ostream& out, const Tensor& t);
/** "float32", "cpu", "strided", "channels_last", "[2, 3]", "2.5". */
TERCEL_API std::ostream& operator<<(std::ostream& out, ScalarType dtype);
TERCEL_API std::ostream& operator<<(std::ostream& out, Device device);
TERCEL_API std::ostream& operator<<(std::ostream& out, Layout layout);
TERCEL_API std::ostream& operator<<(std::ostream& out, MemoryFormat format);
TERCEL_API std::ostream& operator<<(std::ostream& out, IntSpan sizes);
TERCEL_API std::ostream& operator<<(std::ostream& out, Scalar number);

}  // namespace tercel
