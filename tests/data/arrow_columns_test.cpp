// Record batches as other tools hand them over: slices, dictionaries, bits, and arrays that contradict their schema.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tercel/data/arrow_columns_impl.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

int released = 0;

/** A column and all that it points to; children and dictionary by index in the batch's list of arrays. */
struct Field {
  std::string format, name;
  int64_t length = 0, offset = 0, nulls = 0;
  std::vector<const void*> buffers;
  std::vector<Field> children;
  std::vector<Field> dictionary;  // none or one
};

void leave(ArrowArray* self) { self->release = nullptr; }
void leave_schema(ArrowSchema* self) { self->release = nullptr; }

struct Exported {
  ArrowSchema schema{};
  ArrowArray array{};
  std::vector<std::unique_ptr<Exported>> children;
  std::vector<ArrowSchema*> schemas;
  std::vector<ArrowArray*> arrays;
  std::unique_ptr<Exported> dictionary;

  explicit Exported(Field& field) {
    for (Field& child : field.children) {
      children.push_back(std::make_unique<Exported>(child));
      schemas.push_back(&children.back()->schema);
      arrays.push_back(&children.back()->array);
    }
    if (!field.dictionary.empty()) dictionary = std::make_unique<Exported>(field.dictionary[0]);
    const auto count = static_cast<int64_t>(children.size());
    schema = {field.format.c_str(),
              field.name.c_str(),
              nullptr,
              2,
              count,
              schemas.data(),
              dictionary ? &dictionary->schema : nullptr,
              leave_schema,
              nullptr};
    array = {field.length,  field.nulls,
             field.offset,  static_cast<int64_t>(field.buffers.size()),
             count,         field.buffers.data(),
             arrays.data(), dictionary ? &dictionary->array : nullptr,
             leave,         nullptr};
  }
};

DecodedRows decode(const ColumnPlan& plan, Field batch) {
  Exported exported(batch);
  const ArrowDecoder decoder(plan, exported.schema, "t");
  ArrowOwned<ArrowArray> owned;
  *owned.get() = exported.array;
  owned.get()->release = [](ArrowArray* self) {
    ++released;
    self->release = nullptr;
  };
  DecodedRows rows = decoder.decode(std::move(owned), {}, "t");
  // What the columns point to lives in this function's arrays no longer than it: taken over as copies.
  DecodedRows copy;
  copy.clear_like(rows);
  copy.append(rows, 0, rows.rows);
  return copy;
}

Field batch_of(std::vector<Field> columns, int64_t rows, int64_t offset = 0) {
  return {"+s", "", rows, offset, 0, {nullptr}, std::move(columns), {}};
}

ColumnPlan plan_of(const std::string& key, bool list) {
  ColumnPlan plan;
  plan.keys.push_back({key, list, ""});
  return plan;
}

const int64_t kKeys[] = {10, 11, 12, 13, 14, 15};

TEST(ArrowColumns, ASliceOfABatchAndOfItsColumns) {
  const DecodedRows rows = decode(plan_of("k", false), batch_of({{"l", "k", 5, 1, 0, {nullptr, kKeys}, {}, {}}}, 3, 2));
  EXPECT_EQ(rows.keys[0].own, (std::vector<int64_t>{13, 14, 15}));
  const int32_t offsets[] = {0, 1, 1, 3, 6};
  const Field list{"+l", "k", 3, 1, 0, {nullptr, offsets}, {{"l", "item", 6, 0, 0, {nullptr, kKeys}, {}, {}}}, {}};
  const DecodedRows lists = decode(plan_of("k", true), batch_of({list}, 2, 1));
  EXPECT_EQ(lists.keys[0].own, (std::vector<int64_t>{11, 12, 13, 14, 15}));
  EXPECT_EQ(lists.keys[0].own_offsets, (std::vector<int64_t>{0, 2, 5}));
}

TEST(ArrowColumns, DictionariesOfNumbers) {
  const uint8_t valid[] = {0b101};
  const int8_t indices[] = {5, 0, 2};
  const Field values{"l", "", 6, 0, 0, {nullptr, kKeys}, {}, {}};
  const Field column{"c", "k", 3, 0, 1, {valid, indices}, {}, {values}};
  ColumnPlan plan = plan_of("k", false);
  const DecodedRows rows = decode(plan, batch_of({column}, 3));
  ASSERT_EQ(rows.keys[0].bad.size(), 1u);
  EXPECT_EQ(rows.keys[0].bad[0].row, 1);
  plan.fill_key = 7;
  EXPECT_EQ(decode(plan, batch_of({column}, 3)).keys[0].own, (std::vector<int64_t>{15, 7, 12}));
  const int8_t beyond[] = {5, 6, -1};
  const Field wrong{"c", "k", 3, 0, 0, {nullptr, beyond}, {}, {values}};
  TERCEL_EXPECT_THROW(decode(plan, batch_of({wrong}, 3)), DataError,
                      "t: column 'k': expected indices below 6, found 6");
}

TEST(ArrowColumns, CategoriesOfWhichNoneIsThere) {
  const uint8_t none[] = {0};
  const int8_t indices[] = {0, 0, 0};
  const Field column{"c", "k", 3, 0, 3, {none, indices}, {}, {{"n", "", 0, 0, 0, {}, {}, {}}}};
  ColumnPlan plan = plan_of("k", false);
  EXPECT_EQ(decode(plan, batch_of({column}, 3)).keys[0].bad.size(), 3u);
  plan.fill_key = 7;
  EXPECT_EQ(decode(plan, batch_of({column}, 3)).keys[0].own, (std::vector<int64_t>{7, 7, 7}));
}

TEST(ArrowColumns, BitsAndHalvesAreDenseValues) {
  const uint8_t bits[] = {0b1101'0000};
  const uint16_t halves[] = {0x3c00, 0xc000};
  ColumnPlan plan;
  plan.floats = {{"b", 1, false}, {"h", 1, false}};
  plan.integers = true;
  const Field columns =
      batch_of({{"b", "b", 2, 5, 0, {nullptr, bits}, {}, {}}, {"e", "h", 2, 0, 0, {nullptr, halves}, {}, {}}}, 2);
  const DecodedRows rows = decode(plan, columns);
  EXPECT_EQ(rows.floats[0].own, (std::vector<float>{0, 1}));
  EXPECT_EQ(rows.floats[1].own, (std::vector<float>{1, -2}));
  plan.integers = false;
  TERCEL_EXPECT_THROW(decode(plan, columns), DataError, "column 'b': expected floating point numbers");
}

TEST(ArrowColumns, BuffersMayBeginAtAnyByte) {
  std::vector<std::byte> bytes(1 + sizeof(kKeys));
  std::memcpy(bytes.data() + 1, kKeys, sizeof(kKeys));
  const Field keys{"l", "k", 3, 2, 0, {nullptr, bytes.data() + 1}, {}, {}};
  EXPECT_EQ(decode(plan_of("k", false), batch_of({keys}, 3)).keys[0].own, (std::vector<int64_t>{12, 13, 14}));
  const int32_t offsets[] = {0, 2, 3};
  std::vector<std::byte> odd(1 + sizeof(offsets));
  std::memcpy(odd.data() + 1, offsets, sizeof(offsets));
  const Field list{"+l", "k", 2, 0, 0, {nullptr, odd.data() + 1}, {keys}, {}};
  const DecodedRows lists = decode(plan_of("k", true), batch_of({list}, 2));
  EXPECT_EQ(lists.keys[0].own, (std::vector<int64_t>{12, 13, 14}));
  EXPECT_EQ(lists.keys[0].own_offsets, (std::vector<int64_t>{0, 2, 3}));
  ColumnPlan plan;
  plan.floats = {{"k", 1, false}};
  plan.integers = true;
  EXPECT_EQ(decode(plan, batch_of({keys}, 3)).floats[0].own, (std::vector<float>{12, 13, 14}));
}

TEST(ArrowColumns, RowsOfTheBatchThatAreMissing) {
  const uint8_t valid[] = {0b1110};
  const Field keys{"l", "k", 4, 0, 0, {nullptr, kKeys}, {}, {}};
  Field batch = batch_of({keys}, 3, 1);
  batch.buffers = {valid};
  batch.nulls = -1;  // not counted: none of the rows is missing
  EXPECT_EQ(decode(plan_of("k", false), batch).keys[0].own, (std::vector<int64_t>{11, 12, 13}));
  batch.offset = 0;
  TERCEL_EXPECT_THROW(decode(plan_of("k", false), batch), DataError, "found 1 columns, 1 missing rows");
}

TEST(ArrowColumns, ArraysThatContradictTheirSchemaAreRefused) {
  released = 0;
  const auto refused = [](const std::string& message, const Field& column, int64_t rows, bool list = false) {
    SCOPED_TRACE(message);
    TERCEL_EXPECT_THROW(decode(plan_of("k", list), batch_of({column}, rows)), DataError, message);
  };
  const Field good{"l", "k", 3, 0, 0, {nullptr, kKeys}, {}, {}};
  refused("expected 4 rows in each column, found 3", good, 4);
  refused("expected an array of 2 buffers and 0 children", {"l", "k", 3, 0, 0, {nullptr}, {}, {}}, 3);
  refused("expected a buffer of values, found none", {"l", "k", 3, 0, 0, {nullptr, nullptr}, {}, {}}, 3);
  refused("found -1", {"l", "k", -1, 0, 0, {nullptr, kKeys}, {}, {}}, 0);
  const Field item{"l", "item", 6, 0, 0, {nullptr, kKeys}, {}, {}};
  const int32_t descending[] = {0, 3, 2};
  refused("expected offsets that do not descend, found 2", {"+l", "k", 2, 0, 0, {nullptr, descending}, {item}, {}}, 2,
          true);
  const int32_t beyond[] = {0, 3, 7};
  refused("expected 0 and 7 more elements, found 6", {"+l", "k", 2, 0, 0, {nullptr, beyond}, {item}, {}}, 2, true);
  const int32_t negative[] = {-1, 3, 5};
  refused("expected offsets of at least 0, found -1", {"+l", "k", 2, 0, 0, {nullptr, negative}, {item}, {}}, 2, true);
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const int64_t widest[] = {kLeast, std::numeric_limits<int64_t>::max()};  // whose difference overflows
  refused("expected offsets of at least 0", {"+L", "k", 1, 0, 0, {nullptr, widest}, {item}, {}}, 1, true);
  const int64_t large[] = {0, int64_t{1} << 62};
  refused("more elements", {"+L", "k", 1, 0, 0, {nullptr, large}, {item}, {}}, 1, true);
  refused("lists that fit in memory", {"+w:4611686018427387904", "k", 3, 0, 0, {nullptr}, {item}, {}}, 3, true);
  refused("expected numbers, found fixed_size_list<int64>[2]", {"+w:2", "k", 3, 0, 0, {nullptr}, {item}, {}}, 3);
  refused("expected numbers, found string", {"u", "k", 3, 0, 0, {nullptr, kKeys, kKeys}, {}, {}}, 3);
  refused("expected integers, found double", {"g", "k", 3, 0, 0, {nullptr, kKeys}, {}, {}}, 3);
  refused("expected integers, found date32[day]", {"tdD", "k", 3, 0, 0, {nullptr, kKeys}, {}, {}}, 3);
  // Those that were refused for their schema never had an owner here.
  EXPECT_EQ(released, 10);
}

}  // namespace
}  // namespace tercel::data::test
