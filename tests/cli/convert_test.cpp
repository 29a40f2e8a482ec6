#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "tercel/data/dataset.h"
#include "tercel/util/json_impl.h"
#include "tests/cli/program.h"
#include "tests/util/gzip_data.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::gzip;
using test::Outcome;
using test::Program;
using test::ProgramOptions;
using test::run;
using test::TemporaryFolder;

std::string criteo_line(int row) {
  std::string line = std::to_string(row % 4 == 0 ? 1 : 0);
  for (int i = 0; i < 13; ++i) line += "\t" + (i == row % 13 ? std::string() : std::to_string(i * row % 50));
  for (int i = 0; i < 26; ++i) line += "\tc" + std::to_string((i + row) % (3 + i));
  return line + "\n";
}

std::string criteo_text(int rows) {
  std::string text;
  for (int row = 0; row < rows; ++row) text += criteo_line(row);
  return text;
}

Outcome convert(const std::vector<std::string>& sources, const std::string& out,
                const std::vector<std::string>& more = {}, const ProgramOptions& options = {}) {
  std::vector<std::string> words = {"convert", "criteo"};
  words.insert(words.end(), sources.begin(), sources.end());
  words.push_back(out);
  words.insert(words.end(), more.begin(), more.end());
  return run(words, options);
}

TEST(ConvertCommand, MakesADatasetOfFilesAndGzip) {
  const TemporaryFolder folder;
  const std::string text = criteo_text(1000);
  const size_t middle = text.find('\n', text.size() / 2) + 1;
  const std::string a = folder.put("a.tsv", text.substr(0, middle)),
                    b = folder.put("b.tsv.gz", gzip(text.substr(middle)));
  const Outcome outcome = convert({a, b}, folder / "data", {"--min-count", "2", "--test-every", "5", "--dense", "log"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* part : {"1,000 rows of 13 dense values and 26 slots", "train: 800 rows", "test: 200 rows"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << outcome.out;
  const data::Dataset dataset = data::load_dataset(folder / "data");
  EXPECT_EQ(dataset.train.rows(), 800);
  EXPECT_EQ(dataset.conversion->dense_transform, data::DenseTransform::Log);
  EXPECT_EQ(*dataset.conversion->setting("min_count"), R"(["2"])");
  EXPECT_EQ(dataset.conversion->sources, (std::vector<std::string>{a, b}));

  const Json json = parse_json(convert({a, b}, folder / "data", {"--force", "--json"}).out, "stdout", JsonErrors::Data);
  EXPECT_EQ(json["train"]["rows"], 900);
  // Field i has 3 + i categories, of which one of 10 and two of 20 are in test rows only.
  EXPECT_EQ(json["categories_seen"], 26 * 3 + 25 * 13 - 3);
}

TEST(ConvertCommand, ReadsTheStandardInputOnceAndKeepsNoCopy) {
  const TemporaryFolder folder;
  const std::string text = criteo_text(500);
  ASSERT_EQ(convert({folder.put("in", text)}, folder / "file").code, 0);
  for (const std::string& input : {text, gzip(text)}) {
    ProgramOptions options;
    options.keep_open = true;
    Program program({"convert", "criteo", "-", folder / "pipe", "--force"}, options);
    program.send(input.substr(0, 100));
    program.send(input.substr(100));
    program.close_input();
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(folder.get("pipe/train/part-0.data"), folder.get("file/train/part-0.data"));
    EXPECT_EQ(folder.get("pipe/vocabulary.bin"), folder.get("file/vocabulary.bin"));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "pipe"), {}),
              std::distance(std::filesystem::directory_iterator(folder / "file"), {}));
  }
}

TEST(ConvertCommand, BadInputIsOneLineAndLeavesNothing) {
  const TemporaryFolder in, out;
  const std::string good = criteo_text(20), zipped = gzip(criteo_text(2000));
  const std::string columns = criteo_line(1).substr(1);
  const struct {
    std::string content;
    const char* name;
    std::vector<std::string> texts;
  } cases[] = {
      {"", "empty", {"empty", "expected rows, found none"}},
      {zipped.substr(0, zipped.size() / 2), "cut.gz", {"cut.gz", "truncated"}},
      {zipped.substr(0, zipped.size() - 4) + "abcd", "sum.gz", {"sum.gz"}},
      {good, "plain.gz", {"plain.gz", "byte 0"}},
      {good + "2" + columns, "label", {"label: line 21: column 1 (click): expected 0 or 1, found '2'"}},
      {good + columns, "none", {"none: line 21: column 1 (click): expected 0 or 1, found nothing"}},
      {good + "1\tmany" + columns.substr(2), "text", {"text: line 21: column 2 (I1): expected a number", "many"}},
      {good + "1\tnan" + columns.substr(2), "nan", {"nan: line 21: column 2 (I1): expected a finite number"}},
      {good + "1\t2\t3\n", "few", {"few: line 21: expected 40 columns, found 3 columns"}},
      {good + "1\tx" + columns, "many", {"many: line 21: expected 40 columns, found 41 columns"}},
      {good + "\n", "blank", {"blank: line 21: expected 40 columns, found 1 column"}},
      {std::string("\x7f"
                   "ELF\0\0\0",
                   7),
       "binary",
       {"binary: line 1: expected 40 columns, found 1 column"}},
      {"{\"format\": \"norm\"}", "json", {"json: line 1"}},
  };
  for (const auto& c : cases) expect_error(convert({in.put(c.name, c.content)}, out / "data"), 3, c.texts);

  ProgramOptions piped;
  piped.input = good + "7" + columns;
  expect_error(convert({"-"}, out / "data", {}, piped), 3, {"standard input: line 21: column 1 (click)"});
  piped.input = good;
  expect_error(convert({"-"}, out / "data", {"--test-from", "0"}, piped), 3, {"standard input: expected train rows"});
  expect_error(convert({in / "absent"}, out / "data"), 4, {"absent", "No such file"});
  expect_error(convert({in.path()}, out / "data"), 4, {in.path(), "directory"});
  expect_error(convert({in.put("good", good)}, out / "data", {"--test-from", "0"}), 3, {"train rows"});
  expect_error(convert({in / "good"}, out / "data", {"--min-count", "0"}), 2, {"'min_count'"});
  expect_error(convert({in / "good"}, out / "data", {"--dense", "cubic"}), 2, {"'dense'", "cubic"});
  expect_error(convert({"-", "-"}, out / "data"), 2, {"once"});
  expect_error(run({"convert", "criteo", in / "good"}), 2, {"argument"});
  EXPECT_TRUE(out.tree().empty());
}

TEST(ConvertCommand, FullDiskLeavesNothing) {
  const TemporaryFolder in, out;
  const std::string source = in.put("in", criteo_text(2000));
  ProgramOptions options;
  // Too little memory for the data, then for the vocabulary, then for the copy of the standard input.
  for (const int64_t bytes : {100'000, 500}) {
    options.max_file_bytes = bytes;
    expect_error(convert({source}, out / "data", {}, options), 4, {"File too large"});
    EXPECT_TRUE(out.tree().empty());
  }
  options.input = criteo_text(2000);
  expect_error(convert({"-"}, out / "data", {}, options), 4, {"File too large"});
  EXPECT_TRUE(out.tree().empty());
}

TEST(ConvertCommand, StopsWhileItWaitsForText) {
  const TemporaryFolder folder;
  ProgramOptions options;
  options.keep_open = true;
  options.input = criteo_text(10);
  Program program({"convert", "criteo", "-", folder / "data"}, options);
  while (program.is_running() && folder.tree().empty()) std::this_thread::yield();
  program.signal(SIGINT);
  expect_error(program.wait(), 130, {"SIGINT"});
  EXPECT_TRUE(folder.tree().empty());
}

TEST(ConvertCommand, ConvertsATableByItsNames) {
  const TemporaryFolder folder;
  const std::string table = folder.put("t.csv",
                                       "id,age,city,job,income\r\n"
                                       "1,30,Rome,\"cook, head\",>50K\r\n"
                                       "2,,Oslo,clerk,<=50K\r\n"
                                       "3,41,Rome,clerk,<=50K\r\n");
  const std::vector<std::string> words = {
      "convert",       "csv",      table,     folder / "data", "--label",     "income", "--positive",   ">50K",
      "--categorical", "city,job", "--dense", "age",           "--min-count", "1",      "--test-every", "0"};
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("3 rows of 1 dense value and 2 slots with 6 keys (of 4 categories)"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("test: none"), std::string::npos) << outcome.out;
  const data::Dataset dataset = data::load_dataset(folder / "data");
  EXPECT_EQ(dataset.schema.slot_size_array(), (std::vector<int64_t>{3, 3}));

  const auto fail = [&](const std::vector<std::string>& options, int code, const std::vector<std::string>& texts) {
    std::vector<std::string> call = {"convert", "csv", table, folder / "other"};
    call.insert(call.end(), options.begin(), options.end());
    expect_error(run(call), code, texts);
  };
  fail({"--dense", "age"}, 2, {"option --label is missing"});
  fail({"--label", "income"}, 2, {"'dense' or 'categorical'"});
  fail({"--label", "income", "--dense", "age,income"}, 2, {"'income' in 'dense'"});
  fail({"--label", "incom", "--dense", "age"}, 3,
       {"t.csv: line 1: expected a column 'incom'", "did you mean 'income'?"});
  fail({"--label", "income", "--categorical", "city,town"}, 3, {"expected a column 'town'"});
  fail({"--label", "income", "--dense", "age", "--dense", "age", "--positive", ">50K"}, 2,
       {"option 'dense': expected each column once, found 'age' twice"});
  fail({"--label", "income", "--dense", "age"}, 3, {"t.csv: line 2: column 5 (income): expected 0 or 1, found '>50K'"});
  fail({"--label", "income", "--positive", ">50K", "--dense", "city"}, 3,
       {"line 2: column 3 (city): expected a number"});
  fail({"--label", "income", "--dense", "age", "--delimiter", "::"}, 2, {"'delimiter'"});
  EXPECT_FALSE(std::filesystem::exists(folder / "other"));
}

TEST(ConvertCommand, DescribesNormFilesWhereTheyAre) {
  const TemporaryFolder root;
  ASSERT_EQ(run({"generate", root / "made", "--preset", "small", "--rows", "600", "--files", "2"}).code, 0);
  const Json made = parse_json(root.get("made/dataset.json"), "made", JsonErrors::Data);
  std::string sizes;
  for (const Json& slot : made["schema"]["slots"])
    sizes += (sizes.empty() ? "" : ",") + std::to_string(slot["size"].get<int64_t>());
  const std::vector<std::string> words = {"convert",
                                          "norm",
                                          root / "described",
                                          "--train-list",
                                          root / "made/train.txt",
                                          "--test-list",
                                          root / "made/test.txt",
                                          "--nnz-per-slot",
                                          "1,1,1,1,1",
                                          "--slot-size-array",
                                          sizes,
                                          "--key-type",
                                          "i64"};
  const auto with_dense = [&words](const char* dense) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--dense-dim", dense});
    return all;
  };
  expect_error(run(with_dense("5")), 3, {"made/train/part-0.data", "expected dense_dim 5, found 4"});
  EXPECT_FALSE(root.tree().contains("described/"));
  const Outcome outcome = run(with_dense("4"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("540 train rows and 60 test rows of 4 dense values and 5 slots"), std::string::npos)
      << outcome.out;
  int64_t files = 0;
  for (const auto& [name, content] : root.tree()) files += name.starts_with("described/") && !name.ends_with("/");
  EXPECT_EQ(files, 1) << "nothing but dataset.json";
  // The output must not replace the folder of the input files, which would be deleted.
  std::filesystem::create_directory_symlink(root / "made", root / "link");
  const auto before = root.tree();
  for (const char* name : {"made", "made/", "./made", "made/../made//"}) {
    std::vector<std::string> in_place = with_dense("4");
    in_place[2] = root / name;
    in_place.emplace_back("--force");
    expect_error(run(in_place), 2, {"made/train.txt: lies in", "would be deleted"});
    in_place[4] = root / "link/train.txt";
    expect_error(run(in_place), 2, {"link/train.txt: lies in", "would be deleted"});
  }
  const std::string text = root.put("made/text.tsv", "not read");
  for (const char* name : {"made", "made/"})
    expect_error(run({"convert", "criteo", text, root / name, "--force"}), 2,
                 {"text.tsv: lies in", "would be deleted"});
  std::filesystem::remove(text);
  EXPECT_TRUE(before == root.tree());
  // The same rows train the same model.
  for (const char* data : {"made", "described"}) {
    const Outcome trained =
        run(test::one_pass({"train", root / data, "--out", root / (std::string("run-") + data), "--threads", "1"}));
    EXPECT_EQ(trained.code, 0) << trained.err;
  }
  const auto weights = [&root](const std::string& name) {
    return root.get("run-" + name + "/checkpoints/step-000000000003/dense.safetensors");
  };
  EXPECT_FALSE(weights("made").empty());
  EXPECT_TRUE(weights("made") == weights("described"));
}

}  // namespace
}  // namespace tercel::cli
