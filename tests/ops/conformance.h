// One harness for all ops: a row says what an op is, and the harness holds it to that in every way.
//
// Note [Conformance rows]
// A row names an op, how to call it, what its inputs may be, and a plain reference: a function of contiguous float64
// tensors, written with loops over doubles. conformance.cpp runs every row as
//   Value      against the reference, for every dtype (complex ones against a reference of their own),
//   Gradient   against central differences, in float64 and, by PyTorch's convention, complex128,
//   ChangedOperands an input is changed in place before backward: an error, or the gradient as if it had not been,
//   SecondGradient  the gradient's own gradient, in the same way; or the error, of an op that has none,
//   Tangent    forward mode against backward: <u, J t> = <J^T u, t>,
//   Placement  with each input, and all of them, placed differently in memory (transposed, every second element,
//              reversed, misaligned, padded): bit for bit the same result,
//   Shapes     expanded inputs, and for elementwise ops 0-dimensional and empty ones and single elements: again the
//              same bits, so an element's value does not depend on where it stands,
//   Isas       on every instruction set that the processor has, within the tolerance,
//   Variants   the in-place and the out variant: the same bits as the fresh result,
//   Empty      with sizes of 0: a typed error, or a result and gradients without an unwritten element,
//   Layouts    an operand that is not strided: NotImplementedError, and nothing of it was read,
// and benchmarks/ops_bench times it. Rows live in <family>_rows.h. A family that is a functor list asks for a row of
// every functor (rows_of): an op without one does not compile. Other families write down a vector of rows:
//
//   INSTANTIATE_TEST_SUITE_P(Reduce, Conformance, ::testing::ValuesIn(reduce_rows()), row_name);
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/ops/rows.h"

namespace tercel::test {

inline std::string row_name(const ::testing::TestParamInfo<Row>& info) { return info.param.name; }

/** The suite that rows are run by; its tests are in conformance.cpp. */
class Conformance : public ::testing::TestWithParam<Row> {};

}  // namespace tercel::test
