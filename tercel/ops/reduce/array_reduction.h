// Reductions over several arrays of equal sizes, such as those of the processes of a job.
#pragma once

#include <array>
#include <cstdint>

#include "tercel/core/tensor.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel {

/** How arrays become one, element by element. */
enum class ArrayReduction : uint8_t { Sum, Mean, Product, Min, Max, BitwiseAnd, BitwiseOr, BitwiseXor };

constexpr auto enum_names(ArrayReduction) {
  return std::to_array<EnumName<ArrayReduction>>({{ArrayReduction::Sum, "sum"},
                                                  {ArrayReduction::Mean, "mean"},
                                                  {ArrayReduction::Product, "product"},
                                                  {ArrayReduction::Min, "min"},
                                                  {ArrayReduction::Max, "max"},
                                                  {ArrayReduction::BitwiseAnd, "bitwise_and"},
                                                  {ArrayReduction::BitwiseOr, "bitwise_or"},
                                                  {ArrayReduction::BitwiseXor, "bitwise_xor"}});
}

/**
 * Gives `out` ((parts[0] + parts[1]) + parts[2]) + ..., or what the reduction is instead of +, in this order whatever
 * the number of threads. All tensors have the same size and dtype; `out` may be one of the parts. 16-bit floats are
 * added up in float32 and rounded once; the sum of bools is whether one is true. RuntimeError for a reduction that the
 * dtype does not have: bitwise ones of floats, Min and Max of complex numbers, Mean of integers.
 */
TERCEL_API void reduce_arrays(ArrayReduction how, const Tensor& out, Span<Tensor> parts);

}  // namespace tercel
