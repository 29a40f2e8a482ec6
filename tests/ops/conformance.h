// One test harness for all ops: a row describes an op, and the harness checks everything that follows from it.
//
// Note [Conformance rows]
// A row defines an op's name, its call, its inputs, and a plain reference: a function of contiguous float64 tensors,
// written with loops over doubles. conformance.cpp runs every row as
//   Value      against the reference, for every dtype (complex ones against a complex reference),
//   Gradient   against central differences, in float64 and, by PyTorch's convention, complex128,
//   ChangedOperands an input is changed in place before backward: an error, or the gradient as if it had not been,
//   SecondGradient  the gradient's gradient, in the same way; or the error of an op that has none,
//   Tangent    forward mode against backward: <u, J t> = <J^T u, t>,
//   Placement  with each input, and all of them, placed differently in memory (transposed, every second element,
//              reversed, misaligned, padded): bit for bit the same result,
//   Shapes     expanded inputs, and for elementwise ops 0-dimensional and empty ones and single elements: again the
//              same bits, so an element's value does not depend on its position,
//   Isas       on every instruction set that the processor has, within the tolerance,
//   Variants   the in-place and the out variant: the same bits as the fresh result,
//   Empty      with sizes of 0: a typed error, or a result and gradients without an unwritten element,
//   Layouts    an operand that is not strided: NotImplementedError, and nothing of it was read,
//   SparseOperands, CompressedOperands  COO or CSR operands: the same values, or an error and nothing changed,
// and benchmarks/ops_bench times it. Rows are in <family>_rows.h. A family that is a functor list requires a row of
// every functor (rows_of): an op without one does not compile. Other families define a vector of rows:
//
//   INSTANTIATE_TEST_SUITE_P(Reduce, Conformance, ::testing::ValuesIn(reduce_rows()), row_name);
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/ops/rows.h"

namespace tercel::test {

inline std::string row_name(const ::testing::TestParamInfo<Row>& info) { return info.param.name; }

/** The suite that runs rows; its tests are in conformance.cpp. */
class Conformance : public ::testing::TestWithParam<Row> {};

}  // namespace tercel::test
