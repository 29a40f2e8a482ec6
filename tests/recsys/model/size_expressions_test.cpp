// Sizes in a graph that are written as expressions of the dataset's.
#include "tercel/recsys/model/size_expressions_impl.h"

#include <gtest/gtest.h>

#include "tercel/recsys/model/model.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

data::Schema schema() {
  data::Schema schema;
  schema.dense_dim = 3;
  schema.label_dim = 2;
  schema.slots = {{"user", 10, 0, 1}, {"last items", 20, 0, 7}};
  schema.set_consecutive_keys();
  return schema;
}

Json value_of(const std::string& text) {
  Json layers = Json::array({Json::object({{"top", "x"}, {"option", Json::array({text, "other"})}})});
  layers = with_sizes(layers, schema());
  EXPECT_EQ(layers[0]["option"][1], Json("other"));
  EXPECT_EQ(layers[0]["top"], Json("x"));
  return layers[0]["option"][0];
}

void refuses(const std::string& text, const char* message) {
  TERCEL_EXPECT_THROW(value_of(text), ConfigError, message);
}

TEST(SizeExpressions, HaveTheSizesOfTheData) {
  const std::pair<const char*, int64_t> cases[] = {
      {"=5", 5},       {"=slots", 2},      {"= dense", 3},           {"=labels", 2},
      {"=hotness", 7}, {"=slot(user)", 0}, {"=slot(last items)", 1}, {"=4 * (slots + dense) + 1", 21},
      {"=2+3*4", 14},  {"=((2+3))*4 ", 20}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(value_of(text), Json(expected)) << text;
  EXPECT_EQ(value_of("slots"), Json("slots")) << "only texts with '=' are expressions";
}

TEST(SizeExpressions, NameWhatIsWrong) {
  refuses("=", "layers.x.option: in '=': expected a number or a name");
  refuses("=2 +", "expected a number or a name");
  refuses("=(2", "expected ')'");
  refuses("=2 3", "unexpected '3'");
  refuses("=2-1", "unexpected '-'");
  refuses("=2x", "expected a number but found '2x'");
  refuses("=slits", "unknown name 'slits'; did you mean 'slots'?");
  refuses("=slot(usr)", "the model reads a slot 'usr', which the dataset does not have; did you mean 'user'?");
  refuses("=slot(item)", "; another one is written as =slot(NAME)");
  refuses("=slot", "expected '('");
  refuses("=slot(user", "expected ')'");
  refuses("=99999999999999999999", "overflows");
  refuses("=9000000000000000000*2", "overflows");
  refuses("=9000000000000000000+9000000000000000000", "overflows");
  refuses("=" + std::string(1000, '('), "too many parentheses");
}

}  // namespace
}  // namespace tercel::recsys
