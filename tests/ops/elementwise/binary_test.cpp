#include "tests/ops/conformance.h"
#include "tests/ops/elementwise/binary_rows.h"

namespace tercel::test {
INSTANTIATE_TEST_SUITE_P(Binary, Conformance, ::testing::ValuesIn(binary_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(Compare, Conformance, ::testing::ValuesIn(compare_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(Ternary, Conformance, ::testing::ValuesIn(ternary_rows()), row_name);
}  // namespace tercel::test
