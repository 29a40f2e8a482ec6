#include "tercel/io/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tercel/util/error.h"
#include "tercel/util/file_hook.h"
#include "tests/io/damage.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/util/temporary_folder.h"

namespace tercel::io {
namespace {

using test::bytes_of;
using test::make;
using test::Sizes;
using test::TemporaryFolder;
using test::values_of;

/** The file by the format's specification: magic, version 1.0, length of the header, header, values. */
std::string expected_file(const std::vector<float>& values) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(values.size()) + ",), }";
  header.resize(128 - 10 - 1, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  EXPECT_EQ(file.size() % 64, 0u);
  return file + std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

TEST(Npy, WritesTheFormatOfNumPy) {
  for (const size_t n : {size_t{0}, size_t{1}, size_t{9}, size_t{10}, size_t{100000}}) {
    const TemporaryFolder folder;
    std::vector<float> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i) * 0.5f - 3;
    NpyWriter writer(folder / "x.npy");
    for (size_t start = 0; start < n; start += 7777)  // in pieces
      writer.write(Span<float>(values).subspan(start, std::min<size_t>(7777, n - start)));
    EXPECT_EQ(folder.get("x.npy"), "") << "the file does not exist before it is complete";
    writer.commit();
    EXPECT_EQ(folder.get("x.npy"), expected_file(values)) << n;
  }
}

TEST(Npy, WritesRowsOfSeveralNumbers) {
  const TemporaryFolder folder;
  NpyWriter writer(folder / "x.npy", {3});
  for (int row = 0; row < 12; ++row) writer.write({static_cast<float>(row), 1.0f, 2.0f});
  writer.commit();
  const Tensor read = load_npy(folder / "x.npy");
  EXPECT_EQ(read.sizes(), IntSpan({12, 3}));
  EXPECT_EQ(read.data<float>()[3 * 11], 11);
  save_npy(folder / "y.npy", read);
  EXPECT_EQ(folder.get("x.npy"), folder.get("y.npy"));
  NpyWriter part(folder / "z.npy", {3});
  part.write({1.0f, 2.0f});
  TERCEL_EXPECT_THROW(part.commit(), ValueError, "2 values are no whole rows [3]");
}

TEST(Npy, WithoutCommitNothingIsLeft) {
  const TemporaryFolder folder;
  folder.put("x.npy", "old");
  {
    NpyWriter writer(folder / "x.npy");
    writer.write({1.0f, 2.0f});
  }
  EXPECT_EQ(folder.tree().size(), 1u);
  EXPECT_EQ(folder.get("x.npy"), "old");
}

TEST(Npy, EveryFailingCallLeavesTheOldFile) {
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    const TemporaryFolder folder;
    folder.put("x.npy", "old");
    const ScopedFault fault({.nth = n, .error = 28});
    bool threw = false;
    try {
      NpyWriter writer(folder / "x.npy");
      writer.write({1.0f, 2.0f});
      writer.commit();
    } catch (const IoError&) {
      threw = true;
      ++failures;
    }
    const std::string content = folder.get("x.npy");
    ASSERT_TRUE(content == expected_file({1, 2}) || (threw && content == "old")) << "call " << n;
    ASSERT_EQ(folder.tree().size(), 1u) << "call " << n;
    if (!fault.fired()) break;
  }
  EXPECT_GT(failures, 5);
}

/** A file of version 1.0 with that dict, padded as NumPy pads, and those elements. */
std::string file_of(std::string dict, const std::string& data, char major = 1) {
  const size_t front = major == 1 ? 10 : 12;
  dict.resize((front + dict.size() + 1 + 63) / 64 * 64 - front - 1, ' ');
  dict += '\n';
  std::string file("\x93NUMPY", 6);
  file += major;
  file += '\0';
  for (size_t i = 0; i < front - 8; ++i) file += static_cast<char>(dict.size() >> (8 * i));
  return file + dict + data;
}

Tensor load(const std::string& content, const NpyOptions& options = {}) {
  const TemporaryFolder folder;
  return load_npy(folder.put("x.npy", content), options);
}

std::string saved(const Tensor& t) {
  const TemporaryFolder folder;
  save_npy(folder / "x.npy", t);
  return folder.get("x.npy");
}

// Files of NumPy 2.4, byte for byte.
TEST(Npy, GoldenFiles) {
  const auto golden = [](const std::string& dict, const std::string& data) { return file_of(dict, data); };
  EXPECT_EQ(saved(make({}, kInt64, {7})),
            golden("{'descr': '<i8', 'fortran_order': False, 'shape': (), }", std::string("\7\0\0\0\0\0\0\0", 8)));
  EXPECT_EQ(
      saved(make({1, 2}, kBool, {1, 0})),
      golden("{'descr': '|b1', 'fortran_order': False, 'shape': (1, 2), }                   ", std::string("\1\0", 2)));
  EXPECT_EQ(saved(empty({0, 5}, kFloat16)),
            golden("{'descr': '<f2', 'fortran_order': False, 'shape': (0, 5), }                   ", ""));
  const Tensor fortran = test::placed(make({2, 3}, kInt16, {0, 1, 2, 3, 4, 5}), test::Placement::Transposed);
  EXPECT_EQ(saved(fortran), golden("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }                 ",
                                   std::string("\0\0\3\0\1\0\4\0\2\0\5\0", 12)));
}

TEST(Npy, RoundTripOfEveryDtypeAndPlacement) {
  const TemporaryFolder folder;
  for (const ScalarType dtype : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kFloat32, kFloat64})
    for (const Sizes& sizes : {Sizes{}, Sizes{1}, Sizes{0}, Sizes{3, 0, 2}, Sizes{2, 3, 5}, Sizes{40, 70, 30}}) {
      const Tensor t = test::random(sizes, dtype, 0, dtype == kBool ? 1 : 100, 1);
      for (const auto placement : test::placements()) {
        save_npy(folder / "x.npy", test::placed(t, placement));
        for (const bool mmap : {false, true}) {
          const Tensor back = load_npy(folder / "x.npy", {.mmap = mmap});
          ASSERT_EQ(back.dtype(), dtype);
          ASSERT_EQ(back.sizes(), t.sizes());
          ASSERT_EQ(bytes_of(back), bytes_of(t)) << name_of(placement) << (mmap ? " mapped" : "");
        }
      }
    }
}

TEST(Npy, MappedArrayIsPrivate) {
  const TemporaryFolder folder;
  save_npy(folder / "x.npy", make({2}, kInt32, {1, 2}));
  const Tensor t = load_npy(folder / "x.npy", {.mmap = true});
  t.data<int32_t>()[0] = 9;
  EXPECT_EQ(values_of(t), (std::vector<double>{9, 2}));
  EXPECT_EQ(values_of(load_npy(folder / "x.npy")), (std::vector<double>{1, 2}));
}

TEST(Npy, FilesOfOthers) {
  const std::string two("\x00\x01\x01\x02", 4);
  for (const char major : {'\1', '\2', '\3'})
    EXPECT_EQ(values_of(load(file_of("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", two, major))),
              (std::vector<double>{1, 258}));
  EXPECT_EQ(values_of(load(file_of("{\"shape\":(2L,),\"fortran_order\":False,\"descr\":\"=i2\"}", two))),
            (std::vector<double>{256, 513}));
  EXPECT_EQ(values_of(load(file_of("{'descr':'>i2','fortran_order':True,'shape':(1,2)}", two), {.mmap = true})),
            (std::vector<double>{1, 258}));
}

TEST(Npy, WrongFiles) {
  const std::string four(4, '\0');
  const auto dict = [](const std::string& descr, const std::string& shape) {
    return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
  };
  struct Case {
    std::string content, message;
  };
  const Case cases[] = {
      {"", "x.npy: byte 0: expected 10 bytes of magic, version and length of the header, found 0 before the end"},
      {"PK\3\4" + std::string(40, ' '), "byte 0: expected a .npy file"},
      {"\x93NUMPY\4" + std::string(20, '\0'), "byte 6: expected version 1.0, 2.0 or 3.0, found 4.0"},
      {std::string("\x93NUMPY\1\0\xff\xff", 10), "byte 8: expected a header of at most 0 bytes, found 65535"},
      {std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12) + std::string(1 << 17, ' '), "at most 65536 bytes"},
      {file_of(dict("'|O'", "(1,)"), four), "found '|O', Python objects, which are a pickle and could run code"},
      {file_of(dict("'<U1'", "(1,)"), four), "found '<U1', strings"},
      {file_of(dict("'<M8[ns]'", "(1,)"), four), "dates or times"},
      {file_of(dict("'V4'", "(1,)"), four), "found 'V4'"},
      {file_of(dict("''", "(1,)"), four), "found ''"},
      {file_of(dict("'<f3'", "(1,)"), four), "expected the descr of a number"},
      {file_of(dict("[('a', '<f4')]", "(1,)"), four), "found a record; load its fields one by one"},
      {file_of(dict("'<f4'", "(2,)"), four),
       "byte 128: expected 8 bytes for [2] float32, found 4 bytes before the end"},
      {file_of(dict("'<f4'", "(1,)"), four + "x"), "found 5 bytes before the end"},
      {file_of(dict("'<f4'", "(-1,)"), four), "at most 64 sizes of 63 bits, found -1"},
      {file_of(dict("'<f4'", "(1.5,)"), four), "a comma or the end of the tuple"},
      {file_of(dict("'<f4'", "(9223372036854775808,)"), four), "sizes of 63 bits"},
      {file_of(dict("'<f4'", "(4611686018427387904,)"), four), "sizes of 63 bits together"},
      {file_of(dict("'<f4'", "(0, 4611686018427387904)"), ""), "sizes of 63 bits together"},
      {file_of(dict("'<f4'", "(1 1)"), four), "a comma or the end of the tuple"},
      {file_of(dict("'<f4'", "1"), four), "expected a tuple, found 1"},
      {file_of(dict("'<f4", "(1,)"), four), "expected"},
      {file_of("{'descr': '<f4', 'descr': '<f4', 'shape': (1,)}", four), "once each, found descr"},
      {file_of("{'descr': '<f4', 'shape': (1,)}", four), "expected descr, fortran_order and shape"},
      {file_of("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}", four), "expected True or False, found 1"},
      {file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} + {}", four), "the end of the header after"},
      {file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", four), "end of the dict"},
      {file_of("__import__('os')", four), "expected a dict"},
      {file_of(dict("'|b1'", "(3,)"), std::string("\1\0\2", 3)), "byte 130: expected 0 or 1 for a bool, found 2"},
  };
  for (const Case& c : cases) {
    TERCEL_EXPECT_THROW(load(c.content), DataError, c.message);
    TERCEL_EXPECT_THROW(load(c.content, {.mmap = true}), DataError, c.message);
  }
}

TEST(Npy, WriterRefuses) {
  const TemporaryFolder folder;
  TERCEL_EXPECT_THROW(save_npy(folder / "x.npy", Tensor()), RuntimeError,
                      "save_npy: expected a strided tensor on the CPU but got an undefined tensor");
  TERCEL_EXPECT_THROW(save_npy(folder / "x.npy", empty({1}, kBFloat16)), TypeError, "NumPy has no dtype for bfloat16");
  EXPECT_TRUE(folder.tree().empty());
}

TEST(Npy, Damaged) {
  const std::string whole = saved(make({2, 2}, kFloat32, {1, 2, 3, 4}));
  for (const bool mmap : {false, true}) {
    const auto read = [mmap](const std::string& path) { static_cast<void>(load_npy(path, {.mmap = mmap})); };
    test::expect_cut_refused(whole, read);
    EXPECT_GT(test::count_refused_flips(whole, read), 500);
  }
}

}  // namespace
}  // namespace tercel::io
