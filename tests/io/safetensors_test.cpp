#include "tercel/io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tercel/core/alignment.h"
#include "tercel/util/checksum.h"
#include "tercel/util/file.h"
#include "tercel/util/file_hook.h"
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

std::string little_endian(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

/** A file with that header, verbatim, and that data. */
std::string file_of(const std::string& header, const std::string& data) {
  return little_endian(header.size()) + header + data;
}

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

/** The bytes that the library writes. */
std::string written(const std::vector<NamedTensor>& tensors, const Metadata& metadata = {}) {
  const TemporaryFolder folder;
  const uint64_t sum = write_safetensors(folder / "x", tensors, metadata);
  const std::string content = folder.get("x");
  EXPECT_EQ(sum, checksum(content.data(), content.size()));
  return content;
}

/** Opens a file of that content and reads all of it. */
void read_all(const std::string& content) {
  const TemporaryFolder folder;
  const SafetensorsReader reader(folder.put("x", content));
  for (const TensorEntry& entry : reader.entries()) static_cast<void>(reader.read(entry));
}

// Files of the reference implementation, byte for byte.
TEST(Safetensors, GoldenEmpty) { EXPECT_EQ(written({}), file_of("{}      ", "")); }

TEST(Safetensors, GoldenOneTensor) {
  const std::string header = R"({"attn.0":{"dtype":"F32","shape":[1,2,3],"data_offsets":[0,24]}})";
  ASSERT_EQ(header.size(), 64u) << "no padding";
  EXPECT_EQ(written({{"attn.0", make({1, 2, 3}, kFloat32, {0, 1, 2, 3, 4, 5})}}),
            file_of(header, floats({0, 1, 2, 3, 4, 5})));
}

TEST(Safetensors, GoldenMetadata) {
  const std::string header = R"({"__metadata__":{"framework":"pt"}}     )";
  ASSERT_EQ(header.size(), 40u);
  EXPECT_EQ(written({}, {{"framework", "pt"}}), file_of(header, ""));
}

TEST(Safetensors, GoldenOrderIsByAlignmentThenName) {
  const std::string content = written({{"b", make({1}, kUInt8, {7})},
                                       {"a", make({1}, kUInt8, {6})},
                                       {"f", make({1}, kFloat32, {1})},
                                       {"z", make({}, kInt64, {-2})},
                                       {"h", make({1}, kFloat16, {1})}});
  const std::string header =
      R"({"z":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"f":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},)"
      R"("h":{"dtype":"F16","shape":[1],"data_offsets":[12,14]},"a":{"dtype":"U8","shape":[1],"data_offsets":[14,15]},)"
      R"("b":{"dtype":"U8","shape":[1],"data_offsets":[15,16]}})";
  std::string padded = header;
  padded.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(content,
            file_of(padded, little_endian(static_cast<uint64_t>(-2)) + floats({1}) + std::string("\0\x3c\6\7", 4)));
}

TEST(Safetensors, RoundTripOfEveryDtypeAndShape) {
  const TemporaryFolder folder;
  std::vector<NamedTensor> tensors;
  for (const ScalarType dtype : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64})
    for (const Sizes& sizes : {Sizes{}, Sizes{1}, Sizes{0}, Sizes{3, 0, 2}, Sizes{2, 3, 5}}) {
      const Tensor t = test::random(sizes, dtype, 0, dtype == kBool ? 1 : 100, tensors.size());
      tensors.push_back({str_cat({to_string(dtype), " \"", sizes.size(), "\" ü/", tensors.size()}), t});
    }
  const double extreme[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -0.0,
                            std::numeric_limits<double>::denorm_min()};
  tensors.push_back({"", make({4}, kFloat64, {extreme[0], extreme[1], extreme[2], extreme[3]})});
  const Metadata metadata = {{"b", "2"}, {"a", "line\n\"quoted\" \x01"}, {"", ""}};
  write_safetensors(folder / "x", tensors, metadata);

  const SafetensorsReader reader(folder / "x");
  EXPECT_EQ(reader.metadata(), metadata);
  ASSERT_EQ(reader.entries().size(), tensors.size());
  for (const NamedTensor& t : tensors) {
    const TensorEntry* entry = reader.find(t.name);
    ASSERT_NE(entry, nullptr) << t.name;
    EXPECT_EQ(entry->dtype, t.tensor.dtype());
    EXPECT_EQ(IntSpan(entry->sizes), t.tensor.sizes());
    EXPECT_EQ(entry->begin % static_cast<int64_t>(t.tensor.itemsize()), 0) << "aligned, so that it could be mapped";
    const Tensor copy = reader.read(*entry);
    EXPECT_EQ(copy.dtype(), t.tensor.dtype());
    EXPECT_EQ(copy.sizes(), t.tensor.sizes());
    EXPECT_EQ(bytes_of(copy), bytes_of(t.tensor)) << t.name;
    const Tensor target = empty(t.tensor.sizes(), t.tensor.dtype());
    const uint32_t version = target.version();
    reader.read_into({t.name, target});
    EXPECT_EQ(bytes_of(target), bytes_of(t.tensor)) << t.name;
    EXPECT_EQ(target.version(), version + 1);
  }
  EXPECT_EQ(reader.find("nobody"), nullptr);
}

TEST(Safetensors, PartsOfAnArenaAreWrittenInPlace) {
  const Tensor arena = test::random({64}, kFloat32, -1, 1, 1);
  const Tensor part(make_intrusive<TensorImpl>(arena.storage(), kFloat32, IntSpan{2, 3}, IntSpan{3, 1}, 16));
  const TemporaryFolder folder;
  write_safetensors(folder / "x", {{"part", part}});
  EXPECT_EQ(bytes_of(SafetensorsReader(folder / "x").read(*SafetensorsReader(folder / "x").find("part"))),
            bytes_of(part));
}

TEST(Safetensors, FilesOfOthers) {
  const TemporaryFolder folder;
  // Any order in the header, spaces, no padding, empty tensors between others.
  const std::string header =
      R"({ "b" : {"data_offsets":[4,8],"shape":[1],"dtype":"F32"}, "e": {"dtype":"I64","shape":[0,7],"data_offsets":[4,4]},
 "a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"last":{"dtype":"F32","shape":[0],"data_offsets":[8,8]} } )";
  const SafetensorsReader reader(folder.put("x", file_of(header, floats({1, 2}))));
  ASSERT_EQ(reader.entries().size(), 4u);
  EXPECT_EQ(values_of(reader.read(*reader.find("a"))), std::vector<double>{1});
  EXPECT_EQ(values_of(reader.read(*reader.find("b"))), std::vector<double>{2});
  EXPECT_EQ(reader.read(*reader.find("e")).sizes().to_vector(), (Sizes{0, 7}));
  EXPECT_EQ(reader.read(*reader.find("last")).numel(), 0);
}

TEST(Safetensors, WriterRefuses) {
  const TemporaryFolder folder;
  const Tensor t = make({2, 3}, kFloat32, {1, 2, 3, 4, 5, 6});
  const auto write = [&](const std::vector<NamedTensor>& tensors, const Metadata& metadata = {}) {
    write_safetensors(folder / "x", tensors, metadata);
  };
  TERCEL_EXPECT_THROW(write({{"a", t}, {"b", t}, {"a", t}}), ValueError, "x: the name 'a' is a duplicate");
  TERCEL_EXPECT_THROW(write({{"a", t}, {"a", make({}, kInt64, {1})}}), ValueError, "the name 'a' is a duplicate");
  TERCEL_EXPECT_THROW(write({{"__metadata__", t}}), ValueError, "the name '__metadata__' is reserved for the metadata");
  TERCEL_EXPECT_THROW(write({{"a\xff", t}}), ValueError, "the name 'a\\xff' is not UTF-8");
  TERCEL_EXPECT_THROW(write({{"a", Tensor()}}), ValueError,
                      "tensor 'a': expected a contiguous one on the CPU but got an undefined tensor");
  TERCEL_EXPECT_THROW(write({{"a", placed(t, test::Placement::Transposed)}}), ValueError, "got [2, 3] float32");
  TERCEL_EXPECT_THROW(write({}, {{"a", "1"}, {"a", "2"}}), ValueError, "metadata 'a' is a duplicate");
  TERCEL_EXPECT_THROW(write({}, {{"a", "\xc3("}}), ValueError, "metadata 'a' is a duplicate or not UTF-8");
  EXPECT_TRUE(folder.tree().empty()) << "a refused write leaves no file";
  folder.put("x", "something");
  TERCEL_EXPECT_THROW(write({{"a", t}}), IoError, "x: create: File exists");
}

TEST(Safetensors, ReadIntoTellsWhatDoesNotFit) {
  const TemporaryFolder folder;
  write_safetensors(folder / "x", {{"a", make({2}, kFloat32, {1, 2})}});
  const SafetensorsReader reader(folder / "x");
  TERCEL_EXPECT_THROW(reader.read_into({"b", empty({2})}), DataError, "x: no tensor 'b'");
  TERCEL_EXPECT_THROW(reader.read_into({"a", empty({3})}), DataError,
                      "x: tensor 'a': expected [3] float32 but found [2] float32");
  TERCEL_EXPECT_THROW(reader.read_into({"a", empty({2}, kFloat64)}), DataError,
                      "expected [2] float64 but found [2] float32");
  TERCEL_EXPECT_THROW(reader.read_into({"a", Tensor()}), ValueError, "got an undefined tensor");
  const Tensor strided = test::make_strided({2}, {2}, 0, 4, kFloat32);
  TERCEL_EXPECT_THROW(reader.read_into({"a", strided}), ValueError, "expected a contiguous one");
}

/** A header with one entry. */
std::string entry(const std::string& text) { return "{\"a\":{" + text + "}}"; }

TEST(Safetensors, WrongHeaders) {
  const std::string four = floats({1});
  struct Case {
    std::string content, message;
  };
  const Case cases[] = {
      {"", "expected at least 8 bytes but the file has 0"},
      {"1234567", "expected at least 8 bytes but the file has 7"},
      {little_endian(0), "expected '{' as its first byte"},
      {little_endian(1), "expected at most 0 bytes, in a file of 8, but its length is 1"},
      {little_endian(100'000'001) + std::string(16, ' '), "expected at most 16 bytes"},
      {little_endian(uint64_t{1} << 31) + "{}", "but its length is 2147483648"},
      {little_endian(uint64_t{1} << 63) + "{}", "but its length is 9223372036854775808"},
      {little_endian(~uint64_t{0}) + "{}", "but its length is 18446744073709551615"},
      {file_of("[]", ""), "expected '{' as its first byte"},
      {file_of(" {}", ""), "expected '{' as its first byte"},
      {file_of("\xef\xbb\xbf{}", ""), "expected '{' as its first byte"},
      {file_of("{}", "x"), "its tensors take 0 bytes but 1 follow it"},
      {file_of("{} {}", ""), "line 1, column 4"},
      {file_of("{\"a\xff\":1}", ""), "ill-formed UTF-8"},
      {file_of(R"({"a":1})", ""), "tensor 'a': expected dtype, shape and data_offsets"},
      {file_of(entry(R"("dtype":"F32","shape":[1])"), four), "expected dtype, shape and data_offsets"},
      {file_of(entry(R"("dtype":"F32","shape":[1],"offsets":[0,4])"), four), "expected dtype, shape and data_offsets"},
      {file_of(entry(R"("dtype":"F31","shape":[1],"data_offsets":[0,4])"), four), "unknown dtype \"F31\""},
      {file_of(entry(R"("dtype":5,"shape":[1],"data_offsets":[0,4])"), four), "unknown dtype 5"},
      {file_of(entry(R"("dtype":"F32","shape":1,"data_offsets":[0,4])"), four), "expected a list of at most 64 sizes"},
      {file_of(entry(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])"), four), "63 bits but found 1.0"},
      {file_of(entry(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), four), "63 bits but found -1"},
      {file_of(entry(R"("dtype":"F32","shape":["1"],"data_offsets":[0,4])"), four), "63 bits but found \"1\""},
      {file_of(entry(R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4])"), four),
       "63 bits but found 9223372036854775808"},
      {file_of(entry(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,4])"), four),
       "its sizes do not fit 63 bits"},
      {file_of(entry(R"("dtype":"U8","shape":[4294967296,4294967296,4],"data_offsets":[0,4])"), four),
       "its sizes do not fit 63 bits"},
      {file_of(entry(R"("dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0])"), ""),
       "its sizes do not fit 63 bits"},
      {file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0])"), four), "expected two data_offsets"},
      {file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":{})"), four), "expected two data_offsets"},
      {file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,3])"), four),
       "expected 4 bytes but data_offsets are 0 and 3"},
      {file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), four), "data_offsets are 4 and 0"},
      {file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), four + four),
       "tensor 'a' begins at 4 but the one before it ends at 0"},
      {file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), "123"),
       "its tensors take 4 bytes but 3 follow it"},
      {file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), "12345"),
       "its tensors take 4 bytes but 5 follow it"},
      {file_of(entry(R"("dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807])"), four),
       "its tensors take 9223372036854775807 bytes but 4 follow it"},
      {file_of(
           R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           four),
       "tensor 'b' begins at 2 but the one before it ends at 3"},
      {file_of(
           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           four),
       "tensor 'b' begins at 2 but the one before it ends at 1"},
      {file_of(
           R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
           four),
       "duplicate key \"a\""},
      {file_of(R"({"__metadata__":[]})", ""), "__metadata__: expected an object"},
      {file_of(R"({"__metadata__":{"a":1}})", ""), "__metadata__: expected strings"},
      {file_of(R"({"a":{"dtype":{"b":{"c":{"d":{"e":{"f":{"g":{}}}}}}}}})", ""), "nested"},
      {file_of(entry(R"("dtype":"BOOL","shape":[3],"data_offsets":[0,3])"), std::string("\1\0\2", 3)),
       "tensor 'a': byte 65: expected 0 or 1 but found 2"},
  };
  for (const Case& c : cases) TERCEL_EXPECT_THROW(read_all(c.content), DataError, c.message);
  std::string deep = "{\"a\":{\"dtype\":\"U8\",\"shape\":[";
  for (int i = 0; i < 65; ++i) deep += i > 0 ? ",1" : "1";
  TERCEL_EXPECT_THROW(read_all(file_of(deep + "],\"data_offsets\":[0,1]}}", "x")), DataError, "at most 64 sizes");
}

std::string small_file() {
  return written({{"a", make({2}, kFloat32, {1, -2})}, {"flags", make({3}, kBool, {1, 0, 1})}}, {{"key", "value"}});
}

TEST(Safetensors, CutAtEveryByte) {
  const std::string whole = small_file();
  read_all(whole);
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_THROW(read_all(whole.substr(0, n)), DataError) << n << " bytes";
  EXPECT_THROW(read_all(whole + '\0'), DataError);
}

// A flipped bit gives another valid file (a name, a number of the content) or a DataError, and nothing else.
TEST(Safetensors, EveryBitFlipped) {
  const std::string whole = small_file();
  int64_t refused = 0;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    try {
      read_all(damaged);
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int64_t>(4 * whole.size())) << "most bits of so small a file are structure";
}

TEST(Safetensors, EveryFailingCallIsAnError) {
  const NamedTensor tensor{"a", test::random({5000}, kFloat64, 0, 1, 1)};
  for (const FaultKind kind : {FaultKind::Error, FaultKind::Short}) {
    for (int64_t n = 1;; ++n) {
      const TemporaryFolder folder;
      const ScopedFault fault({.nth = n, .kind = kind});
      bool threw = false;
      try {
        write_safetensors(folder / "x", {tensor});
        const Tensor back = empty({5000}, kFloat64);
        SafetensorsReader(folder / "x").read_into({"a", back});
        EXPECT_EQ(bytes_of(back), bytes_of(tensor.tensor));
      } catch (const IoError&) {
        threw = true;
      }
      // The reader ignores errors when it closes its file.
      if (!fault.fired()) break;
      ASSERT_TRUE(threw || kind == FaultKind::Short || n == fault.calls()) << "call " << n;
    }
  }
}

TEST(Safetensors, FileThatShrinksWhileItIsRead) {
  const TemporaryFolder folder;
  write_safetensors(folder / "x", {{"a", make({2}, kFloat64, {1, 2})}});
  const SafetensorsReader reader(folder / "x");
  const std::string whole = folder.get("x");
  folder.put("x", whole.substr(0, whole.size() - 1));
  TERCEL_EXPECT_THROW(reader.read(reader.entries()[0]), DataError, "x: ");
}

TEST(Safetensors, MappedTensorsAreAligned) {
  const TemporaryFolder folder;
  save_safetensors(folder / "x", {{"a", make({2}, kFloat32, {1, 2})}});
  // One space more behind the header, whose length comes first: as other programs may write it.
  std::string file = folder.get("x");
  uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof(header));
  file.insert(8 + header, " ");
  ++header;
  std::memcpy(file.data(), &header, sizeof(header));
  folder.put("x", file);
  const Tensor t = load_safetensors(folder / "x", {.mmap = true})[0].tensor;
  EXPECT_TRUE(is_aligned(t.data_ptr(), kFloat32));
  EXPECT_EQ(values_of(t), (std::vector<double>{1, 2}));
}

TEST(Safetensors, MappedTensorsViewTheFileAndOutliveTheReader) {
  const TemporaryFolder folder;
  const std::vector<NamedTensor> tensors = {{"a", make({2, 2}, kFloat32, {1, 2, 3, 4})},
                                            {"b", make({3}, kBool, {1, 0, 1})},
                                            {"c", make({0}, kInt64, {})},
                                            {"d", make({}, kBFloat16, {7})}};
  save_safetensors(folder / "x", tensors, {{"k", "v"}});
  const std::vector<NamedTensor> mapped = load_safetensors(folder / "x", {.mmap = true});
  const std::vector<NamedTensor> read = load_safetensors(folder / "x");
  remove_file(folder / "x");
  ASSERT_EQ(mapped.size(), 4u);
  for (size_t i = 0; i < mapped.size(); ++i) {
    EXPECT_EQ(mapped[i].name, read[i].name);
    EXPECT_EQ(mapped[i].tensor.sizes(), read[i].tensor.sizes());
    EXPECT_EQ(bytes_of(mapped[i].tensor), bytes_of(read[i].tensor)) << mapped[i].name;
  }
  const Tensor& a = mapped[1].tensor;
  EXPECT_FALSE(a.storage()->resizable());
  a.data<float>()[0] = 9;
  EXPECT_EQ(values_of(a)[0], 9);
}

TEST(Safetensors, SavedFileReplacesTheOldOneWholeOrNotAtAll) {
  const NamedTensor tensor{"a", make({2}, kFloat32, {1, 2})};
  const TemporaryFolder good;
  write_safetensors(good / "x", {tensor});
  for (int64_t n = 1;; ++n) {
    const TemporaryFolder folder;
    folder.put("x", "old");
    const ScopedFault fault({.nth = n, .error = 28});
    try {
      save_safetensors(folder / "x", {tensor});
    } catch (const IoError&) {
    }
    const std::string content = folder.get("x");
    ASSERT_TRUE(content == "old" || content == good.get("x")) << "call " << n;
    ASSERT_EQ(folder.tree().size(), 1u) << "call " << n;
    if (!fault.fired()) break;
    ASSERT_LT(n, 100);
  }
}

}  // namespace
}  // namespace tercel::io
