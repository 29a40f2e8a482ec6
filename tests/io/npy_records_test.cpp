#include "tercel/io/npy_records.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/util/temporary_folder.h"

namespace tercel::io {
namespace {

using test::TemporaryFolder;

/** The file by the format's specification: magic, version, length of the header, header, records. */
std::string expected_file(const std::string& dict, const std::string& records, size_t size) {
  std::string header = dict;
  const size_t front = size > 0xffff ? 12 : 10;
  header.resize(size - front - 1, ' ');
  header += '\n';
  std::string file("\x93NUMPY", 6);
  file += front == 12 ? std::string("\x02\x00", 2) : std::string("\x01\x00", 2);
  for (size_t byte = 0; byte < front - 8; ++byte) file += static_cast<char>(header.size() >> 8 * byte & 255);
  return file + header + records;
}

TEST(NpyRecords, WritesTheFormatOfNumPy) {
  const TemporaryFolder root;
  NpyRecordWriter writer(root / "x.npy", {{"id", "<i8", 8}, {"it's \xc3\xa9\xf0\x9f\x98\x80", "<f4", 4}});
  EXPECT_EQ(writer.record_bytes(), 12);
  const std::string record = "12345678abcd";
  writer.write((record + record).data(), 2);
  writer.write(record.data(), 1);
  EXPECT_EQ(root.get("x.npy"), "") << "the file does not exist before it is complete";
  writer.commit();
  EXPECT_EQ(root.get("x.npy"), expected_file("{'descr': [('id', '<i8'), ('it\\'s \\u00e9\\U0001f600', '<f4')], "
                                             "'fortran_order': False, 'shape': (3,), }",
                                             record + record + record, 192));
}

TEST(NpyRecords, ALongHeaderHasVersion2) {
  const TemporaryFolder root;
  std::vector<NpyField> fields;
  std::string dict = "{'descr': [";
  for (int i = 0; i < 5000; ++i) {
    const std::string name = "column" + std::to_string(i);
    fields.push_back({name, "<f4", 4});
    dict += (i > 0 ? ", ('" : "('") + name + "', '<f4')";
  }
  NpyRecordWriter writer(root / "x.npy", fields);
  writer.commit();
  const std::string file = root.get("x.npy");
  EXPECT_GT(file.size(), 100'000u);
  EXPECT_EQ(file.size() % 64, 0u);
  EXPECT_EQ(file, expected_file(dict + "], 'fortran_order': False, 'shape': (0,), }", "", file.size()));
}

TEST(NpyRecords, MistakesAreNamed) {
  const TemporaryFolder root;
  TERCEL_EXPECT_THROW(NpyRecordWriter(root / "x.npy", {}), ValueError, "expected fields, found none");
  TERCEL_EXPECT_THROW(NpyRecordWriter(root / "x.npy", {{"a", "<f4", 4}, {"a", "<i8", 8}}), ValueError,
                      "found 'a' twice");
  TERCEL_EXPECT_THROW(NpyRecordWriter(root / "x.npy", {{"", "<f4", 4}}), ValueError, "field 0: expected a name");
  { NpyRecordWriter without_commit(root / "x.npy", {{"a", "<f4", 4}}); }
  EXPECT_TRUE(root.tree().empty());
}

TEST(NpyRecords, CodePointsOfUtf8) {
  EXPECT_EQ(code_points("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), U"a\u00e9\u20ac\U0001f600");
  EXPECT_EQ(code_points(""), U"");
  TERCEL_EXPECT_THROW(code_points("caf\xe9"), ValueError, "expected text in UTF-8, found 'caf\\xe9'");
}

}  // namespace
}  // namespace tercel::io
