// HugeCTR's files of tables and collections, byte for byte.
#include "tercel/recsys/hugectr/model_files.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tercel/ops/factories/factories.h"
#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/recsys/embedding/static_table.h"
#include "tercel/recsys/embedding/table_rows.h"
#include "tercel/recsys/hugectr/collection_files.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/util/temporary_folder.h"

namespace tercel::recsys::hugectr {
namespace {

using tercel::test::TemporaryFolder;
using tercel::test::values_of;

const nn::Init kInit = nn::Init::uniform(0.5);

template <class T>
std::string bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Tensor tensor_of(const std::vector<int64_t>& values) {
  Tensor t = empty({static_cast<int64_t>(values.size())}, kInt64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return t;
}

void allocate(EmbeddingTable& table) {
  ASSERT_TRUE(table.allocate(1, {}, {}, [] { return true; }));
}

std::vector<double> vectors(EmbeddingTable& table, const std::vector<int64_t>& keys) {
  std::vector<double> all;
  for (const int64_t key : keys) {
    const int64_t row = table.find_rows(tensor_of({key}), NewKeys::Refuse).data<int64_t>()[0];
    for (const double value : values_of(table.weight().detach().select(0, row))) all.push_back(value);
  }
  return all;
}

TEST(HugeCtrFiles, NamesOfASnapshot) {
  const SnapshotName name{"a/m", 20};
  EXPECT_EQ(name.dense(), "a/m_dense_20.model");
  EXPECT_EQ(name.statistics(), "a/m_dense_20.model.ntp.json");
  EXPECT_EQ(name.dense_states(), "a/m_opt_dense_20.model");
  EXPECT_EQ(name.table(3), "a/m3_sparse_20.model");
  EXPECT_EQ(name.table_states(3), "a/m3_opt_sparse_20.model");
  EXPECT_EQ(snapshot_of("x_dense_7_dense_20.model").prefix, "x_dense_7");
  EXPECT_EQ(snapshot_of("a/m_dense_20.model").iteration, 20);
  for (const char* path : {"", "m.model", "m_dense_.model", "m_dense_x.model", "m_dense_-1.model", "m_dense_1.mode",
                           "m_dense_01.model", "m_dense_9999999999999.model", "_dense_.model", "_dense.model"})
    TERCEL_EXPECT_THROW(snapshot_of(path), DataError, "expected the file of dense weights, PREFIX_dense_N.model");
}

TEST(HugeCtrFiles, ATableIsKeysAndVectors) {
  const TemporaryFolder root;
  HashedTable table("t", 2, kInit);
  allocate(table);
  root.put("in/key", bytes<int64_t>({7, -3}));
  root.put("in/emb_vector", bytes<float>({1, 2, 3, 4}));
  EXPECT_EQ(values_of(read_table(root / "in", table).keys), (std::vector<double>{7, -3}));
  EXPECT_EQ(vectors(table, {7, -3}), (std::vector<double>{1, 2, 3, 4}));
  write_table(root / "out", table);
  EXPECT_EQ(root.get("out/key"), bytes<int64_t>({-3, 7})) << "ascending";
  EXPECT_EQ(root.get("out/emb_vector"), bytes<float>({3, 4, 1, 2}));
  StaticTable range("r", 5, 4, 2, kInit);
  allocate(range);
  TERCEL_EXPECT_THROW(read_table(root / "in", range), DataError, "key: embedding table 'r': no row for key -3");
  TERCEL_EXPECT_THROW(read_table(root / "none", range), IoError, "none/key");
  root.put("in/emb_vector", bytes<float>({1, 2, 3}));
  TERCEL_EXPECT_THROW(read_table(root / "in", table), DataError,
                      "emb_vector: expected 16 bytes, vectors of 2 numbers for 2 keys, found 12");
}

TEST(HugeCtrFiles, ACollectionIsMetaDataKeysAndWeights) {
  const TemporaryFolder root;
  StaticTable a("a", 0, 2, 1, kInit);
  HashedTable b("b", 3, kInit);
  allocate(a);
  allocate(b);
  Tensor one = empty({2, 1}, kFloat32), other = empty({1, 3}, kFloat32);
  for (int i = 0; i < 2; ++i) one.data<float>()[i] = static_cast<float>(i) + 1;
  for (int i = 0; i < 3; ++i) other.data<float>()[i] = static_cast<float>(i) + 5;
  set_vectors(a, tensor_of({0, 1}), one);
  set_vectors(b, tensor_of({9}), other);
  const std::vector<CollectionTable> tables{{&a, 0}, {&b, 4}};
  std::vector<int32_t> header(32, 0);
  header[0] = 1;
  header[1] = 4;
  for (const bool wide : {true, false}) {
    const std::string folder = wide ? "wide" : "narrow";
    write_collection(root / folder, tables, wide);
    EXPECT_EQ(root.get(folder + "/meta_data"),
              bytes<int32_t>({2, wide ? 1 : 0, 0, 0, 3, 0, 4}) + bytes<uint64_t>({2, 1}) + bytes<int32_t>({1, 3}));
    EXPECT_EQ(root.get(folder + "/key4"), bytes(header) + (wide ? bytes<int64_t>({9}) : bytes<uint32_t>({9})));
    header[0] = 2;
    EXPECT_EQ(root.get(folder + "/weight4"), bytes(header) + bytes<float>({5, 6, 7}));
    header[0] = 1;
    StaticTable again("a", 0, 2, 1, kInit);
    HashedTable more("b", 3, kInit);
    allocate(again);
    allocate(more);
    const auto keys = read_collection(root / folder, std::vector<CollectionTable>{{&again, 0}, {&more, 4}});
    EXPECT_EQ(values_of(keys[1].keys), std::vector<double>{9});
    EXPECT_EQ(vectors(again, {0, 1}), (std::vector<double>{1, 2}));
    EXPECT_EQ(vectors(more, {9}), (std::vector<double>{5, 6, 7}));
  }
  set_vectors(b, tensor_of({-1}), other);
  TERCEL_EXPECT_THROW(write_collection(root / "n", tables, false), DataError, "expected keys of 4 bytes");
  // Damaged ones.
  TERCEL_EXPECT_THROW(read_collection(root / "wide", std::vector<CollectionTable>{{&a, 3}}), DataError,
                      "expected a table 3 ('a')");
  TERCEL_EXPECT_THROW(read_collection(root / "wide", std::vector<CollectionTable>{{&b, 0}}), DataError,
                      "table 0 ('b'): expected vectors of 3 numbers, found 1");
  root.put("wide/key4", bytes(std::vector<int32_t>(32, 0)) + bytes<int64_t>({9}));
  TERCEL_EXPECT_THROW(read_collection(root / "wide", tables), DataError,
                      "key4: expected the header (1, 4), found (0, 0)");
  root.put("wide/weight4", "123");
  TERCEL_EXPECT_THROW(read_collection(root / "wide", tables), DataError, "weight4: expected 140 bytes");
}

TEST(HugeCtrFiles, DamagedMetaData) {
  const auto parse = [](const std::string& text) { return parse_collection(text, "meta"); };
  const std::string head = bytes<int32_t>({1, 1, 0, 0, 3, 0}), counts = bytes<uint64_t>({2});
  EXPECT_EQ(parse(head + counts + bytes<int32_t>({3})).tables[0].keys, 2);
  for (const std::string& text : {std::string(), std::string(19, '\0'), head, bytes<int32_t>({-1, 1, 0, 0, 3}),
                                  bytes<int32_t>({1 << 28, 1, 0, 0, 3})})
    TERCEL_EXPECT_THROW(parse(text), DataError, "meta: expected 20 bytes, and 16 for each table, found ");
  TERCEL_EXPECT_THROW(parse(bytes<int32_t>({0, 2, 0, 0, 3})), DataError, "the type of the keys 0 or 1, found 2");
  TERCEL_EXPECT_THROW(parse(bytes<int32_t>({0, 1, 1, 0, 3})), DataError, "vectors of float32 (0), found the type 1");
  TERCEL_EXPECT_THROW(parse(head + bytes<uint64_t>({~uint64_t{0}}) + bytes<int32_t>({3})), DataError,
                      "table 0: expected a number of keys and a width");
  TERCEL_EXPECT_THROW(parse(head + counts + bytes<int32_t>({0})), DataError, "found 2 and 0");
  TERCEL_EXPECT_THROW(parse(bytes<int32_t>({2, 1, 0, 0, 3, 5, 5}) + counts + counts + bytes<int32_t>({1, 1})),
                      DataError, "table 5 is there twice");
}

}  // namespace
}  // namespace tercel::recsys::hugectr
