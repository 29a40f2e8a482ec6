#include "tercel/io/arrow.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::io {
namespace {

using test::bytes_of;
using test::make;
using test::Sizes;
using test::values_of;

std::string metadata_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out;
  const auto put = [&](size_t value) {
    const auto number = static_cast<int32_t>(value);
    out.append(reinterpret_cast<const char*>(&number), 4);
  };
  put(entries.size());
  for (const auto& [key, value] : entries) {
    put(key.size());
    out += key;
    put(value.size());
    out += value;
  }
  return out;
}

/** A column of another library: its structs and data, with a count of releases of each. */
struct Foreign {
  std::string format = "i", name = "c", metadata;
  std::vector<int32_t> data = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<uint8_t> bits;
  std::vector<const void*> buffers;
  std::vector<Foreign*> children;
  std::vector<ArrowSchema*> schemas;
  std::vector<ArrowArray*> arrays;
  ArrowSchema schema{};
  ArrowArray array{};
  int schema_released = 0, array_released = 0;

  /** Points the structs to the data; structs of children belong to their parent. */
  Foreign& ready() {
    buffers = {bits.empty() ? nullptr : bits.data(),
               format == "b" ? static_cast<const void*>(bits.data()) : data.data()};
    schemas.clear();
    arrays.clear();
    for (Foreign* child : children) {
      child->ready();
      schemas.push_back(&child->schema);
      arrays.push_back(&child->array);
    }
    schema.format = format.c_str();
    schema.name = name.c_str();
    schema.metadata = metadata.empty() ? nullptr : metadata.data();
    schema.n_children = array.n_children = static_cast<int64_t>(children.size());
    schema.children = schemas.data();
    array.children = arrays.data();
    array.n_buffers = children.empty() ? 2 : 1;
    array.buffers = buffers.data();
    schema.private_data = array.private_data = this;
    schema.release = [](ArrowSchema* self) {
      ++static_cast<Foreign*>(self->private_data)->schema_released;
      self->release = nullptr;
    };
    array.release = [](ArrowArray* self) {
      ++static_cast<Foreign*>(self->private_data)->array_released;
      self->release = nullptr;
    };
    return *this;
  }
  ArrowColumn import(const ArrowOptions& options = {}) {
    ready();
    return from_arrow(&schema, &array, options);
  }
  /** The message of the RuntimeError that refuses it; both structs must still be released once. */
  std::string refused() {
    const int schemas_before = schema_released, arrays_before = array_released;
    const std::string message = test::message_of<RuntimeError>([&] { static_cast<void>(import()); });
    EXPECT_EQ(schema_released, schemas_before + 1) << message;
    EXPECT_EQ(array_released, arrays_before + 1) << message;
    EXPECT_EQ(array.release, nullptr);
    return message;
  }
};

TEST(Arrow, ImportIsReleasedOnce) {
  Foreign f;
  f.array.length = 3;
  f.array.offset = 2;
  {
    const ArrowColumn column = f.import();
    EXPECT_EQ(f.schema.release, nullptr);
    EXPECT_EQ(f.array.release, nullptr);
    EXPECT_EQ(f.schema_released, 1);
    EXPECT_EQ(f.array_released, 0);
    EXPECT_EQ(column.name, "c");
    EXPECT_FALSE(column.valid.defined());
    EXPECT_EQ(column.values.data_ptr(), f.data.data() + 2);
    EXPECT_EQ(values_of(column.values), (std::vector<double>{2, 3, 4}));
  }
  EXPECT_EQ(f.array_released, 1);
  const Tensor copy = f.import({.copy = CopyMode::Always}).values;
  EXPECT_EQ(f.array_released, 2);
  EXPECT_EQ(values_of(copy), (std::vector<double>{2, 3, 4}));
  TERCEL_EXPECT_THROW(from_arrow(&f.schema, &f.array), RuntimeError, "that are neither released nor consumed");
}

TEST(Arrow, ExportKeepsTheElementsWhateverTheTensorBecomes) {
  const Tensor t = make({2}, kInt32, {1, 2}), other = make({2}, kInt32, {3, 4});
  const Storage storage = t.storage();
  ArrowSchema schema{};
  ArrowArray array{};
  to_arrow(t, "c", &schema, &array);
  t.impl().shallow_copy_from(other.impl());
  TERCEL_EXPECT_THROW(storage->resize_bytes(0), RuntimeError, "not resizable");
  EXPECT_EQ(storage.use_count(), 2u);
  EXPECT_EQ(static_cast<const int32_t*>(array.buffers[1])[1], 2);
  array.release(&array);
  schema.release(&schema);
  EXPECT_EQ(storage.use_count(), 1u);
}

TEST(Arrow, MissingValues) {
  Foreign f;
  f.array.length = 4;
  f.array.null_count = 1;
  f.array.offset = 1;
  f.bits = {0b11101};  // elements 1 to 4 are: missing, there, there, there
  EXPECT_NE(f.refused().find("column 'c': 1 of 4 values are missing; ask for a mask"), std::string::npos);
  const ArrowColumn column = f.import({.mask = true});
  EXPECT_EQ(values_of(column.valid), (std::vector<double>{0, 1, 1, 1}));
  EXPECT_EQ(column.values.numel(), 4);
  f.array.null_count = -1;
  EXPECT_NE(f.refused().find("1 of 4 values are missing"), std::string::npos);
  f.bits = {0xff};
  EXPECT_FALSE(f.import({.mask = true}).valid.defined());
  f.bits.clear();
  EXPECT_FALSE(f.import().valid.defined());
  f.array.null_count = 2;
  EXPECT_NE(f.refused().find("2 missing values but no validity bitmap"), std::string::npos);
}

TEST(Arrow, BoolsAreUnpacked) {
  Foreign f;
  f.format = "b";
  f.bits = {0b10110100, 0b1};
  f.array.length = 7;
  f.array.offset = 2;
  f.ready();
  f.buffers[0] = nullptr;
  const Tensor t = from_arrow(&f.schema, &f.array).values;
  EXPECT_EQ(t.dtype(), kBool);
  EXPECT_EQ(values_of(t), (std::vector<double>{1, 0, 1, 1, 0, 1, 1}));
  EXPECT_EQ(f.array_released, 1);
  f.ready();
  f.buffers[0] = nullptr;
  TERCEL_EXPECT_THROW(from_arrow(&f.schema, &f.array, {.copy = CopyMode::Never}), RuntimeError, "packs them into bits");
  EXPECT_EQ(f.array_released, 2);
}

TEST(Arrow, ListsAreDimensions) {
  Foreign numbers, inner, f;
  numbers.array.length = 7;
  numbers.array.offset = 1;
  inner.format = "+w:2";
  inner.children = {&numbers};
  inner.array.length = 3;
  f.format = "+w:1";
  f.children = {&inner};
  f.array.length = 2;
  f.array.offset = 1;
  const Tensor t = f.import().values;
  EXPECT_EQ(t.sizes().to_vector(), (Sizes{2, 1, 2}));
  EXPECT_EQ(values_of(t), (std::vector<double>{3, 4, 5, 6}));
  EXPECT_EQ(numbers.array_released, 0) << "children belong to the array around them";
  inner.array.length = 2;
  EXPECT_NE(f.refused().find("expected 3 elements of lists but got 2"), std::string::npos);
  inner.array.length = 3;
  numbers.bits = {0b00001111};
  numbers.array.null_count = -1;
  EXPECT_NE(f.refused().find("3 values are missing inside of lists"), std::string::npos);
}

TEST(Arrow, FixedShapeTensor) {
  Foreign numbers, f;
  numbers.array.length = 8;
  f.format = "+w:4";
  f.children = {&numbers};
  f.array.length = 2;
  const auto with = [&](const std::string& text) {
    f.metadata = metadata_of(
        {{"other", "x"}, {"ARROW:extension:metadata", text}, {"ARROW:extension:name", "arrow.fixed_shape_tensor"}});
  };
  with(R"({"shape":[2,2],"dim_names":["a","b"]})");
  EXPECT_EQ(f.import().values.sizes().to_vector(), (Sizes{2, 2, 2}));
  with(R"({"shape":[4,1],"permutation":[1,0]})");
  const Tensor t = f.import().values;
  EXPECT_EQ(t.sizes().to_vector(), (Sizes{2, 1, 4}));
  EXPECT_EQ(values_of(t), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}));
  with(R"({"shape":[2,2],"permutation":[1,0]})");
  EXPECT_EQ(values_of(f.import().values), (std::vector<double>{0, 2, 1, 3, 4, 6, 5, 7}));
  with(R"({"shape":[3]})");
  EXPECT_NE(f.refused().find("shape [3] does not fit lists of 4 elements"), std::string::npos);
  const char* const wrong[] = {"",
                               "[]",
                               "{}",
                               R"({"shape":4})",
                               R"({"shape":[-4]})",
                               R"({"shape":[4294967296]})",
                               R"({"shape":[4],"permutation":[1]})",
                               R"({"shape":[2,2],"permutation":[0,0]})",
                               R"({"shape":[2,2],"permutation":[0]})"};
  for (const char* text : wrong) {
    with(text);
    const int before = f.array_released;
    TERCEL_EXPECT_THROW(f.import(), DataError, "from_arrow: column 'c': metadata of arrow.fixed_shape_tensor");
    EXPECT_EQ(f.array_released, before + 1);
  }
}

TEST(Arrow, ImportRefuses) {
  const auto refused = [](const auto& spoil) {
    Foreign f;
    f.array.length = 4;
    spoil(f);
    return f.refused();
  };
  const auto expect = [&](const std::string& message, const auto& spoil) {
    EXPECT_NE(refused(spoil).find(message), std::string::npos) << refused(spoil);
  };
  expect("string is not a number type that tensors support", [](Foreign& f) { f.format = "u"; });
  expect("format '' is not a number", [](Foreign& f) { f.format = ""; });
  expect("format 'ii' is not a number", [](Foreign& f) { f.format = "ii"; });
  expect("length -1, offset 0", [](Foreign& f) { f.array.length = -1; });
  expect("offset -1", [](Foreign& f) { f.array.offset = -1; });
  expect("do not agree", [](Foreign& f) { f.array.offset = INT64_MAX; });
  expect("null count 5 do not agree", [](Foreign& f) { f.array.null_count = 5; });
  expect("dictionary-encoded", [](Foreign& f) { f.schema.dictionary = &f.schema; });
  expect("expected 1 buffers for format '+w:2' but got 2", [](Foreign& f) { f.format = "+w:2"; });
}

TEST(Arrow, ListsThatOverflowAreRefused) {
  for (const char* format : {"+w:2147483647", "+w:-1", "+w:99999999999", "+w:x", "+w:"}) {
    Foreign numbers, f;
    numbers.array.length = 8;
    f.format = format;
    f.children = {&numbers};
    f.array.length = INT64_C(1) << 40;
    EXPECT_NE(f.refused().find("column 'c': "), std::string::npos) << format;
  }
}

TEST(Arrow, BatchesOfColumns) {
  Foreign a, b, batch;
  a.name = "a";
  b.name = "b";
  a.array.length = b.array.length = 5;
  b.array.offset = 3;
  batch.format = "+s";
  batch.children = {&a, &b};
  batch.array.length = 3;
  batch.array.offset = 1;
  batch.ready();
  std::vector<ArrowColumn> columns = columns_from_arrow(&batch.schema, &batch.array);
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(columns[0].name, "a");
  EXPECT_EQ(values_of(columns[0].values), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(values_of(columns[1].values), (std::vector<double>{4, 5, 6}));
  columns.pop_back();
  EXPECT_EQ(batch.array_released, 0) << "the first column still needs it";
  columns.clear();
  EXPECT_EQ(batch.array_released, 1);
  a.array.length = 3;
  batch.ready();
  TERCEL_EXPECT_THROW(columns_from_arrow(&batch.schema, &batch.array), RuntimeError, "at least 4 rows but got 3");
  EXPECT_EQ(batch.array_released, 2);
  a.array.length = 5;
  batch.bits = {0};
  batch.array.null_count = 3;
  batch.ready();
  TERCEL_EXPECT_THROW(columns_from_arrow(&batch.schema, &batch.array), RuntimeError, "3 whole rows are missing");
  a.ready();
  TERCEL_EXPECT_THROW(columns_from_arrow(&a.schema, &a.array), RuntimeError, "a struct array but got format 'i'");
}

TEST(Arrow, RoundTripOfEveryDtypeAndPlacement) {
  for (const ScalarType dtype : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kFloat32, kFloat64})
    for (const Sizes& sizes : {Sizes{0}, Sizes{1}, Sizes{19}, Sizes{3, 2}, Sizes{2, 3, 4}, Sizes{3, 0}}) {
      const Tensor t = test::random(sizes, dtype, 0, dtype == kBool ? 1 : 100, 1);
      for (const auto placement :
           {test::Placement::Contiguous, test::Placement::Transposed, test::Placement::EverySecond}) {
        ArrowSchema schema;
        ArrowArray array;
        to_arrow(test::placed(t, placement), "name", &schema, &array);
        const ArrowColumn back = from_arrow(&schema, &array);
        ASSERT_EQ(back.name, "name");
        ASSERT_EQ(back.values.dtype(), dtype);
        ASSERT_EQ(back.values.sizes(), t.sizes());
        ASSERT_EQ(bytes_of(back.values), bytes_of(t));
      }
    }
}

TEST(Arrow, ExportKeepsTheElementsUntilItIsReleased) {
  Tensor t = make({2, 3}, kFloat32, {0, 1, 2, 3, 4, 5});
  const Storage storage = t.storage();
  ArrowSchema schema;
  ArrowArray array;
  to_arrow(t, "t", &schema, &array);
  t.reset();
  EXPECT_EQ(storage.use_count(), 2u);
  EXPECT_STREQ(schema.format, "+w:3");
  EXPECT_STREQ(schema.children[0]->format, "f");
  EXPECT_EQ(array.children[0]->buffers[1], storage->data());
  // A consumer may move a child and release it later.
  ArrowArray child = *array.children[0];
  array.children[0]->release = nullptr;
  array.release(&array);
  EXPECT_EQ(array.release, nullptr);
  EXPECT_EQ(storage.use_count(), 2u);
  child.release(&child);
  EXPECT_EQ(storage.use_count(), 1u);
  schema.release(&schema);
  EXPECT_EQ(schema.release, nullptr);
}

TEST(Arrow, ColumnsRoundTrip) {
  ArrowSchema schema;
  ArrowArray array;
  columns_to_arrow({{"a", make({2}, kInt64, {1, 2})}, {"b", make({2, 2}, kBool, {1, 0, 0, 1})}}, &schema, &array);
  const std::vector<ArrowColumn> back = columns_from_arrow(&schema, &array);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(values_of(back[0].values), (std::vector<double>{1, 2}));
  EXPECT_EQ(values_of(back[1].values), (std::vector<double>{1, 0, 0, 1}));
  columns_to_arrow({}, &schema, &array);
  EXPECT_TRUE(columns_from_arrow(&schema, &array).empty());
}

TEST(Arrow, MissingValuesOfColumns) {
  ArrowSchema schema;
  ArrowArray array;
  const Tensor pair = make({2}, kBool, {0, 1}), all = make({2, 2}, kBool, {1, 1, 0, 1});
  const Tensor lists = make({2, 2}, kInt64, {1, 2, 3, 4});
  columns_to_arrow({{"a", make({2}, kFloat32, {1, 2}), pair}, {"b", lists, pair}}, &schema, &array);
  EXPECT_EQ(array.children[0]->null_count, -1);
  const std::vector<ArrowColumn> back = columns_from_arrow(&schema, &array, {.mask = true});
  for (const ArrowColumn& column : back) EXPECT_EQ(values_of(column.valid), (std::vector<double>{0, 1}));
  EXPECT_EQ(values_of(back[0].values)[1], 2);
  columns_to_arrow({{"a", lists, all}}, &schema, &array);
  const ArrowArray& elements = *array.children[0]->children[0];
  EXPECT_EQ(array.children[0]->buffers[0], nullptr);
  EXPECT_EQ(*static_cast<const uint8_t*>(elements.buffers[0]), 0b1011);
  TERCEL_EXPECT_THROW(columns_from_arrow(&schema, &array), RuntimeError, "column 'a'");
  for (const Tensor& wrong : {make({3}, kBool, {1, 1, 1}), make({2}, kInt64, {1, 1}), make({1, 2}, kBool, {1, 1})})
    TERCEL_EXPECT_THROW(columns_to_arrow({{"a", lists, wrong}}, &schema, &array), RuntimeError,
                        "to_arrow: column 'a': expected bools which values are valid");
}

TEST(Arrow, ExportRefuses) {
  ArrowSchema schema;
  ArrowArray array;
  Tensor t = make({1}, kFloat32, {1});
  TERCEL_EXPECT_THROW(to_arrow(Tensor{}, "t", &schema, &array), RuntimeError,
                      "to_arrow: tensor 't': expected a strided");
  TERCEL_EXPECT_THROW(to_arrow(make({}, kInt8, {1}), "t", &schema, &array), RuntimeError, "at least one dimension");
  TERCEL_EXPECT_THROW(to_arrow(empty({1}, kBFloat16), "t", &schema, &array), TypeError,
                      "Arrow has no type for bfloat16");
  TERCEL_EXPECT_THROW(to_arrow(t, std::string_view("a\0b", 3), &schema, &array), ValueError, "has a NUL byte");
  TERCEL_EXPECT_THROW(columns_to_arrow({{"a", t}, {"b", make({2}, kInt8, {1, 2})}}, &schema, &array), RuntimeError,
                      "column 'b': expected 1 rows as in the first one but got 2");
  t.impl().set_requires_grad_flag(true);
  TERCEL_EXPECT_THROW(to_arrow(t, "t", &schema, &array), RuntimeError, "Can't export tensors that require gradient");
}

}  // namespace
}  // namespace tercel::io
