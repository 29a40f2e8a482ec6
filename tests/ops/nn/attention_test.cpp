#include "tests/ops/nn/attention_rows.h"

#include "tests/ops/conformance.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Attention, Conformance, ::testing::ValuesIn(attention_rows()), row_name);

}  // namespace tercel::test
