#include "tercel/io/value.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::io {
namespace {

TEST(Value, HoldsOneOfItsKinds) {
  const Tensor t = test::make({2}, kFloat32, {1, 2});
  EXPECT_TRUE(Value().is(Value::Kind::None));
  EXPECT_TRUE(Value(true).to_bool());
  EXPECT_EQ(Value(uint8_t{7}).to_int(), 7);
  EXPECT_EQ(Value(INT64_MIN).to_int(), INT64_MIN);
  EXPECT_EQ(Value(3).to_double(), 3.0);
  EXPECT_EQ(Value(0.5).to_double(), 0.5);
  EXPECT_EQ(Value("text").to_string(), "text");
  EXPECT_TRUE(Value(t).to_tensor().is_same(t));
  EXPECT_EQ(Value(kInt8).to_dtype(), kInt8);
  EXPECT_EQ(Value(kCpu).to_device(), kCpu);
  EXPECT_EQ(Value::list({1, "a"}).items()[1].to_string(), "a");
  EXPECT_EQ(Value::tuple({1, 2}).items().size(), 2u);
  EXPECT_EQ(to_string(Value::tuple({}).kind()), "tuple");
}

TEST(Value, OtherKindsAreRefusedByName) {
  TERCEL_EXPECT_THROW(Value(1).to_string(), TypeError, "expected a value of kind str but got int");
  TERCEL_EXPECT_THROW(Value(1).to_bool(), TypeError, "bool but got int");
  TERCEL_EXPECT_THROW(Value(true).to_int(), TypeError, "int but got bool");
  TERCEL_EXPECT_THROW(Value("1").to_double(), TypeError, "float but got str");
  TERCEL_EXPECT_THROW(Value().items(), TypeError, "list but got None");
  TERCEL_EXPECT_THROW(Value::list({}).entries(), TypeError, "dict but got list");
  TERCEL_EXPECT_THROW(Value::list({}).find("a"), TypeError, "dict but got list");
  TERCEL_EXPECT_THROW(Value(1.5).to_tensor(), TypeError, "Tensor but got float");
  TERCEL_EXPECT_THROW(Value(1).to_dtype(), TypeError, "dtype but got int");
  TERCEL_EXPECT_THROW(Value(1).to_device(), TypeError, "device but got int");
  TERCEL_EXPECT_THROW(Value("a").to_bytes(), TypeError, "bytes but got str");
  TERCEL_EXPECT_THROW(Value::bytes("a").to_string(), TypeError, "str but got bytes");
  TERCEL_EXPECT_THROW(Value(~uint64_t{0}), ValueError, "18446744073709551615 does not fit 63 bits");
  TERCEL_EXPECT_THROW(Value(Tensor{}), ValueError, "undefined tensor");
}

TEST(Value, DictKeepsItsOrderAndFindsTexts) {
  const Value dict = Value::dict(
      {{"b", 1}, {2, "two"}, {"a", 3}, {Value(), 4}, {Value::tuple({1, 2}), 5}, {0.5, 6}, {true, 7}, {"", 8}});
  EXPECT_EQ(dict.entries()[0].first.to_string(), "b");
  EXPECT_EQ(dict.at("a").to_int(), 3);
  EXPECT_EQ(dict.at("b").to_int(), 1);
  EXPECT_EQ(dict.at("").to_int(), 8);
  EXPECT_EQ(dict.find("c"), nullptr);
  TERCEL_EXPECT_THROW(dict.at("c"), DataError, "no entry 'c' in a dict of 8");
  TERCEL_EXPECT_THROW(Value::dict({{"a", 1}, {"b", 2}, {"a", 3}}), ValueError, "the key a is a duplicate");
  TERCEL_EXPECT_THROW(Value::dict({{1, 1}, {1, 3}}), ValueError, "the key 1 is a duplicate");
  TERCEL_EXPECT_THROW(Value::dict({{Value::tuple({1}), 1}, {Value::tuple({1}), 3}}), ValueError,
                      "tuple is a duplicate");
  TERCEL_EXPECT_THROW(Value::dict({{Value::list({}), 1}}), ValueError, "for a key but got a list");
  TERCEL_EXPECT_THROW(Value::dict({{Value::dict({}), 1}, {1, 1}, {Value::dict({}), 1}}), ValueError, "got a dict");
  const Value bytes = Value::dict({{Value::bytes("a"), 1}, {"a", 2}});
  EXPECT_EQ(bytes.at("a").to_int(), 2);
  TERCEL_EXPECT_THROW(Value::dict({{Value::bytes("a"), 1}, {Value::bytes("a"), 2}}), ValueError,
                      "bytes is a duplicate");
}

TEST(Value, StateDicts) {
  const Tensor w = test::make({2}, kFloat32, {1, 2}), b = test::make({1}, kInt64, {3});
  const Value state = Value::state_dict({{"0.weight", w}, {"0.bias", b}});
  EXPECT_TRUE(state.is_ordered());
  const auto back = state.to_state_dict();
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].first, "0.weight");
  EXPECT_TRUE(back[0].second.is_same(w));
  EXPECT_EQ(back[1].first, "0.bias");
  EXPECT_TRUE(back[1].second.is_same(b));
  TERCEL_EXPECT_THROW(static_cast<void>(Value::dict({{"step", 7}}).to_state_dict()), TypeError, "Tensor");
  TERCEL_EXPECT_THROW(static_cast<void>(Value(w).to_state_dict()), TypeError, "dict");
}

TEST(Value, CopiesShareWhatTheyHold) {
  const Value list = Value::list({1, 2});
  const Value outer = Value::tuple({list, list, Value::list({1, 2})});
  EXPECT_EQ(outer.items()[0].identity(), outer.items()[1].identity());
  EXPECT_NE(outer.items()[0].identity(), outer.items()[2].identity());
  EXPECT_EQ(Value(1).identity(), nullptr);
  EXPECT_EQ(outer.depth(), 2);
  EXPECT_EQ(Value::dict({{"a", outer}}).depth(), 3);
  EXPECT_EQ(Value("a").depth(), 0);
}

}  // namespace
}  // namespace tercel::io
