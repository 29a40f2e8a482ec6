#include "tercel/recsys/hugectr/collection_files.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "tercel/recsys/hugectr/raw_values_impl.h"
#include "tercel/recsys/hugectr/table_vectors_impl.h"
#include "tercel/recsys/ranks.h"
#include "tercel/recsys/table_order.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::recsys::hugectr {

namespace {

constexpr const char* kMeta = "meta_data";
constexpr int64_t kMaxMetaBytes = int64_t{1} << 24;
constexpr int64_t kHeader = 128;  // bytes
constexpr int32_t kKey = 1, kWeight = 2;
constexpr size_t kFirst = 20, kEach = 16;  // bytes of a meta_data: before the tables, and of each

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <class T>
T at(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

std::array<int32_t, 32> header_of(int32_t kind, int32_t number) {
  std::array<int32_t, 32> header{};
  header[0] = kind;
  header[1] = number;
  return header;
}

void check_header(const std::string& path, int32_t kind, int32_t number) {
  int32_t found[2] = {};
  File::open_read(path).pread_exact(found, sizeof(found), 0);
  TERCEL_CHECK(found[0] == kind && found[1] == number, DataError, printable(path), ": expected the header (", kind,
               ", ", number, "), found (", found[0], ", ", found[1], ")");
}

void write_keys(FileWriter& out, const Tensor& keys, bool wide, const EmbeddingTable& table) {
  if (wide) return out.write(keys.data_ptr(), keys.nbytes());
  for (int64_t i = 0; i < keys.numel(); ++i) {
    const int64_t key = keys.data<int64_t>()[i];
    TERCEL_CHECK(key >= 0 && key <= std::numeric_limits<uint32_t>::max(), DataError, "table '", printable(table.name()),
                 "': expected keys of 4 bytes, as the solver says, found ", key);
    const auto narrow = static_cast<uint32_t>(key);
    out.write(&narrow, sizeof(narrow));
  }
}

/** Writes a table's keys and vectors. */
void write_table(const std::string& folder, const CollectionTable& of, const RowOrder& order, bool wide_keys,
                 distributed::ProcessGroup* group) {
  const EmbeddingTable& table = *of.table;
  std::optional<AtomicFile> keys, vectors;
  do_on_first(group, [&] {
    const auto of_keys = header_of(kKey, of.number), of_vectors = header_of(kWeight, of.number);
    keys.emplace(join_path(folder, str_cat({"key", of.number})));
    keys->write(of_keys.data(), sizeof(of_keys));
    vectors.emplace(join_path(folder, str_cat({"weight", of.number})));
    vectors->write(of_vectors.data(), sizeof(of_vectors));
  });
  take_keys(order, group, [&](const Tensor& window) { write_keys(keys->writer(), window, wide_keys, table); });
  take_rows(order, group, table.weight().detach(),
            [&](const Tensor& window) { write_floats(vectors->writer(), window); });
  do_on_first(group, [&] {
    keys->commit();
    vectors->commit();
  });
}

/** The files of a table, with sizes and headers that fit. */
VectorFiles open_table(const std::string& folder, const CollectionTable& of) {
  const std::string path = join_path(folder, kMeta), name = printable(path);
  const CollectionContent content = parse_collection(read_file(path, kMaxMetaBytes), name);
  const EmbeddingTable& table = *of.table;
  const auto found = std::find_if(content.tables.begin(), content.tables.end(),
                                  [&of](const auto& candidate) { return candidate.number == of.number; });
  TERCEL_CHECK(found != content.tables.end(), DataError, name, ": expected a table ", of.number, " ('",
               printable(table.name()), "'), found ", content.tables.size(), " others");
  TERCEL_CHECK(found->width == table.dim(), DataError, name, ": table ", of.number, " ('", printable(table.name()),
               "'): expected vectors of ", table.dim(), " numbers, found ", found->width);
  const std::string keys_path = join_path(folder, str_cat({"key", of.number})),
                    vectors_path = join_path(folder, str_cat({"weight", of.number}));
  ValuesFile keys(keys_path, content.wide_keys ? kInt64 : kInt32, found->keys,
                  str_cat({"a header and ", format_count(found->keys), " keys"}), kHeader);
  ValuesFile vectors(vectors_path, kFloat32, found->keys * table.dim(),
                     str_cat({"a header and ", format_count(found->keys), " vectors"}), kHeader);
  check_header(keys_path, kKey, of.number);
  check_header(vectors_path, kWeight, of.number);
  return {keys_path, found->keys, std::move(keys), content.wide_keys, std::move(vectors)};
}

}  // namespace

CollectionContent parse_collection(std::string_view bytes, std::string_view name) {
  const auto count = bytes.size() >= kFirst ? at<int32_t>(bytes, 0) : -1;
  TERCEL_CHECK(count >= 0 && bytes.size() == kFirst + kEach * static_cast<size_t>(count), DataError, name,
               ": expected 20 bytes, and 16 for each table, found ", bytes.size(), " bytes");
  const auto key_type = at<int32_t>(bytes, 4), value_type = at<int32_t>(bytes, 8);
  TERCEL_CHECK(key_type == 0 || key_type == 1, DataError, name, ": expected the type of the keys 0 or 1, found ",
               key_type);
  TERCEL_CHECK(value_type == 0, DataError, name, ": expected vectors of float32 (0), found the type ", value_type);
  CollectionContent content;
  content.wide_keys = key_type == 1;
  const auto tables = static_cast<size_t>(count);
  for (size_t t = 0; t < tables; ++t) {
    CollectionContent::Table table;
    table.number = at<int32_t>(bytes, kFirst + 4 * t);
    const auto keys = at<uint64_t>(bytes, kFirst + 4 * tables + 8 * t);
    table.width = at<int32_t>(bytes, kFirst + 12 * tables + 4 * t);
    int64_t numbers = 0;
    TERCEL_CHECK(table.width > 0 && keys <= uint64_t{1} << 48 &&
                     !__builtin_mul_overflow(static_cast<int64_t>(keys), int64_t{table.width}, &numbers),
                 DataError, name, ": table ", table.number, ": expected a number of keys and a width, found ", keys,
                 " and ", table.width);
    table.keys = static_cast<int64_t>(keys);
    for (const CollectionContent::Table& other : content.tables)
      TERCEL_CHECK(other.number != table.number, DataError, name, ": table ", table.number, " is there twice");
    content.tables.push_back(table);
  }
  return content;
}

std::vector<CollectionTable> collection_of(Model& model) {
  std::vector<CollectionTable> found;
  for (const GraphNode& node : model.graph().nodes) {
    if (node.type != "EmbeddingLookup") continue;
    EmbeddingTable* const table = model.embeddings().tables()[static_cast<size_t>(node.table)].get();
    const bool is_known =
        std::any_of(found.begin(), found.end(), [table](const CollectionTable& other) { return other.table == table; });
    if (!is_known) found.push_back({table, static_cast<int32_t>(found.size())});
  }
  return found;
}

void write_collection(const std::string& folder, Span<CollectionTable> tables, bool wide_keys,
                      distributed::ProcessGroup* group) {
  do_on_first(group, [&] { create_dirs(folder); });
  std::string numbers, counts, widths;
  int64_t widest = 0;
  for (const CollectionTable& of : tables) {
    const RowOrder order = order_of_keys(*of.table, group);
    append(numbers, of.number);
    append(counts, static_cast<uint64_t>(order.count));
    append(widths, static_cast<int32_t>(of.table->dim()));
    widest = std::max(widest, of.table->dim());
    write_table(folder, of, order, wide_keys, group);
  }
  std::string meta;
  for (const int64_t value : {static_cast<int64_t>(tables.size()), int64_t{wide_keys}, int64_t{0}, int64_t{0}, widest})
    append(meta, static_cast<int32_t>(value));
  do_on_first(group, [&] { write_file_atomically(join_path(folder, kMeta), meta + numbers + counts + widths); });
}

std::vector<RowOrder> read_collection(const std::string& folder, Span<CollectionTable> tables,
                                      distributed::ProcessGroup* group) {
  std::vector<RowOrder> all;
  for (const CollectionTable& of : tables)
    all.push_back(set_file_vectors([&] { return open_table(folder, of); }, *of.table, group));
  return all;
}

}  // namespace tercel::recsys::hugectr
