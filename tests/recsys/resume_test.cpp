// Allowed differences between a run and the checkpoint that it resumes from.
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/trainer.h"
#include "tercel/util/error.h"
#include "tercel/util/file_hook.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/warning.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"
#include "tests/util/lower_layer.h"

namespace tercel::recsys {
namespace {

using test::CleanProcess;
using test::small_dataset;
using test::stateful_config;
using test::TemporaryFolder;
using Lines = std::vector<std::string>;

void ignore(const Progress&) {}

/** A run of 300 train rows, 5 steps an epoch, 2 epochs, that ended after `steps`. */
class Resuming : public testing::Test {
 protected:
  void SetUp() override { train(stateful_config({"solver.max_iter=3"})); }

  void train(const ModelConfig& config) { Trainer(config, dataset_, root_ / "run", Resume::Auto).run(ignore); }

  /** The run's configuration except for some entries. */
  static ModelConfig with(std::vector<std::string> assignments) {
    assignments.insert(assignments.begin(), "solver.max_iter=3");
    return stateful_config(assignments);
  }

  /** Expects that nothing is trained, and that the run's files do not change. */
  template <class E>
  void expect_refused(const ModelConfig& config, const data::Dataset& dataset, const std::string& text) {
    auto before = root_.tree();
    TERCEL_EXPECT_THROW(Trainer(config, dataset, root_ / "run", Resume::Auto), E, text.c_str());
    EXPECT_TRUE(root_.tree() == before) << text;
  }

  Lines warnings(const ModelConfig& config, const data::Dataset& dataset, NewData new_data = NewData::Refuse) {
    return Trainer(config, dataset, root_ / "run", Resume::Auto, new_data).warnings();
  }

  TemporaryFolder root_;
  data::Dataset dataset_ = small_dataset(root_, 400);
  std::string checkpoint_ = root_ / "run/checkpoints/step-000000000003";
};

TEST_F(Resuming, LayersAreComparedExactly) {
  const struct {
    const char *assignment, *difference;
  } cases[] = {
      {"layers.logit.mlp_param.activations=Non,Non",
       "layers.logit.mlp_param.activations: the checkpoint has [\"Relu\",\"Non\"], this run has [\"Non\",\"Non\"]"},
      {"layers.logit.mlp_param.num_outputs=8,1",
       "layers.logit.mlp_param.num_outputs: the checkpoint has [16,1], this run has [8,1]"},
      {"layers.e2.sparse_embedding_hparam.combiner=sum",
       "layers.e2.sparse_embedding_hparam.combiner: the checkpoint has \"mean\", this run has \"sum\""},
      {"layers.e1.sparse_embedding_hparam.embedding_vec_size=4",
       "layers.e1.sparse_embedding_hparam.embedding_vec_size: the checkpoint has 3, this run has 4"},
      {"layers.dropped.rate=0.5", "layers.dropped.rate: the checkpoint has 0.25, this run has 0.5"},
      {"layers.normal.bn_param.eps=0.01", "layers.normal.bn_param.eps: the checkpoint has 1e-05, this run has 0.01"},
  };
  for (const auto& [assignment, difference] : cases)
    expect_refused<ConfigError>(with({assignment}), dataset_,
                                checkpoint_ + ": a checkpoint of another model: " + difference);
  std::string text(test::kStatefulModel);
  const std::string dropout = R"({"type": "Dropout", "bottom": "normal", "top": "dropped", "rate": 0.25})";
  text.replace(text.find(dropout), dropout.size(), R"({"type": "ReLU", "bottom": "normal", "top": "dropped"})");
  ModelConfig other = parse_config(text, "other");
  other.solver.max_iter = 3;
  expect_refused<ConfigError>(other, dataset_,
                              "layers[7]: the checkpoint has \"Dropout dropped\", this run has \"ReLU dropped\"");
}

TEST_F(Resuming, DefaultsThatAreWrittenOutAreNoDifference) {
  EXPECT_EQ(warnings(with({"layers.e1.sparse_embedding_hparam.combiner=sum", "layers.normal.bn_param.eps=1e-5",
                           "layers.logit.mlp_param.use_bias=true"}),
                     dataset_),
            Lines());
}

// As a checkpoint of a version in which losses had no weight yet.
TEST_F(Resuming, OptionsThatTheCheckpointDoesNotHaveAreDefaults) {
  const RunIdentity now = Checkpoint(checkpoint_).identity();
  RunIdentity before = now;
  Json layers = parse_json(before.config.layers, "layers", JsonErrors::Config);
  ASSERT_EQ(layers.back().erase("weight"), 1u) << layers.back().dump();
  before.config.layers = dump_json(layers);
  EXPECT_EQ(check_resume(before, now, NewData::Refuse, "run", "data").warnings, Lines());
  RunIdentity other = now;
  layers.back()["weight"] = 0.5;
  other.config.layers = dump_json(layers);
  TERCEL_EXPECT_THROW(check_resume(before, other, NewData::Refuse, "run", "data"), ConfigError,
                      "a checkpoint of another model: layers.loss.weight: the checkpoint has 1.0, this run has 0.5");
}

TEST_F(Resuming, EveryOtherDifferenceIsALine) {
  ModelConfig config = with({"solver.lr=0.02", "solver.epochs=3", "solver.eval_interval=2", "optimizer.beta1=0.8",
                             "data.num_workers=2", "layers.e2.optimizer.initial_accu_value=0.5"});
  config.model_name = "renamed";
  EXPECT_EQ(warnings(config, dataset_),
            (Lines{"layers.e1.optimizer.beta1: the checkpoint has 0.9, this run has 0.8",
                   "layers.e2.optimizer.beta1: the checkpoint has 0.9, this run has 0.8",
                   "layers.e2.optimizer.initial_accu_value: the checkpoint has 0.0, this run has 0.5",
                   "model_name: the checkpoint has \"stateful\", this run has \"renamed\"",
                   "solver.eval_interval: the checkpoint has 0, this run has 2",
                   "solver.lr: the checkpoint has 0.01, this run has 0.02",
                   "optimizer.beta1: the checkpoint has 0.9, this run has 0.8",
                   "data.num_workers: the checkpoint has 1, this run has 2",
                   "end of the run: the checkpoint has 2 epochs or 3 steps, this run has 3 epochs or 3 steps"}));
}

TEST_F(Resuming, TheEndOfTheRunIsNamedAsItIs) {
  EXPECT_EQ(warnings(with({"solver.epochs=0"}), dataset_),
            Lines{"end of the run: the checkpoint has 2 epochs or 3 steps, this run has 3 steps"});
  EXPECT_EQ(warnings(with({"solver.epochs=0", "solver.max_iter=0"}), dataset_),
            Lines{"end of the run: the checkpoint has 2 epochs or 3 steps, this run has 10 epochs or 2 validations "
                  "without a better one"});
  std::filesystem::remove_all(root_ / "run");
  train(stateful_config({"solver.epochs=0"}));
  EXPECT_EQ(warnings(stateful_config({"solver.epochs=1"}), dataset_),
            Lines{"end of the run: the checkpoint has 10 epochs or 2 validations without a better one, this run has 1 "
                  "epoch"});
}

TEST_F(Resuming, StatesAndPlacesThatDoNotFitAreRefused) {
  expect_refused<ConfigError>(with({"optimizer.type=AdaGrad"}), dataset_,
                              ": a checkpoint with the state of another optimizer: layers.e1.optimizer.type: the "
                              "checkpoint has \"Adam\", this run has \"AdaGrad\"");
  expect_refused<ConfigError>(with({"layers.e2.optimizer.type=SGD"}), dataset_, "layers.e2.optimizer.type");
  expect_refused<ConfigError>(with({"solver.batchsize=16"}), dataset_,
                              "solver.batchsize: the checkpoint has 64, this run has 16");
  expect_refused<ConfigError>(with({"data.shuffle=true"}), dataset_,
                              checkpoint_ +
                                  ": a checkpoint of a run that reads the rows in another order: "
                                  "data.shuffle: the checkpoint has false, this run has true");
  EXPECT_EQ(warnings(with({"data.shuffle_window=512", "solver.seed=7"}), dataset_),
            (Lines{"solver.seed: the checkpoint has 1, this run has 7",
                   "data.shuffle_window: the checkpoint has 32768, this run has 512"}));
  std::filesystem::remove_all(root_ / "run");
  train(with({"data.shuffle=true"}));
  const struct {
    const char *assignment, *difference;
  } cases[] = {
      {"data.shuffle=false", "data.shuffle: the checkpoint has true, this run has false"},
      {"data.shuffle_window=512", "data.shuffle_window: the checkpoint has "},
      {"data.shuffle_unit=batches", "data.shuffle_unit: the checkpoint has \"rows\", this run has \"batches\""},
      {"data.drop_last=true", "data.drop_last: the checkpoint has false, this run has true"},
      {"solver.seed=7", "solver.seed: the checkpoint has 1, this run has 7"}};
  for (const auto& [assignment, difference] : cases)
    expect_refused<ConfigError>(with({"data.shuffle=true", assignment}), dataset_,
                                std::string("reads the rows in another order: ") + difference);
  const data::Dataset other = small_dataset(root_, 400, 0.25, "other", 2);
  EXPECT_EQ(Trainer(with({"data.shuffle=false"}), other, root_ / "run", Resume::Auto, NewData::Accept).step(), 3);
}

TEST_F(Resuming, OtherRowsAreRefused) {
  const data::Dataset other = small_dataset(root_, 400, 0.25, "other", 2);
  ASSERT_EQ(other.schema, dataset_.schema);
  ASSERT_EQ(other.train.bytes(), dataset_.train.bytes()) << "only the content differs";
  const data::DataFile &a = dataset_.train.files[0], &b = other.train.files[0];
  expect_refused<DataError>(with({}), other,
                            other.folder + ": other rows than those of the checkpoint " + checkpoint_ +
                                ": train: file 1 of 2, " + b.path + ": expected checksum " + a.checksum + ", found " +
                                b.checksum + "; --new-data continues training on the new rows");
  expect_refused<DataError>(with({}), small_dataset(root_, 800, 0.25, "longer"), " bytes and 150 rows, found ");
  data::Dataset changed = dataset_;
  changed.test = other.test;
  expect_refused<DataError>(with({}), changed, "test: file 1 of 1");
  changed = dataset_;
  changed.train.files.pop_back();
  expect_refused<DataError>(with({}), changed, "train: expected 2 files, found 1");
  changed = dataset_;
  std::swap(changed.train.files[0], changed.train.files[1]);
  expect_refused<DataError>(with({}), changed, "train: file 1 of 2");
}

TEST_F(Resuming, MovedDataIsTheSame) {
  std::filesystem::rename(root_ / "data", root_ / "moved");
  data::Dataset moved = data::load_dataset(root_ / "moved");
  moved.valid = moved.test;
  EXPECT_EQ(warnings(with({}), moved), Lines());
}

TEST_F(Resuming, WithoutChecksumsBytesAndRowsTell) {
  const std::string says =
      "data: files without checksums: only their sizes and numbers of rows were compared with the checkpoint's";
  data::Dataset bare = dataset_;
  for (data::DataFile& file : bare.train.files) file.checksum.clear();
  EXPECT_EQ(warnings(with({}), bare), Lines{says});
  data::Dataset longer = small_dataset(root_, 800, 0.25, "longer");
  for (data::DataFile& file : longer.train.files) file.checksum.clear();
  expect_refused<DataError>(with({}), longer, "150 rows, found ");
}

TEST_F(Resuming, NewDataIsReadFromItsFirstRow) {
  const data::Dataset other = small_dataset(root_, 480, 0.25, "other", 2);  // 360 rows: 6 steps an epoch
  ModelConfig config = stateful_config({"solver.batchsize=60", "solver.lr=0.02"});
  {
    Trainer trainer(config, other, root_ / "run", Resume::Auto, NewData::Accept);
    ASSERT_EQ(trainer.warnings().size(), 7u);
    EXPECT_EQ(trainer.warnings()[0].find("new data: train: file 1 of 2, "), 0u) << trainer.warnings()[0];
    EXPECT_EQ(trainer.warnings()[1].find("new data: valid: file 1 of 1, "), 0u) << trainer.warnings()[1];
    EXPECT_EQ(trainer.warnings()[2].find("new data: test: file 1 of 1, "), 0u) << trainer.warnings()[2];
    EXPECT_EQ(trainer.step(), 3);
    std::vector<int64_t> evaluated;
    EXPECT_EQ(trainer.run([&](const Progress& now) {
      EXPECT_EQ(now.total_steps, 3 + 2 * 6);
      if (test::is_validation(now)) evaluated.push_back(now.step);
    }),
              TrainEnd::Done);
    EXPECT_EQ(trainer.step(), 15);
    EXPECT_EQ(evaluated, (std::vector<int64_t>{3, 9, 15})) << "before the first of its rows and after each epoch";
  }
  // From now on this is its data, with or without the option.
  for (const NewData option : {NewData::Refuse, NewData::Accept}) {
    Trainer again(config, other, root_ / "run", Resume::Auto, option);
    EXPECT_EQ(again.warnings(), Lines());
    EXPECT_EQ(again.run(ignore), TrainEnd::Done);
    EXPECT_EQ(again.step(), 15);
  }
  TERCEL_EXPECT_THROW(Trainer(config, dataset_, root_ / "run", Resume::Auto), DataError, "other rows");
}

TEST_F(Resuming, PartsOnNewDataEqualTheWhole) {
  const CleanProcess clean;
  const data::Dataset other = small_dataset(root_, 480, 0.25, "other", 2);
  ModelConfig config = stateful_config({"solver.checkpoint_interval=1", "solver.keep_checkpoints=20"});
  std::filesystem::copy(root_ / "run", root_ / "parts", std::filesystem::copy_options::recursive);
  Trainer(config, other, root_ / "run", Resume::Auto, NewData::Accept).run(ignore);
  for (const int64_t stop : {4, 8, 9}) {
    Trainer trainer(config, other, root_ / "parts", Resume::Auto, NewData::Accept);
    trainer.run([&](const Progress& now) {
      if (now.kind == Progress::Kind::Checkpoint && now.step == stop) request_stop(SIGINT);
    });
    EXPECT_EQ(trainer.step(), stop);
    request_stop(0);
  }
  Trainer(config, other, root_ / "parts", Resume::Auto, NewData::Accept).run(ignore);
  const auto all = root_.tree();
  int64_t compared = 0;
  for (const auto& [name, content] : all) {
    if (!name.starts_with("run/checkpoints/")) continue;
    const auto found = all.find("parts" + name.substr(3));
    ASSERT_NE(found, all.end()) << name;
    EXPECT_TRUE(found->second == content) << name;
    ++compared;
  }
  EXPECT_GT(compared, 12 * 4);
}

TEST_F(Resuming, NewDataMustMeanTheSame) {
  data::Dataset other = small_dataset(root_, 400, 0.25, "other", 2);
  other.schema.slots[1].size -= 1;
  TERCEL_EXPECT_THROW(Trainer(with({}), other, root_ / "run", Resume::Auto, NewData::Accept), DataError,
                      "another vocabulary than the model's: slot");
}

/** A file system without locks and exchange of folders, as NFS and FUSE may be. */
class BareFileSystem : public FileHook {
 public:
  int before(const FileCall& call, size_t&) override {
    if (call.op == FileOp::Lock) return ENOLCK;
    return call.op == FileOp::Rename && call.flags != 0 ? EINVAL : 0;
  }
};

TEST_F(Resuming, NeedsNeitherLocksNorExchange) {
  BareFileSystem hook;
  const ScopedFileHook scope(hook);
  const ModelConfig config = stateful_config({"solver.checkpoint_interval=2", "solver.keep_checkpoints=1"});
  {
    Trainer first(config, dataset_, root_ / "run", Resume::Auto);
    TERCEL_EXPECT_THROW(Trainer(config, dataset_, root_ / "run", Resume::Auto), IoError,
                        "this file system has no locks");
    first.run(ignore);
    EXPECT_EQ(first.step(), 10);
  }
  Trainer again(config, dataset_, root_ / "run", Resume::Auto);
  EXPECT_EQ(again.run(ignore), TrainEnd::Done);
  EXPECT_LE(list_checkpoints(root_ / "run/checkpoints").size(), 2u);
  data::GenerateOptions options;
  options.rows = 100;
  options.preset = data::GeneratePreset::Small;
  data::generate_dataset(root_ / "data", options, /*replace=*/true, [](int64_t) {});
  EXPECT_EQ(data::load_dataset(root_ / "data").train.rows(), 90);
}

TEST_F(Resuming, OnFoldersThatCannotBeRenamed) {
  const ModelConfig config = stateful_config({"solver.checkpoint_interval=2", "solver.keep_checkpoints=1"});
  {
    const tercel::test::LowerLayer file_system(root_.path(), /*exchange=*/true);
    train(config);
  }
  EXPECT_FALSE(std::filesystem::exists(checkpoint_));
  const std::string last = "run/checkpoints/step-000000000010";
  ASSERT_TRUE(std::filesystem::exists(root_ / last));
  std::filesystem::copy(root_ / last, root_ / "run/checkpoints/step-000000000011",
                        std::filesystem::copy_options::recursive);
  root_.put("run/checkpoints/step-000000000011/manifest.json", "{");
  const tercel::test::LowerLayer file_system(root_.path(), /*exchange=*/true);
  EXPECT_EQ(Trainer(config, dataset_, root_ / "run", Resume::Auto).step(), 10);
  EXPECT_TRUE(std::filesystem::exists(root_ / "run/checkpoints/step-000000000011.damaged/manifest.json"));
}

TEST_F(Resuming, OldCheckpointsThatCannotBeRemovedAreAWarning) {
  struct Stubborn : FileHook {
    int before(const FileCall& call, size_t&) override {
      return call.op == FileOp::Rename && std::string_view(call.path).ends_with("step-000000000003") ? EACCES : 0;
    }
  };
  Lines said;
  set_warning_handler([&said](const std::string& text) { said.push_back(text); });
  {
    Stubborn hook;
    const ScopedFileHook scope(hook);
    train(stateful_config({"solver.max_iter=4", "solver.keep_checkpoints=1", "solver.eval_interval=100"}));
  }
  set_warning_handler({});
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0], "old checkpoints could not be removed: " + checkpoint_ + ": remove: Permission denied");
  EXPECT_TRUE(std::filesystem::exists(root_ / "run/checkpoints/step-000000000004"));
}

TEST_F(Resuming, ADamagedLastCheckpointIsPassedOver) {
  const ModelConfig config = stateful_config({"solver.checkpoint_interval=2", "solver.keep_checkpoints=3"});
  train(config);
  const auto finished = root_.tree();
  const std::string last = "run/checkpoints/step-000000000010", before = "run/checkpoints/step-000000000008";
  for (const char* file : {"/table-1.safetensors", "/manifest.json"}) {
    std::string damaged = root_.get(last + file);
    damaged[damaged.size() / 2] ^= 1;
    root_.put(last + file, damaged);
    {
      Trainer trainer(config, dataset_, root_ / "run", Resume::Auto);
      ASSERT_EQ(trainer.warnings().size(), 1u);
      EXPECT_EQ(trainer.warnings()[0].find("skipped a damaged checkpoint: " + root_ / (last + file)), 0u)
          << trainer.warnings()[0];
      EXPECT_EQ(trainer.step(), 8);
      EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);
    }
    EXPECT_TRUE(std::filesystem::exists(root_ / (last + ".damaged" + file)));
    const auto now = root_.tree();
    for (const auto& [name, content] : finished) {
      if (!name.starts_with(last + "/")) continue;
      EXPECT_TRUE(now.at(name) == content) << name;
    }
  }
  for (const std::string& folder : list_checkpoints(root_ / "run/checkpoints"))
    std::filesystem::resize_file(folder + "/dense.safetensors", 10);
  const auto tree = root_.tree();
  TERCEL_EXPECT_THROW(train(config), DataError, "all checkpoints are damaged: ");
  EXPECT_TRUE(root_.tree() == tree) << "training does not restart";
}

}  // namespace
}  // namespace tercel::recsys
