// Tables in memory as datasets: streams that C++ programs hand over, and producers that break the interface.
#include "tercel/data/arrow_table.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/data/convert_dataset.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/data/verify_dataset.h"
#include "tercel/util/error.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::data::test {
namespace {

using tercel::test::values_of;
using Values = std::vector<double>;

int live = 0;  // batches that were handed out and not released

/** Columns y f32, x f64, k i32 and t, lists of i64, of consecutive rows. */
struct Content {
  std::vector<float> y;
  std::vector<double> x;
  std::vector<int32_t> k, t_offsets{0};
  std::vector<int64_t> t;

  Content(int64_t first, int64_t rows) {
    for (int64_t r = first; r < first + rows; ++r) {
      y.push_back(static_cast<float>(r % 2));
      x.push_back(static_cast<double>(r) / 2);
      k.push_back(static_cast<int32_t>(r % 5));
      for (int64_t i = 0; i < r % 3; ++i) t.push_back(r % 7 + i);
      t_offsets.push_back(static_cast<int32_t>(t.size()));
    }
  }
};

constexpr const char* kNames[] = {"y", "x", "k", "t"};

struct Node {
  ArrowSchema schema{};
  ArrowArray array{};
  std::vector<const void*> buffers;
};

void leave_schema(ArrowSchema* self) { self->release = nullptr; }
void leave_array(ArrowArray* self) { self->release = nullptr; }

/** A batch and its schema, with what they point to. */
struct Table {
  Content content;
  std::vector<std::unique_ptr<Node>> nodes;  // y, x, k, t, the elements of t, the batch
  std::vector<ArrowSchema*> schemas;
  std::vector<ArrowArray*> arrays;
  ArrowSchema* element_schema = nullptr;
  ArrowArray* element = nullptr;

  Table(int64_t first, int64_t rows) : content(first, rows) {
    const char* formats[] = {"f", "g", "i", "+l", "l", "+s"};
    const void* data[] = {content.y.data(), content.x.data(), content.k.data(), content.t_offsets.data(),
                          content.t.data()};
    for (size_t i = 0; i < 6; ++i) {
      auto node = std::make_unique<Node>();
      node->buffers = i < 5 ? std::vector<const void*>{nullptr, data[i]} : std::vector<const void*>{nullptr};
      node->schema.format = formats[i];
      node->schema.name = i < 4 ? kNames[i] : "item";
      node->schema.release = leave_schema;
      node->array.length = i == 4 ? static_cast<int64_t>(content.t.size()) : rows;
      node->array.n_buffers = static_cast<int64_t>(node->buffers.size());
      node->array.buffers = node->buffers.data();
      node->array.release = leave_array;
      nodes.push_back(std::move(node));
    }
    element_schema = &nodes[4]->schema;
    element = &nodes[4]->array;
    nodes[3]->schema.n_children = nodes[3]->array.n_children = 1;
    nodes[3]->schema.children = &element_schema;
    nodes[3]->array.children = &element;
    for (size_t i = 0; i < 4; ++i) {
      schemas.push_back(&nodes[i]->schema);
      arrays.push_back(&nodes[i]->array);
    }
    nodes[5]->schema.n_children = nodes[5]->array.n_children = 4;
    nodes[5]->schema.children = schemas.data();
    nodes[5]->array.children = arrays.data();
  }
  ArrowSchema& schema() { return nodes[5]->schema; }
  ArrowArray& batch() { return nodes[5]->array; }
};

/** A stream of tables, which are given to `change` before they are handed out. */
struct Producer {
  std::vector<std::pair<int64_t, int64_t>> pieces;  // first row, rows
  std::function<void(Table&)> change;
  int fails_at = -1;  // this batch fails
  size_t next = 0;
  std::unique_ptr<Table> described;

  static Producer& of(ArrowArrayStream* self) { return *static_cast<Producer*>(self->private_data); }
  std::unique_ptr<Table> make(int64_t first, int64_t rows) const {
    auto table = std::make_unique<Table>(first, rows);
    if (change) change(*table);
    return table;
  }
  ArrowArrayStream stream() {
    ArrowArrayStream out{};
    out.private_data = this;
    out.get_schema = [](ArrowArrayStream* self, ArrowSchema* schema) {
      of(self).described = of(self).make(0, 3);
      *schema = of(self).described->schema();
      return 0;
    };
    out.get_next = [](ArrowArrayStream* self, ArrowArray* batch) {
      Producer& producer = of(self);
      if (static_cast<int>(producer.next) == producer.fails_at) return EIO;
      if (producer.next == producer.pieces.size()) return 0;
      const auto [first, rows] = producer.pieces[producer.next++];
      auto table = producer.make(first, rows);
      *batch = table->batch();
      ++live;
      batch->private_data = table.release();
      batch->release = [](ArrowArray* array) {
        delete static_cast<Table*>(array->private_data);
        array->release = nullptr;
        --live;
      };
      return 0;
    };
    out.get_last_error = [](ArrowArrayStream* /*self*/) { return "the producer is broken"; };
    out.release = [](ArrowArrayStream* self) { self->release = nullptr; };
    return out;
  }
};

ArrowTableOptions options_of(TableStorage storage = TableStorage::Memory) {
  ArrowTableOptions options;
  options.label = {"y"};
  options.dense = {"x"};
  options.categorical = {"k", "t"};
  options.slot_size_array = {5, 10};
  options.storage = storage;
  return options;
}

Dataset read(Producer producer, const ArrowTableOptions& options = options_of()) {
  ArrowArrayStream stream = producer.stream();
  Dataset dataset = dataset_from_arrow({&stream, nullptr, nullptr}, options, [](int64_t) {});
  EXPECT_EQ(stream.release, nullptr);
  return dataset;
}

TEST(ArrowTable, RowsAreThoseOfTheTableHoweverTheyAreCutAndKept) {
  Dataset first;
  for (const TableStorage storage : {TableStorage::Memory, TableStorage::Disk}) {
    for (const std::vector<std::pair<int64_t, int64_t>>& pieces :
         {std::vector<std::pair<int64_t, int64_t>>{{0, 100}}, {{0, 0}, {0, 1}, {1, 30}, {31, 0}, {31, 69}}}) {
      const Dataset dataset = read({pieces, {}, -1, 0, nullptr}, options_of(storage));
      if (!first.format) first = dataset;
      EXPECT_EQ(dataset.train.files, first.train.files);  // with the checksum
      EXPECT_EQ(dataset.schema.slots[1].hotness, 2);
      EXPECT_EQ(live > 0, true);  // `first` holds its batches
      for (const bool shuffle : {false, true}) {
        SCOPED_TRACE(shuffle);
        ReaderOptions reading;
        reading.batch_size = 7;
        reading.shuffle = shuffle;
        reading.shuffle_window = reading.shuffle_block = 16;
        reading.epochs = 2;
        BatchReader reader(dataset, PartName::Train, reading), wanted(first, PartName::Train, reading);
        Batch batch, other;
        int64_t rows = 0;
        while (reader.next(batch)) {
          ASSERT_TRUE(wanted.next(other));
          EXPECT_EQ(values_of(batch.labels), values_of(other.labels));
          EXPECT_EQ(values_of(batch.input("keys").keys), values_of(other.input("keys").keys));
          EXPECT_EQ(values_of(batch.input("keys").row_offsets), values_of(other.input("keys").row_offsets));
          for (int64_t r = 0; r < batch.rows && !shuffle; ++r)
            EXPECT_EQ(values_of(batch.dense)[static_cast<size_t>(r)], static_cast<double>(batch.row + r) / 2);
          rows += batch.rows;
        }
        EXPECT_EQ(rows, 200);
      }
    }
  }
  BatchReader reader(first, PartName::Train, {});
  Batch batch;
  ASSERT_TRUE(reader.next(batch));
  first = {};  // the reader keeps the rows
  EXPECT_GT(live, 0);
  EXPECT_EQ(values_of(batch.labels).size(), static_cast<size_t>(batch.rows));
}

TEST(ArrowTable, IsConvertedToFilesButIsNone) {
  const TemporaryFolder folder;
  const Dataset dataset = read({{{0, 40}}, {}, -1, 0, nullptr});
  ConvertDatasetOptions options;
  options.format = norm_format();
  const Dataset files = convert_dataset(dataset, folder / "norm", options, false, [](int64_t) {}).dataset;
  EXPECT_EQ(files.rows(), 40);
  EXPECT_TRUE(files.origins.empty());
  options.format = make_format("arrow", "test");
  TERCEL_EXPECT_THROW(convert_dataset(dataset, folder / "other", options, false, [](int64_t) {}), ConfigError,
                      "expected a format of files");
  TERCEL_EXPECT_THROW(verify_dataset(dataset, {}, [](const VerifyProgress&) {}), ConfigError, "tables in memory");
  // What a run keeps of it: columns, without rows.
  const Dataset described = dataset_from_json(dataset_to_json(dataset), "d");
  EXPECT_EQ(described.schema, dataset.schema);
  TERCEL_EXPECT_THROW(BatchReader(described, PartName::Train, {}), DataError, "whose rows are not stored");
}

TEST(ArrowTable, OptionsAndColumnsThatDoNotFit) {
  const auto refuses = [](const std::string& message, const auto& change) {
    SCOPED_TRACE(message);
    ArrowTableOptions options = options_of();
    change(options);
    TERCEL_EXPECT_THROW(read({{{0, 9}}, {}, -1, 0, nullptr}, options), ConfigError, message);
  };
  using Options = ArrowTableOptions;
  refuses("option 'label': expected the names", [](Options& o) { o.label.clear(); });
  refuses("expected a column 'z' in train table, found y, x, k, t", [](Options& o) { o.dense = {"z"}; });
  refuses("expected each column once, found 'k' twice", [](Options& o) { o.categorical = {"k", "k"}; });
  refuses("train table: column 'y': expected integer keys", [](Options& o) {
    o.label = {"x"};
    o.dense.clear();
    o.categorical = {"y"};
  });
  refuses("column 'k': expected float or double (integers", [](Options& o) {
    o.dense = {"k"};
    o.categorical = {"t"};
  });
  refuses("option 'weighted': expected names", [](Options& o) { o.weighted = {"x"}; });
  ArrowTableOptions one = options_of();
  one.nnz_per_slot = {1};
  const Dataset few = read({{{0, 9}}, {}, -1, 0, nullptr}, one);
  BatchReader reader(few, PartName::Train, {});
  Batch batch;
  TERCEL_EXPECT_THROW(reader.next(batch), DataError, "train table: row 2: column 't': expected");
}

TEST(ArrowTable, ProducersThatBreakTheInterfaceAreRefused) {
  const int before = live;
  const auto refuses = [](const std::string& message, std::function<void(Table&)> change) {
    SCOPED_TRACE(message);
    TERCEL_EXPECT_THROW(read({{{0, 9}}, std::move(change), -1, 0, nullptr}), DataError, message);
  };
  refuses("expected columns, the fields of a struct", [](Table& t) { t.schema().format = "+l"; });
  refuses("expected columns, the fields of a struct", [](Table& t) { t.schema().format = nullptr; });
  refuses("columns, found -1", [](Table& t) { t.schema().n_children = -1; });
  refuses("columns, found 1099511627776", [](Table& t) { t.schema().n_children = int64_t{1} << 40; });
  refuses("a null pointer, or a released one, in place of column 0", [](Table& t) { t.schema().children = nullptr; });
  refuses("a null pointer, or a released one, in place of column 2", [](Table& t) { t.schemas[2] = nullptr; });
  refuses("a released one, in place of column 2", [](Table& t) { t.schemas[2]->release = nullptr; });
  refuses("found one that was released", [](Table& t) { t.schema().release = nullptr; });
  refuses("in place of column 0", [](Table& t) { t.batch().children = nullptr; });
  refuses("in place of column 1", [](Table& t) { t.arrays[1] = nullptr; });
  refuses("in place of column 3", [](Table& t) { t.arrays[3]->release = nullptr; });
  refuses("expected a batch of 4 columns", [](Table& t) { t.batch().n_children = 3; });
  refuses("expected a batch of 0 to", [](Table& t) { t.batch().length = -5; });
  refuses("expected a batch of 0 to", [](Table& t) { t.batch().length = int64_t{1} << 62; });
  refuses("expected a batch of 0 to", [](Table& t) { t.batch().offset = int64_t{1} << 62; });
  refuses("rows in each column, found 9, beginning at -1", [](Table& t) { t.arrays[0]->offset = -1; });
  refuses("rows in each column, found 3", [](Table& t) { t.arrays[0]->length = 3; });
  refuses("an array of 2 buffers", [](Table& t) { t.arrays[2]->n_buffers = 1; });
  refuses("an array of 2 buffers", [](Table& t) { t.arrays[2]->buffers = nullptr; });
  refuses("expected a buffer of values, found none", [](Table& t) { t.nodes[2]->buffers[1] = nullptr; });
  refuses("expected a buffer of offsets, found none", [](Table& t) { t.nodes[3]->buffers[1] = nullptr; });
  refuses("a null pointer or a released child", [](Table& t) { t.arrays[3]->children = nullptr; });
  refuses("a null pointer or a released child", [](Table& t) { t.element = nullptr; });
  refuses("more elements", [](Table& t) { t.nodes[4]->array.length = 1; });
  refuses("offsets that do not descend", [](Table& t) {
    if (t.content.t_offsets.size() > 5) t.content.t_offsets[5] = 0;  // not of the schema's table
  });
  EXPECT_EQ(live, before);

  TERCEL_EXPECT_THROW(read({{{0, 9}, {9, 9}}, {}, 1, 0, nullptr}), DataError,
                      "train table: Arrow: the producer is broken");
  TERCEL_EXPECT_THROW(read({{}, {}, -1, 0, nullptr}), DataError, "train table: expected rows, found none");
  TERCEL_EXPECT_THROW(read({{{0, 0}}, {}, -1, 0, nullptr}), DataError, "train table: expected rows, found none");
  EXPECT_EQ(live, before);
  ArrowArrayStream released{};
  TERCEL_EXPECT_THROW(dataset_from_arrow({&released, nullptr, nullptr}, options_of(), [](int64_t) {}), DataError,
                      "train table: expected an Arrow stream, found one that was released");
  Producer producer{{{0, 9}}, {}, -1, 0, nullptr};
  ArrowArrayStream hollow = producer.stream();
  hollow.get_next = nullptr;
  TERCEL_EXPECT_THROW(dataset_from_arrow({&hollow, nullptr, nullptr}, options_of(), [](int64_t) {}), DataError,
                      "with get_schema and get_next");
  ArrowArrayStream full = producer.stream();
  full.get_next = [](ArrowArrayStream* /*self*/, ArrowArray* /*batch*/) { return ENOMEM; };
  TERCEL_EXPECT_THROW(dataset_from_arrow({&full, nullptr, nullptr}, options_of(), [](int64_t) {}), OutOfMemoryError,
                      "train table: Arrow: the producer is broken");
  TERCEL_EXPECT_THROW(dataset_from_arrow({}, options_of(), [](int64_t) {}), ConfigError, "a table of the train part");
}

TEST(ArrowTable, StreamsAreConsumedByAnError) {
  Producer producer{{{0, 9}}, {}, -1, 0, nullptr};
  ArrowTableOptions options = options_of();
  options.label.clear();
  ArrowArrayStream train = producer.stream(), valid = producer.stream(), test = producer.stream();
  TERCEL_EXPECT_THROW(dataset_from_arrow({&train, &valid, &test}, options, [](int64_t) {}), ConfigError, "'label'");
  for (const ArrowArrayStream* stream : {&train, &valid, &test}) EXPECT_EQ(stream->release, nullptr);
  options = options_of();
  options.fill_null_dense = {1, 2};
  TERCEL_EXPECT_THROW(read(std::move(producer), options), ConfigError,
                      "[arrow] options 'fill_null_dense' and 'fill_null_key'");
}

}  // namespace
}  // namespace tercel::data::test
