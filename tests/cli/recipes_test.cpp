// `tercel convert criteo --recipe`.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tercel/data/arrow_module.h"
#include "tercel/data/dataset.h"
#include "tercel/util/file.h"
#include "tercel/util/json_impl.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::Outcome;
using test::run;
using test::TemporaryFolder;
using Words = std::vector<std::string>;

std::string hex(int value) {
  char text[16];
  std::snprintf(text, sizeof(text), "%08x", static_cast<unsigned>(value));
  return text;
}

/** I2 is -1 at times; C1 has a rare category in each tenth row, C2 is missing in each seventh. */
std::string line(int row) {
  std::string text = std::to_string(row % 4 == 0 ? 1 : 0);
  for (int i = 0; i < 13; ++i)
    text += "\t" + (i == row % 13 ? std::string() : i == 1 && row % 5 == 0 ? "-1" : std::to_string((i + 1) * row % 50));
  for (int i = 0; i < 26; ++i)
    text += "\t" + (i == 0 && row % 10 == 3  ? hex(0x10000000 + row)
                    : i == 1 && row % 7 == 0 ? std::string()
                                             : hex(row % (3 + i)));
  return text + "\n";
}

class Recipes : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int row = 0; row < 1000; ++row) text += line(row);
    source_ = folder_.put("train.txt", text);
  }
  data::Dataset convert(const std::string& out, const Words& more) {
    Words words = {"convert", "criteo", source_, folder_ / out};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return data::load_dataset(folder_ / out);
  }

  TemporaryFolder folder_;
  std::string source_;
};

TEST_F(Recipes, NvtabularGivesTheSameRowsInEveryFormat) {
  const data::Dataset norm = convert("norm", {"--recipe", "nvtabular"});
  EXPECT_EQ(norm.train.rows(), 800);
  EXPECT_EQ(norm.valid.rows(), 100);
  EXPECT_EQ(norm.test.rows(), 100);
  const data::Schema& schema = norm.schema;
  ASSERT_EQ(schema.slot_num(), 28);
  EXPECT_EQ(schema.slots[0].name, "C1_C2");
  EXPECT_EQ(schema.slots[1].name, "C3_C4");
  EXPECT_EQ(schema.slots[2].name, "C1");
  // C1: 3 frequent categories of residues mod 3, the rare ones dropped, and id 0. C1_C2: 3 times 4.
  EXPECT_EQ(schema.slots[2].size, 4);
  EXPECT_EQ(schema.slots[0].size, 13);
  const data::Conversion& conversion = *norm.conversion;
  EXPECT_EQ(conversion.dense_transform, data::DenseTransform::Zscore);
  for (const auto& [name, value] : {std::pair{"recipe", "nvtabular"}, std::pair{"min_count", "6"},
                                    std::pair{"clip_min", "0"}, std::pair{"valid_every", "9"}}) {
    const std::string* const found = conversion.setting(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_NE(found->find(value), std::string::npos) << name << ": " << *found;
  }

  // Raw holds them as floats; converting them gives the bytes of Norm again.
  const data::Dataset raw = convert("raw", {"--recipe", "nvtabular", "--format", "raw", "--slot-offsets", "add"});
  EXPECT_EQ(raw.train.files[0].bytes, 800 * 4 * (1 + 13 + 28));
  EXPECT_EQ(raw.schema, norm.schema);
  ASSERT_EQ(run({"convert", "dataset", folder_ / "raw", folder_ / "back", "--to", "norm"}).code, 0);
  EXPECT_EQ(data::load_dataset(folder_ / "back").train.files[0].checksum, norm.train.files[0].checksum);
  if (data::has_arrow_module()) {
    const data::Dataset parquet = convert("parquet", {"--recipe", "nvtabular", "--format", "parquet"});
    const Json metadata =
        parse_json(read_file(folder_ / "parquet/train/_metadata.json", 1 << 20), "metadata", JsonErrors::Data);
    EXPECT_EQ(metadata["conts"].size(), 13u);
    EXPECT_EQ(metadata["cats"].size(), 28u);
    EXPECT_EQ(metadata["cats"][0], (Json{{"col_name", "C1_C2"}, {"index", 14}}));
    ASSERT_EQ(run({"convert", "dataset", folder_ / "parquet", folder_ / "again", "--to", "norm"}).code, 0);
    EXPECT_EQ(data::load_dataset(folder_ / "again").train.files[0].checksum, norm.train.files[0].checksum);
  }

  // A model on them reads text, with combinations and clipped numbers.
  ASSERT_EQ(run({"train", folder_ / "norm", "--out", folder_ / "run", "--set", "solver.batchsize=100", "--quiet"}).code,
            0);
  const Outcome predicted = run({"predict", folder_ / "run", source_});
  EXPECT_EQ(std::count(predicted.out.begin(), predicted.out.end(), '\n'), 1001) << predicted.err;
}

TEST_F(Recipes, DlrmGivesRowsOfFortyIntegers) {
  const data::Dataset dataset =
      convert("dlrm", {"--recipe", "dlrm", "--hex-modulo", "4096", "--format", "raw", "--slot-offsets", "add",
                       "--no-float-label-dense", "--test-every", "0"});
  EXPECT_EQ(dataset.train.files[0].bytes, 1000 * 160);
  const std::string bytes = read_file(folder_ / "dlrm/train/part-0.bin", 1 << 20);
  std::vector<std::vector<int>> ids(26, std::vector<int>(4097, -1));
  for (int row = 0; row < 1000; ++row) {
    int32_t values[40];
    std::memcpy(values, bytes.data() + row * 160, sizeof(values));
    ASSERT_EQ(values[0], row % 4 == 0 ? 1 : 0);
    for (int i = 0; i < 13; ++i) {
      const bool none = i == row % 13 || (i == 1 && row % 5 == 0);
      ASSERT_EQ(values[1 + i], none ? 0 : (i + 1) * row % 50) << "missing and negative numbers are 0";
    }
    for (int i = 0; i < 26; ++i) {
      const int id = values[14 + i];
      if (i == 1 && row % 7 == 0) {
        ASSERT_EQ(id, 0) << "missing";
        continue;
      }
      const int value = i == 0 && row % 10 == 3 ? (0x10000000 + row) % 4096 : row % (3 + i);
      int& known = ids[static_cast<size_t>(i)][static_cast<size_t>(value)];
      if (known < 0) known = id;
      ASSERT_EQ(id, known) << "a category of its own for each number mod 4096, rare ones too";
      ASSERT_GT(id, 0);
      ASSERT_LT(id, dataset.schema.slots[static_cast<size_t>(i)].size);
    }
  }
}

TEST_F(Recipes, OptionsHavePrecedence) {
  const data::Dataset dataset =
      convert("data", {"--min-count", "1", "--recipe=nvtabular", "--cross", "C5+C6+C7", "--valid-every", "0"});
  EXPECT_EQ(dataset.schema.slot_num(), 27);
  EXPECT_EQ(dataset.schema.slots[0].name, "C5_C6_C7");
  EXPECT_EQ(dataset.schema.slots[1].size, 104) << "100 rare categories are kept";
  EXPECT_EQ(dataset.valid.rows(), 0);
  expect_error(run({"convert", "criteo", source_, folder_ / "x", "--recipe", "nvtabulr"}), 2,
               {"recipe", "nvtabular", "nvtabulr"});
  expect_error(run({"convert", "criteo", source_, folder_ / "x", "--recipe", "dlrm", "--like", folder_ / "data"}), 2,
               {"--recipe"});
  // Options that choose the rows of parts replace the recipe's.
  const data::Dataset files = convert("files", {"--recipe", "nvtabular", "--test", source_, "--valid", source_});
  EXPECT_EQ(files.train.rows(), 1000);
  EXPECT_EQ(files.valid.rows(), 1000);
  const data::Dataset places = convert("places", {"--test-from=900", "--recipe=nvtabular", "--valid-from=850"});
  EXPECT_EQ(places.train.rows(), 850);
  EXPECT_EQ(places.valid.rows(), 50);
  const Outcome help = run({"convert", "criteo", "--recipe", "nvtabular", "--help"});
  EXPECT_NE(help.out.find("default [\"6\"]"), std::string::npos) << help.out;
}

TEST_F(Recipes, NegativesAreLeftOutAndPredictionsCorrected) {
  const Outcome outcome = run({"convert", "criteo", source_, folder_ / "some", "--negative-rate", "0.2", "--seed", "1",
                               "--test-every", "7", "--json"});
  const Json json = parse_json(outcome.out, "convert", JsonErrors::Data);
  EXPECT_EQ(json["train"]["rows"].get<int64_t>() + json["left_out_negatives"].get<int64_t>(), 858);
  EXPECT_NE(outcome.err.find("train rows of label 0 left out"), std::string::npos) << outcome.err;
  ASSERT_EQ(run({"train", folder_ / "some", "--out", folder_ / "run", "--set", "solver.batchsize=50", "--set",
                 "solver.max_iter=20", "--quiet"})
                .code,
            0);
  const auto calibration = [&](const std::string& part) {
    const Outcome eval = run({"eval", folder_ / "run", folder_ / "some", "--part", part, "--json"});
    return parse_json(eval.out, "eval", JsonErrors::Data)["calibration"].get<double>();
  };
  EXPECT_NEAR(calibration("train"), 1, 0.4);
  EXPECT_NEAR(calibration("test"), 1, 0.6) << "without correction it would be about 2.5";
}

}  // namespace
}  // namespace tercel::cli
