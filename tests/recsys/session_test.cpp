#include "tercel/recsys/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/recsys/trainer.h"
#include "tercel/util/checksum.h"
#include "tercel/util/json_impl.h"
#include "tests/recsys/session_state.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"
#include "tests/support/failing_allocator.h"

namespace tercel::recsys {
namespace {

using tercel::test::message_of;
using tercel::test::values_of;
using test::batches_of;
using test::CleanProcess;
using test::ignore;
using test::kLinearModel;
using test::plain_dataset;
using test::saved_state;
using test::small_dataset;
using test::State;
using test::stateful_config;
using test::TemporaryFolder;

TEST(Session, StepsAndEvaluationAreTheTrainers) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);  // 5 steps an epoch, 2 epochs
  Trainer trainer(stateful_config(), dataset, root / "run", Resume::Never);
  EXPECT_EQ(trainer.run(ignore), TrainEnd::Done);

  Session session(trainer.plan().config, dataset);
  session.initialize();
  EXPECT_TRUE(std::isnan(session.loss()));
  int64_t steps = 0;
  while (session.step()) {
    ++steps;
    EXPECT_TRUE(std::isfinite(session.loss()));
    if (steps == 5) session.evaluate([](int64_t) { return true; });
  }
  EXPECT_EQ(steps, 10);
  EXPECT_EQ(session.steps(), 10);
  EXPECT_EQ(session.rows(), 600);
  EXPECT_EQ(session.evaluate([](int64_t) { return true; }), trainer.last_metrics());
  EXPECT_EQ(session.evaluate([](int64_t) { return true; }), trainer.last_metrics()) << "from the first row again";
  int64_t rows = 0;
  EXPECT_TRUE(session
                  .evaluate([&rows](int64_t done) {
                    rows = done;
                    return false;
                  })
                  .empty());
  EXPECT_EQ(rows, 50);
  CheckpointStore store(root / "saved", 1);
  session.save(store);
  EXPECT_EQ(test::differences(test::below(root, "run/checkpoints/step-000000000010"),
                              test::below(root, "saved/step-000000000010")),
            "only in the first: evaluation.json\nonly in the first: test.json\n");
}

TEST(Session, LoadContinuesWithTheSameBits) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const ModelConfig config = stateful_config({"data.shuffle=true"});
  const auto run = [&](Session& session, int64_t to) {
    while (session.steps() < to) {
      if (session.steps() == 4) session.set_learning_rate(0.05);
      if (session.steps() == 8) session.clear_learning_rate();
      ASSERT_TRUE(session.step());
    }
  };
  Session whole(config, dataset), first(config, dataset), second(config, dataset);
  for (Session* session : {&whole, &first, &second}) session->initialize();
  run(whole, 10);
  run(first, 6);
  CheckpointStore store(root / "parts", 1);
  first.save(store);
  run(second, 2);  // and forgets that
  second.forward_backward(batches_of(dataset, config)[0]);
  EXPECT_EQ(second.load(Checkpoint(*store.latest())), std::vector<std::string>());
  EXPECT_EQ(second.steps(), 6);
  EXPECT_EQ(second.learning_rate(), 0.05);
  run(second, 10);
  EXPECT_EQ(saved_state(second, root / "second"), saved_state(whole, root / "whole"));
  EXPECT_EQ(second.learning_rate(), whole.learning_rate());
  EXPECT_FALSE(second.step());
}

TEST(Session, PhasesOneByOneAreAStep) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const ModelConfig config = stateful_config();
  const std::vector<data::Batch> batches = batches_of(dataset, config);
  Session whole(config, dataset), phases(config, dataset);
  whole.initialize();
  phases.initialize();
  for (const data::Batch& batch : batches) {
    whole.step(batch);
    phases.forward_backward(batches[3]);
    phases.discard();  // as if it had never been
    {
      const NoGradGuard guard;  // of the caller, whose gradients these are not
      phases.forward_backward(batch);
    }
    EXPECT_EQ(phases.steps() + 1, whole.steps());
    EXPECT_EQ(phases.loss(), whole.loss());
    phases.reduce();
    phases.update();
    EXPECT_EQ(phases.steps(), whole.steps());
  }
  EXPECT_EQ(saved_state(phases, root / "phases"), saved_state(whole, root / "whole"));
}

TEST(Session, PhasesInAnotherOrderAreRefused) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  Session session(stateful_config(), dataset);
  const data::Batch batch = batches_of(dataset, stateful_config())[0];
  CheckpointStore store(root / "c", 1);
  TERCEL_EXPECT_THROW(session.step(), RuntimeError, "session: step: the model is not initialised");
  TERCEL_EXPECT_THROW(session.save(store), RuntimeError, "the model is not initialised");
  TERCEL_EXPECT_THROW(session.freeze({"e1"}), RuntimeError, "the model is not initialised");
  session.initialize();
  TERCEL_EXPECT_THROW(session.update(), RuntimeError, "session: update: there are no gradients of a step");
  TERCEL_EXPECT_THROW(session.discard(), RuntimeError, "session: discard: there are no gradients of a step");
  session.forward_backward(batch);
  const char* text = ": step 1 has gradients but no update; call update() or discard() first";
  TERCEL_EXPECT_THROW(session.step(), RuntimeError, text);
  TERCEL_EXPECT_THROW(session.step(batch), RuntimeError, text);
  TERCEL_EXPECT_THROW(session.save(store), RuntimeError, text);
  TERCEL_EXPECT_THROW(session.evaluate([](int64_t) { return true; }), RuntimeError, text);
  session.update();
  TERCEL_EXPECT_THROW(session.update(), RuntimeError, "there are no gradients");
  EXPECT_EQ(session.steps(), 1);
  EXPECT_FALSE(store.latest());
}

TEST(Session, AfterAnErrorInAnUpdateOnlyLoadHelps) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  Session session(stateful_config(), dataset);
  session.initialize();
  ASSERT_TRUE(session.step());
  CheckpointStore store(root / "c", 1);
  session.save(store);
  const State before = saved_state(session, root / "before");
  session.forward_backward(batches_of(dataset, stateful_config())[1]);
  const Tensor& weight = session.model().embeddings().tables()[1]->weight();
  set_gradient(weight, {zeros(weight.sizes()), {}});
  TERCEL_EXPECT_THROW(session.update(), RuntimeError, "'e2': expected a gradient of rows");
  EXPECT_FALSE(session.is_whole());
  EXPECT_EQ(session.steps(), 1);
  TERCEL_EXPECT_THROW(session.step(), RuntimeError, "left the state incomplete; load a checkpoint");
  TERCEL_EXPECT_THROW(session.save(store), RuntimeError, "left the state incomplete");
  session.load(Checkpoint(*store.latest()));
  EXPECT_TRUE(session.is_whole());
  EXPECT_EQ(saved_state(session, root / "after"), before);
  EXPECT_TRUE(session.step());
}

TEST(Session, ReadsAsTheConfigurationSays) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const auto reading = [&](const std::vector<std::string>& settings) {
    Session session(stateful_config(settings), dataset);
    session.initialize();
    while (session.step()) {
    }
    return std::pair(session.steps(), session.train_reader().options());
  };
  const int64_t rows = dataset.train.rows();
  const auto [all, plain] = reading({"solver.epochs=1"});
  ASSERT_NE(rows % 64, 0);
  EXPECT_EQ(all, rows / 64 + 1);
  EXPECT_FALSE(plain.drop_last);
  EXPECT_EQ(plain.on_bad_record, data::OnBadRecord::Fail);
  const auto [whole, options] =
      reading({"solver.epochs=1", "data.drop_last=true", "data.shuffle=true", "data.shuffle_unit=batches",
               "data.on_bad_record=skip", "data.max_bad_records=7"});
  EXPECT_EQ(whole, rows / 64);
  EXPECT_EQ(options.shuffle_unit, data::ShuffleUnit::Batches);
  EXPECT_EQ(options.on_bad_record, data::OnBadRecord::Skip);
  EXPECT_EQ(options.max_bad_records, 7);
}

TEST(Session, ABatchThatFailedIsReadAgainOrSkipped) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const ModelConfig config = stateful_config();
  const std::vector<data::Batch> batches = batches_of(dataset, config);
  Session session(config, dataset), plain(config, dataset);
  session.initialize();
  plain.initialize();
  ASSERT_TRUE(session.step());
  const Tensor weights = session.model().parameters().weights().detach();
  const Tensor good = weights.clone();
  fill_(weights, NAN);
  TERCEL_EXPECT_THROW(session.step(), NumericError, "step 2: the loss is NaN");
  copy_(weights, good);
  CheckpointStore store(root / "c", 1);
  session.save(store);
  Session loaded(config, dataset);
  loaded.initialize();
  loaded.load(Checkpoint(*store.latest()));
  for (Session* other : {&session, &loaded}) ASSERT_TRUE(other->step());
  plain.step(batches[0]);
  plain.step(batches[1]);
  EXPECT_EQ(saved_state(session, root / "session"), saved_state(plain, root / "plain"));
  EXPECT_EQ(saved_state(loaded, root / "loaded"), saved_state(plain, root / "plain2"));

  ASSERT_TRUE(session.skip());
  ASSERT_TRUE(session.step());
  plain.step(batches[3]);
  EXPECT_EQ(session.steps(), 3);
  EXPECT_EQ(saved_state(session, root / "session3"), saved_state(plain, root / "plain3"));
  while (session.skip()) {
  }
  EXPECT_FALSE(session.step());
  EXPECT_EQ(session.steps(), 3);
}

TEST(Session, StepsEndAtMaxIter) {
  const TemporaryFolder root;
  Session session(stateful_config({"solver.epochs=0", "solver.max_iter=7"}), small_dataset(root, 400));
  session.initialize();
  int64_t steps = 0;
  while (session.step()) ++steps;
  EXPECT_EQ(steps, 7);
  EXPECT_FALSE(session.skip());
  TERCEL_EXPECT_THROW(session.initialize(), RuntimeError, "session: initialize: it was called before");
}

TEST(Session, ALoadedStateIsFinite) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  Session session(stateful_config(), dataset);
  session.initialize();
  ASSERT_TRUE(session.step());
  CheckpointStore store(root / "c", 1);
  session.save(store);
  session.forward_backward(batches_of(dataset, stateful_config())[1]);
  fill_(session.model().parameters().gradients(), INFINITY);
  session.update();
  TERCEL_EXPECT_THROW(session.save(store), NumericError, "step 2: its update made ");
  session.load(Checkpoint(*store.latest()));
  // A value that no update stored is not looked for: the kernels report none again.
  fill_(session.model().parameters().weights().detach(), NAN);
  session.check_finite();
}

TEST(Session, AnEvaluationThatThrowsLeavesTheTestRowsAtTheirStart) {
  const TemporaryFolder root;
  Session session(stateful_config(), small_dataset(root, 400));
  session.initialize();
  const MetricValues whole = session.evaluate([](int64_t) { return true; });
  EXPECT_THROW(session.evaluate([](int64_t) -> bool { throw RuntimeError("enough"); }), RuntimeError);
  EXPECT_EQ(session.evaluate([](int64_t) { return true; }), whole);
}

TEST(Session, TakesBatchesOfTheCallersWithoutADataset) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const ModelConfig config = stateful_config();
  Session session(config, dataset.schema), with(config, dataset);
  session.initialize();
  with.initialize();
  for (data::Batch& batch : batches_of(dataset, config)) {
    // As a caller fills it who knows nothing of epochs and ranks.
    batch.row = batch.global_row = batch.global_rows = 0;
    session.step(batch);
    ASSERT_TRUE(with.step());
    EXPECT_EQ(session.loss(), with.loss());
  }
  EXPECT_EQ(session.rows(), 300);
  EXPECT_EQ(values_of(session.model().parameters().weights()), values_of(with.model().parameters().weights()));
  CheckpointStore store(root / "c", 1);
  TERCEL_EXPECT_THROW(session.step(), RuntimeError, "session: step: there is no dataset, only a schema");
  TERCEL_EXPECT_THROW(session.save(store), RuntimeError, "session: save: there is no dataset");
  TERCEL_EXPECT_THROW(session.train_reader(), RuntimeError, "there is no dataset");
  EXPECT_EQ(session.test_rows(), 0);
  TERCEL_EXPECT_THROW(session.evaluate([](int64_t) { return true; }), RuntimeError, "there are no test rows");

  data::Batch batch = batches_of(dataset, config)[0];
  batch.row = 30;  // of 64 rows, [0, 64)
  TERCEL_EXPECT_THROW(session.step(batch), RuntimeError,
                      "model: expected a batch in its global rows [0, 64), at most 2147483648, but it has the 64 rows "
                      "from 30 on");
  batch.row = 0;
  batch.labels = Tensor();
  TERCEL_EXPECT_THROW(session.step(batch), RuntimeError, "step 6: the batch has no labels");
  EXPECT_EQ(session.steps(), 5);
}

TEST(Session, ARateThatIsSetReplacesTheSchedule) {
  const TemporaryFolder root;
  const data::Dataset dataset = plain_dataset(
      root, 40, "data", [](int64_t r) { return static_cast<float>(r % 3); },
      [](int64_t r) { return r % 2 == 0 ? 1.0f : 0.0f; });
  ModelConfig config = parse_config(kLinearModel, "linear");
  set_config(config, "solver.warmup_steps=10");
  Session session(config, dataset);
  session.initialize();
  ASSERT_TRUE(session.step());
  EXPECT_EQ(session.learning_rate(), optim::learning_rate(config.solver, 2));
  session.set_learning_rate(0);
  EXPECT_EQ(session.learning_rate(), 0);
  const std::vector<double> before = values_of(session.model().parameters().weights());
  ASSERT_TRUE(session.step());
  EXPECT_EQ(values_of(session.model().parameters().weights()), before);
  session.clear_learning_rate();
  EXPECT_EQ(session.learning_rate(), optim::learning_rate(config.solver, 3)) << "where the schedule is by now";
  ASSERT_TRUE(session.step());
  EXPECT_NE(values_of(session.model().parameters().weights()), before);
  for (const double rate : {-0.1, static_cast<double>(INFINITY), std::nan("")})
    TERCEL_EXPECT_THROW(session.set_learning_rate(rate), ConfigError,
                        "learning rate: expected a finite number that is not negative, got ");
}

constexpr std::string_view kDropout = R"json({
  "solver": {"batchsize": 32, "lr": 0.01, "epochs": 1},
  "layers": [
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"}, "sparse": [{"top": "keys"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "table",
     "sparse_embedding_hparam": {"embedding_vec_size": 3}},
    {"type": "Reshape", "bottom": "table", "top": "row"},
    {"type": "Dropout", "bottom": "row", "top": "row_part", "rate": 0.5},
    {"type": "Dropout", "bottom": "row", "top": "other_part", "rate": 0.5},
    {"type": "Concat", "bottom": ["row_part", "other_part", "dense"], "top": "all"},
    {"type": "MLP", "bottom": "all", "top": "logit",
     "mlp_param": {"num_outputs": [16, 1], "activations": ["Relu", "Non"]}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
})json";

/** Gradients of a batch: dense, then of every row of the table. */
std::vector<double> gradients_of(Session& session, const data::Batch& batch) {
  session.forward_backward(batch);
  std::vector<double> all = values_of(session.model().parameters().gradients());
  const Tensor& table = session.model().embeddings().tables()[0]->weight();
  const Tensor dense = zeros(table.sizes());
  if (const Gradient g = gradient_of(table); g.defined()) add_rows(dense, g);
  for (const double x : values_of(dense)) all.push_back(x);
  session.discard();
  return all;
}

TEST(Session, RanksDropWhatOneProcessDrops) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 120);  // 90 train rows: batches of 32, 32 and 26
  const ModelConfig config = parse_config(kDropout, "dropout");
  Session session(config, dataset);
  session.initialize();
  const auto whole = batches_of(dataset, config);
  ASSERT_EQ(whole.size(), 3u);
  for (const int64_t ranks : {2, 3, 40}) {
    std::vector<std::vector<data::Batch>> parts;
    for (int64_t rank = 0; rank < ranks; ++rank) parts.push_back(batches_of(dataset, config, rank, ranks));
    for (size_t b = 0; b < whole.size(); ++b) {
      const std::vector<double> expected = gradients_of(session, whole[b]);
      std::vector<double> sum(expected.size());
      for (const auto& part : parts) {
        const std::vector<double> g = gradients_of(session, part[b]);
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += g[i];
      }
      for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], expected[i], 1e-6) << ranks << " " << b << " " << i;
    }
  }
  const std::vector<double> first = gradients_of(session, whole[0]);
  EXPECT_EQ(gradients_of(session, whole[0]), first);
  session.model().forward(whole[1], /*training=*/true, /*step=*/1).loss.backward();
  EXPECT_EQ(gradients_of(session, whole[0]), first) << "gradients of the caller's are not added";
  session.set_learning_rate(0);
  session.step(whole[1]);
  EXPECT_NE(gradients_of(session, whole[0]), first) << "another step";
}

/** Replaces the checkpoint's format and an entry of its state. */
void rewrite_state(const TemporaryFolder& root, const std::string& folder, int64_t format,
                   const std::function<void(Json&)>& change) {
  const std::string file = folder + "/manifest.json";
  Json content = parse_json(root.get(file), "manifest", JsonErrors::Data).at("content");
  Json state = parse_json(content.at("state").get<std::string>(), "state", JsonErrors::Data);
  change(state);
  content["state"] = dump_json_line(state);
  if (format > 2)
    content["format"] = format;
  else
    content.erase("format");
  const std::string text = dump_json_line(content);
  root.put(file, dump_json({{"format", format},
                            {"checksum", checksum_to_hex(checksum(text.data(), text.size()))},
                            {"content", content}}));
}

TEST(Session, APositionThatIsRefusedChangesNothing) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  Session session(stateful_config(), dataset);
  session.initialize();
  ASSERT_TRUE(session.step());
  CheckpointStore store(root / "c", 1);
  session.save(store);
  rewrite_state(root, "c/step-000000000001", 3, [](Json& state) {
    state["position"]["shuffle"] = true;
    state["position"]["shuffle_block"] = 77;
  });
  ASSERT_TRUE(session.step());
  const State before = saved_state(session, root / "before");
  EXPECT_THROW(session.load(Checkpoint(*store.latest())), ConfigError);
  EXPECT_TRUE(session.is_whole());
  EXPECT_EQ(saved_state(session, root / "after"), before);
  Session plain(stateful_config(), dataset);
  plain.initialize();
  while (plain.steps() < 3) plain.step();
  ASSERT_TRUE(session.step());
  EXPECT_EQ(saved_state(session, root / "third"), saved_state(plain, root / "plain"));
}

TEST(Session, LoadsTheFormatBeforeAndRefusesStatesThatMakeNoSense) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  Session session(stateful_config(), dataset);
  session.initialize();
  ASSERT_TRUE(session.step());
  CheckpointStore store(root / "c", 1);
  session.save(store);
  const std::string folder = "c/step-000000000001";
  rewrite_state(root, folder, 2, [](Json& state) {
    state.erase("learning_rate");
    state.erase("frozen");
    state["generator_seed"] = 6364136223846793004;
    state["generator_offset"] = 640;
  });
  Session other(stateful_config(), dataset);
  other.initialize();
  const std::vector<std::string> warnings = other.load(Checkpoint(root / folder));
  ASSERT_EQ(warnings.size(), 1);
  EXPECT_NE(warnings[0].find("whose Dropout drew other masks"), std::string::npos) << warnings[0];
  EXPECT_EQ(saved_state(other, root / "other"), saved_state(session, root / "session"));

  const State before = saved_state(other, root / "before");
  Json good;
  rewrite_state(root, folder, 3, [&](Json& state) { good = state; });
  const auto refuses = [&](const char* key, const Json& value, const char* text) {
    rewrite_state(root, folder, 3, [&](Json& state) { state[key] = value; });
    TERCEL_EXPECT_THROW(other.load(Checkpoint(root / folder)), DataError, text);
    EXPECT_TRUE(other.is_whole());
    EXPECT_EQ(saved_state(other, root / (std::string("after-") + text)), before) << text;
    rewrite_state(root, folder, 3, [&](Json& state) { state = good; });
  };
  refuses("frozen", Json::array({"e3"}), "there is no layer or table 'e3'; did you mean 'e1'?");
  refuses("frozen", 5, "frozen");
  refuses("learning_rate", -0.5, "learning_rate: expected -1 or a rate that is not negative, found -0.5");
  refuses("step", -1, "step");
  refuses("stpe", 1, "did you mean 'step'");
}

TEST(Session, LackOfMemoryNamesTheLayerAndTheBatch) {
  const CleanProcess clean;
  set_num_threads(1);
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const ModelConfig config = stateful_config();
  const data::Batch batch = batches_of(dataset, config)[0];  // the threads of a reader would allocate further ones
  std::optional<Session> session;
  const auto begin = [&] {
    session.emplace(config, dataset.schema);
    session->initialize();
    session->step(batch);
  };
  begin();
  tercel::test::FailingAllocator allocator;
  const tercel::test::ScopedAllocator scope(allocator);
  // The messages without the place in the allocator.
  const auto failures = [&](const std::function<void()>& f) {
    std::set<std::string> found;
    for (int64_t n = 1;; ++n) {
      if (!session->is_whole()) begin();
      allocator.fail_call(n);
      try {
        f();
      } catch (const OutOfMemoryError& e) {
        const std::string text = e.what();
        EXPECT_NE(text.find("out of memory: this was call"), std::string::npos) << text;
        found.insert(text.substr(0, text.find(": a batch of")) + " |" + text.substr(text.rfind(';') + 1));
        EXPECT_NE(text.find(": a batch of 64 rows: "), std::string::npos) << text;
        continue;
      }
      allocator.fail_call(0);
      return found;
    }
  };
  const std::string train = " | a smaller solver.batchsize needs less memory";
  const std::string eval = " | a smaller solver.batchsize_eval needs less memory";
  const std::set<std::string> in_eval = failures([&] { session->model().forward(batch); });
  EXPECT_TRUE(in_eval.contains("[LocalizedSlotSparseEmbeddingHash e1]" + eval)) << testing::PrintToString(in_eval);
  EXPECT_TRUE(in_eval.contains("[MLP logit]" + eval)) << testing::PrintToString(in_eval);
  for (const std::string& text : in_eval) EXPECT_TRUE(text.starts_with("[") && text.ends_with(eval)) << text;
  const std::set<std::string> in_train = failures([&] { session->step(batch); });
  EXPECT_TRUE(in_train.contains("[MLP logit]" + train)) << testing::PrintToString(in_train);
  EXPECT_TRUE(in_train.contains("backward" + train)) << testing::PrintToString(in_train);
}

}  // namespace
}  // namespace tercel::recsys
