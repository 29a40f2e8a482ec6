// Options of the conversion of text, as a user meets them.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
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

/** Ratings 1 to 5 of a few users at ascending times, with tags. */
std::string ratings(int rows, int first = 0) {
  std::string text = "user,rating,when,tags\n";
  for (int i = first; i < first + rows; ++i)
    text += "u" + std::to_string(i % 7) + "," + std::to_string(i % 5 + 1) + "," +
            std::to_string(1'700'000'000 + i * 3600) + "," + (i % 4 == 0 ? "" : "a|t" + std::to_string(i % 9)) + "\n";
  return text;
}

class ConvertText : public testing::Test {
 protected:
  /** `convert csv` of a table of ratings. */
  Outcome csv(const std::string& out, const Words& more, const std::string& text = ratings(100)) {
    Words words = {"convert",       "csv",       folder_.put("t.csv", text), folder_ / out, "--label", "rating",
                   "--categorical", "user,tags", "--list-separator",         "|",           "--lists", "tags"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  void refused(const Words& more, int code, const std::string& text) {
    expect_error(csv("refused", more), code, {text});
    EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
  }

  TemporaryFolder folder_;
};

TEST_F(ConvertText, ThreePartsByTime) {
  const Outcome outcome =
      csv("data", {"--positive", ">=4", "--time-column", "when", "--valid-from", "2023-11-17T10:13:20", "--test-from",
                   "2023-11-18", "--time-parts", "when=hour,weekday", "--min-count", "4"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"train: 60 rows", "valid: 14 rows", "test: 26 rows", "4 slots"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("  when_hour: 24 of 24 values dropped, in 100 % of the train rows"), std::string::npos)
      << outcome.out;
  const Outcome info = run({"info", folder_ / "data", "--json"});
  const Json json = parse_json(info.out, "info", JsonErrors::Data);
  EXPECT_EQ(json["valid"]["rows"], 14);
  EXPECT_NE(run({"info", folder_ / "data"}).out.find("valid:\n  rows: 14"), std::string::npos);

  ASSERT_EQ(run(test::one_pass(
                    {"train", folder_ / "data", "--out", folder_ / "run", "--set", "solver.batchsize=20", "--quiet"}))
                .code,
            0);
  const Outcome eval = run({"eval", folder_ / "run", folder_ / "data", "--part", "valid", "--json"});
  EXPECT_EQ(parse_json(eval.out, "eval", JsonErrors::Data)["rows"], 14) << eval.err;
  const Outcome predicted = run({"predict", folder_ / "run", folder_ / "data", "--part", "valid"});
  EXPECT_EQ(std::count(predicted.out.begin(), predicted.out.end(), '\n'), 15) << predicted.err;
}

TEST_F(ConvertText, WrongOptionsAreNamed) {
  const Words good = {"--positive", ">=4"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), good.begin(), good.end());
    return more;
  };
  refused({"--positive", ">5"}, 3,
          "t.csv: expected a label '>5', as option 'positive' says, in column 'rating', found");
  refused(with({"--test-from", "100"}), 3, "from row 100 on, found 100 rows");
  refused(with({"--test-from", "10", "--test-every", "3"}), 2,
          "options 'test_every' and 'test_from' exclude each other");
  refused(with({"--dense", "when,when"}), 2, "option 'dense': expected each column once, found 'when' twice");
  refused(with({"--dense", "wen"}), 3, "expected a column 'wen', found 4 columns of other names; did you mean 'when'?");
  refused(with({"--min-count", "users=2"}), 2, "found 'users'; did you mean 'user'?");
  refused(with({"--hash-buckets", "0x10"}), 2, "option 'hash_buckets': expected N or column=N with N at least 0");
  refused(with({"--weighted", "tags"}), 2, "slot 'tags': expected keys without weights");
  refused(with({"--test", folder_ / "absent"}), 4, "absent");
  refused(with({"--threads", "2000"}), 2, "'threads'");
  refused({"--like", folder_ / "data"}, 2, "convert csv: options --like and --label exclude each other");
}

TEST_F(ConvertText, FurtherFilesLikeADatasetOrARun) {
  ASSERT_EQ(csv("data", {"--positive", ">=4", "--min-count", "1", "--dense", "when", "--valid-every", "4"}).code, 0);
  ASSERT_EQ(run(test::one_pass(
                    {"train", folder_ / "data", "--out", folder_ / "run", "--set", "solver.batchsize=20", "--quiet"}))
                .code,
            0);
  // A list that is longer than all before, and categories that are new.
  const std::string later = folder_.put("later.csv", ratings(30, 40) + "new,1,1700000000,a|t1|new|t2\n");
  for (const char* like : {"data", "run"}) {
    const std::string out = folder_ / (std::string("later-") + like);
    const Outcome outcome = run({"convert", "csv", later, out, "--like", folder_ / like});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("train: 31 rows"), std::string::npos) << outcome.out;
    const Outcome eval = run({"eval", folder_ / "run", out, "--part", "train"});
    EXPECT_EQ(eval.code, 0) << eval.err;
    EXPECT_EQ(eval.err, "");
    // The dataset and the text give the same predictions.
    const Outcome of_data = run({"predict", folder_ / "run", out, "--part", "train"}),
                  of_text = run({"predict", folder_ / "run", later});
    EXPECT_EQ(of_data.code, 0) << of_data.err;
    EXPECT_EQ(of_text.out, of_data.out) << of_text.err;
  }
  EXPECT_EQ(folder_.get("later-data/train/part-0.data"), folder_.get("later-run/train/part-0.data"));

  const auto like = [&](const std::string& tool, const std::string& of) {
    return run({"convert", tool, later, folder_ / "other", "--like", of});
  };
  expect_error(like("criteo", folder_ / "data"), 2,
               {"expected a dataset that 'tercel convert criteo' made, found one of 'csv'"});
  expect_error(like("csv", folder_ / "absent"), 4, {"absent"});
  ASSERT_EQ(run({"generate", folder_ / "made", "--preset", "small", "--rows", "100"}).code, 0);
  expect_error(like("csv", folder_ / "made"), 2, {"found one of 'generate'"});
}

TEST_F(ConvertText, OptionsOfTheFormatThatLikeImpliesInAnyOrder) {
  ASSERT_EQ(csv("data", {"--positive", ">=4", "--min-count", "1", "--key-type", "u32"}).code, 0);
  const std::string later = folder_.put("later.csv", ratings(30, 40)), like = folder_ / "data";
  int number = 0;
  const auto format_of = [&](const Words& more) {
    const std::string out = "later-" + std::to_string(number++);
    Words words = {"convert", "csv", later, folder_ / out};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return parse_json(folder_.get(out + "/dataset.json"), "dataset.json", JsonErrors::Data)["format"];
  };
  EXPECT_EQ(format_of({"--like", like})["key_type"], "u32");
  const Words orders[] = {{"--check-mode", "none", "--like", like},
                          {"--like", like, "--check-mode", "none"},
                          {"--check-mode=none", "--format", "norm", "--like=" + like}};
  for (const Words& words : orders) {
    const Json format = format_of(words);
    EXPECT_EQ(format["check_mode"], "none");
    EXPECT_EQ(format["key_type"], "u32");
  }
  const Words wrong = {"convert", "csv", later, folder_ / "x", "--slot-offsets", "add", "--like", like};
  expect_error(run(wrong), 2, {"unknown option '--slot-offsets'"});
  expect_error(run({"convert", "csv", later, folder_ / "x", "--like"}), 2, {"option --like: expected a value"});
  expect_error(run({"convert", "csv", later, folder_ / "x", "--like", "--force"}), 2,
               {"option --like: expected a value"});
  expect_error(run({"convert", "csv", later, folder_ / "x", "--like="}), 2, {"option --like: expected the folder"});
  const Outcome help = run({"convert", "csv", "--like", folder_ / "absent", "--help"});
  EXPECT_EQ(help.code, 0) << help.err;
  EXPECT_NE(help.out.find("--check-mode"), std::string::npos);
}

TEST_F(ConvertText, FeaturesOfLibsvmAndLibffm) {
  std::string svm, ffm;
  for (int i = 0; i < 60; ++i) {
    const std::string index = std::to_string(i % 9);
    svm += (i % 2 == 0 ? "+1 " : "-1 ") + index + ":1 100:1\n";
    ffm += (i % 2 == 0 ? "1 0:" : "0 0:") + index + ":1 1:100:0.5\n";
  }
  const std::string test = folder_.put("test.svm", "+1 3:1\n");
  const Outcome outcome =
      run({"convert", "libsvm", folder_.put("a.svm", svm), folder_ / "svm", "--test", test, "--hash-buckets", "64"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("1 slot with 64 keys"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("test: 1 row "), std::string::npos) << outcome.out;
  const std::string source = folder_.put("a.ffm", ffm);
  expect_error(run({"convert", "libffm", source, folder_ / "ffm"}), 2, {"'values', values are left out"});
  const Outcome ignored = run({"convert", "libffm", source, folder_ / "ffm", "--values", "ignore", "--json"});
  EXPECT_EQ(ignored.code, 0) << ignored.err;
  const Json json = parse_json(ignored.out, "stdout", JsonErrors::Data);
  EXPECT_EQ(json["fields"][0]["name"], "field0");
  EXPECT_EQ(json["fields"][1]["categories"], 1);
  ASSERT_EQ(run(test::one_pass(
                    {"train", folder_ / "ffm", "--out", folder_ / "run", "--set", "solver.batchsize=20", "--quiet"}))
                .code,
            0);
  EXPECT_EQ(run({"predict", folder_ / "run", folder_.put("later.ffm", "0:3:1 1:5:9\n")}).code, 0) << "without a label";
}

}  // namespace
}  // namespace tercel::cli
