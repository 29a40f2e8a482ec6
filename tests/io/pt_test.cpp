#include "tercel/io/pt.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tercel/core/sparse_data.h"
#include "tercel/io/pickle_impl.h"
#include "tercel/io/zip_impl.h"
#include "tercel/util/file_hook.h"
#include "tests/io/damage.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::io {
namespace {

using namespace std::string_literals;
using test::bytes_of;
using test::make;
using test::Sizes;
using test::TemporaryFolder;
using test::values_of;

/** An archive as torch writes it, with that program and those storages. */
std::string archive(const std::string& program, const std::vector<std::string>& storages = {},
                    const std::string& byteorder = "little") {
  const TemporaryFolder folder;
  ZipWriter zip(folder / "x");
  zip.add("m/data.pkl", program, 64);
  if (!byteorder.empty()) zip.add("m/byteorder", byteorder, 64);
  for (size_t i = 0; i < storages.size(); ++i) zip.add("m/data/" + std::to_string(i), storages[i], 64);
  zip.add("m/version", "3\n", 64);
  zip.commit();
  return folder.get("x");
}

Value load(const std::string& content, const PtOptions& options = {}) {
  const TemporaryFolder folder;
  return load_pt(folder.put("x", content), options);
}

Value run(const std::string& program, const std::vector<std::string>& storages = {}) {
  return load(archive("\x80\2" + program, storages));
}

std::string text(const std::string& value) {
  return "X" + std::string(1, static_cast<char>(value.size())) + "\0\0\0"s + value;
}
std::string number(int value) { return "K" + std::string(1, static_cast<char>(value)); }
std::string storage(const std::string& type, int size, const std::string& key = "0") {
  return "(" + text("storage") + "ctorch\n" + type + "\n" + text(key) + text("cpu") + number(size) + "tQ";
}
const std::string kNoHooks = "ccollections\nOrderedDict\n)R";
/** A tensor of two sizes over a FloatStorage of that many elements. */
std::string tensor(int elements, const std::string& rest) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage("FloatStorage", elements) + rest + "tR";
}

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

/** A COO tensor with the indices of a LongStorage [sparse_dim, nnz] and the values of a FloatStorage [nnz]. */
std::string coo(int sparse_dim, int nnz, const std::string& sizes, const std::string& coalesced,
                const std::string& layout = "torch.sparse_coo") {
  const std::string strided = "ctorch._utils\n_rebuild_tensor_v2\n(";
  return "ctorch._utils\n_rebuild_sparse_tensor\nctorch.serialization\n_get_layout\n" + text(layout) + "\x85R(" +
         strided + storage("LongStorage", sparse_dim * nnz, "0") + number(0) + number(sparse_dim) + number(nnz) +
         "\x86" + number(nnz) + number(1) + "\x86\x89" + kNoHooks + "tR" + strided + storage("FloatStorage", nnz, "1") +
         number(0) + number(nnz) + "\x85" + number(1) + "\x85\x89" + kNoHooks + "tR" + "ctorch\nSize\n" + sizes +
         "\x85R" + coalesced + "t\x86R.";
}
std::string longs(const std::vector<int64_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)};
}

TEST(Pt, ReadsSparseTensors) {
  const std::string three = number(3) + "\x85";
  const Tensor x = run(coo(1, 3, three, "\x89"), {longs({0, 1, 1}), floats({3, 4, 5})}).to_tensor();
  ASSERT_EQ(x.layout(), Layout::SparseCoo);
  EXPECT_EQ(x.sizes().to_vector(), (Sizes{3}));
  const SparseData& parts = *x.impl().sparse();
  EXPECT_FALSE(parts.coalesced);
  EXPECT_EQ(values_of(parts.indices), (std::vector<double>{0, 1, 1}));
  EXPECT_EQ(values_of(parts.values), (std::vector<double>{3, 4, 5}));
  // Before torch 2.1 a file did not say whether the tensor is coalesced.
  EXPECT_TRUE(run(coo(1, 1, three, ""), {longs({2}), floats({3})}).to_tensor().impl().sparse()->coalesced);
  // What we write, we read.
  const TemporaryFolder folder;
  save_pt(folder / "x", Value(x));
  EXPECT_EQ(values_of(load_pt(folder / "x").to_tensor().impl().sparse()->values), (std::vector<double>{3, 4, 5}));
}

/** A strided tensor of one dimension over a storage of that class. */
std::string vector(const std::string& type, int count, const std::string& key, const std::string& requires_grad) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage(type, count, key) + number(0) + number(count) + "\x85" +
         number(1) + "\x85" + requires_grad + kNoHooks + "tR";
}
/** A matrix of a compressed layout with `offsets` offsets and `nnz` entries. */
std::string compressed(const std::string& layout, int offsets, int nnz, const std::string& sizes,
                       const std::string& requires_grad = "\x89") {
  return "ctorch._utils\n_rebuild_sparse_tensor\nctorch.serialization\n_get_layout\n" + text(layout) + "\x85R(" +
         vector("LongStorage", offsets, "0", "\x89") + vector("LongStorage", nnz, "1", "\x89") +
         vector("FloatStorage", nnz, "2", requires_grad) + "ctorch\nSize\n" + sizes + "\x85Rt\x86R.";
}

TEST(Pt, ReadsCompressedTensors) {
  const std::string sizes = number(2) + number(3) + "\x86";
  for (const auto& [name, layout] :
       {std::pair{"torch.sparse_csr", Layout::SparseCsr}, {"torch.sparse_csc", Layout::SparseCsc}}) {
    const bool rows = layout == Layout::SparseCsr;
    const std::vector<int64_t> offsets = rows ? std::vector<int64_t>{0, 1, 3} : std::vector<int64_t>{0, 1, 3, 3};
    const std::string program = compressed(name, rows ? 3 : 4, 3, sizes, "\x88");
    const Tensor x = run(program, {longs(offsets), longs({1, 0, 1}), floats({3, 4, 5})}).to_tensor();
    ASSERT_EQ(x.layout(), layout);
    EXPECT_EQ(x.sizes().to_vector(), (Sizes{2, 3}));
    EXPECT_TRUE(x.requires_grad());
    const TemporaryFolder folder;
    save_pt(folder / "x", Value(x));
    const Tensor again = load_pt(folder / "x").to_tensor();
    EXPECT_TRUE(again.requires_grad());
    EXPECT_EQ(values_of(again.impl().sparse()->plain_indices), (std::vector<double>{1, 0, 1}));
    EXPECT_EQ(values_of(again.impl().sparse()->values), (std::vector<double>{3, 4, 5}));
  }
}

/** Every cut and every other byte of a file is an error or a value. */
void expect_errors_or_values(const std::string& file) {
  for (size_t i = 0; i < file.size(); ++i) {
    std::string other = file;
    other[i] = static_cast<char>(other[i] ^ 0x15);
    for (const std::string& content : {file.substr(0, i), other}) {
      try {
        load(content);
      } catch (const Error&) {
        continue;
      }
    }
  }
}

TEST(Pt, RefusesCompressedTensorsThatAreNone) {
  const std::string sizes = number(2) + number(3) + "\x86";
  const auto expect = [&](const std::string& program, const std::vector<int64_t>& offsets,
                          const std::vector<int64_t>& plain, const std::string& part) {
    const std::string message = test::message_of<DataError>([&] {
      run(program, {longs(offsets), longs(plain), floats(std::vector<float>(plain.size()))});
    });
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  const std::string csr = compressed("torch.sparse_csr", 3, 3, sizes);
  expect(csr, {0, 1, 2}, {1, 0, 1}, "offsets up to 2 for 3 entries");
  expect(csr, {0, 4, 3}, {1, 0, 1}, "offset 4 at 1");
  expect(csr, {0, INT64_MIN, 3}, {1, 0, 1}, "offset -9223372036854775808 at 1");
  expect(csr, {0, 1, 3}, {1, 0, 3}, "index 3 in a dimension of 3");
  expect(csr, {0, 1, 3}, {1, -1, 1}, "index -1 in a dimension of 3");
  expect(compressed("torch.sparse_csc", 3, 3, sizes), {0, 1, 3}, {1, 0, 1}, "for sizes [2, 3]");
  expect(compressed("torch.sparse_csr", 3, 3, number(2) + "\x85"), {0, 1, 3}, {1, 0, 1}, "for sizes [2]");
  expect(compressed("torch.sparse_bsr", 3, 3, sizes), {0, 1, 3}, {1, 0, 1}, "for sizes [2, 3]");
  expect_errors_or_values(archive("\x80\2" + csr, {longs({0, 1, 3}), longs({1, 0, 1}), floats({3, 4, 5})}));
}

TEST(Pt, RefusesSparseTensorsThatAreNone) {
  const std::string three = number(3) + "\x85", no = "\x89", yes = "\x88";
  const auto refused = [](const std::string& program, const std::vector<int64_t>& indices) {
    return test::message_of<DataError>([&] {
      run(program, {longs(indices), floats(std::vector<float>(indices.size()))});
    });
  };
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(refused(coo(1, 3, three, no), {0, 3, 1}), "index 3 of dimension 0 in sizes [3]");
  expect(refused(coo(1, 3, three, no), {0, -1, 1}), "index -1 of dimension 0 in sizes [3]");
  expect(refused(coo(1, 3, three, yes), {0, 1, 1}), "entry 2 out of order in a coalesced tensor");
  expect(refused(coo(1, 3, number(3) + number(2) + "\x86", no), {0, 1, 1}), "sizes [3, 2] for 1 sparse dimensions");
  expect(refused(coo(1, 3, three, no, "torch.strided"), {0, 1, 1}), "expected a sparse layout");
  expect(refused(coo(1, 3, three, no, "torch.sparse_csr"), {0, 1, 1}), "a tensor for values");
  expect(refused(coo(1, 3, three, number(1)), {0, 1, 1}), "is_coalesced");
  expect(refused("ctorch._utils\n_rebuild_sparse_tensor\n" + number(1) + number(1) + "\x86R.", {}),
         "the layout of a sparse tensor");
  expect_errors_or_values(archive("\x80\2" + coo(1, 3, three, yes), {longs({0, 1, 2}), floats({3, 4, 5})}));
}

// The program that torch 2.15 writes for {"w": x, "t": x.t()} with x = [[0, 1, 2], [3, 4, 5]].
TEST(Pt, ReadsWhatTorchWrites) {
  const std::string program =
      "\x80\2}q\0(X\1\0\0\0wq\1ctorch._utils\n_rebuild_tensor_v2\nq\2((X\7\0\0\0storageq\3ctorch\nFloatStorage\nq\4"
      "X\1\0\0\0000q\5X\3\0\0\0cpuq\6K\6tq\7QK\0K\2K\3\x86q\x08K\3K\1\x86q\x09\x89"
      "ccollections\nOrderedDict\nq\n)Rq\x0btq\x0cRq\x0dX\1\0\0\0tq\x0eh\2((h\3h\4h\5h\6K\6tq\x0fQK\0K\3K\2\x86q\x10"
      "K\1K\3\x86q\x11\x89h\n)Rq\x12tq\x13Rq\x14u."s;
  const std::string file = archive(program, {floats({0, 1, 2, 3, 4, 5})});
  for (const bool mmap : {false, true}) {
    const Value value = load(file, {.mmap = mmap});
    ASSERT_EQ(value.entries().size(), 2u);
    const Tensor &w = value.at("w").to_tensor(), &t = value.at("t").to_tensor();
    EXPECT_EQ(w.sizes().to_vector(), (Sizes{2, 3}));
    EXPECT_EQ(t.strides().to_vector(), (Sizes{1, 3}));
    EXPECT_EQ(values_of(t), (std::vector<double>{0, 3, 1, 4, 2, 5}));
    EXPECT_TRUE(w.is_alias_of(t));
    w.data<float>()[1] = 9;
    EXPECT_EQ(values_of(t)[2], 9) << "views of one storage still share it";
  }
}

TEST(Pt, EveryValueOfTheProgram) {
  EXPECT_TRUE(run("N.").is(Value::Kind::None));
  EXPECT_TRUE(run("\x88.").to_bool());
  EXPECT_EQ(run("J\xfe\xff\xff\xff.").to_int(), -2);
  EXPECT_EQ(run("M\1\2.").to_int(), 513);
  EXPECT_EQ(run("\x8a\0."s).to_int(), 0);
  EXPECT_EQ(run("\x8a\1\xff."s).to_int(), -1);
  EXPECT_EQ(run("\x8a\x08\0\0\0\0\0\0\0\x80."s).to_int(), INT64_MIN);
  EXPECT_EQ(run("G\x3f\xf8\0\0\0\0\0\0."s).to_double(), 1.5);
  EXPECT_EQ(run(text("ü") + ".").to_string(), "ü");
  EXPECT_EQ(run("](K\1K\2e.").items().size(), 2u);
  EXPECT_EQ(run("]K\1a.").items()[0].to_int(), 1);
  EXPECT_EQ(run("K\1\x85.").items().size(), 1u);
  EXPECT_EQ(run("(K\1K\2K\3K\4t.").items()[3].to_int(), 4);
  EXPECT_EQ(run("}" + text("a") + "K\5s.").at("a").to_int(), 5);
  EXPECT_EQ(run("ctorch\nfloat16\n.").to_dtype(), kFloat16);
  EXPECT_EQ(run("ctorch\ndevice\n" + text("cuda") + "K\1\x86R.").to_device(), Device(DeviceType::Cuda, 1));
  EXPECT_EQ(run("ctorch\nSize\nK\2K\3\x86\x85R.").items()[1].to_int(), 3);
  EXPECT_TRUE(run("ctorch\nSize\nK\2\x85\x85R.").is_size());
  EXPECT_FALSE(run("K\2\x85.").is_size());
  const std::string encode = "c_codecs\nencode\n";
  EXPECT_EQ(run(encode + text("a\u00ff\u0080") + text("latin1") + "\x86R.").to_bytes(), "a\xff\x80");
  EXPECT_EQ(run("c__builtin__\nbytes\n)R.").to_bytes(), "");
  EXPECT_TRUE(run(kNoHooks + ".").is_ordered());
  EXPECT_FALSE(run("}.").is_ordered());
  const Value shared = run("(]q\0h\0t."s);
  EXPECT_EQ(shared.items()[0].identity(), shared.items()[1].identity());
  // A module's state_dict: attributes of the OrderedDict are ignored.
  const Value state = run(kNoHooks + "(" + text("a") + "K\1u}" + text("_metadata") + kNoHooks + "sb.");
  EXPECT_EQ(state.entries().size(), 1u);
  EXPECT_EQ(state.at("a").to_int(), 1);
}

TEST(Pt, ParametersAndBytesOfAnotherOrder) {
  const std::string one = tensor(2, "K\0K\2\x85K\1\x85\x89"s + kNoHooks);
  const Value value = run("ctorch._utils\n_rebuild_parameter\n" + one + "\x88" + kNoHooks + "\x87R.", {floats({1, 2})});
  EXPECT_TRUE(value.is_parameter() && value.to_tensor().requires_grad());
  const Value big = load(archive("\x80\2" + one + ".", {"\x3f\x80\0\0\x40\0\0\0"s}, "big"));
  EXPECT_EQ(values_of(big.to_tensor()), (std::vector<double>{1, 2}));
  EXPECT_EQ(values_of(load(archive("\x80\2" + one + ".", {floats({1, 2})}, "")).to_tensor()),
            (std::vector<double>{1, 2}));
}

TEST(Pt, RoundTripOfEveryDtypeAndPlacement) {
  const TemporaryFolder folder;
  std::vector<Value> tensors;
  for (const ScalarType dtype : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64})
    for (const Sizes& sizes : {Sizes{}, Sizes{0, 3}, Sizes{2, 3, 4}}) {
      const Tensor t = test::random(sizes, dtype, 0, dtype == kBool ? 1 : 100, 1);
      for (const auto placement :
           {test::Placement::Contiguous, test::Placement::Transposed, test::Placement::Misaligned})
        tensors.emplace_back(test::placed(t, placement));
    }
  save_pt(folder / "x", Value::list(tensors));
  for (const bool mmap : {false, true}) {
    const Value back = load_pt(folder / "x", {.mmap = mmap});
    ASSERT_EQ(back.items().size(), tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Tensor &a = tensors[i].to_tensor(), &b = back.items()[i].to_tensor();
      ASSERT_EQ(a.dtype(), b.dtype());
      ASSERT_EQ(a.sizes(), b.sizes());
      ASSERT_EQ(a.strides(), b.strides());
      ASSERT_EQ(bytes_of(a), bytes_of(b));
    }
  }
}

TEST(Pt, RoundTripOfStructure) {
  const TemporaryFolder folder;
  Tensor weight = make({2, 2}, kFloat32, {1, 2, 3, 4});
  weight.impl().set_requires_grad_flag(true);
  const Value shared = Value::list({1, "shared"});
  std::vector<Value> many;
  for (int i = 0; i < 1000; ++i) many.emplace_back(str_cat({"text ", i}));
  const Value value = Value::dict({{"weight", weight},
                                   {"same", weight},
                                   {"none", Value()},
                                   {"flags", Value::tuple({true, false})},
                                   {"numbers", Value::list({0, 255, 256, 65536, -1, INT64_MAX, INT64_MIN, 0.1})},
                                   {3, Value::tuple({})},
                                   {Value::tuple({1, "a"}), Value::dict({})},
                                   {"shared", Value::tuple({shared, shared, shared, shared})},
                                   {"dtype", kBFloat16},
                                   {"devices", Value::list({kCpu, Device(DeviceType::Cuda, 3)})},
                                   {"many", Value::list(many)}});
  save_pt(folder / "x", value);
  const Value back = load_pt(folder / "x");
  EXPECT_TRUE(back.at("weight").to_tensor().is_same(back.at("same").to_tensor()));
  EXPECT_TRUE(back.at("weight").to_tensor().requires_grad());
  EXPECT_FALSE(back.at("flags").items()[1].to_bool());
  for (size_t i = 0; i < 7; ++i)
    EXPECT_EQ(back.at("numbers").items()[i].to_int(), value.at("numbers").items()[i].to_int());
  EXPECT_EQ(back.at("numbers").items()[7].to_double(), 0.1);
  EXPECT_EQ(back.entries()[5].first.to_int(), 3);
  EXPECT_EQ(back.entries()[6].first.items()[1].to_string(), "a");
  EXPECT_EQ(back.at("shared").items()[0].identity(), back.at("shared").items()[3].identity());
  EXPECT_EQ(back.at("dtype").to_dtype(), kBFloat16);
  EXPECT_EQ(back.at("devices").items()[1].to_device(), Device(DeviceType::Cuda, 3));
  EXPECT_EQ(back.at("many").items()[999].to_string(), "text 999");
  const std::string once = folder.get("x");
  save_pt(folder / "x", back);
  EXPECT_EQ(folder.get("x"), once) << "the same value gives the same bytes";
}

TEST(Pt, RoundTripOfParameters) {
  const TemporaryFolder folder;
  const Tensor w = test::random({2, 3}, kFloat32, 0, 1, 1);
  const auto view = [&] {
    return Tensor(make_intrusive<TensorImpl>(w.storage(), kFloat32, w.sizes(), w.strides(), 0));
  };
  w.impl().set_requires_grad_flag(true);
  save_pt(folder / "x", Value::list({Value::parameter(w), Value::parameter(view()), view()}));
  const std::vector<Value> back = load_pt(folder / "x").items();
  EXPECT_TRUE(back[0].is_parameter() && back[0].to_tensor().requires_grad());
  EXPECT_TRUE(back[1].is_parameter() && !back[1].to_tensor().requires_grad());
  EXPECT_FALSE(back[2].is_parameter() || back[2].to_tensor().requires_grad());
  EXPECT_EQ(back[0].to_tensor().storage().get(), back[2].to_tensor().storage().get());
}

TEST(Pt, RoundTripOfBytesSizesAndOrderedDicts) {
  const TemporaryFolder folder;
  std::string every;
  for (int i = 0; i < 256; ++i) every += static_cast<char>(i);
  const Value bytes = Value::bytes(every);
  save_pt(folder / "x", Value::list({bytes, bytes, Value::bytes(""), Value::size({2, 3}), Value::size({}),
                                     Value::ordered_dict({{"b", 1}, {bytes, 2}}), Value::ordered_dict({})}));
  const std::vector<Value> back = load_pt(folder / "x").items();
  EXPECT_EQ(back[0].to_bytes(), every);
  EXPECT_EQ(back[0].identity(), back[1].identity());
  EXPECT_EQ(back[2].to_bytes(), "");
  EXPECT_TRUE(back[3].is_size() && back[4].is_size());
  EXPECT_EQ(back[3].items()[1].to_int(), 3);
  EXPECT_TRUE(back[5].is_ordered() && back[6].is_ordered());
  EXPECT_EQ(back[5].entries()[1].first.to_bytes(), every);
}

TEST(Pt, StoragesAreAlignedForMaps) {
  const TemporaryFolder folder;
  save_pt(folder / "x", Value::list({make({3}, kUInt8, {1, 2, 3}), make({1}, kFloat64, {1})}));
  const ZipReader zip(folder / "x", 0, "limit");
  EXPECT_EQ(zip.find("archive/data/0")->data % 64, 0);
  EXPECT_EQ(zip.find("archive/data/1")->data % 64, 0);
}

TEST(Pt, WriterRefuses) {
  const TemporaryFolder folder;
  Value deep;
  for (int i = 0; i < 201; ++i) deep = Value::list({deep});
  TERCEL_EXPECT_THROW(save_pt(folder / "x", deep), ValueError, "at most 200 containers inside each other but got 201");
  TERCEL_EXPECT_THROW(save_pt(folder / "x", "\xff"), ValueError, "is not UTF-8");
  const Tensor a = make({2}, kFloat32, {1, 2});
  const Tensor b(make_intrusive<TensorImpl>(a.storage(), kInt32, IntSpan{2}));
  TERCEL_EXPECT_THROW(save_pt(folder / "x", Value::list({a, b})), RuntimeError,
                      "Cannot save multiple tensors or storages that view the same data as different types");
  EXPECT_TRUE(folder.tree().empty());
  save_pt(folder / "x", deep.items()[0]);
  EXPECT_EQ(load_pt(folder / "x").depth(), 200);
}

TEST(Pt, WrongPrograms) {
  const std::vector<std::string> two = {floats({1, 2})};
  const std::string hooks = kNoHooks;
  struct Case {
    std::string program, message;
  };
  const Case cases[] = {
      {"", "member 'm/data.pkl': byte 2: expected 1 bytes of opcode"},
      {"N", "of opcode"},
      {".", "one value at the end, found 0"},
      {"NN.", "one value at the end, found 2"},
      {"(N.", "one value at the end"},
      {"N.N", "the end after the end of the pickle"},
      {"\x80\4N.", "pickle protocol 2, as torch.save() writes, found 4"},
      {"i.", "byte 2: expected an opcode that torch.save() writes, found 105"},
      {"cos\nsystem\n" + text("ls") + "\x85R.", "found os.system, which could be anything and is not run"},
      {"cbuiltins\neval\n.", "builtins.eval"},
      {"ctorch\nload\n.", "torch.load"},
      {"ctorch\nFloatStorage\n)R.", "a function to call, found the class of a storage"},
      {"ctorch\nFloatStorage\n.", "expected a value, found a class or function"},
      {"c" + std::string(200, 'a') + "\nb\n.", "a module of at most 128 bytes, found a longer one"},
      {"c" + std::string(20, 'a'), "found a longer one"},
      {"t.", "a mark on the stack, found none"},
      {"K\1(\x85.", "1 values on the stack, found 0"},
      {"e.", "a mark on the stack"},
      {"(e.", "1 values on the stack"},
      {"N(K\1e.", "a list to add to, found None"},
      {"}(K\1u.", "a value for every key, found a key without one"},
      {"](N](K\1s.", "3 values on the stack, found 1"},
      {"h\0."s, "one of 0 memo entries, found 0"},
      {"Nq\5.", "a memo index of at most 0, found 5"},
      {"Nr\xff\xff\xff\xff.", "a memo index of at most 0, found 4294967295"},
      {"q\0."s, "1 values on the stack"},
      {"X\xff\xff\xff\xff.", "4294967295 bytes of text"},
      {"X\1\0\0\0\xff."s, "a string in UTF-8"},
      {"\x8a\x09"s + std::string(9, '\0') + "s.", "at most 64 bits, found 9 bytes"},
      {"]q\0h\0a."s, "nested values without cycles, found one that contains itself"},
      {"}q\0(K\1h\0u."s, "one that contains itself"},
      {"}](](NNu.", "a dict to add to"},
      {"}(]Nu.", "a dict with every key once, found a dict: expected a number, string"},
      {"}(K\1NK\1Nu.", "the key 1 is a duplicate"},
      {"NNb.", "a dict for attributes, found None"},
      {"N}b.", "an object that may have attributes, found None"},
      {"NR.", "a tuple for arguments, found None"},
      {")NR.", "arguments"},
      {"N)R.", "a class or function for a function to call, found None"},
      {"ccollections\nOrderedDict\nN\x85R.", "no arguments of OrderedDict"},
      {"c__builtin__\nbytes\nN\x85R.", "no arguments of bytes"},
      {"c_codecs\nencode\n" + text("a") + text("utf8") + "\x86R.", "a string and 'latin1'"},
      {"c_codecs\nencode\n" + text("\u0100") + text("latin1") + "\x86R.", "one above 255"},
      {"c_codecs\nencode\nK\1" + text("latin1") + "\x86R.", "a string for bytes"},
      {"ctorch\ndevice\n" + text("xla") + "\x85R.", "a device of type cpu or cuda, found xla"},
      {"ctorch\nSize\nN\x85R.", "a tuple for sizes, found None"},
      {"NQ.", "a tuple for a persistent id, found None"},
      {")Q.", "a persistent id ('storage', class, key, device, size)"},
      {storage("FloatStorage", 2) + ".", "expected a value, found a storage"},
      {"(" + text("storage") + "ccollections\nOrderedDict\n" + text("0") + text("cpu") + "K\2tQ.",
       "class of a storage"},
      {"(" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + "J\xff\xff\xff\xfftQ.",
       "the size of a storage, found -1"},
      {"(" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + "\x8a\x08\0\0\0\0\0\0\0\x40tQ."s,
       "the size of a storage"},
      {storage("FloatStorage", 2) + storage("FloatStorage", 3) + "\x86.",
       "8 bytes for storage '0', as before, found 12"},
      {storage("FloatStorage", 2) + storage("IntStorage", 2) + "\x86.", "tensors of one dtype over storage '0'"},
      {tensor(2, "K\0K\3\x85K\1\x85\x89"s + hooks) + ".", "a tensor inside of storage '0', which has 2 elements"},
      {tensor(2, "K\1K\2\x85K\1\x85\x89" + hooks) + ".", "sizes [2], strides [1], offset 1"},
      {tensor(2, "J\xff\xff\xff\xffK\1\x85K\1\x85\x89" + hooks) + ".", "offset -1"},
      {tensor(2, "K\0K\1\x85J\xff\xff\xff\xff\x85\x89"s + hooks) + ".", "strides of at least 0, found -1"},
      {tensor(2, "K\0\x8a\x08\0\0\0\0\0\0\0\x40\x85K\1\x85\x89"s + hooks) + ".", "a tensor inside of storage"},
      {tensor(2, "K\0\x8a\x08\0\0\0\0\0\0\0\x40\x8a\x08\0\0\0\0\0\0\0\x40\x86K\0K\0\x86\x89"s + hooks) + ".",
       "a tensor inside of storage"},
      {tensor(2, "K\0K\1K\1\x86K\1\x85\x89"s + hooks) + ".", "as many strides as sizes, found 1 and 2"},
      {tensor(2, "K\0NK\1\x85\x89"s + hooks) + ".", "a tuple for sizes"},
      {tensor(2, "K\0K\1\x85K\1\x85N"s + hooks) + ".", "a bool for requires_grad"},
      {tensor(2, "K\0K\1\x85K\1\x85\x89}(K\1Nu"s) + ".", "a tensor without hooks, found hooks, which are code"},
      {tensor(2, "K\0K\1\x85"s) + ".", "6 arguments of a tensor, found 3"},
      {"ctorch._utils\n_rebuild_tensor_v2\n(" + storage("IntStorage", 2) + "K\0K\1\x85K\1\x85\x88"s + hooks + "tR.",
       "a floating dtype of a tensor that requires a gradient, found int32"},
      {tensor(3, "K\0K\1\x85K\1\x85\x89"s + hooks) + ".", "member 'm/data/0': expected 12 bytes, found 8"},
      {"ctorch._utils\n_rebuild_tensor_v2\n(" + storage("FloatStorage", 2, "7") + "K\0K\1\x85K\1\x85\x89"s + hooks +
           "tR.",
       "storage '7' in the archive, found no such member"},
      {"ctorch._utils\n_rebuild_tensor_v2\n(" + storage("BoolStorage", 8) + "K\0K\1\x85K\1\x85\x89"s + hooks + "tR.",
       "0 or 1 for a bool, found another byte at 2"},
  };
  for (const Case& c : cases) TERCEL_EXPECT_THROW(run(c.program, two), DataError, c.message);
}

TEST(Pt, DeepAndExplosiveProgramsAreRefused) {
  std::string deep, wide = "]q\0"s;
  for (int i = 0; i < 100000; ++i) deep += "]";
  for (int i = 0; i < 99999; ++i) deep += "a";
  TERCEL_EXPECT_THROW(run(deep + "."), DataError, "at most 200 containers inside each other");
  for (int i = 0; i < 100000; ++i) deep += "\x85";
  TERCEL_EXPECT_THROW(run(deep + "."), DataError, "at most 200 containers inside each other");
  // Each list contains the previous one twice.
  for (int i = 1; i < 100; ++i) {
    const std::string last(1, static_cast<char>(i - 1));
    wide += "](h" + last + "h" + last + "eq" + std::string(1, static_cast<char>(i));
  }
  TERCEL_EXPECT_THROW(run("(" + wide + "t."), DataError, "bytes when nothing is shared, found more");
  // The same with tuples as keys, which are compared.
  std::string keys = ")q\0"s;
  for (int i = 1; i < 100; ++i) {
    const std::string last(1, static_cast<char>(i - 1));
    keys += "h" + last + "h" + last + "\x86q" + std::string(1, static_cast<char>(i));
  }
  TERCEL_EXPECT_THROW(run("(" + keys + "}(h\x63Nh\x63Nut."), DataError, "bytes when nothing is shared");
}

// Sorting such keys would take hours.
TEST(Pt, LongTextThatIsEveryKey) {
  const std::string key = "X" + std::string("\0\0\x10\0", 4) + std::string(1 << 20, 'k') + "q\0"s;
  std::string program = "(" + key + "}(";
  for (int i = 0; i < 100000; ++i) program += "h\0N"s;
  TERCEL_EXPECT_THROW(run(program + "ut."), DataError, "bytes when nothing is shared");
}

TEST(Pt, OtherFiles) {
  TERCEL_EXPECT_THROW(load(""), DataError, "x: byte 0: expected a zip archive");
  TERCEL_EXPECT_THROW(load("\x80\2\x8a\nl\xfc\x9c"
                           "F\xf9 j\xa8P\x19.\x80\2M\xe9\3."),
                      DataError, "found a plain pickle, as torch wrote before 1.6");
  TERCEL_EXPECT_THROW(load(std::string(257, '\0') + "ustar\0"s + std::string(300, '\0')), DataError, "a tar archive");
  const auto zip_of = [](const std::vector<std::pair<std::string, std::string>>& members, bool deflate = false) {
    const TemporaryFolder folder;
    ZipWriter zip(folder / "x");
    for (const auto& [name, content] : members) {
      zip.begin(name, static_cast<int64_t>(content.size()), deflate);
      zip.write(content.data(), content.size());
      zip.end();
    }
    zip.commit();
    return folder.get("x");
  };
  const std::string none = "\x80\2N.";
  TERCEL_EXPECT_THROW(load(zip_of({{"a.npy", "x"}})), DataError, "found one without FOLDER/data.pkl");
  TERCEL_EXPECT_THROW(load(zip_of({{"m/a/data.pkl", none}})), DataError, "without FOLDER/data.pkl");
  TERCEL_EXPECT_THROW(load(zip_of({{"m/data.pkl", none}, {"m/constants.pkl", none}})), DataError,
                      "a TorchScript program");
  TERCEL_EXPECT_THROW(load(zip_of({{"m/data.pkl", none}}, true)), DataError,
                      "a stored member, as torch writes, found a deflated");
  TERCEL_EXPECT_THROW(load(archive(none, {}, "middle")), DataError,
                      "member 'm/byteorder': expected little or big, found 'middle'");
  TERCEL_EXPECT_THROW(load(archive(none, {}, std::string(100, 'l'))), DataError, "expected little or big");
}

std::string small_file() {
  const TemporaryFolder folder;
  save_pt(folder / "x", Value::dict({{"a", make({2}, kFloat32, {1, 2})}, {"b", Value::list({1, "x", 0.5, true})}}));
  return folder.get("x");
}

TEST(Pt, Damaged) {
  for (const bool mmap : {false, true}) {
    const auto read = [mmap](const std::string& path) { static_cast<void>(load_pt(path, {.mmap = mmap})); };
    test::expect_cut_refused(small_file(), read);
    EXPECT_GT(test::count_refused_flips(small_file(), read), 3000);
  }
}

TEST(Pt, EveryFailingCallLeavesTheOldFile) {
  const std::string good = small_file();
  const Value value = load(good);
  for (int64_t n = 1;; ++n) {
    const TemporaryFolder folder;
    folder.put("x", "old");
    const ScopedFault fault({.nth = n, .error = 28});
    try {
      save_pt(folder / "x", value);
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
