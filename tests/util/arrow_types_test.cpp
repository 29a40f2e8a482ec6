#include "tercel/util/arrow_types.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace tercel {
namespace {

void leave(ArrowSchema* self) { self->release = nullptr; }

/** A field and what it points to. */
struct Field {
  std::string format;
  std::vector<Field> children;
  std::unique_ptr<Field> dictionary = nullptr;
  std::vector<ArrowSchema*> pointers = {};
  ArrowSchema schema = {};

  ArrowSchema& make() {
    schema.format = format.c_str();
    schema.release = leave;
    for (Field& child : children) pointers.push_back(&child.make());
    schema.n_children = static_cast<int64_t>(children.size());
    schema.children = pointers.data();
    schema.dictionary = dictionary ? &dictionary->make() : nullptr;
    return schema;
  }
};

std::string text_of(Field field) { return arrow_type_text(field.make()); }

Field one(const std::string& format, Field child) {
  Field field{format, {}};
  field.children.push_back(std::move(child));
  return field;
}

TEST(ArrowTypes, NamesAreThoseOfArrow) {
  const std::pair<const char*, const char*> names[] = {
      {"n", "null"},
      {"C", "uint8"},
      {"e", "halffloat"},
      {"g", "double"},
      {"vz", "binary_view"},
      {"U", "large_string"},
      {"w:16", "fixed_size_binary[16]"},
      {"d:2,1", "decimal128(2, 1)"},
      {"d:38,-3,256", "decimal256(38, -3)"},
      {"tdD", "date32[day]"},
      {"tdm", "date64[ms]"},
      {"ttu", "time64[us]"},
      {"tss:", "timestamp[s]"},
      {"tsn:Europe/Rome", "timestamp[ns, tz=Europe/Rome]"},
      {"tDm", "duration[ms]"},
      {"tin", "month_day_nano_interval"},
      {"+r", "run_end_encoded"},
  };
  for (const auto& [format, name] : names) EXPECT_EQ(text_of({format, {}}), name);
}

TEST(ArrowTypes, NestedFields) {
  EXPECT_EQ(text_of(one("+l", {"f", {}})), "list<float>");
  EXPECT_EQ(text_of(one("+vL", {"u", {}})), "large_list_view<string>");
  EXPECT_EQ(text_of(one("+w:3", {"i", {}})), "fixed_size_list<int32>[3]");
  EXPECT_EQ(text_of(one("+l", one("+L", {"l", {}}))), "list<large_list<int64>>");
  EXPECT_EQ(text_of(one("+s", {"l", {}})), "struct");
  EXPECT_EQ(text_of(one("+m", one("+s", {"l", {}}))), "map");
  EXPECT_EQ(text_of(one("+ud:0", {"l", {}})), "dense_union");
  Field categories{"c", {}, std::make_unique<Field>(Field{"u", {}})};
  EXPECT_EQ(text_of(std::move(categories)), "dictionary<values=string, indices=int8>");
  Field deep{"i", {}};
  for (int i = 0; i < 100; ++i) deep = one("+l", std::move(deep));
  EXPECT_EQ(text_of(std::move(deep)), "list<list<list<list<list<...>>>>>");
}

TEST(ArrowTypes, WhatIsNoType) {
  EXPECT_EQ(text_of({"+l", {}}), "list<?>");
  for (const char* format : {"", "ii", "d:2", "ts", "tsx:", "+x", "\n"})
    EXPECT_EQ(text_of({format, {}}).substr(0, 8), "format '") << format;
  Field list = one("+l", {"f", {}});
  ArrowSchema& schema = list.make();
  schema.children[0]->release = nullptr;
  EXPECT_EQ(arrow_type_text(schema), "list<?>");
  schema.format = nullptr;
  EXPECT_EQ(arrow_type_text(schema), "format ''");
}

}  // namespace
}  // namespace tercel
