// State of a run after errors.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "tercel/data/batch_reader.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/prediction.h"
#include "tercel/recsys/trainer.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/file_hook.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using tercel::test::message_of;
using tercel::test::values_of;
using test::below;
using test::CleanProcess;
using test::differences;
using test::ignore;
using test::kLinearModel;
using test::plain_dataset;
using test::small_dataset;
using test::stateful_config;
using test::TemporaryFolder;
using test::Tree;

constexpr std::string_view kStep5 = "step-000000000005";

/** The tensors of a checkpoint. */
Tree tensors(const TemporaryFolder& root, const std::string& run, std::string_view step) {
  Tree files = below(root, run + "/checkpoints/" + std::string(step));
  std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".safetensors"); });
  EXPECT_FALSE(files.empty()) << run;
  return files;
}

/** Trains five steps of stateful_config(). */
void train_five(const TemporaryFolder& root, const data::Dataset& dataset, const std::string& run) {
  Trainer trainer(stateful_config({"solver.max_iter=5"}), dataset, root / run, Resume::Never);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);
}

/** Changes a byte of the `back`-th record from the end, and returns the old one. */
std::string damage(const data::Dataset& dataset, const data::DataFile& file, size_t back) {
  const std::string path = dataset.path_of(file);
  std::string content = read_file(path, int64_t{1} << 30);
  const std::string before = content;
  const size_t record = (content.size() - 69) / static_cast<size_t>(file.rows);
  content[content.size() - back * record + 8] ^= 0x55;
  write_file(path, content);
  return before;
}

TEST(TrainerFaults, BadBytesEndARunAfterWhatWasTrainedIsSaved) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);  // 300 train rows in two files: 10 steps of 64 in two epochs
  const ModelConfig config = stateful_config({"solver.eval_interval=1000"});
  const std::string intact = damage(dataset, dataset.train.files[1], 1);
  {
    Trainer trainer(config, dataset, root / "run", Resume::Never);
    const std::string text = message_of<DataError>([&] { trainer.run(ignore); });
    EXPECT_NE(text.find("part-1.data: record 149: byte"), std::string::npos) << text;
    EXPECT_NE(text.find("; the state after step 4 is saved in " + (root / "run/checkpoints/step-000000000004")),
              std::string::npos)
        << text;
  }
  write_file(dataset.path_of(dataset.train.files[1]), intact);
  Trainer rest(config, dataset, root / "run", Resume::Auto);
  EXPECT_EQ(rest.step(), 4);
  EXPECT_EQ(rest.run(ignore), TrainEnd::Done);
  Trainer whole(config, dataset, root / "whole", Resume::Never);
  EXPECT_EQ(whole.run(ignore), TrainEnd::Done);
  EXPECT_EQ(differences(tensors(root, "whole", "step-000000000010"), tensors(root, "run", "step-000000000010")), "");
}

TEST(TrainerFaults, BadBytesInTheTestPartLoseNoTraining) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  train_five(root, dataset, "five");
  damage(dataset, dataset.test.files[0], 1);
  Trainer trainer(stateful_config({"solver.eval_interval=5"}), dataset, root / "run", Resume::Never);
  TERCEL_EXPECT_THROW(trainer.run(ignore), DataError,
                      "; the state after step 5 is saved in " + (root / "run/checkpoints/step-000000000005"));
  EXPECT_EQ(differences(tensors(root, "five", kStep5), tensors(root, "run", kStep5)), "");
}

TEST(TrainerFaults, AnErrorBeforeTheFirstStepLeavesNothing) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  std::filesystem::create_directories(root / "empty");
  const Tree before = root.tree();
  const auto refuses = [&](const std::vector<std::string>& assignments, const std::string& text) {
    for (const char* run : {"run", "empty"})
      TERCEL_EXPECT_THROW(Trainer(stateful_config(assignments), dataset, root / run, Resume::Never), ConfigError, text);
    EXPECT_EQ(differences(before, root.tree()), "") << text;
  };
  refuses({"solver.batchsize=1000", "data.drop_last=true"}, "'batch_size': expected at most 300");
  refuses({"optimizer.type=MomentumSGD", "optimizer.update_type=LazyGlobal"},
          "[LocalizedSlotSparseEmbeddingHash e1]: update_type LazyGlobal is not available for MomentumSGD");
  refuses({"layers.e2.optimizer.type=RMSProp", "layers.e2.optimizer.update_type=LazyGlobal"},
          "[DistributedSlotSparseEmbeddingHash e2]: update_type LazyGlobal is not available for RMSProp");
  refuses({"layers.e2.sparse_embedding_hparam.max_vocabulary_size_global=7"},
          "makes 7 rows but the dataset has 265 keys");
  refuses({"layers.e1.sparse_embedding_hparam.init_range=1e39"}, "'init_range'");
  damage(dataset, dataset.train.files[0], 150);
  const Tree damaged = root.tree();
  for (const char* run : {"run", "empty"}) {
    Trainer trainer(stateful_config(), dataset, root / run, Resume::Never);
    TERCEL_EXPECT_THROW(trainer.run(ignore), DataError, "record 0: byte");
    EXPECT_EQ(differences(damaged, root.tree()), "");
  }
}

TEST(TrainerFaults, AStopBeforeTheFirstStepLeavesNothing) {
  const CleanProcess clean;
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const Tree before = root.tree();
  Trainer trainer(stateful_config(), dataset, root / "run", Resume::Never);
  request_save();  // meant for what has been trained by then
  request_stop(SIGTERM);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Stopped);
  EXPECT_FALSE(trainer.last_checkpoint());
  EXPECT_EQ(differences(before, root.tree()), "");
  EXPECT_TRUE(take_save_request());
}

/** Requests a stop when memory of a size is allocated, and notes every size afterwards. */
class StoppingAllocator final : public Allocator {
 public:
  explicit StoppingAllocator(size_t nbytes) : stop_at_(nbytes) {}
  DataPtr allocate(size_t nbytes) override {
    if (stop_signal() != 0) later_.push_back(nbytes);
    if (nbytes == stop_at_) request_stop(SIGTERM);
    return cpu_allocator().allocate(nbytes);
  }
  const std::vector<size_t>& later() const { return later_; }

 private:
  size_t stop_at_;
  std::vector<size_t> later_;
};

TEST(TrainerFaults, AStopWhileTablesAreInitialisedEndsThat) {
  const CleanProcess clean;
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  train_five(root, dataset, "five");
  const Tree before = root.tree();
  Model model(stateful_config(), dataset.schema);
  const auto bytes = [&](size_t t) {
    return static_cast<size_t>(model.embeddings().tables()[t]->rows() * model.embeddings().tables()[t]->dim()) *
           sizeof(float);
  };
  const auto stop_in_first_table = [&](const char* run, Resume resume) {
    StoppingAllocator allocator(bytes(0));
    const tercel::test::ScopedAllocator scope(allocator);
    Trainer trainer(stateful_config(), dataset, root / run, resume);
    EXPECT_EQ(stop_signal(), SIGTERM);
    for (const size_t nbytes : allocator.later()) EXPECT_NE(nbytes, bytes(1)) << "the second table was allocated";
    EXPECT_EQ(trainer.run(ignore), TrainEnd::Stopped);
    EXPECT_EQ(trainer.step(), resume == Resume::Auto ? 5 : 0);
    EXPECT_EQ(trainer.last_checkpoint().has_value(), resume == Resume::Auto);
    EXPECT_THROW(trainer.model(), RuntimeError);
    request_stop(0);
  };
  stop_in_first_table("run", Resume::Never);
  EXPECT_EQ(differences(before, root.tree()), "");
  EXPECT_FALSE(exists(root / "run"));
  stop_in_first_table("five", Resume::Auto);
  EXPECT_EQ(differences(before, root.tree()), "");
}

/** Starts another trainer in the moment before one takes the lock. */
class RivalTrainer : public FileHook {
 public:
  explicit RivalTrainer(std::function<std::unique_ptr<Trainer>()> start) : start_(std::move(start)), scope_(*this) {}
  int before(const FileCall& call, size_t&) override {
    if (call.op == FileOp::Open && std::string_view(call.path).ends_with("/run/lock") && start_)
      rival_ = std::exchange(start_, nullptr)();
    return 0;
  }
  Trainer& rival() { return *rival_; }

 private:
  std::function<std::unique_ptr<Trainer>()> start_;
  std::unique_ptr<Trainer> rival_;
  ScopedFileHook scope_;
};

TEST(TrainerFaults, OfTwoTrainersAtOnceOneTrains) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const ModelConfig config = stateful_config({"solver.max_iter=2"});
  const auto start = [&] { return std::make_unique<Trainer>(config, dataset, root / "run", Resume::Never); };
  {
    RivalTrainer hook(start);
    TERCEL_EXPECT_THROW(start(), IoError, "run/lock: lock: held by process ");
    EXPECT_EQ(hook.rival().run(ignore), TrainEnd::Done);
  }
  EXPECT_TRUE(std::filesystem::exists(root / "run/checkpoints/step-000000000002"));
  std::filesystem::remove_all(root / "run");
  // What the first one finds in the folder once it has the lock is what the other has left there.
  RivalTrainer hook([&] {
    start()->run(ignore);
    return nullptr;
  });
  TERCEL_EXPECT_THROW(start(), ConfigError, "already contains a run");
  EXPECT_TRUE(std::filesystem::exists(root / "run/checkpoints/step-000000000002"));
}

TEST(TrainerFaults, AFolderThatHeldARunStaysAsItWas) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  train_five(root, dataset, "run");
  damage(dataset, dataset.train.files[0], 150);
  const Tree before = below(root, "run/checkpoints");
  Trainer trainer(stateful_config({"solver.epochs=4"}), dataset, root / "run", Resume::Auto);
  TERCEL_EXPECT_THROW(trainer.run(ignore), DataError,
                      "; the state after step 5 is saved in " + (root / "run/checkpoints/step-000000000005"));
  EXPECT_EQ(differences(before, below(root, "run/checkpoints")), "");
}

// A batch from row 20 on overflows after batch normalization and dropout, which have changed their state by then.
constexpr std::string_view kOverflow = R"json({
  "solver": {"batchsize": 4, "lr": 0.01, "epochs": 1, "eval_interval": 5, "checkpoint_interval": 1000},
  "data": {"shuffle": false},
  "layers": [
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "x"}, "sparse": [{"top": "keys"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "table",
     "sparse_embedding_hparam": {"embedding_vec_size": 4}},
    {"type": "Reshape", "bottom": "table", "top": "row"},
    {"type": "BatchNorm", "bottom": "row", "top": "normal"},
    {"type": "Dropout", "bottom": "normal", "top": "dropped"},
    {"type": "Concat", "bottom": ["dropped", "x"], "top": "all"},
    {"type": "MultiCross", "bottom": "all", "top": "cross", "mc_param": {"num_layers": 1}},
    {"type": "MLP", "bottom": "cross", "top": "logit", "mlp_param": {"num_outputs": [1], "activations": ["Non"]}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
})json";

TEST(TrainerFaults, ALossThatIsNotFiniteLeavesTheStateOfTheStepBefore) {
  const CleanProcess clean;
  const TemporaryFolder root;
  const auto label = [](int64_t r) { return r % 3 == 0 ? 1.0f : 0.0f; };
  const data::Dataset huge = plain_dataset(
                          root, 40, "huge", [](int64_t r) { return r < 20 ? 0.5f : 3e38f; }, label),
                      tame = plain_dataset(
                          root, 40, "tame", [](int64_t) { return 0.5f; }, label);
  data::Dataset dataset = huge;
  dataset.test = tame.test;
  dataset.test.files[0].path = tame.path_of(tame.test.files[0]);
  dataset.valid = dataset.test;
  {
    Trainer trainer(parse_config(kOverflow, "model"), dataset, root / "peace", Resume::Never);
    EXPECT_EQ(trainer.run([](const Progress& now) {
      if (now.kind == Progress::Kind::Evaluation) request_stop(SIGINT);
    }),
              TrainEnd::Stopped);
    request_stop(0);
  }
  Trainer trainer(parse_config(kOverflow, "model"), dataset, root / "run", Resume::Never);
  const std::string text = message_of<NumericError>([&] { trainer.run(ignore); });
  EXPECT_NE(text.find("step 6: the loss is "), std::string::npos) << text;
  EXPECT_NE(
      text.find(
          "; the first layer that gives a NaN or an infinity is MultiCross cross; the state after step 5 is saved"),
      std::string::npos)
      << text;
  EXPECT_EQ(differences(below(root, "peace/checkpoints"), below(root, "run/checkpoints")), "");
}

TEST(TrainerFaults, WhatIsBrokenIsNotSaved) {
  const TemporaryFolder root;
  const auto value = [](int64_t) { return 3e38f; };
  const auto label = [](int64_t) { return 1.0f; };
  const data::Dataset dataset = plain_dataset(root, 10, "data", value, label);
  ModelConfig config = parse_config(kLinearModel, "linear");
  for (const char* set : {"solver.lr=1e30", "solver.warmup_steps=0"}) set_config(config, set);
  for (const char* more : {"solver.max_iter=2", "solver.max_iter=1"}) {  // seen in the loss; before the checkpoint
    set_config(config, more);
    Trainer trainer(config, dataset, root / more, Resume::Never);
    TERCEL_EXPECT_THROW(trainer.run(ignore), NumericError,
                        "; the state after step 1 is not finite, and not saved; there is no checkpoint");
    EXPECT_TRUE(list_checkpoints(root / more + "/checkpoints").empty());
  }
  set_config(config, "solver.max_iter=3");
  set_config(config, "solver.lr=0");
  set_config(config, "solver.checkpoint_interval=1");
  Trainer(config, dataset, root / "run", Resume::Never).run(ignore);
  set_config(config, "solver.lr=1e30");
  set_config(config, "solver.max_iter=0");
  set_config(config, "solver.epochs=2");
  Trainer trainer(config, dataset, root / "run", Resume::Auto);
  TERCEL_EXPECT_THROW(trainer.run(ignore), NumericError,
                      "the last checkpoint is " + (root / "run/checkpoints/step-000000000003"));
}

TEST(TrainerFaults, KeysOutsideATableNameTheirPlace) {
  const TemporaryFolder root;
  const auto value = [](int64_t) { return 0.5f; };
  const auto label = [](int64_t r) { return r % 3 == 0 ? 1.0f : 0.0f; };
  // Files without numbers of keys, with keys from 0 to 3.
  const data::Dataset dataset = plain_dataset(root, 40, "data", value, label, /*slot_size=*/0);
  const auto config = [](int64_t rows) {
    ModelConfig made = parse_config(kLinearModel, "linear");
    set_config(made, "layers.table.sparse_embedding_hparam.max_vocabulary_size_global=" + std::to_string(rows));
    return made;
  };
  const std::string place = "/0.data: record 3: byte ";
  const std::string what = ": expected a key from 0 to 2 in slot 0 ('slot') of table 'table', found 3";
  const auto expect_place = [&](const std::string& text) {
    EXPECT_NE(text.find(place), std::string::npos) << text;
    EXPECT_NE(text.find(what), std::string::npos) << text;
  };
  {
    Trainer trainer(config(3), dataset, root / "run", Resume::Never);
    expect_place(message_of<DataError>([&] { trainer.run(ignore); }));
  }
  // A model for keys below 3, as if it was trained before the other keys occurred.
  Model model(config(3), dataset.schema);
  model.initialize(1);
  expect_place(message_of<DataError>(
      [&] { evaluate(model, dataset, data::PartName::Test, config(3), [](int64_t) { return true; }); }));
  LoadedModel loaded{config(3), data::identity_of(dataset), "", std::move(model), "", 0, 0, {}};
  expect_place(
      message_of<DataError>([&] { predict(loaded, dataset, data::PartName::Test, [](const Predictions&) {}); }));
  Trainer trainer(config(4), dataset, root / "run", Resume::Never);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);
}

TEST(TrainerFaults, TheLastBatchMayHaveOneRow) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 87);  // 65 train rows: 64 and 1
  Trainer trainer(stateful_config(), dataset, root / "run", Resume::Never);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);
  EXPECT_EQ(trainer.step(), 4);

  // Batch normalization uses the running statistics and does not update them.
  Model model(stateful_config({"layers.dropped.rate=0"}), dataset.schema);
  model.initialize(1);
  const auto read = [&](int64_t rows) {
    data::ReaderOptions options;
    options.batch_size = rows;
    options.inputs = model.sparse_inputs();
    data::BatchReader reader(dataset, data::PartName::Train, options);
    data::Batch batch;
    EXPECT_TRUE(reader.next(batch));
    return batch;
  };
  const auto statistics = [&] {
    std::vector<double> all;
    for (const auto& [name, buffer] : model.buffers())
      for (const double x : values_of(buffer)) all.push_back(x);
    return all;
  };
  const std::vector<double> initial = statistics();
  model.forward(read(64), /*training=*/true, /*step=*/1);
  const std::vector<double> moved = statistics();
  EXPECT_NE(moved, initial);
  const data::Batch row = read(1);
  const std::vector<double> logits = values_of(model.forward(row, /*training=*/true, /*step=*/1).logits[0]);
  EXPECT_EQ(statistics(), moved);
  EXPECT_EQ(logits, values_of(model.forward(row).logits[0]));
}

TEST(TrainerEnds, WhenEpochsAndMaxIterSay) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);  // 5 steps an epoch
  const struct {
    int64_t epochs, max_iter, steps;
  } cases[] = {{0, 0, 5}, {3, 0, 15}, {0, 12, 12}, {0, 2, 2}, {3, 12, 12}, {1, 12, 5}};
  for (const auto& c : cases) {
    const std::string epochs = std::to_string(c.epochs), max_iter = std::to_string(c.max_iter);
    Trainer trainer(stateful_config({"solver.epochs=" + epochs, "solver.max_iter=" + max_iter, "data.validation=none"}),
                    dataset, root / ("run-" + epochs + "-" + max_iter), Resume::Never);
    int64_t total = 0;
    EXPECT_EQ(trainer.run([&](const Progress& now) { total = now.total_steps; }), TrainEnd::Done);
    EXPECT_EQ(trainer.step(), c.steps) << epochs << " epochs, max_iter " << max_iter;
    EXPECT_EQ(total, c.steps);
  }
}

/** The dataset as if it had been converted from text, with a vocabulary of its own. */
data::Dataset with_vocabulary(data::Dataset dataset) {
  const std::string content = "tokens";
  write_file(dataset.folder + "/vocabulary.bin", content);
  dataset.conversion->vocabulary = data::FileRecord{"vocabulary.bin", static_cast<int64_t>(content.size()), ""};
  return dataset;
}

TEST(TrainerFaults, ARunFolderThatGoesWithItsDatasetIsMadeAnew) {
  const TemporaryFolder root;
  const data::Dataset dataset = with_vocabulary(small_dataset(root, 400, 0.25, "all/data"));
  {
    Trainer trainer(stateful_config({"solver.max_iter=5", "solver.checkpoint_interval=2"}), dataset, root / "all/run",
                    Resume::Never);
    const std::string text = message_of<IoError>([&] {
      trainer.run([&](const Progress& now) {
        if (now.kind == Progress::Kind::Checkpoint && now.step == 2)
          std::filesystem::rename(root / "all", root / "new");
      });
    });
    EXPECT_NE(text.find("; the state after step 4 is saved in " + (root / "all/run/checkpoints/step-000000000004") +
                        ", without trained_on.json ("),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("vocabulary.bin: expected a file of 6 bytes"), std::string::npos) << text;
  }
  EXPECT_TRUE(std::filesystem::exists(root / "all/run/config.json"));
  data::Dataset moved = dataset;
  moved.folder = root / "new/data";
  EXPECT_EQ(Trainer(stateful_config(), moved, root / "all/run", Resume::Auto).step(), 4);
}

std::vector<int64_t> saved_steps(const ModelConfig& config, const data::Dataset& dataset, const std::string& folder,
                                 Observer observer) {
  std::vector<int64_t> saved;
  Trainer trainer(config, dataset, folder, Resume::Never);
  EXPECT_EQ(trainer.run([&](const Progress& now) {
    if (now.kind == Progress::Kind::Checkpoint && (saved.empty() || saved.back() != now.step))
      saved.push_back(now.step);
    observer(now);
  }),
            TrainEnd::Done);
  return saved;
}

TEST(TrainerEnds, WithCheckpointsByMinutesAndWhenAsked) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const auto config = [](const char* minutes) {
    return stateful_config({"solver.epochs=1", "solver.eval_interval=3", "solver.checkpoint_interval=1000",
                            std::string("solver.checkpoint_minutes=") + minutes});
  };
  EXPECT_EQ(saved_steps(config("1e-9"), dataset, root / "often", ignore), (std::vector<int64_t>{1, 2, 3, 4, 5}));
  // Of these, 3 has the first validation, the best one so far.
  EXPECT_EQ(saved_steps(config("10"), dataset, root / "seldom", ignore), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(saved_steps(config("0"), dataset, root / "asked",
                        [](const Progress& now) {
                          if (now.kind == Progress::Kind::Evaluation && now.step == 3) request_save();
                        }),
            (std::vector<int64_t>{3, 5}));
}

TEST(TrainerFaults, ARunFolderThatIsGoneIsMadeAnew) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  train_five(root, dataset, "five");
  struct Case {
    const char* run;
    int64_t interval, goes_at, saved_at;
    Progress::Kind before;  // the trainer's last action before the folder is removed
    bool taken;             // the path is taken by then
  };
  for (const Case& c :
       {Case{"a", 2, 2, 4, Progress::Kind::Evaluation, false}, Case{"b", 5, 5, 5, Progress::Kind::Checkpoint, false},
        Case{"c", 2, 2, 4, Progress::Kind::Evaluation, true}}) {
    const std::string run = c.run, found = run + (c.taken ? "-2" : ""), interval = std::to_string(c.interval);
    std::string text;
    {
      Trainer trainer(stateful_config({"solver.max_iter=5", "solver.eval_interval=" + interval}), dataset, root / run,
                      Resume::Never);
      text = message_of<IoError>([&] {
        trainer.run([&](const Progress& now) {
          if (now.kind != c.before || now.step != c.goes_at || !std::filesystem::exists(root / run)) return;
          std::filesystem::rename(root / run, root / (run + "-moved"));
          if (c.taken) root.put(run + "/notes.txt", "mine");
        });
      });
    }
    const std::string saved_at = std::to_string(c.saved_at);
    EXPECT_NE(text.find(root / run +
                        ": the folder of the run was removed or renamed while it was trained; the state after step " +
                        saved_at + " is saved in " + (root / (found + "/checkpoints/step-00000000000" + saved_at))),
              std::string::npos)
        << text;
    // Only once.
    EXPECT_EQ(text.find(" is saved in "), text.rfind(" is saved in ")) << text;
    Trainer rest(stateful_config({"solver.max_iter=5", "solver.eval_interval=1000"}), dataset, root / found,
                 Resume::Auto);
    EXPECT_EQ(rest.step(), c.saved_at);
    EXPECT_EQ(rest.run(ignore), TrainEnd::Done);
    EXPECT_EQ(differences(tensors(root, "five", kStep5), tensors(root, found, kStep5)), "");
    EXPECT_TRUE(std::filesystem::exists(root / (found + "/config.json")));
    if (c.taken) {
      EXPECT_EQ(root.get(run + "/notes.txt"), "mine");
    }
  }
}

TEST(TrainerFaults, ResumingRemovesWhatAKillLeft) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  train_five(root, dataset, "run");
  const Tree before = below(root, "run");
  const auto leave = [&] {
    root.put("run/checkpoints/step-000000000004.tmp-0123abcd/table-0.safetensors", "much");
    for (const char* file : {"config.json", "trained_on.json", "vocabulary", "metrics.jsonl"})
      root.put(std::string("run/") + file + ".tmp-0123abcd", "half");
  };
  leave();
  Trainer trainer(stateful_config({"solver.max_iter=5"}), dataset, root / "run", Resume::Auto);
  EXPECT_EQ(differences(before, below(root, "run")), "");
  leave();
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);
  EXPECT_EQ(differences(before, below(root, "run")), "") << "nothing was left to train or to save";
}

TEST(TrainerFaults, AFullDiskNamesTheLastCheckpoint) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  Trainer trainer(stateful_config({"solver.eval_interval=1000", "solver.checkpoint_interval=4"}), dataset, root / "run",
                  Resume::Never);
  std::optional<ScopedFault> full;
  const std::string text = message_of<IoError>([&] {
    trainer.run([&](const Progress& now) {
      FaultPlan plan;
      plan.op = FileOp::Write;
      plan.error = ENOSPC;
      plan.persistent = true;
      if (now.kind == Progress::Kind::Checkpoint && now.step == 4) full.emplace(plan);
    });
  });
  full.reset();
  EXPECT_NE(text.find("No space left"), std::string::npos) << text;
  EXPECT_NE(text.find("could not be saved"), std::string::npos) << text;
  EXPECT_NE(text.find("; the last checkpoint is " + (root / "run/checkpoints/step-000000000004")), std::string::npos)
      << text;
}

}  // namespace
}  // namespace tercel::recsys
