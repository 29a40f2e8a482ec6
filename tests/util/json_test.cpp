#include <gtest/gtest.h>

#include <clocale>
#include <string>

#include "tercel/util/error.h"
#include "tercel/util/json_impl.h"
#include "tests/support/errors.h"
#include "tests/util/temporary_folder.h"

namespace tercel {
namespace {

Json parse(const std::string& text) { return parse_json(text, "config.json", JsonErrors::Config); }

TEST(Json, BuildsWhatTheTextSays) {
  const std::string text = R"({"b":[1,-2,2.5,true,null,"x\u00e9",{}],"a":{"z":[],"c":18446744073709551615}})";
  const Json value = parse(text);
  EXPECT_EQ(value.dump(), "{\"b\":[1,-2,2.5,true,null,\"x\xc3\xa9\",{}],\"a\":{\"z\":[],\"c\":18446744073709551615}}")
      << "keys keep their order";
  EXPECT_EQ(value["a"]["c"].get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(parse("  7 ").get<int>(), 7);
  EXPECT_EQ(parse("\xef\xbb\xbf{}"), Json::object()) << "byte order mark";
}

TEST(Json, ErrorsSayWhere) {
  TERCEL_EXPECT_THROW(parse("{\n  \"a\": 1,\n  \"b\": }\n"), ConfigError,
                      "config.json: line 3, column 8: syntax error");
  TERCEL_EXPECT_THROW(parse(""), ConfigError, "config.json: line 1, column 0: syntax error");
  TERCEL_EXPECT_THROW(parse("{\"a\": 1} x"), ConfigError, "line 1, column 10: syntax error");
  TERCEL_EXPECT_THROW(parse("[1,]"), ConfigError, "line 1, column 4: syntax error");
  TERCEL_EXPECT_THROW(parse("[1"), ConfigError, "unexpected end of input");
  TERCEL_EXPECT_THROW(parse("\"\xff\""), ConfigError, "ill-formed UTF-8");
  TERCEL_EXPECT_THROW(parse("[1e999]"), ConfigError, "config.json: line 1, column 7: number overflow");
  TERCEL_EXPECT_THROW(parse("{} // comment"), ConfigError, "syntax error");
  TERCEL_EXPECT_THROW(parse_json("{", "model.safetensors", JsonErrors::Data), DataError,
                      "model.safetensors: line 1, column 1:");
}

TEST(Json, ZeroBytesAreRefused) {
  using namespace std::string_literals;
  TERCEL_EXPECT_THROW(parse("{\"a\": 1}\0 junk"s), ConfigError,
                      "config.json: line 1, column 9: expected text, found a zero byte");
  TERCEL_EXPECT_THROW(parse("{}\n\0"s), ConfigError, "line 2, column 1: expected text, found a zero byte");
  TERCEL_EXPECT_THROW(parse("\0"s), ConfigError, "line 1, column 1: expected text, found a zero byte");
  TERCEL_EXPECT_THROW(parse("[\"a\0b\"]"s), ConfigError, "line 1, column 4: expected text, found a zero byte");
  EXPECT_EQ(parse("\"a\\u0000b\"").get<std::string>(), "a\0b"s) << "an escaped one is a character";
}

TEST(Json, DuplicateKeysAreRefused) {
  TERCEL_EXPECT_THROW(parse("{\"a\": 1,\n \"a\": 2}"), ConfigError,
                      "config.json: line 2, column 4: duplicate key \"a\"");
  EXPECT_NO_THROW(parse(R"({"a": {"a": 1}, "b": {"a": 2}})"));
}

TEST(Json, LimitsHold) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_NO_THROW(parse(nested(64)));
  TERCEL_EXPECT_THROW(parse(nested(65)), ConfigError,
                      "line 1, column 65: expected at most 64 nested lists and objects");
  TERCEL_EXPECT_THROW(parse(std::string(10'000'000, '[')), ConfigError, "expected at most 64 nested");
  std::string objects;
  for (int i = 0; i < 100; ++i) objects += "{\"a\":";
  TERCEL_EXPECT_THROW(parse(objects), ConfigError, "expected at most 64 nested");
  TERCEL_EXPECT_THROW(parse_json("[1,2,3]", "x", JsonErrors::Data, {.max_bytes = 6}), DataError,
                      "x: expected at most 6 B of JSON, found 7 B");
  EXPECT_NO_THROW(parse_json("[[1]]", "x", JsonErrors::Data, {.max_depth = 2}));
}

// Comparing each key with all others would take minutes.
TEST(Json, ManyKeysTakeLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 300'000; ++i) text += (i > 0 ? ",\"key" : "\"key") + std::to_string(i) + "\":0";
  text += "}";
  EXPECT_EQ(parse(text).size(), 300'000u);
}

TEST(Json, Files) {
  const test::TemporaryFolder folder;
  const std::string path = folder.put("a.json", "{\"a\": [1, 2}");
  TERCEL_EXPECT_THROW(read_json_file(path, JsonErrors::Config), ConfigError,
                      path + ": line 1, column 12: syntax error");
  EXPECT_EQ(read_json_file(folder.put("b.json", "[1]"), JsonErrors::Data).size(), 1u);
  TERCEL_EXPECT_THROW(read_json_file(path, JsonErrors::Data, {.max_bytes = 5}), DataError,
                      "expected at most 5 B, found 12 B");
  TERCEL_EXPECT_THROW(read_json_file(folder / "none", JsonErrors::Config), IoError, "No such file");
}

TEST(Json, WritesWhatItReads) {
  const Json value = parse(R"({"name": "x", "list": [1, 2.5]})");
  EXPECT_EQ(dump_json(value), "{\n  \"name\": \"x\",\n  \"list\": [\n    1,\n    2.5\n  ]\n}\n");
  EXPECT_EQ(dump_json_line(value), R"({"name":"x","list":[1,2.5]})");
  EXPECT_EQ(parse(dump_json(value)), value);
  EXPECT_EQ(dump_json(Json("\x1b \x7f \xc2\x80 \xc2\x9b \xc2\xa0 \xc3\x9b")),
            "\"\\u001b \\u007f \\u0080 \\u009b \xc2\xa0 \xc3\x9b\"\n");
  EXPECT_EQ(parse(dump_json(Json("\x7f\xc2\x9b"))), Json("\x7f\xc2\x9b"));
  EXPECT_EQ(dump_json_line(Json("a\xff")), "\"a\xef\xbf\xbd\"") << "no UTF-8: a replacement, not an exception";
}

TEST(Json, LocaleDoesNotMatter) {
  const char* const german = std::setlocale(LC_NUMERIC, "de_DE.UTF-8");
  if (german == nullptr) GTEST_SKIP() << "this machine has no de_DE.UTF-8";
  EXPECT_EQ(parse("2.5").get<double>(), 2.5);
  EXPECT_EQ(dump_json_line(Json(2.5)), "2.5");
  std::setlocale(LC_NUMERIC, "C");
}

TEST(Json, DescribesValues) {
  EXPECT_EQ(describe_json(parse("\"a\\nb\"")), "\"a\\nb\"");
  EXPECT_EQ(describe_json(parse("2.50")), "2.5");
  EXPECT_EQ(describe_json(parse("null")), "null");
  EXPECT_EQ(describe_json(parse("[1]")), "a list");
  EXPECT_EQ(describe_json(parse("{}")), "an object");
}

}  // namespace
}  // namespace tercel
