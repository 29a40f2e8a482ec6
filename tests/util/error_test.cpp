#include "tercel/util/error.h"
#include "tests/support/errors.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cstdint>
#include <limits>
#include <vector>

namespace tercel {
namespace {

TEST(Error, MessagesShowValues) {
  const std::vector<int64_t> sizes = {2, 3};
  EXPECT_EQ(str_cat({"a", std::string("b"), 'c', -1, uint64_t{18446744073709551615u}, true, 0.5, IntSpan(sizes)}),
            "abc-118446744073709551615true0.5[2, 3]");
  EXPECT_EQ(str_cat({std::numeric_limits<int64_t>::min(), " ", IntSpan(), " ", 1e-7, " ", 1.0 / 3}),
            "-9223372036854775808 [] 1e-07 0.333333333");
  EXPECT_EQ(str_cat({}), "");
}

TEST(Error, LocaleDoesNotMatter) {
  if (std::setlocale(LC_NUMERIC, "de_DE.UTF-8") == nullptr) GTEST_SKIP() << "this machine has no de_DE.UTF-8";
  EXPECT_EQ(str_cat({0.5}), "0.5");
  std::setlocale(LC_NUMERIC, "C");
}

TEST(Error, CheckThrowsTheTypeAskedFor) {
  const int64_t n = 3;
  EXPECT_NO_THROW(TERCEL_CHECK(n == 3, ValueError, "never"));
  TERCEL_EXPECT_THROW(TERCEL_CHECK(n == 4, IndexError, "select: expected 4, found ", n), IndexError,
                      "select: expected 4, found 3");
  TERCEL_EXPECT_THROW(TERCEL_ASSERT(n == 4), InternalError, "internal error, please report: n == 4 does not hold at ");
}

TEST(Error, TypesHaveTheirExitCodes) {
  const auto code = [](const Error& error) { return static_cast<int>(error.exit_code()); };
  EXPECT_EQ(code(InternalError("")), 1);
  EXPECT_EQ(code(ConfigError("")), 2);
  EXPECT_EQ(code(ValueError("")), 2);
  EXPECT_EQ(code(DataError("")), 3);
  EXPECT_EQ(code(IoError("")), 4);
  EXPECT_EQ(code(OutOfMemoryError("")), 5);
  EXPECT_EQ(code(NumericError("")), 6);
  EXPECT_EQ(DataError("").kind(), "DataError");
}

}  // namespace
}  // namespace tercel
