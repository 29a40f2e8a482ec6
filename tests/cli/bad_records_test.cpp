// --on-bad-record skip of train, eval and convert dataset.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tercel/util/json_impl.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::Outcome;
using test::run;
using test::TemporaryFolder;

/** Damages records of a Norm file of rows of the same size. */
void damage(const TemporaryFolder& root, const std::string& name, size_t rows, const std::vector<size_t>& records) {
  std::string bytes = root.get(name);
  const size_t record = (bytes.size() - 69) / rows;
  for (const size_t row : records) bytes[69 + row * record + 9] = static_cast<char>(bytes[69 + row * record + 9] ^ 1);
  root.put(name, bytes);
}

Json json_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return parse_json(outcome.out, "stdout", JsonErrors::Data);
}

TEST(BadRecordsCommand, AreLeftOutAndCounted) {
  const TemporaryFolder root;
  ASSERT_EQ(run({"generate", root / "data", "--preset", "small", "--rows", "6000"}).code, 0);
  damage(root, "data/train/part-0.data", 5400, {5, 6, 3000});
  damage(root, "data/test/part-0.data", 600, {599});
  const std::vector<std::string> train =
      test::one_pass({"train", root / "data", "--out", root / "run", "--threads", "1"});
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_error(run(with(train, {"--quiet"})), 3, {"train/part-0.data: record 5: byte "});
  expect_error(run(with(train, {"--on-bad-record", "skp"})), 2, {"--on-bad-record", "\"skp\"", "did you mean 'skip'"});
  expect_error(run(test::one_pass({"train", root / "data", "--out", root / "few", "--on-bad-record", "skip",
                                   "--max-bad-records", "2", "--quiet"})),
               3, {"train/part-0.data: record 3000: ", "more than 2 bad records, which max_bad_records allows"});

  const Outcome trained = run(with(train, {"--on-bad-record", "skip", "--set", "solver.epochs=2"}));
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.err.find("warning: 6 bad records were left out, the first: "), std::string::npos) << trained.err;
  EXPECT_NE(trained.err.find("record 5: byte "), std::string::npos) << trained.err;
  // A run that goes on knows those before.
  const Json more = json_of(run(with(train, {"--resume", "auto", "--set", "solver.epochs=3", "--json"})));
  EXPECT_EQ(more["bad_records"], 9);
  EXPECT_EQ(more["rows"], 5400 - 3);

  const std::vector<std::string> eval = {"eval", root / "run", root / "data"};
  expect_error(run(eval), 3, {"test/part-0.data: record 599: "});
  const Json evaluated = json_of(run(with(eval, {"--on-bad-record", "skip", "--json"})));
  EXPECT_EQ(evaluated["rows"], 599);
  EXPECT_EQ(evaluated["bad_records"], 1);
  EXPECT_EQ(run({"predict", root / "run", root / "data"}).code, 3);

  const std::vector<std::string> convert = {"convert", "dataset", root / "data", root / "raw", "--to", "raw"};
  expect_error(run(convert), 3, {"train/part-0.data: record 5: "});
  const Outcome converted = run(with(convert, {"--on-bad-record", "skip"}));
  EXPECT_EQ(converted.code, 0);
  EXPECT_NE(converted.out.find("5,996 rows of "), std::string::npos) << converted.out;
  EXPECT_NE(converted.err.find("warning: 4 bad records were left out, the first: "), std::string::npos)
      << converted.err;
  EXPECT_EQ(run({"verify", root / "raw"}).code, 0);
}

}  // namespace
}  // namespace tercel::cli
