// Layers and tables that are not trained.
#include <gtest/gtest.h>

#include "tercel/autograd/autograd.h"
#include "tercel/recsys/session.h"
#include "tercel/recsys/trainer.h"
#include "tests/recsys/session_state.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

using tercel::test::values_of;
using test::saved_state;
using test::small_dataset;
using test::State;
using test::stateful_config;
using test::TemporaryFolder;
using Names = std::vector<std::string>;

/** Tensors of two states that differ. */
Names differing(const State& a, const State& b) {
  Names names;
  for (const auto& [name, values] : a)
    if (values != b.at(name)) names.push_back(name);
  return names;
}

void steps(Session& session, int64_t count) {
  for (int64_t i = 0; i < count; ++i) ASSERT_TRUE(session.step());
}

class Freezing : public testing::Test {
 protected:
  /** An initialised session after two steps, so that the states of optimizers are not 0. */
  std::unique_ptr<Session> begin(const ModelConfig& config) {
    auto session = std::make_unique<Session>(config, dataset_);
    session->initialize();
    steps(*session, 2);
    return session;
  }
  State state(Session& session) { return saved_state(session, root_ / ("state-" + std::to_string(++states_))); }

  TemporaryFolder root_;
  data::Dataset dataset_ = small_dataset(root_, 400);

 private:
  int64_t states_ = 0;
};

TEST_F(Freezing, WhatIsFrozenKeepsItsBitsAndItsStates) {
  for (const char* rule : {"SGD", "MomentumSGD", "Adam", "AdaGrad", "Ftrl"}) {
    SCOPED_TRACE(rule);
    const auto session = begin(stateful_config({std::string("optimizer.type=") + rule}));
    const State before = state(*session);
    const auto prefix = [](const std::string& name) { return name.substr(0, name.find_first_of("./")); };
    // All layers and tables of the model: normal, logit, e1, e2.
    for (const Names& frozen :
         {Names{"normal"}, Names{"logit"}, Names{"e1"}, Names{"e2", "normal"}, Names{"e1", "e2", "logit", "normal"}}) {
      SCOPED_TRACE(testing::PrintToString(frozen));
      CheckpointStore store(root_ / (std::string(rule) + "-without-" + testing::PrintToString(frozen)), 1);
      session->save(store);
      const State start = state(*session);
      session->freeze(frozen);
      EXPECT_EQ(session->frozen(), std::set<std::string>(frozen.begin(), frozen.end()));
      steps(*session, 2);
      const Names moved = differing(start, state(*session));
      std::set<std::string> found;
      for (const std::string& name : moved) {
        if (name.find("running") != std::string::npos) continue;
        EXPECT_FALSE(session->frozen().contains(prefix(name))) << name;
        found.insert(prefix(name));
      }
      EXPECT_EQ(found.size(), 4 - frozen.size()) << testing::PrintToString(found);
      session->load(Checkpoint(*store.latest()));
      EXPECT_TRUE(session->frozen().empty()) << "as when it was saved";
    }
    EXPECT_EQ(state(*session), before);
  }
}

TEST_F(Freezing, OthersAreTrainedAsIfNothingWereFrozen) {
  // In one step, the gradients of the others do not depend on what is frozen.
  for (const char* rule : {"SGD", "Adam"}) {
    const ModelConfig config = stateful_config({std::string("optimizer.type=") + rule});
    const auto all = begin(config), some = begin(config);
    some->freeze({"normal", "e1"});
    steps(*all, 1);
    steps(*some, 1);
    const auto different = differing(state(*all), state(*some));
    EXPECT_FALSE(different.empty()) << "what is frozen was not trained";
    for (const std::string& name : different)
      EXPECT_TRUE(name.starts_with("normal.") || name.starts_with("e1")) << rule << " " << name;
  }
}

TEST_F(Freezing, NoGradientIsMadeForWhatIsFrozen) {
  const auto session = begin(stateful_config());
  session->freeze({"logit", "e2"});
  data::ReaderOptions options;
  options.batch_size = 64;
  options.inputs = session->model().sparse_inputs();
  data::BatchReader reader(dataset_, data::PartName::Train, options);
  data::Batch batch;
  ASSERT_TRUE(reader.next(batch));
  session->forward_backward(batch);
  const auto& tables = session->model().embeddings().tables();
  EXPECT_TRUE(gradient_of(tables[0]->weight()).defined());
  EXPECT_FALSE(gradient_of(tables[1]->weight()).defined());
  for (const auto& entry : session->model().parameters().entries()) {
    double largest = 0;
    for (const double g : values_of(entry.tensor.grad())) largest = std::max(largest, std::abs(g));
    EXPECT_EQ(largest == 0, entry.name.starts_with("logit.")) << entry.name;
  }
  TERCEL_EXPECT_THROW(session->freeze({"e1"}), RuntimeError, "session: freeze: step 3 has gradients but no update");
  TERCEL_EXPECT_THROW(session->unfreeze({"e2"}), RuntimeError, "session: unfreeze: step 3 has gradients but no update");
}

TEST_F(Freezing, UnfreezingTrainsAgain) {
  const auto session = begin(stateful_config());
  session->freeze({"logit", "e1", "normal"});
  session->freeze({"e2"});
  session->unfreeze({"logit", "e1"});
  EXPECT_EQ(session->frozen(), (std::set<std::string>{"e2", "normal"}));
  const State before = state(*session);
  steps(*session, 1);
  std::set<std::string> moved;
  for (const std::string& name : differing(before, state(*session))) moved.insert(name);
  for (const char* name : {"logit.0.weight", "logit.1.bias", "logit.0.weight/m", "e1", "e1/v"})
    EXPECT_TRUE(moved.contains(name)) << name;
  for (const std::string& name : moved) EXPECT_FALSE(name.starts_with("e2")) << name;
  session->unfreeze({"e2", "normal", "logit"});
  EXPECT_TRUE(session->frozen().empty());
  steps(*session, 1);
  EXPECT_FALSE(differing(before, state(*session)).empty());
}

TEST_F(Freezing, IsResumedWithTheSameBits) {
  const ModelConfig config = stateful_config();
  const auto whole = begin(config);
  whole->freeze({"e2", "logit"});
  steps(*whole, 2);
  CheckpointStore store(root_ / "c", 1);
  whole->save(store);
  steps(*whole, 3);
  Session rest(config, dataset_);
  rest.initialize();
  rest.load(Checkpoint(*store.latest()));
  EXPECT_EQ(rest.frozen(), whole->frozen());
  steps(rest, 3);
  EXPECT_EQ(differing(state(*whole), state(rest)), Names());
}

TEST_F(Freezing, ATrainerSaysThatItContinuesSo) {
  {
    Trainer trainer(stateful_config({"solver.max_iter=2"}), dataset_, root_ / "run", Resume::Never);
    trainer.session().freeze({"e2", "logit"});
    trainer.session().set_learning_rate(0.25);
    std::vector<double> rates;
    trainer.run([&rates](const Progress& now) {
      if (now.kind == Progress::Kind::Step) rates.push_back(now.learning_rate);
    });
    EXPECT_EQ(rates.back(), 0.25);
  }
  Trainer trainer(stateful_config({"solver.max_iter=2"}), dataset_, root_ / "run", Resume::Auto);
  EXPECT_EQ(trainer.warnings(), (Names{"the checkpoint has frozen layers, which are not trained: e2, logit",
                                       "the checkpoint has a learning rate in place of the schedule: 0.25"}));
}

TEST_F(Freezing, UnknownNamesAreRefused) {
  const auto session = begin(stateful_config());
  session->freeze({"e1"});
  const auto refuses = [&](const Names& names, const char* text) {
    TERCEL_EXPECT_THROW(session->freeze(names), ConfigError, text);
    TERCEL_EXPECT_THROW(session->unfreeze(names), ConfigError, text);
    EXPECT_EQ(session->frozen(), std::set<std::string>{"e1"});
  };
  refuses({"e2", "lgoit"},
          "freeze: there is no layer or table 'lgoit'; did you mean 'logit'? known: e1, e2, normal, logit");
  refuses({"logit.0.weight"}, "freeze: there is no layer or table 'logit.0.weight'");
  refuses({""}, "freeze: there is no layer or table ''");
  refuses({"dropped"}, "freeze: layer 'dropped' (Dropout) has no parameters; known: e1, e2, normal, logit");
}

}  // namespace
}  // namespace tercel::recsys
