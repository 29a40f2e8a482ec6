// train, eval, predict, info and doctor, from the command line.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tercel/util/json_impl.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::one_pass;
using test::Outcome;
using test::run;
using test::TemporaryFolder;

/** Rows of a label, a number and a category, between commas. */
std::string rows(int64_t count, bool label) {
  std::string text = label ? "y,a,c\n" : "a,c\n";
  for (int64_t r = 0; r < count; ++r)
    text += (label ? (r % 3 == 0 ? "1," : "0,") : "") + std::to_string(r % 7) + ",c" + std::to_string(r % 5) + "\n";
  return text;
}

/** A dataset made of text, and a model trained on it in root_/run. */
class TrainCommands : public testing::Test {
 protected:
  void SetUp() override {
    root_.put("rows.csv", rows(400, true));
    ASSERT_EQ(run({"convert", "csv", root_ / "rows.csv", root_ / "data", "--label", "y", "--dense", "a",
                   "--categorical", "c", "--test-every", "4"})
                  .code,
              0);
    const Outcome trained = train({});
    ASSERT_EQ(trained.code, 0) << trained.err;
    EXPECT_NE(trained.out.find("trained 5 steps in "), std::string::npos) << trained.out;
  }

  Outcome train(std::vector<std::string> more) {
    std::vector<std::string> words = {"train", root_ / "data",       "--out", root_ / "run", "--threads", "1",
                                      "--set", "solver.batchsize=64"};
    words = one_pass(words);
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  TemporaryFolder root_;
};

TEST_F(TrainCommands, TheEndSaysHowTablesHaveGrown) {
  const std::string table = "layers.embedding.sparse_embedding_hparam.";
  const std::vector<std::string> words =
      one_pass({"train", root_ / "data", "--model", "dlrm", "--threads", "1", "--set", "solver.batchsize=64", "--set",
                table + "table_type=hashed", "--set", table + "admission=100"});
  const auto into = [&words](const std::string& out, const std::string& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--out", out});
    if (!more.empty()) all.push_back(more);
    return run(all);
  };
  const Outcome text = into(root_ / "grown", "");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("table embedding: 0 keys, 5 seen too rarely for a row, 300 occurrences without one\n"),
            std::string::npos)
      << text.out;
  const Outcome outcome = into(root_ / "again", "--json");
  const Json json = parse_json(outcome.out, "output", JsonErrors::Data).at("tables").at("embedding");
  EXPECT_EQ(json.at("waiting"), 5);
  EXPECT_EQ(json.at("refused"), 300);
  EXPECT_EQ(json.at("keys"), 0);
}

TEST_F(TrainCommands, PredictGivesTheSameForEveryKindOfInput) {
  root_.put("new.csv", rows(400, false));
  const Outcome of_text = run({"predict", root_ / "run", root_ / "new.csv"});
  ASSERT_EQ(of_text.code, 0) << of_text.err;
  EXPECT_TRUE(of_text.out.starts_with("probability\n0.")) << of_text.out.substr(0, 40);
  EXPECT_EQ(std::count(of_text.out.begin(), of_text.out.end(), '\n'), 401);
  test::ProgramOptions input;
  input.input = rows(400, false);
  const Outcome of_input = run({"predict", root_ / "run", "-"}, input);
  EXPECT_EQ(of_input.code, 0) << of_input.err;
  EXPECT_TRUE(of_input.out == of_text.out);
  // The test part: every fourth of the rows.
  ASSERT_EQ(run({"predict", root_ / "run", root_ / "data", "--out", root_ / "test.npy"}).code, 0);
  const std::string npy = root_.get("test.npy");
  ASSERT_GT(npy.size(), 400u);
  float third = 0;
  std::memcpy(&third, npy.data() + npy.size() - 400, sizeof(third));
  std::string line = of_text.out;
  for (int i = 0; i < 4; ++i) line = line.substr(line.find('\n') + 1);
  EXPECT_FLOAT_EQ(third, std::stof(line));
}

TEST_F(TrainCommands, EvalAndInfoShowWhatTrainingFound) {
  const Outcome evaluated = run({"eval", root_ / "run", root_ / "data", "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const Json json = parse_json(evaluated.out, "eval", JsonErrors::Data);
  const std::string metrics = root_.get("run/metrics.jsonl");
  EXPECT_NE(metrics.find("\"auc\":" + json["auc"].dump()), std::string::npos) << evaluated.out << metrics;
  for (const std::string& folder : {root_ / "run", root_ / "run/checkpoints/step-000000000005", root_ / "data"})
    EXPECT_EQ(run({"info", folder}).code, 0) << folder;
  EXPECT_EQ(run({"doctor"}).code, 0);
}

TEST_F(TrainCommands, ATableWithoutDenseColumns) {
  ASSERT_EQ(run({"convert", "csv", root_ / "rows.csv", root_ / "plain", "--label", "y", "--categorical", "a",
                 "--categorical", "c", "--test-every", "4"})
                .code,
            0);
  for (const std::vector<std::string>& model : {std::vector<std::string>{},
                                                {"--model", "wdl"},
                                                {"--model", "deepfm"},
                                                {"--model", "dcn"},
                                                {"--model", "dlrm", "--epochs", "2"}}) {
    const std::string out = root_ / ("plain-run-" + (model.empty() ? "" : model[1] + std::to_string(model.size())));
    std::vector<std::string> words = {"train", root_ / "plain", "--out", out, "--set", "solver.batchsize=64"};
    words.insert(words.end(), model.begin(), model.end());
    const Outcome trained = run(words);
    ASSERT_EQ(trained.code, 0) << trained.err;
    EXPECT_EQ(run({"eval", out, root_ / "plain"}).code, 0);
    EXPECT_EQ(run({"predict", out, root_ / "rows.csv", "--out", out + ".csv"}).code, 0);
  }
  // The configuration of --print-config is for tables with and without dense columns.
  root_.put("model.json", run({"train", "--print-config"}).out);
  for (const char* data : {"plain", "data"})
    EXPECT_EQ(
        run({"train", root_ / data, "--model", root_ / "model.json", "--out", root_ / (std::string(data) + "-2")}).code,
        0);
}

TEST_F(TrainCommands, AFinishedRunSaysSo) {
  const Outcome again = train({"--resume", "auto"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.out.find("nothing left to train after step 5; checkpoint "), std::string::npos) << again.out;
}

TEST_F(TrainCommands, WithoutItsConfigurationARunHasThatOfItsCheckpoint) {
  const std::vector<std::string> words = one_pass({"train", root_ / "data", "--out", root_ / "wide", "--threads", "1"});
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return run(more);
  };
  ASSERT_EQ(with({"--model", "wdl", "--set", "solver.batchsize=64"}).code, 0);
  const std::string whole = root_.get("wide/config.json"), path = root_ / "wide/config.json";
  for (const bool missing : {true, false}) {
    root_.put("wide/config.json", whole.substr(0, whole.size() / 2));
    if (missing) std::filesystem::remove(path);
    const Outcome info = run({"info", root_ / "wide"});
    EXPECT_EQ(info.code, 0) << info.err;
    EXPECT_NE(info.out.find("kind: run"), std::string::npos) << info.out;
    const Outcome again = with({"--resume", "auto"});
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(again.err.find("tercel: warning: " + path), 0u) << again.err;
    EXPECT_NE(again.err.find("; the configuration of " + (root_ / "wide/checkpoints/step-000000000005 is used")),
              std::string::npos)
        << again.err;
    EXPECT_EQ(std::count(again.err.begin(), again.err.end(), '\n'), 1) << again.err;
    EXPECT_NE(again.out.find("nothing left to train after step 5"), std::string::npos) << again.out;
    EXPECT_NE(root_.get("wide/config.json").find("\"model_name\": \"wdl\""), std::string::npos);
  }
  std::filesystem::remove_all(root_ / "wide/checkpoints");
  root_.put("wide/config.json", "{");
  expect_error(with({"--resume", "auto"}), 3, {path + ": line 1"});
}

TEST_F(TrainCommands, AProfileShowsWhereTimeGoes) {
  const std::string trace = root_ / "trace.json";
  const Outcome trained =
      run({"train", root_ / "data", "--out", root_ / "profiled", "--threads", "1", "--profile", trace});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.out.find("\ngemm "), std::string::npos) << trained.out;
  EXPECT_NE(trained.out.find("trace in " + trace), std::string::npos) << trained.out;
  const Json events = read_json_file(trace, JsonErrors::Data).at("traceEvents");
  const auto find = [&](const char* name) {
    const auto found = std::find_if(events.begin(), events.end(),
                                    [&](const Json& e) { return e.at("ph") == "X" && e.at("name") == name; });
    EXPECT_NE(found, events.end()) << name;
    return found == events.end() ? Json({{"ts", 0}, {"dur", 0}, {"cat", ""}}) : *found;
  };
  const auto inside = [](const Json& e, const Json& outer) {
    const double begin = e.at("ts"), end = begin + e.at("dur").get<double>(), from = outer.at("ts");
    return begin >= from && end <= from + outer.at("dur").get<double>();
  };
  // Parts of the trainer, layers, ops in C++, and nodes of the backward graph.
  const Json forward = find("forward"), backward = find("backward"), update = find("update");
  find("read batch");
  find("save checkpoint");
  EXPECT_TRUE(inside(find("embedding_bag"), forward));
  EXPECT_TRUE(inside(find("gemm"), forward));
  EXPECT_TRUE(inside(find("update_dense"), update));
  const auto node =
      std::find_if(events.begin(), events.end(), [](const Json& e) { return e.value("cat", "") == "backward"; });
  ASSERT_NE(node, events.end());
  EXPECT_TRUE(node->at("name").get<std::string>().ends_with("Backward0")) << *node;
  EXPECT_TRUE(inside(*node, backward));
  expect_error(run({"train", root_ / "data", "--out", root_ / "other", "--profile", root_ / "no/folder/trace.json"}), 4,
               {"no/folder"});
  EXPECT_FALSE(std::filesystem::exists(root_ / "other"));
}

TEST_F(TrainCommands, AModelStaysWhatItWasTrainedAs) {
  const auto auc = [&] {
    const Outcome evaluated = run({"eval", root_ / "run", root_ / "data", "--json"});
    EXPECT_EQ(evaluated.code, 0) << evaluated.err;
    return parse_json(evaluated.out, "eval", JsonErrors::Data)["auc"];
  };
  const Json before = auc();
  expect_error(
      train({"--resume", "auto", "--set", "layers.bottom.mlp_param.activation=Non"}), 2,
      {"a checkpoint of another model: layers.bottom.mlp_param.activation: the checkpoint has \"Relu\", this run "
       "has \"Non\""});
  EXPECT_EQ(auc(), before);

  const Outcome rate = train({"--resume", "auto", "--set", "solver.lr=0.5"});
  EXPECT_EQ(rate.code, 0) << rate.err;
  EXPECT_NE(rate.err.find("tercel: warning: solver.lr: the checkpoint has "), std::string::npos) << rate.err;
  EXPECT_EQ(std::count(rate.err.begin(), rate.err.end(), '\n'), 1) << rate.err;
  EXPECT_EQ(auc(), before);

  // Other rows of the same shape: the label of one is another.
  std::string other = rows(400, true);
  other[other.find("\n1,") + 1] = '0';
  root_.put("other.csv", other);
  ASSERT_EQ(run({"convert", "csv", root_ / "other.csv", root_ / "other", "--label", "y", "--dense", "a",
                 "--categorical", "c", "--test-every", "4"})
                .code,
            0);
  const auto resume = [&](std::vector<std::string> more) {
    std::vector<std::string> words = one_pass({"train", root_ / "other", "--out", root_ / "run", "--threads", "1"});
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  expect_error(resume({"--resume", "auto"}), 3, {"other: other rows than those of the checkpoint", "--new-data"});
  expect_error(resume({"--new-data"}), 2, {"--new-data needs --resume auto"});
  const Outcome on_new = resume({"--resume", "auto", "--new-data"});
  EXPECT_EQ(on_new.code, 0) << on_new.err;
  EXPECT_NE(on_new.err.find("tercel: warning: new data: train: file 1 of 1, "), std::string::npos) << on_new.err;
  EXPECT_NE(on_new.out.find("trained 5 steps in "), std::string::npos) << on_new.out;
}

TEST_F(TrainCommands, ADamagedCheckpointIsPassedOver) {
  ASSERT_EQ(train({"--resume", "auto", "--epochs", "2"}).code, 0);
  const std::string last = "run/checkpoints/step-000000000010";
  std::string damaged = root_.get(last + "/table-0.safetensors");
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  root_.put(last + "/table-0.safetensors", damaged);
  std::filesystem::remove(root_ / "run/checkpoints/step-000000000005/evaluation.json");  // now the last is the best
  const std::string says =
      "tercel: warning: skipped a damaged checkpoint: " + root_ / (last + "/table-0.safetensors: expected checksum ");
  for (const char* command : {"eval", "predict"}) {
    const Outcome outcome = run({command, root_ / "run", root_ / "data"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find(says), 0u) << outcome.err;
    const std::string note = "tercel: note: the checkpoint of step 5 is used; the last one of the run is of step 10\n";
    EXPECT_TRUE(outcome.err.ends_with(note)) << outcome.err;
    EXPECT_EQ(run({command, root_ / "run/checkpoints/step-000000000005", root_ / "data"}).err, "");
  }
  const Outcome info = run({"info", root_ / "run"});
  EXPECT_EQ(info.code, 0);
  EXPECT_EQ(info.err, "") << "it reads no table";
  expect_error(run({"eval", root_ / last, root_ / "data"}), 3, {"table-0.safetensors: expected checksum"});
  const Outcome again = train({"--resume", "auto", "--epochs", "2"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.err.find(says), 0u) << again.err;
  EXPECT_NE(again.out.find("from step 5"), std::string::npos) << again.out;
}

TEST_F(TrainCommands, BadRowsAreExitCodeThreeWithTheirPlaceAndTheCheckpoint) {
  const std::string file = root_ / "data/train/part-0.data", intact = root_.get("data/train/part-0.data");
  std::string content = intact;
  content[content.size() - 3] ^= 0x55;  // of the last of 300 records
  root_.put("data/train/part-0.data", content);
  const std::vector<std::string> words = one_pass(
      {"train", root_ / "data", "--out", root_ / "bad", "--quiet", "--set", "solver.batchsize=64", "--resume", "auto"});
  expect_error(run(words), 3,
               {file + ": record 299: byte ",
                "; the state after step 4 is saved in " + (root_ / "bad/checkpoints/step-000000000004")});
  root_.put("data/train/part-0.data", intact);
  const Outcome rest = run(words);
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_TRUE(std::filesystem::exists(root_ / "bad/checkpoints/step-000000000005"));
  // Before the first step: no files are left.
  content = intact;
  content[75] ^= 0x55;
  root_.put("data/train/part-0.data", content);
  expect_error(
      run(one_pass({"train", root_ / "data", "--out", root_ / "new", "--set", "solver.batchsize=64", "--quiet"})), 3,
      {file + ": record 0: byte "});
  EXPECT_FALSE(std::filesystem::exists(root_ / "new"));
}

TEST_F(TrainCommands, KeysOutsideATableAreExitCodeThree) {
  // The same files, described without the numbers of keys.
  root_.put("files.txt", "1\n" + (root_ / "data/train/part-0.data") + "\n");
  ASSERT_EQ(run({"convert", "norm", root_ / "bare", "--train-list", root_ / "files.txt", "--test-list",
                 root_ / "files.txt", "--dense-dim", "1", "--nnz-per-slot", "1", "--key-type", "i64"})
                .code,
            0);
  const auto bare = [&](int64_t rows, const std::string& out) {
    return run(
        one_pass({"train", root_ / "bare", "--out", root_ / out, "--quiet", "--set", "solver.batchsize=64", "--set",
                  "layers.embedding.sparse_embedding_hparam.max_vocabulary_size_global=" + std::to_string(rows)}));
  };
  expect_error(
      bare(3, "small"), 3,
      {"part-0.data: record ", ": byte ", "expected a key from 0 to 2 in slot 0 (", " of table 'embedding', found "});
  const Outcome enough = bare(100, "enough");
  EXPECT_EQ(enough.code, 0) << enough.err;
}

TEST_F(TrainCommands, ARunFolderThatWasRemovedIsExitCodeFour) {
  std::vector<std::string> words = {"train",
                                    root_ / "data",
                                    "--out",
                                    root_ / "gone",
                                    "--quiet",
                                    "--epochs",
                                    "10000000",
                                    "--set",
                                    "solver.batchsize=64",
                                    "--set",
                                    "solver.eval_interval=100000000"};
  test::Program program(words);
  while (program.is_running() && !std::filesystem::exists(root_ / "gone/metrics.jsonl")) ::usleep(500);
  ::usleep(50'000);
  std::filesystem::remove_all(root_ / "gone");
  program.signal(SIGINT);
  expect_error(
      program.wait(), 4,
      {root_ / "gone: the folder of the run was removed or renamed while it was trained; the state after step ",
       " is saved in " + (root_ / "gone/checkpoints/step-")});
  EXPECT_EQ(run({"eval", root_ / "gone", root_ / "data"}).code, 0);
}

TEST_F(TrainCommands, TextsFromFilesDoNotReachTheTerminalAsCommands) {
  const Outcome printed = run({"train", "--model", "dlrm", "--print-config"});
  Json config = parse_json(printed.out, "config", JsonErrors::Data);
  config["model_name"] = "\x1b]0;owned\x07\xc2\x9b[31m";
  config["solver"]["batchsize"] = 64;
  config["solver"]["display_seconds"] = 1;
  root_.put("model.json", dump_json(config));
  const Outcome trained =
      run({"train", root_ / "data", "--model", root_ / "model.json", "--out", root_ / "hostile", "--threads", "1"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome info = run({"info", root_ / "hostile"});
  const Outcome resumed = run({"train", root_ / "data", "--model", "dlrm", "--set", "solver.batchsize=64", "--out",
                               root_ / "hostile", "--resume", "auto", "--threads", "1"});
  config["layers"][1]["top"] = "\x1b[2J";
  root_.put("broken.json", dump_json(config));
  const Outcome broken = run({"train", root_ / "data", "--model", root_ / "broken.json", "--out", root_ / "never"});
  EXPECT_NE(trained.out.find("training \\x1b]0;owned\\x07\\xc2\\x9b[31m on "), std::string::npos) << trained.out;
  EXPECT_NE(info.out.find("model: \\x1b]0;owned"), std::string::npos) << info.out;
  EXPECT_NE(resumed.err.find("model_name: the checkpoint has "), std::string::npos) << resumed.err;
  EXPECT_EQ(broken.code, 2);
  for (const Outcome& outcome : {trained, info, resumed, broken})
    for (const std::string& text : {outcome.out, outcome.err}) {
      EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
      EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << text;
    }
}

TEST_F(TrainCommands, WithoutOutRunsHaveFoldersOfTheirOwn) {
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(root_.path());
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<test::Program>> programs;
    for (int i = 0; i < 8; ++i)
      programs.push_back(std::make_unique<test::Program>(
          std::vector<std::string>{"train", "data", "--quiet", "--threads", "1", "--set", "solver.batchsize=64"}));
    for (const auto& program : programs) {
      const Outcome outcome = program->wait();
      EXPECT_EQ(outcome.code, 0) << outcome.err;
    }
    expect_error(run({"train", "data", "--quiet", "--set", "solver.batchsize=1000", "--set", "data.drop_last=true"}), 2,
                 {"'batch_size': expected at most 270"});
  }
  // A folder beside it, of a --refit that was stopped, keeps its number.
  std::filesystem::create_directories("runs/wdl-1-selection");
  EXPECT_EQ(run({"train", "data", "--model", "wdl", "--epochs", "1", "--quiet", "--set", "solver.batchsize=64"}).code,
            0);
  EXPECT_TRUE(std::filesystem::exists("runs/wdl-2/checkpoints"));
  std::filesystem::current_path(here);
  for (int n = 1; n <= 24; ++n)
    EXPECT_TRUE(std::filesystem::exists(root_ / ("runs/dlrm-" + std::to_string(n) + "/checkpoints"))) << n;
  EXPECT_FALSE(std::filesystem::exists(root_ / "runs/dlrm-25")) << "after an error before the first step";
}

TEST_F(TrainCommands, TextIsEvaluatedAsItsDataset) {
  const auto temporaries = [] {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::temp_directory_path()))
      count += entry.path().filename().string().starts_with("tercel-eval") ? 1 : 0;
    return count;
  };
  const size_t before = temporaries();
  ASSERT_EQ(run({"convert", "csv", root_ / "rows.csv", root_ / "later", "--like", root_ / "run"}).code, 0);
  const Outcome dataset = run({"eval", root_ / "run", root_ / "later", "--part", "train"}),
                text = run({"eval", root_ / "run", root_ / "rows.csv"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out, dataset.out);
  const Outcome twice = run({"eval", root_ / "run", root_ / "rows.csv", root_ / "rows.csv", "--json"});
  EXPECT_EQ(parse_json(twice.out, "stdout", JsonErrors::Data)["rows"], 2 * 400) << twice.out << twice.err;
  root_.put("bad.csv", "y,a,c\n1,2\n");
  expect_error(run({"eval", root_ / "run", root_ / "bad.csv"}), 3, {"bad.csv: line 2"});
  EXPECT_EQ(temporaries(), before) << "nothing is left";
}

TEST_F(TrainCommands, MistakesAreOneLine) {
  const auto files = [this] {
    auto all = root_.tree();
    all.erase("run/lock");  // it names the last process that requested it
    return all;
  };
  const auto before = files();
  expect_error(train({}), 2, {"run: already contains a run", "--resume auto"});
  expect_error(run({"train", root_ / "data", "--out", root_ / "data"}), 4, {"expected a new folder or a run folder"});
  expect_error(run({"generate", root_ / "run", "--force", "--rows", "10"}), 4, {"contains no dataset.json"});
  expect_error(run({"train", root_ / "data", "--resume", "auto"}), 2, {"--resume auto needs --out"});
  expect_error(run({"train", root_ / "run"}), 3, {"expected a folder with dataset.json"});
  expect_error(run({"eval", root_ / "run", root_ / "run/config.json"}), 3, {"config.json: line 1: expected a column"});
  expect_error(run({"predict", root_ / "data", root_ / "rows.csv"}), 3, {"no trained model"});
  expect_error(run({"convert", "csv", root_ / "rows.csv", root_ / "x"}), 2, {"option --label is missing"});
  expect_error(run({"convert", "norm", root_ / "x", "--nnz-per-slot", "1"}), 2, {"option --train-list is missing"});
  EXPECT_TRUE(before == files());
}

}  // namespace
}  // namespace tercel::cli
