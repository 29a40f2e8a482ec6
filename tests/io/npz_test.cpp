#include "tercel/io/npz.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tercel/util/file_hook.h"
#include "tests/io/damage.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::io {
namespace {

using test::bytes_of;
using test::make;
using test::TemporaryFolder;
using test::values_of;

std::vector<NamedTensor> two_arrays() {
  return {{"a", make({3}, kFloat32, {1, 2, 3})}, {"folder/b ü", make({2, 2}, kInt64, {1, -2, 3, -4})}};
}

std::string saved(const std::vector<NamedTensor>& tensors, bool compressed) {
  const TemporaryFolder folder;
  save_npz(folder / "x", tensors, compressed);
  return folder.get("x");
}

void read_all(const std::string& path) { static_cast<void>(load_npz(path)); }

void load(const std::string& content) {
  const TemporaryFolder folder;
  read_all(folder.put("x", content));
}

/** The text with the n-th occurrence (from 0) of `from` replaced by as many bytes. */
std::string with(std::string text, const std::string& from, const std::string& to, int n = 0) {
  size_t at = text.find(from);
  for (; n > 0; --n) at = text.find(from, at + 1);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

/** Offset of the n-th entry of the directory. */
size_t entry_of(const std::string& archive, int n) {
  size_t at = archive.find("PK\1\2");
  for (; n > 0; --n) at = archive.find("PK\1\2", at + 4);
  return at;
}

std::string with_u32(std::string text, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) text[at + i] = static_cast<char>(value >> (8 * i));
  return text;
}

TEST(Npz, RoundTrip) {
  const TemporaryFolder folder;
  std::vector<NamedTensor> tensors = two_arrays();
  tensors.push_back({"empty", empty({0, 3}, kFloat64)});
  tensors.push_back(
      {"transposed", test::placed(make({2, 3}, kInt32, {1, 2, 3, 4, 5, 6}), test::Placement::Transposed)});
  tensors.push_back({"noise", test::random({100, 777}, kFloat64, -1, 1, 3)});
  tensors.push_back({"zeros", make({300000}, kUInt8, std::vector<double>(300000, 0))});
  for (const bool compressed : {false, true}) {
    save_npz(folder / "x.npz", tensors, compressed);
    const std::vector<NamedTensor> back = load_npz(folder / "x.npz");
    ASSERT_EQ(back.size(), tensors.size());
    for (size_t i = 0; i < back.size(); ++i) {
      EXPECT_EQ(back[i].name, tensors[i].name);
      EXPECT_EQ(back[i].tensor.dtype(), tensors[i].tensor.dtype());
      EXPECT_EQ(back[i].tensor.sizes(), tensors[i].tensor.sizes());
      EXPECT_EQ(bytes_of(back[i].tensor), bytes_of(tensors[i].tensor)) << back[i].name;
    }
    if (compressed) {
      EXPECT_LT(folder.get("x.npz").size(), 700000u);
    }
  }
  save_npz(folder / "none.npz", {});
  EXPECT_TRUE(load_npz(folder / "none.npz").empty());
}

TEST(Npz, ReadsOneArrayByName) {
  const TemporaryFolder folder;
  save_npz(folder / "x", two_arrays());
  const NpzReader reader(folder / "x");
  EXPECT_EQ(reader.names(), (std::vector<std::string>{"a", "folder/b ü"}));
  EXPECT_EQ(values_of(reader.read("folder/b ü")), (std::vector<double>{1, -2, 3, -4}));
  TERCEL_EXPECT_THROW(reader.read("c"), DataError, "x: no array 'c'");
}

// As written by numpy.savez: zip64 sizes in the local header though 32 bits would suffice.
TEST(Npz, ArchiveOfNumPy) {
  const std::string npy = [] {
    std::string text("\x93NUMPY\x01\x00v\x00{'descr': '|i1', 'fortran_order': False, 'shape': (2,), }", 10 + 57);
    text.resize(127, ' ');
    return text + "\n\x05\x06";
  }();
  const auto le = [](uint64_t value, size_t bytes) {
    std::string text;
    for (size_t i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value);
    return text;
  };
  const std::string crc = le(0xc5f924d3, 4), all(8, '\xff');
  const std::string local = "PK\3\4" + le(45, 2) + le(0, 4) + le(0x210000, 4) + crc + all + le(5, 2) + le(20, 2) +
                            "a.npy" + le(1, 2) + le(16, 2) + le(130, 8) + le(130, 8) + npy;
  const std::string central = "PK\1\2" + le(0x32d, 4) + le(0, 4) + le(0x210000, 4) + crc + le(130, 4) + le(130, 4) +
                              le(5, 2) + le(0, 12) + le(0, 4) + "a.npy";
  const std::string end =
      "PK\5\6" + le(0, 4) + le(1, 2) + le(1, 2) + le(central.size(), 4) + le(local.size(), 4) + le(0, 2);
  const TemporaryFolder folder;
  const std::vector<NamedTensor> back = load_npz(folder.put("x", local + central + end));
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(values_of(back[0].tensor), (std::vector<double>{5, 6}));
  const std::string comment = local + central + end.substr(0, 20) + le(7, 2) + "comment";
  EXPECT_EQ(load_npz(folder.put("x", comment)).size(), 1u);
}

TEST(Npz, WriterRefuses) {
  const TemporaryFolder folder;
  const Tensor t = make({1}, kFloat32, {1});
  for (const char* name : {"/a", "../a", "a/../b", "a\\b", "C:a", "a\nb", "a\xff", "./a"})
    TERCEL_EXPECT_THROW(save_npz(folder / "x", {{name, t}}), ValueError, "cannot be the name of a member");
  TERCEL_EXPECT_THROW(save_npz(folder / "x", {{"a", t}, {"a", t}}), ValueError, "the name 'a.npy' is a duplicate");
  TERCEL_EXPECT_THROW(save_npz(folder / "x", {{"a", empty({1}, kBFloat16)}}), TypeError, "a: NumPy has no dtype");
  TERCEL_EXPECT_THROW(save_npz(folder / "x", {{"a", Tensor()}}), RuntimeError, "save_npz: tensor 'a': expected");
  EXPECT_TRUE(folder.tree().empty());
}

TEST(Npz, WrongArchives) {
  const std::string good = saved(two_arrays(), false), packed = saved(two_arrays(), true);
  const size_t second = entry_of(good, 1), deflated = entry_of(packed, 0);
  struct Case {
    std::string content, message;
  };
  const Case cases[] = {
      {"", "x: byte 0: expected a zip archive, which ends in its directory, found no end record"},
      {"\x93NUMPY", "no end record"},
      {std::string(100000, 'x'), "no end record"},
      {good + "x", "no end record"},
      {"x" + good, "a directory that ends where its end record begins"},
      {with(with(good, "a.npy", "/.npy"), "a.npy", "/.npy"), "a relative member name in UTF-8, found '/.npy'"},
      {with(with(good, "folder/b", "folder\\b"), "folder/b", "folder\\b"), "a relative member name"},
      {with(with(good, "folder/b", "../der/b"), "folder/b", "../der/b"), "a relative member name"},
      {with(good, "a.npy", "b.npy"), "a local header like its entry in the directory"},
      {with(with(good, "a.npy", "a.npx"), "a.npy", "a.npx"), "expected only .npy files, found 'a.npx'"},
      {with_u32(good, second + 8, 1), "no encryption, found an encrypted one"},
      {with_u32(good, second + 8, (12 << 16) + 0x800), "a stored or deflated one (methods 0 and 8), found method 12"},
      {with_u32(good, second + 24, 1000), "160 bytes of content, found 1000"},
      {with_u32(good, second + 20, 0xffffffff), "zip64 extra field"},
      {with_u32(good, second + 20, 0x7fffffff), "a place in front of the directory"},
      {with_u32(good, second + 42, 0), "a local header like its entry"},
      {with_u32(good, second + 42, 5), "a local header, found something else"},
      {with_u32(good, second + 42, 0x7fffffff), "a place in front of the directory"},
      {with_u32(good, good.size() - 22 + 8, 0x00ff00ff), "expected at most"},
      {with_u32(good, good.size() - 22 + 4, 1), "an archive of one part"},
      {with_u32(packed, deflated + 24, 0x7ffffff0), "bytes of content, found 2147483632"},
      {with_u32(packed, deflated + 24, 2000), "a local header like its entry"},
      {with_u32(with_u32(packed, deflated + 24, 2000), 22, 2000), "bytes for [3] float32"},
      {with(good, std::string("\0\0\x80\x3f", 4), std::string("\0\0\x80\x40", 4)),
       "member 'a.npy': byte 140: expected "
       "content with the CRC"},
  };
  for (const Case& c : cases) TERCEL_EXPECT_THROW(load(c.content), DataError, c.message);
}

TEST(Npz, MembersMayNotOverlap) {
  // Both entries of the directory name the first member.
  const Tensor t = make({1}, kFloat32, {1});
  const std::string good = saved({{"a", t}, {"b", t}}, false);
  const size_t second = entry_of(good, 1);
  TERCEL_EXPECT_THROW(load(with(with_u32(good, second + 42, 0), "b.npy", "a.npy", 1)), DataError,
                      "expected every member once, found two called 'a.npy'");
  // The first member claims the bytes of the second one too.
  const auto size = static_cast<uint32_t>(good.find("PK\1\2") - 35);
  std::string longer = good;
  for (const size_t at : {size_t{18}, size_t{22}, entry_of(good, 0) + 20, entry_of(good, 0) + 24})
    longer = with_u32(longer, at, size);
  TERCEL_EXPECT_THROW(load(longer), DataError, "another part of the archive: they overlap");
}

TEST(Npz, BombsAreRefusedBeforeAnythingIsInflated) {
  const TemporaryFolder folder;
  save_npz(folder / "x", {{"zeros", make({1000000}, kUInt8, std::vector<double>(1000000, 0))}}, true);
  EXPECT_LT(folder.get("x").size(), 3000u);
  TERCEL_EXPECT_THROW(load_npz(folder / "x", {.max_inflated_bytes = 500000}), DataError,
                      "(max_inflated_bytes), found 976.7 KiB");
  EXPECT_EQ(load_npz(folder / "x")[0].tensor.numel(), 1000000);
}

TEST(Npz, Damaged) {
  for (const bool compressed : {false, true}) {
    const std::string whole = saved({{"a", make({2}, kFloat32, {1, 2})}, {"b", make({}, kInt64, {3})}}, compressed);
    test::expect_cut_refused(whole, read_all);
    EXPECT_GT(test::count_refused_flips(whole, read_all), static_cast<int64_t>(6 * whole.size()));
  }
}

TEST(Npz, EveryFailingCallLeavesTheOldFile) {
  const std::string good = saved(two_arrays(), true);
  for (int64_t n = 1;; ++n) {
    const TemporaryFolder folder;
    folder.put("x", "old");
    const ScopedFault fault({.nth = n, .error = 28});
    try {
      save_npz(folder / "x", two_arrays(), true);
    } catch (const IoError&) {
    }
    const std::string content = folder.get("x");
    ASSERT_TRUE(content == "old" || content == good) << "call " << n;
    ASSERT_EQ(folder.tree().size(), 1u) << "call " << n;
    if (!fault.fired()) break;
    ASSERT_LT(n, 200);
  }
}

}  // namespace
}  // namespace tercel::io
