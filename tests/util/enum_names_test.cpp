#include "tercel/util/enum_names.h"
#include "tests/support/errors.h"

#include <gtest/gtest.h>

namespace tercel {

namespace elsewhere {
enum class Color { Red = 5, Green = -1 };
constexpr auto enum_names(Color) {
  return std::to_array<EnumName<Color>>({{Color::Red, "red"}, {Color::Green, "green"}, {Color::Green, "verde"}});
}
}  // namespace elsewhere

namespace {

using elsewhere::Color;

TEST(EnumNames, ToTextAndBack) {
  static_assert(to_string(Color::Red) == "red");
  EXPECT_EQ(to_string(Color::Green), "green") << "the first name is written";
  EXPECT_EQ(to_string(static_cast<Color>(99)), "");
  Color color = Color::Red;
  EXPECT_TRUE(parse_enum("verde", color));
  EXPECT_EQ(color, Color::Green);
  EXPECT_FALSE(parse_enum("Red", color)) << "names must match exactly";
  EXPECT_EQ(color, Color::Green);
  EXPECT_EQ(parse_enum_or_throw<Color>("color", "red"), Color::Red);
  TERCEL_EXPECT_THROW(parse_enum_or_throw<Color>("color", "gren"), ConfigError,
                      "unknown color 'gren'; did you mean 'green'? known: red, green, verde");
}

}  // namespace
}  // namespace tercel
