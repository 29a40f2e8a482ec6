#include "tests/ops/conformance.h"
#include "tests/ops/elementwise/unary_rows.h"

namespace tercel::test {
INSTANTIATE_TEST_SUITE_P(Unary, Conformance, ::testing::ValuesIn(unary_rows()), row_name);
}  // namespace tercel::test
