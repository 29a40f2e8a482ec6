// Losses that are read in each step, or several together: Note [Losses of several steps].
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "tercel/recsys/session.h"
#include "tercel/util/json_impl.h"
#include "tests/recsys/session_state.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

using tercel::test::message_of;
using test::batches_of;
using test::ignore;
using test::saved_state;
using test::small_dataset;
using test::State;
using test::stateful_config;
using test::TemporaryFolder;
using Losses = std::vector<double>;

constexpr auto kAlways = [](int64_t) { return true; };

/** 225 train rows: 4 steps an epoch, 8 in all. */
data::Dataset dataset_in(const TemporaryFolder& root) { return small_dataset(root, 300); }

/** The loss of each step. */
Losses losses_of(const data::Dataset& dataset) {
  Session session(stateful_config(), dataset);
  session.initialize();
  Losses all;
  while (session.step()) {
    EXPECT_EQ(session.losses(), Losses{session.loss()}) << "an interval of 1";
    all.push_back(session.loss());
  }
  EXPECT_EQ(session.losses(), Losses());
  return all;
}

Losses part(const Losses& all, int64_t begin, int64_t end) { return Losses(all.begin() + begin, all.begin() + end); }

TEST(SessionLosses, AreReadTogetherAndAreThoseOfEachStep) {
  const TemporaryFolder root;
  const data::Dataset dataset = dataset_in(root);
  const Losses all = losses_of(dataset);
  ASSERT_EQ(all.size(), 8u);
  Session one(stateful_config(), dataset), three(stateful_config(), dataset);
  one.initialize();
  three.set_loss_interval(3);
  three.initialize();
  EXPECT_EQ(three.loss_interval(), 3);
  for (int64_t step = 1; step <= 8; ++step) {
    ASSERT_TRUE(one.step());
    ASSERT_TRUE(three.step());
    EXPECT_EQ(three.losses(), step % 3 == 0 ? part(all, step - 3, step) : Losses()) << step;
    if (step < 3)
      EXPECT_TRUE(std::isnan(three.loss())) << "none was read yet";
    else
      EXPECT_EQ(three.loss(), all[static_cast<size_t>(step / 3 * 3 - 1)]);
  }
  EXPECT_FALSE(three.step());
  EXPECT_EQ(three.losses(), part(all, 6, 8)) << "the end of the data";
  EXPECT_EQ(three.loss(), all[7]);
  EXPECT_FALSE(three.step());
  EXPECT_EQ(three.losses(), Losses());
  EXPECT_EQ(saved_state(three, root / "three"), saved_state(one, root / "one"));
}

TEST(SessionLosses, AreReadBeforeTheStateIsUsed) {
  const TemporaryFolder root;
  const data::Dataset dataset = dataset_in(root);
  const Losses all = losses_of(dataset);
  Session session(stateful_config(), dataset);
  session.initialize();
  session.set_loss_interval(4);
  CheckpointStore store(root / "c", 2);
  ASSERT_TRUE(session.step());
  session.save(store);
  EXPECT_EQ(session.loss(), all[0]);
  EXPECT_EQ(session.losses(), part(all, 0, 1));
  ASSERT_TRUE(session.step());
  EXPECT_EQ(session.losses(), part(all, 0, 1)) << "read between the last step and the one before";
  session.evaluate(kAlways);
  EXPECT_EQ(session.loss(), all[1]);
  ASSERT_TRUE(session.step());
  session.check_finite();
  EXPECT_EQ(session.loss(), all[2]);
  session.check_finite();  // there are no others
  EXPECT_EQ(session.losses(), part(all, 1, 3));
  for (int64_t step = 4; step <= 7; ++step) ASSERT_TRUE(session.step());
  EXPECT_EQ(session.losses(), part(all, 3, 7)) << "four since";
  ASSERT_TRUE(session.step());
  session.set_loss_interval(2);
  EXPECT_EQ(session.loss(), all[7]) << "kept at the old interval";

  // Those that are kept are not of the state that is loaded.
  session.load(Checkpoint(*store.latest()));
  ASSERT_TRUE(session.step());
  session.load(Checkpoint(*store.latest()));
  EXPECT_EQ(session.losses(), Losses());
  ASSERT_TRUE(session.step());
  ASSERT_TRUE(session.step());
  EXPECT_EQ(session.losses(), part(all, 1, 3));
}

TEST(SessionLosses, PhasesKeepTheLossOfAnUpdateOnly) {
  const TemporaryFolder root;
  const data::Dataset dataset = dataset_in(root);
  const std::vector<data::Batch> batches = batches_of(dataset, stateful_config());
  for (const int64_t interval : {1, 2}) {
    Session plain(stateful_config(), dataset), session(stateful_config(), dataset);
    Losses expected;
    plain.initialize();
    session.initialize();
    session.set_loss_interval(interval);
    for (size_t b = 0; b < 2; ++b) {
      plain.step(batches[b]);
      expected.push_back(plain.loss());
      session.forward_backward(batches[3]);
      session.discard();
      data::Batch without = batches[b];
      without.labels = Tensor();
      TERCEL_EXPECT_THROW(session.step(without), RuntimeError, "the batch has no labels");
      session.forward_backward(batches[b]);
      TERCEL_EXPECT_THROW(session.set_loss_interval(3), RuntimeError, "has gradients but no update");
      session.update();
    }
    EXPECT_EQ(session.losses(), part(expected, 2 - interval, 2)) << interval;
  }
}

/** The same batch with a dense value in row 0. */
data::Batch with_dense(const data::Batch& batch, float value) {
  data::Batch changed = batch;
  changed.dense = batch.dense.clone();
  changed.dense.data<float>()[0] = value;
  return changed;
}

TEST(SessionLosses, ALossThatIsNotFiniteIsFoundLaterAndOnlyLoadHelps) {
  const TemporaryFolder root;
  const data::Dataset dataset = dataset_in(root);
  const ModelConfig config = stateful_config();
  const std::vector<data::Batch> batches = batches_of(dataset, config);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Session session(config, dataset);
  session.initialize();
  session.step(batches[0]);
  CheckpointStore store(root / "c", 1);
  session.save(store);
  const State before = saved_state(session, root / "before");

  // In each step, before backward: nothing has changed.
  TERCEL_EXPECT_THROW(session.step(with_dense(batches[1], nan)), NumericError,
                      "step 2: the loss is NaN; the first layer that gives a NaN or an infinity is Concat all");
  EXPECT_TRUE(session.is_whole());
  EXPECT_EQ(saved_state(session, root / "same"), before);

  session.set_loss_interval(4);
  for (const bool is_full : {true, false}) {
    session.step(batches[1]);
    session.step(with_dense(batches[2], nan));
    session.step(batches[3]);
    const std::string message = message_of<NumericError>([&] {
      if (is_full)
        session.step(batches[0]);
      else
        session.save(store);
    });
    EXPECT_EQ(message, std::string("step 3: the loss is NaN; it was read after step ") + (is_full ? "5" : "4") +
                           ", at an interval of 4, so updates have used it");
    EXPECT_TRUE(std::isnan(session.loss()));
    EXPECT_FALSE(session.is_whole());
    TERCEL_EXPECT_THROW(session.step(), RuntimeError, "a loss that is not finite, left the state incomplete");
    TERCEL_EXPECT_THROW(session.evaluate(kAlways), RuntimeError, "left the state incomplete; load a checkpoint");
    session.load(Checkpoint(*store.latest()));
    EXPECT_TRUE(session.is_whole());
    EXPECT_EQ(saved_state(session, root / (is_full ? "after" : "again")), before);
  }
}

TEST(SessionLosses, AnIntervalIsAtLeastAStep) {
  const TemporaryFolder root;
  Session session(stateful_config(), dataset_in(root));
  for (const int64_t steps : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()})
    TERCEL_EXPECT_THROW(session.set_loss_interval(steps), ConfigError, "loss interval: expected at least 1 step, got ");
  EXPECT_EQ(session.loss_interval(), 1);
}

TEST(SessionLosses, ATrainerReportsTheMeanOfAllSteps) {
  const TemporaryFolder root;
  const data::Dataset dataset = dataset_in(root);
  // One line in metrics.jsonl, after the last step.
  const ModelConfig config = stateful_config({"solver.display_seconds=1000", "solver.checkpoint_interval=3"});
  const auto reported = [&](const std::string& run, int64_t interval) {
    Trainer trainer(config, dataset, root / run, Resume::Never);
    trainer.session().set_loss_interval(interval);
    EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);
    std::istringstream lines(root.get(run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const Json json = parse_json(line, run, JsonErrors::Data);
      if (json.at("kind") == "train") return json.at("loss").get<double>();
    }
    return -1.0;
  };
  const double mean = reported("one", 1);
  for (const int64_t interval : {2, 5, 100})
    EXPECT_NEAR(reported(std::to_string(interval), interval), mean, 1e-15) << interval;
}

TEST(SessionLosses, ATrainerSaysThatTheStateIsNotFinite) {
  const TemporaryFolder root;
  const data::Dataset dataset = test::plain_dataset(
      root, 40, "data", [](int64_t r) { return r >= 8 ? 3e38f : 1.0f; },
      [](int64_t r) { return r % 2 == 0 ? 1.0f : 0.0f; });
  Trainer trainer(parse_config(test::kLinearModel, "linear"), dataset, root / "run", Resume::Never);
  trainer.session().set_loss_interval(6);
  TERCEL_EXPECT_THROW(
      trainer.run(ignore), NumericError,
      "step 4: the loss is NaN; it was read after step 6, at an interval of 6, so updates have used it; "
      "the state after step 6 is not finite, and not saved; there is no checkpoint");
}

}  // namespace
}  // namespace tercel::recsys
