// Files of predictions. python/tests/test_predictions.py reads them with NumPy and pyarrow.
#include "tercel/recsys/prediction_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tercel/data/arrow_module.h"
#include "tercel/io/npy.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/util/temporary_folder.h"

namespace tercel::recsys {
namespace {

using tercel::test::TemporaryFolder;
using tercel::test::values_of;
using Names = std::vector<std::string>;

const std::vector<float> kProbabilities = {0.5f, 0.25f, 0.125f, 1.0f / 3};
const std::vector<int64_t> kIntegers = {7, -1};
const std::vector<float> kFloats = {1.5f, -2};
const std::vector<std::string> kTexts = {"a,b", "caf\xc3\xa9 \"x\""};

/** Two rows of two columns. */
Predictions two_rows() {
  Predictions rows;
  rows.rows = 2;
  rows.probabilities = kProbabilities;
  rows.ids.integers = kIntegers;
  rows.ids.floats = kFloats;
  rows.ids.texts = kTexts;
  return rows;
}

Head head(const char* name, int64_t columns) {
  Head made;
  made.name = name;
  made.columns = columns;
  return made;
}

TEST(PredictionNames, SayHeadAndColumn) {
  EXPECT_EQ(prediction_names(std::vector{head("loss", 1)}), Names{"probability"});
  EXPECT_EQ(prediction_names(std::vector{head("loss", 2)}), (Names{"probability/loss/0", "probability/loss/1"}));
  EXPECT_EQ(prediction_names(std::vector{head("a", 1), head("b", 2)}),
            (Names{"probability/a", "probability/b/0", "probability/b/1"}));
}

TEST(PredictionText, QuotesWhatHasSeparators) {
  const auto text_of = [](const IdColumn& id, int times) {
    std::string text;
    const auto write = [&text](std::string_view more) { text += more; };
    const auto writer = make_prediction_text(write, {"p", "q,r"}, id);
    for (int i = 0; i < times; ++i) writer->write(two_rows());
    writer->commit();
    return text;
  };
  const std::string a = "0.5,0.25\n", b = "0.125,0.333333343\n";
  EXPECT_EQ(text_of({}, 2), "p,\"q,r\"\n" + a + b + a + b);
  EXPECT_EQ(text_of({}, 0), "p,\"q,r\"\n") << "the header alone";
  EXPECT_EQ(text_of({"n", data::ValueType::I64}, 1), "n,p,\"q,r\"\n7," + a + "-1," + b);
  EXPECT_EQ(text_of({"n", data::ValueType::F32}, 1), "n,p,\"q,r\"\n1.5," + a + "-2," + b);
  EXPECT_EQ(text_of({"n", data::ValueType::Text}, 1), "n,p,\"q,r\"\n\"a,b\"," + a + "\"caf\xc3\xa9 \"\"x\"\"\"," + b);
  TERCEL_EXPECT_THROW(text_of({"p"}, 0), ConfigError, "the ids' column 'p' has the name of a column of probabilities");
}

TEST(PredictionFile, NpyIsAnArrayOrRecords) {
  const TemporaryFolder root;
  const auto write = [&](const IdColumn& id) {
    const auto file = make_prediction_file(PredictionFormat::Npy, root / "x.npy", {"p", "q"}, id);
    file->write(two_rows());
    file->commit();
    return root.get("x.npy");
  };
  write({});
  const Tensor plain = io::load_npy(root / "x.npy");
  EXPECT_EQ(plain.sizes(), IntSpan({2, 2}));
  EXPECT_EQ(values_of(plain), std::vector<double>(kProbabilities.begin(), kProbabilities.end()));
  const auto expect = [](const std::string& file, const std::string& descr, const std::string& records) {
    EXPECT_NE(
        file.find("{'descr': [" + descr + ", ('p', '<f4'), ('q', '<f4')], 'fortran_order': False, 'shape': (2,), }"),
        std::string::npos)
        << file.substr(0, 200);
    EXPECT_TRUE(file.ends_with("\n" + records)) << file.size();
    EXPECT_EQ((file.size() - records.size()) % 64, 0u);
  };
  const auto bytes = [](const auto* value, size_t count) {
    return std::string(reinterpret_cast<const char*>(value), count * sizeof(*value));
  };
  const std::string first = bytes(kProbabilities.data(), 2), second = bytes(kProbabilities.data() + 2, 2);
  expect(write({"n", data::ValueType::I64}), "('n', '<i8')",
         bytes(kIntegers.data(), 1) + first + bytes(kIntegers.data() + 1, 1) + second);
  expect(write({"n", data::ValueType::F32}), "('n', '<f4')",
         bytes(kFloats.data(), 1) + first + bytes(kFloats.data() + 1, 1) + second);
  const std::u32string a(U"a,b\0\0\0\0\0", 8), b = U"caf\u00e9 \"x\"";
  expect(write({"n", data::ValueType::Text}), "('n', '<U8')", bytes(a.data(), 8) + first + bytes(b.data(), 8) + second);
}

TEST(PredictionFile, AppearsWhenItIsComplete) {
  const TemporaryFolder root;
  for (const PredictionFormat format : {PredictionFormat::Csv, PredictionFormat::Npy, PredictionFormat::Parquet})
    for (const data::ValueType type : {data::ValueType::I64, data::ValueType::Text}) {
      if (format == PredictionFormat::Parquet && !data::has_arrow_module()) continue;
      const IdColumn id{"n", type};
      make_prediction_file(format, root / "x", {"p", "q"}, id)->write(two_rows());
      EXPECT_TRUE(root.tree().empty()) << "removed, as it was not committed";
      EXPECT_THROW(make_prediction_file(format, root / "none/x", {"p", "q"}, id), IoError) << "before the first row";
    }
}

TEST(PredictionFile, TextsThatAreNoUtf8AreRefused) {
  const TemporaryFolder root;
  const std::vector<std::string> texts = {"fine", "caf\xe9"};
  Predictions rows = two_rows();
  rows.ids.texts = texts;
  for (const PredictionFormat format : {PredictionFormat::Npy, PredictionFormat::Parquet}) {
    if (format == PredictionFormat::Parquet && !data::has_arrow_module()) continue;
    const auto file = make_prediction_file(format, root / "x", {"p", "q"}, {"n", data::ValueType::Text});
    TERCEL_EXPECT_THROW(file->write(rows), DataError, "row 1: ");
  }
}

}  // namespace
}  // namespace tercel::recsys
