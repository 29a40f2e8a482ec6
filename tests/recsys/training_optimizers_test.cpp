// Optimizers in training: every rule and update type, rates of tables, regularisation, clipping, batches without a
// finite loss.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/model/hugectr_defaults.h"
#include "tercel/recsys/session.h"
#include "tests/recsys/session_state.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

using optim::Rule;
using optim::UpdateType;
using tercel::test::values_of;
using test::batches_of;
using test::CleanProcess;
using test::kLinearModel;
using test::plain_dataset;
using test::saved_state;
using test::small_dataset;
using test::State;
using test::stateful_config;
using test::TemporaryFolder;

constexpr Rule kRules[] = {Rule::Sgd,     Rule::MomentumSgd,    Rule::Nesterov, Rule::Adam, Rule::AdamW,
                           Rule::AdaGrad, Rule::RowWiseAdaGrad, Rule::RmsProp,  Rule::Ftrl};

bool has_lazy_global(Rule rule) {
  return rule != Rule::MomentumSgd && rule != Rule::Nesterov && rule != Rule::AdamW && rule != Rule::RmsProp;
}

/** A model with two tables, where everything has the optimizer. */
ModelConfig config_of(Rule rule, UpdateType type, std::vector<std::string> others = {}) {
  const std::string name(to_string(rule)), update(to_string(type));
  for (const std::string& where : {std::string("optimizer"), std::string("layers.e2.optimizer")})
    for (const std::string& assignment :
         {".type=" + name, ".update_type=" + update, std::string(".momentum_factor=0.5")})
      others.push_back(where + assignment);
  return stateful_config(others);
}

TEST(TrainingOptimizers, EachResumesWithTheSameBits) {
  const CleanProcess clean;
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  int64_t number = 0;
  for (const Rule rule : kRules)
    for (const UpdateType type : {UpdateType::Local, UpdateType::Global, UpdateType::LazyGlobal}) {
      if (type == UpdateType::LazyGlobal && !has_lazy_global(rule)) continue;
      SCOPED_TRACE(str_cat({to_string(rule), " ", to_string(type)}));
      const ModelConfig config = config_of(rule, type,
                                           {"data.shuffle=true", "optimizer.embedding_l2=0.01", "optimizer.l1=0.001",
                                            "solver.clip_grad_norm=0.5", "solver.warmup_steps=3"});
      const std::string folder = root / std::to_string(++number);
      Session whole(config, dataset), first(config, dataset), second(config, dataset);
      for (Session* session : {&whole, &first, &second}) session->initialize();
      while (whole.step()) EXPECT_TRUE(std::isfinite(whole.loss()));
      EXPECT_EQ(whole.steps(), 10);
      for (int64_t step = 0; step < 6; ++step) ASSERT_TRUE(first.step());
      CheckpointStore store(folder + "/parts", 1);
      first.save(store);
      ASSERT_TRUE(second.step());  // and forgets that
      EXPECT_EQ(second.load(Checkpoint(*store.latest())), std::vector<std::string>());
      while (second.step()) {
      }
      const State expected = saved_state(whole, folder + "/whole");
      EXPECT_EQ(saved_state(second, folder + "/second"), expected);
      const bool lazy = rule == Rule::Adam && type == UpdateType::LazyGlobal;
      EXPECT_EQ(expected.contains("e1/history"), lazy);
      EXPECT_EQ(expected.contains("e1/last"), lazy);
      EXPECT_EQ(expected.contains("e2/accumulator"), rule == Rule::AdaGrad || rule == Rule::RowWiseAdaGrad);
    }
}

TEST(TrainingOptimizers, GlobalDiffersFromLocalInTheRowsThatABatchDoesNotUse) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  for (const Rule rule : {Rule::Sgd, Rule::AdaGrad, Rule::RowWiseAdaGrad, Rule::Ftrl, Rule::Adam, Rule::Nesterov}) {
    std::vector<State> states;
    for (const UpdateType type : {UpdateType::Local, UpdateType::Global}) {
      Session session(config_of(rule, type), dataset);
      session.initialize();
      while (session.step()) {
      }
      states.push_back(saved_state(session, str_cat({root / "c", to_string(rule), to_string(type)})));
    }
    const bool drifts = rule == Rule::Adam || rule == Rule::Nesterov;
    EXPECT_EQ(states[0] == states[1], !drifts) << to_string(rule);
    EXPECT_EQ(states[0].at("e1") == states[1].at("e1"), !drifts) << to_string(rule);
  }
}

TEST(TrainingOptimizers, AnotherStateIsRefused) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  Session session(config_of(Rule::Adam, UpdateType::Local), dataset);
  session.initialize();
  session.step();
  CheckpointStore store(root / "c", 1);
  session.save(store);
  const Checkpoint checkpoint(*store.latest());
  const auto warnings = [&](Rule rule, UpdateType type) {
    return Session(config_of(rule, type), dataset).check(checkpoint, NewData::Refuse).warnings;
  };
  TERCEL_EXPECT_THROW(warnings(Rule::AdamW, UpdateType::Local), ConfigError,
                      "a checkpoint with the state of another optimizer: layers.e1.optimizer.type: the checkpoint has "
                      "\"Adam\", this run has \"AdamW\"");
  TERCEL_EXPECT_THROW(warnings(Rule::Adam, UpdateType::LazyGlobal), ConfigError,
                      "a checkpoint with the state of another update type: layers.e1.optimizer.update_type: the "
                      "checkpoint has \"Local\", this run has \"LazyGlobal\"");
  EXPECT_EQ(warnings(Rule::Adam, UpdateType::Global).size(), 3u) << "the model's and two tables'";
}

/** A linear model of one dense value and a table of a number for each key, with plain gradient descent at rate 0.5. */
ModelConfig linear_config(const std::vector<std::string>& assignments = {}) {
  ModelConfig config = parse_config(kLinearModel, "linear");
  for (const std::string& assignment : assignments) set_config(config, assignment);
  return config;
}

data::Dataset linear_data(const TemporaryFolder& root) {
  return plain_dataset(
      root, 40, "linear", [](int64_t r) { return static_cast<float>(r % 7) - 2; },
      [](int64_t r) { return static_cast<float>(r % 3 == 0); });
}

/** Weights: of the value, the bias, and of the 4 keys. */
std::vector<double> weights_of(Session& session) {
  const nn::ParameterArena& arena = session.model().parameters();
  std::vector<double> all = {values_of(arena[0])[0], values_of(arena[1])[0]};
  for (const double w : values_of(session.model().embeddings().tables()[0]->weight())) all.push_back(w);
  return all;
}

constexpr double kStart[] = {0.4, -0.3, 0.1, -0.2, 0.05, 0.3};

void set_weights(Session& session) {
  const nn::ParameterArena& arena = session.model().parameters();
  for (size_t i = 0; i < 2; ++i) fill_(arena[i].detach(), kStart[i]);
  const Tensor table = session.model().embeddings().tables()[0]->weight().detach();
  for (int64_t k = 0; k < 4; ++k) fill_(table.narrow(0, k, 1), kStart[k + 2]);
}

/** The gradients of the first batch, by hand; its loss. */
std::vector<double> gradients_of(const data::Batch& batch, double& loss) {
  const std::vector<double> x = values_of(batch.dense), y = values_of(batch.labels);
  const std::vector<double> keys = values_of(batch.sparse[0].keys);
  std::vector<double> g(6, 0);
  loss = 0;
  const auto rows = static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto key = static_cast<size_t>(keys[i]);
    const double logit = kStart[0] * x[i] + kStart[1] + kStart[2 + key], p = 1 / (1 + std::exp(-logit));
    loss -= (y[i] * std::log(p) + (1 - y[i]) * std::log(1 - p)) / rows;
    g[0] += (p - y[i]) * x[i] / rows;
    g[1] += (p - y[i]) / rows;
    g[2 + key] += (p - y[i]) / rows;
  }
  return g;
}

class LinearSteps : public testing::Test {
 protected:
  /** Weights after one step from kStart. */
  std::vector<double> step(const std::vector<std::string>& assignments) {
    session_ = std::make_unique<Session>(linear_config(assignments), dataset_);
    session_->initialize();
    set_weights(*session_);
    session_->step(batch_);
    return weights_of(*session_);
  }
  void expect_weights(const std::vector<double>& found, const std::function<double(size_t, double)>& step_of) {
    for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(found[i], kStart[i] - 0.5 * step_of(i, gradient_[i]), 1e-6) << i;
  }

  TemporaryFolder root_;
  data::Dataset dataset_ = linear_data(root_);
  data::Batch batch_ = batches_of(dataset_, linear_config())[0];
  double loss_ = 0;
  std::vector<double> gradient_ = gradients_of(batch_, loss_);
  std::unique_ptr<Session> session_;
};

double sign(double x) { return x > 0 ? 1 : -1; }

TEST_F(LinearSteps, ArePlainByDefault) {
  expect_weights(step({}), [](size_t, double g) { return g; });
  EXPECT_NEAR(session_->loss(), loss_, 1e-6);
  EXPECT_TRUE(std::isnan(session_->gradient_norm()));
}

TEST_F(LinearSteps, TablesHaveTheirOwnRate) {
  expect_weights(step({"layers.table.optimizer.lr_scale=0.25"}), [](size_t i, double g) { return i < 2 ? g : g / 4; });
  expect_weights(step({"optimizer.lr_scale=0.5", "layers.table.optimizer.lr_scale=2"}),
                 [](size_t i, double g) { return i < 2 ? g / 2 : 2 * g; });
  expect_weights(step({"optimizer.lr_scale=0.5"}), [](size_t, double g) { return g / 2; });
}

TEST_F(LinearSteps, DenseWeightsAndUsedRowsAreRegularised) {
  const auto uses = [this](size_t i) { return i < 2 || gradient_[i] != 0; };
  expect_weights(step({"optimizer.l2=0.1"}), [](size_t i, double g) { return i < 2 ? g + 0.1 * kStart[i] : g; });
  EXPECT_NEAR(session_->loss(), loss_, 1e-6) << "not a part of the loss";
  expect_weights(step({"optimizer.l1=0.1"}), [](size_t i, double g) { return i < 2 ? g + 0.1 * sign(kStart[i]) : g; });
  expect_weights(step({"optimizer.embedding_l2=0.1"}),
                 [&](size_t i, double g) { return i >= 2 && uses(i) ? g + 0.1 * kStart[i] : g; });
  expect_weights(step({"optimizer.embedding_l1=0.1"}),
                 [&](size_t i, double g) { return i >= 2 && uses(i) ? g + 0.1 * sign(kStart[i]) : g; });
  // In the table's own object l1 and l2 are those of its rows.
  expect_weights(step({"optimizer.embedding_l2=0.1", "layers.table.optimizer.l2=0.2"}),
                 [&](size_t i, double g) { return i >= 2 && uses(i) ? g + 0.2 * kStart[i] : g; });
  expect_weights(step({"optimizer.type=AdamW", "optimizer.weight_decay=0.3", "optimizer.beta1=0", "optimizer.beta2=0",
                       "optimizer.epsilon=1e10"}),
                 [&](size_t i, double) { return uses(i) ? 0.3 * kStart[i] : 0; });
}

TEST_F(LinearSteps, RegularizersOfLossesAreHugeCtrs) {
  // lambda / batchsize times the weight or its sign, for weights and bias, but not for tables; a part of the loss.
  for (const char* name : {"lambda", "regularizer_lambda"}) {
    const std::string option = str_cat({"layers.loss.", name, "=0.8"});
    expect_weights(step({"layers.loss.regularizer=L2", option}),
                   [](size_t i, double g) { return i < 2 ? g + 0.8 / 4 * kStart[i] : g; });
    EXPECT_NEAR(session_->loss(), loss_ + 0.8 / 8 * (0.4 * 0.4 + 0.3 * 0.3), 1e-6);
    expect_weights(step({"layers.loss.regularizer=L1", option}),
                   [](size_t i, double g) { return i < 2 ? g + 0.8 / 4 * sign(kStart[i]) : g; });
    EXPECT_NEAR(session_->loss(), loss_ + 0.8 / 4 * (0.4 + 0.3), 1e-6);
    expect_weights(step({option}), [](size_t, double g) { return g; });
  }
  TERCEL_EXPECT_THROW(step({"layers.loss.lambda=1", "layers.loss.regularizer_lambda=1"}), ConfigError,
                      "[BinaryCrossEntropyLoss loss] has both 'lambda' and 'regularizer_lambda'");
  TERCEL_EXPECT_THROW(step({"layers.loss.regularizer=L3"}), ConfigError, "regularizer");
  TERCEL_EXPECT_THROW(step({"layers.loss.lambda=-1"}), ConfigError, "regularizer_lambda");
}

TEST_F(LinearSteps, GradientsAreClipped) {
  double norm = 0, limited = 0;
  for (const double g : gradient_) norm += g * g, limited += std::min(g * g, 0.1 * 0.1);
  norm = std::sqrt(norm);
  limited = std::sqrt(limited);
  const auto cut = [](double g) { return std::clamp(g, -0.1, 0.1); };
  ASSERT_GT(norm, 0.2);
  expect_weights(step({"solver.clip_grad_norm=0.05"}), [norm](size_t, double g) { return g * 0.05 / norm; });
  EXPECT_NEAR(session_->gradient_norm(), norm, 1e-6);
  expect_weights(step({"solver.clip_grad_norm=10"}), [](size_t, double g) { return g; });
  expect_weights(step({"solver.clip_grad_value=0.1"}), [&](size_t, double g) { return cut(g); });
  expect_weights(step({"solver.clip_grad_value=0.1", "solver.clip_grad_norm=0.05"}),
                 [&](size_t, double g) { return cut(g) * 0.05 / limited; });
  EXPECT_NEAR(session_->gradient_norm(), limited, 1e-6);
}

/** The batch with an infinite dense value. */
data::Batch broken(data::Batch batch) {
  batch.dense = batch.dense.clone();
  batch.dense.data<float>()[1] = std::numeric_limits<float>::infinity();
  return batch;
}

TEST_F(LinearSteps, BatchesWithoutAFiniteLossMayBeSkipped) {
  const std::vector<data::Batch> batches = batches_of(dataset_, linear_config());
  TERCEL_EXPECT_THROW(
      [&] {
        Session session(linear_config(), dataset_);
        session.initialize();
        set_weights(session);
        session.step(broken(batches[0]));
      }(),
      NumericError, "step 1: the loss is ");
  const ModelConfig config = linear_config({"solver.on_nan=skip", "solver.max_nan_batches=2"});
  Session session(config, dataset_), plain(config, dataset_);
  for (Session* one : {&session, &plain}) {
    one->initialize();
    set_weights(*one);
  }
  plain.step(batches[0]);
  plain.step(batches[2]);
  session.step(batches[0]);
  session.step(broken(batches[1]));
  EXPECT_EQ(session.steps(), 1);
  EXPECT_EQ(session.nan_batches(), 1);
  EXPECT_EQ(session.first_nan_batch().find("step 2: the loss is "), 0u) << session.first_nan_batch();
  session.step(batches[2]);
  EXPECT_EQ(saved_state(session, root_ / "session"), saved_state(plain, root_ / "plain"));
  CheckpointStore store(root_ / "c", 1);
  session.save(store);
  Session resumed(config, dataset_);
  resumed.initialize();
  resumed.load(Checkpoint(*store.latest()));
  EXPECT_EQ(resumed.nan_batches(), 1);
  EXPECT_EQ(resumed.first_nan_batch(), "");
  resumed.step(broken(batches[3]));
  EXPECT_EQ(resumed.nan_batches(), 2);
  TERCEL_EXPECT_THROW(resumed.step(broken(batches[4])), NumericError,
                      "with it, more than 2 batches, which solver.max_nan_batches allows, would be skipped");
  EXPECT_TRUE(resumed.is_whole());
  resumed.step(batches[4]);
  EXPECT_EQ(resumed.steps(), 3);
  TERCEL_EXPECT_THROW(resumed.set_loss_interval(2), ConfigError, "loss interval: expected 1 with solver.on_nan=skip");
}

// The loss is finite, but the gradients are not.
TEST_F(LinearSteps, ANormThatIsNotFiniteIsSuchABatch) {
  for (const bool skips : {false, true}) {
    std::vector<std::string> assignments = {"solver.clip_grad_norm=1"};
    if (skips) assignments.emplace_back("solver.on_nan=skip");
    Session session(linear_config(assignments), dataset_);
    session.initialize();
    set_weights(session);
    const std::vector<double> before = weights_of(session);
    session.forward_backward(batch_);
    fill_(session.model().parameters().gradients(), INFINITY);
    TERCEL_EXPECT_THROW(session.update(), NumericError, "step 1: the norm of the gradients is infinite");
    EXPECT_TRUE(session.is_whole());
    EXPECT_FALSE(session.has_gradients());
    EXPECT_EQ(weights_of(session), before);
    session.step(batch_);
    EXPECT_EQ(session.steps(), 1);
    EXPECT_NE(weights_of(session), before);
  }
}

// A dataset cannot have values that are not finite, but a model can make them.
TEST(OnNan, ADatasetsBatchesAreSkippedOneAfterTheOther) {
  const TemporaryFolder root;
  const data::Dataset dataset = plain_dataset(
      root, 40, "data", [](int64_t r) { return r == 5 || r == 9 ? 3e38F : 1.0F; },
      [](int64_t r) { return static_cast<float>(r % 2); });
  ModelConfig config = linear_config({"solver.on_nan=skip", "data.shuffle=false", "data.validation=none"});
  Session session(config, dataset);
  session.initialize();
  fill_(session.model().parameters()[0].detach(), 10);  // 3e38 * 10 is infinite
  int64_t steps = 0;
  while (session.step()) ++steps;
  EXPECT_EQ(steps, 8);
  EXPECT_EQ(session.steps(), 8);
  EXPECT_EQ(session.nan_batches(), 2);
  EXPECT_EQ(session.rows(), 32);
}

TEST(HugeCtrDefaults, AreThoseOfItsFunctions) {
  const ModelConfig theirs = hugectr_defaults(), ours;
  EXPECT_EQ(theirs.optimizer.type, Rule::Adam);
  EXPECT_EQ(theirs.optimizer.update_type, UpdateType::Global);
  EXPECT_EQ(theirs.optimizer.momentum_factor, 0);
  EXPECT_EQ(theirs.optimizer.epsilon, 1e-7);
  EXPECT_TRUE(theirs.data.drop_last);
  EXPECT_FALSE(theirs.data.shuffle);
  EXPECT_EQ(ours.optimizer.update_type, UpdateType::Local);
  EXPECT_EQ(ours.optimizer.momentum_factor, 0.9);
  EXPECT_FALSE(ours.data.drop_last);
}

}  // namespace
}  // namespace tercel::recsys
