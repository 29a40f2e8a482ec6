// Training by several ranks, which are threads here. What takes long under ThreadSanitizer is in the suite Ranks.
#include "tercel/recsys/ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>

#include "tercel/autograd/autograd.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/sort/sort.h"
#include "tercel/recsys/embedding/table_rows.h"
#include "tercel/recsys/machine_rates.h"
#include "tercel/recsys/placement_plan.h"
#include "tercel/recsys/prediction.h"
#include "tercel/recsys/session.h"
#include "tercel/recsys/table_placements.h"
#include "tercel/recsys/trainer.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/checksum.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/warning.h"
#include "tests/distributed/thread_ranks.h"
#include "tests/recsys/session_state.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

using distributed::ProcessGroup;
using distributed::test::run_ranks;
using tercel::test::message_of;
using tercel::test::values_of;
using test::bags_config;
using test::bags_dataset;
using test::small_dataset;
using test::small_preset_config;
using test::stateful_config;
using test::TemporaryFolder;

using Values = std::vector<double>;

/** What a rank has at the end. */
struct Found {
  Values weights, losses;
  MetricValues metrics;
  bool operator==(const Found&) const = default;
};

/** Keys of a table, in ascending order, and their vectors: those of all ranks, if it is on several. */
void append_table(EmbeddingTable& table, ProcessGroup* group, Values& all) {
  const KeyRows found = rows_of_keys(table);
  Tensor keys = found.keys, vectors = index_select(table.weight().detach(), 0, found.rows);
  if (!table.shard().is_whole()) {
    const std::vector<int64_t> counts = numbers_of_ranks(*group, keys.numel());
    keys = rows_of_ranks(*group, keys, counts);
    vectors = index_select(rows_of_ranks(*group, vectors, counts), 0, argsort(keys));
    keys = sort(keys).values;
  }
  for (const Tensor& t : {keys, vectors}) {
    const Values values = values_of(t);
    all.insert(all.end(), values.begin(), values.end());
  }
}

/** Weights, tables and running statistics. */
Values weights_of(Session& session, ProcessGroup* group = nullptr) {
  Values all = values_of(session.model().parameters().weights());
  for (const auto& table : session.model().embeddings().tables()) append_table(*table, group, all);
  for (const auto& [name, buffer] : session.model().buffers()) {
    const Values values = values_of(buffer);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/** Trains to the end; the weights. */
Values train_on(Session& session, ProcessGroup* group = nullptr) {
  while (session.step()) {
  }
  return weights_of(session, group);
}

Found train(Session& session, ScalarType dtype = kFloat32, ProcessGroup* group = nullptr) {
  Found found;
  session.initialize(dtype);
  while (session.step()) found.losses.push_back(session.loss());
  found.weights = weights_of(session, group);
  found.metrics = session.evaluate([](int64_t) { return true; });
  return found;
}

/** Of each rank. */
std::vector<Found> train_with(int64_t ranks, const ModelConfig& config, const data::Dataset& dataset,
                              ScalarType dtype = kFloat32) {
  std::vector<Found> found(static_cast<size_t>(ranks));
  run_ranks(ranks, [&](ProcessGroup& group) {
    Session session(config, dataset, group);
    found[static_cast<size_t>(group.rank())] = train(session, dtype, &group);
  });
  return found;
}

void expect_near(const Values& found, const Values& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], tolerance * std::max(std::abs(expected[i]), 1e-2 * largest)) << i;
  }
}

/**
 * That any of these numbers of ranks trains what one does, and the same bits each time; in double, so that it is the
 * same.
 */
void expect_same_training(const ModelConfig& config, const data::Dataset& dataset,
                          const std::vector<int64_t>& numbers = {1, 2, 3, 4}) {
  Session alone(config, dataset);
  const Found expected = train(alone, kFloat64);
  ASSERT_GT(expected.losses.size(), 3u);
  for (const int64_t ranks : numbers) {
    SCOPED_TRACE(ranks);
    const std::vector<Found> found = train_with(ranks, config, dataset, kFloat64);
    for (const Found& rank : found) EXPECT_EQ(rank, found[0]) << "all ranks have the same";
    if (ranks == 1) {
      EXPECT_EQ(found[0], expected);
    }
    if (ranks == 3) {
      EXPECT_EQ(train_with(ranks, config, dataset, kFloat64), found) << "the same bits";
    }
    expect_near(found[0].weights, expected.weights, 1e-8);
    expect_near(found[0].losses, expected.losses, 1e-9);
    ASSERT_EQ(found[0].metrics.size(), expected.metrics.size());
    for (size_t m = 0; m < expected.metrics.size(); ++m)
      EXPECT_NEAR(found[0].metrics[m].second, expected.metrics[m].second, 1e-6) << expected.metrics[m].first;
  }
}

TEST(RanksOnThreads, TrainWhatOneDoes) {
  const TemporaryFolder root;
  // 225 train rows: the last batch of an epoch has 33, and the parts of its ranks other numbers of rows.
  const data::Dataset dataset = small_dataset(root, 300);
  expect_same_training(stateful_config(), dataset);
  expect_same_training(stateful_config({"solver.clip_grad_norm=0.05", "optimizer.l2=0.01", "data.shuffle=true"}),
                       dataset);
}

TEST(RanksOnThreads, TrainWhatOneDoesWithTablesOnSeveral) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 300);
  const std::string hashed = "layers.e2.sparse_embedding_hparam.table_type=hashed";
  expect_same_training(stateful_config({"solver.placement=distributed"}), dataset);
  expect_same_training(stateful_config({"solver.placement=localized", "solver.clip_grad_norm=0.05"}), dataset);
  expect_same_training(stateful_config({"solver.placement=distributed", hashed, "solver.clip_grad_norm=0.05"}),
                       dataset);
  expect_same_training(stateful_config({"solver.placement=distributed", hashed,
                                        "layers.e2.sparse_embedding_hparam.admission=2", "optimizer.l2=0.01"}),
                       dataset);
}

TEST(RanksOnThreads, TrainWhatOneDoesWithTablesOnSomeOfThem) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 300);
  const std::string hashed = "layers.e2.sparse_embedding_hparam.table_type=hashed";
  // A table on one rank; others on some of them, in another order than that of their numbers; rank 0 has no row of e1.
  expect_same_training(stateful_config({R"json(solver.table_placements=[
      {"table": "e1", "placement": "distributed", "ranks": [1]}, {"table": "e2", "placement": "replicated"}])json"}),
                       dataset, {1, 2});
  expect_same_training(stateful_config({R"json(solver.table_placements=[
      {"table": "e1", "placement": "localized", "ranks": [2, 1]},
      {"table": "e2", "placement": "distributed", "ranks": [2, 0]}])json",
                                        "solver.clip_grad_norm=0.05"}),
                       dataset, {1, 3, 4});
  expect_same_training(stateful_config({R"json(solver.table_placements=[
      {"table": "e2", "placement": "distributed", "ranks": [2, 1]}])json",
                                        hashed, "solver.placement=localized"}),
                       dataset, {3});
}

TEST(RanksOnThreads, TablesAreWhereTheConfigurationSays) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 300);
  const std::string grows = "layers.e2.sparse_embedding_hparam.table_type=hashed";
  ModelConfig config = stateful_config({grows, "solver.placement=replicated"});
  config.solver.table_placements = {{"e1", Placement::Localized, {2}}, {"e2", Placement::Distributed, {}}};
  run_ranks(3, [&](ProcessGroup& group) {
    Session session(config, dataset, group);
    session.initialize();
    const auto& tables = session.model().embeddings().tables();
    EXPECT_EQ(tables[0]->rows(), group.rank() == 2 ? tables[0]->rows_of_all_ranks() : 0);
    for (int64_t key = 0; key < 6; ++key) {
      int64_t owner = -1;
      EXPECT_TRUE(tables[1]->owners({&key, 1}, &owner));
      EXPECT_EQ(owner, key % 3);
    }
  });
  const auto refused = [&](const std::vector<GivenPlacement>& given, const std::string& message, int64_t ranks) {
    config.solver.table_placements = given;
    if (ranks == 1) {
      EXPECT_EQ(message_of<ConfigError>([&] { Session(config, dataset); }), "solver.table_placements: " + message);
      return;
    }
    run_ranks(ranks, [&](ProcessGroup& group) {
      EXPECT_EQ(message_of<ConfigError>([&] { Session(config, dataset, group); }),
                "solver.table_placements: " + message);
    });
  };
  for (const int64_t ranks : {1, 2}) {
    refused({{"e3", Placement::Replicated, {}}},
            message_of<ConfigError>([&] {
              std::vector<TableLoad> tables(2);
              tables[0].name = "e1";
              tables[1].name = "e2";
              set_given_placements(std::vector<GivenPlacement>{{"e3", Placement::Replicated, {}}}, 0, tables);
            }).substr(std::string("solver.table_placements: ").size()),
            ranks);
    refused({{"e1", Placement::Replicated, {}}, {"e1", Placement::Localized, {}}}, "table 'e1': it is there twice",
            ranks);
    refused({{"e1", Placement::Distributed, {0, 1, 0}}}, "table 'e1': expected each rank once, found 0 twice", ranks);
    refused({{"e1", Placement::Replicated, {1}}},
            "table 'e1': every rank has all rows of a table that is replicated; expected no ranks, found 1", ranks);
    refused({{"e2", Placement::Localized, {}}},
            "table 'e2': it grows, and cannot be localized; expected distributed or replicated", ranks);
  }
  refused({{"e1", Placement::Distributed, {0, 2}}}, "table 'e1': expected ranks from 0 to 1, found 2", 2);
  refused({{"e1", Placement::Distributed, {-1}}}, "table 'e1': expected ranks from 0 on, found -1", 2);
  config.solver.table_placements = {{"e1", Placement::Distributed, {7}}};
  Session alone(config, dataset);  // for which it has no effect
}

TEST(RanksOnThreads, TrainWhatOneDoesWithSumsOfBags) {
  const TemporaryFolder root;
  const data::Dataset dataset = bags_dataset(root, 300);
  for (const char* placement : {"distributed", "localized"})
    expect_same_training(bags_config({std::string("solver.placement=") + placement, "solver.clip_grad_norm=0.05"}),
                         dataset);
}

void expect_bytes_as_planned(ModelConfig config, const data::Dataset& dataset) {
  config.solver.batchsize = 192;
  config.data.drop_last = true;
  for (const PlacementChoice placement : {PlacementChoice::Replicated, PlacementChoice::Distributed}) {
    config.solver.placement = placement;
    Model model(config, dataset.schema);
    data::ReaderOptions reading;
    reading.inputs = model.sparse_inputs();
    reading.batch_size = config.solver.batchsize;
    data::BatchReader reader(dataset, data::PartName::Train, reading);
    const std::vector<TableLoad> tables = sampled_table_loads(model, reader, 768);
    for (const int64_t ranks : {2, 3, 4, 6, 8}) {
      SCOPED_TRACE(ranks);
      const StepEstimate plan = estimate_step(step_load(model), tables, placement, ranks, config.solver.batchsize, {});
      std::vector<double> sent(static_cast<size_t>(ranks));
      run_ranks(ranks, [&](ProcessGroup& group) {
        Session session(config, dataset, group);
        session.initialize();
        const int64_t before = group.bytes_sent();
        while (session.step()) {
        }
        EXPECT_GE(session.steps(), 4);
        sent[static_cast<size_t>(group.rank())] =
            static_cast<double>(group.bytes_sent() - before) / static_cast<double>(session.steps());
      });
      double mean = 0;
      for (const double bytes : sent) mean += bytes / static_cast<double>(ranks);
      EXPECT_NEAR(mean, plan.dense_bytes + plan.table_bytes, 0.1 * mean);
    }
  }
}

TEST(Ranks, SendAsManyBytesAsPlanned) {
  const TemporaryFolder root;
  expect_bytes_as_planned(small_preset_config("dlrm"), small_dataset(root, 1200));
  expect_bytes_as_planned(bags_config(), bags_dataset(root, 1200));
}

TEST(RanksOnThreads, MayHaveNoRowsOfABatch) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 100);  // 75: the last batch has 3 rows, for 4 ranks
  for (const char* placement : {"replicated", "distributed"})
    expect_same_training(stateful_config({"solver.batchsize=8", "solver.batchsize_eval=24",
                                          std::string("solver.placement=") + placement}),
                         dataset);
}

TEST(RanksOnThreads, HaveTheSameRowsOfTablesThatGrow) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 200);
  const std::string table = "layers.e2.sparse_embedding_hparam.";
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{},
        {table + "admission=2", table + "max_vocabulary_size_global=30", table + "eviction=frequency"}}) {
    std::vector<std::string> all = {"solver.batchsize=8", table + "table_type=hashed"};
    all.insert(all.end(), options.begin(), options.end());
    expect_same_training(stateful_config(all), dataset);
  }
}

TEST(RanksOnThreads, TrainBatchesOfTheCaller) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 300);
  const std::vector<Found> expected = train_with(2, stateful_config(), dataset);
  run_ranks(2, [&](ProcessGroup& group) {
    Session reading(stateful_config(), dataset, group), session(stateful_config(), dataset.schema, group);
    session.initialize();
    data::ReaderOptions options = reading.train_reader().options();
    data::BatchReader reader(dataset, data::PartName::Train, options);
    Values losses;
    for (data::Batch batch; reader.next(batch);) {
      session.step(batch);
      losses.push_back(session.loss());
    }
    const Found& of_rank = expected[static_cast<size_t>(group.rank())];
    EXPECT_EQ(losses, of_rank.losses);
    EXPECT_EQ(weights_of(session), of_rank.weights);
  });
}

TEST(Ranks, TrainEachShippedModel) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  for (const std::string_view name : {"wdl", "dlrm", "dcnv2", "deepfm", "din", "bst", "finalmlp"}) {
    SCOPED_TRACE(name);
    ModelConfig config = small_preset_config(name);
    config.solver.batchsize = 64;
    for (const PlacementChoice placement : {PlacementChoice::Replicated, PlacementChoice::Distributed}) {
      config.solver.placement = placement;
      expect_same_training(config, dataset);
    }
  }
}

TEST(Ranks, AreAsNearAsRoundingAfterManySteps) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 600);
  const ModelConfig config = stateful_config({"solver.batchsize=8", "solver.epochs=4"});
  Session alone(config, dataset);
  const Values expected = train(alone).weights;
  EXPECT_GT(alone.steps(), 200);
  for (const int64_t ranks : {2, 3, 4}) {
    const Values found = train_with(ranks, config, dataset)[0].weights;
    ASSERT_EQ(found.size(), expected.size());
    double differences = 0, squares = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      differences += (found[i] - expected[i]) * (found[i] - expected[i]);
      squares += expected[i] * expected[i];
    }
    EXPECT_LT(std::sqrt(differences / squares), 1e-4) << ranks;
  }
}

TEST(RanksOnThreads, ReadLossesOfSeveralStepsTogether) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 300);
  const Values each = train_with(2, stateful_config(), dataset)[0].losses;
  run_ranks(2, [&](ProcessGroup& group) {
    Session session(stateful_config(), dataset, group);
    session.set_loss_interval(3);
    session.initialize();
    Values all;
    while (session.step()) all.insert(all.end(), session.losses().begin(), session.losses().end());
    all.insert(all.end(), session.losses().begin(), session.losses().end());
    expect_near(all, each, 1e-6);
  });
}

TEST(RanksOnThreads, MeasureGroupsAndSlicesOfAllRows) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const ModelConfig config = stateful_config(
      {R"json(solver.metrics=["auc","gauc","ndcg@3"])json", "solver.group_by=C2", "solver.slice_by=C1"});
  const auto go_on = [](int64_t) { return true; };
  Session alone(config, dataset);
  alone.initialize();
  const EvaluationResult expected = alone.measure(data::PartName::Test, go_on);
  run_ranks(3, [&](ProcessGroup& group) {
    Session session(config, dataset, group);
    session.initialize();
    int64_t rows = 0;
    const EvaluationResult found = session.measure(data::PartName::Test, [&rows](int64_t done) {
      rows = done;
      return true;
    });
    EXPECT_EQ(rows, 100);
    EXPECT_EQ(found.values, expected.values);
    ASSERT_EQ(found.heads[0].slices.size(), expected.heads[0].slices.size());
    for (size_t s = 0; s < expected.heads[0].slices.size(); ++s)
      EXPECT_EQ(found.heads[0].slices[s].values, expected.heads[0].slices[s].values) << s;
    const bool is_last = group.rank() == 2;
    EXPECT_TRUE(session.evaluate([&](int64_t) { return !is_last; }).empty()) << "one stops it for all";
  });
}

/** The first one, with a NaN in the first row of rank 1. */
data::Batch batch_with_nan(Session& session, const data::Dataset& dataset, const ProcessGroup& group) {
  data::ReaderOptions options;
  options.batch_size = 64;
  options.inputs = session.model().sparse_inputs();
  options.rank = group.rank();
  options.ranks = group.size();
  data::BatchReader reader(dataset, data::PartName::Train, options);
  data::Batch batch;
  EXPECT_TRUE(reader.next(batch));
  if (group.rank() == 1) fill_(batch.dense.narrow(0, 0, 1), std::nan(""));
  return batch;
}

TEST(RanksOnThreads, AllRefuseALossThatIsNotFinite) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 300);
  std::mutex mutex;
  std::map<int64_t, std::string> messages;
  run_ranks(2, [&](ProcessGroup& group) {
    Session session(stateful_config(), dataset, group);
    session.initialize();
    EXPECT_TRUE(session.step());
    const data::Batch batch = batch_with_nan(session, dataset, group);
    const Values before = weights_of(session);
    const std::string message = message_of<NumericError>([&] { session.step(batch); });
    EXPECT_EQ(weights_of(session), before);
    EXPECT_TRUE(session.step());
    const std::lock_guard lock(mutex);
    messages[group.rank()] = message;
  });
  // The batch of all ranks has the statistics of the bad row, so that every rank sees it behind the layer.
  EXPECT_EQ(messages[0],
            "step 2: the loss is NaN; the first layer that gives a NaN or an infinity is BatchNorm normal");
  EXPECT_EQ(messages[1], "step 2: the loss is NaN; the first layer that gives a NaN or an infinity is Concat all");
}

TEST(RanksOnThreads, AllSkipALossThatIsNotFiniteBeforeBackward) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 300);
  ModelConfig config = stateful_config();
  set_config(config, "solver.on_nan=skip");
  run_ranks(2, [&](ProcessGroup& group) {
    Session session(config, dataset, group);
    session.initialize();
    const data::Batch batch = batch_with_nan(session, dataset, group);
    int64_t gradients = 0;
    HookHandle hook = register_hook(session.model().parameters().entries().back().tensor, [&](const Tensor&) {
      ++gradients;
      return Tensor();
    });
    const Values before = weights_of(session);
    session.step(batch);
    EXPECT_EQ(gradients, 0);
    EXPECT_EQ(session.nan_batches(), 1);
    EXPECT_EQ(weights_of(session), before);
    EXPECT_TRUE(session.step());
    EXPECT_EQ(gradients, 1);
    hook.remove();
  });
}

TEST(RanksOnThreads, RefuseAnotherConfigurationOrOtherData) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 300), other = small_dataset(root, 300, 0.25, "other", 2);
  const auto refused = [&](const ModelConfig& config, const data::Dataset& data_of_last, const std::string& expected) {
    run_ranks(3, [&](ProcessGroup& group) {
      const bool is_last = group.rank() == 2;
      EXPECT_EQ(message_of<ConfigError>(
                    [&] { Session(is_last ? config : stateful_config(), is_last ? data_of_last : dataset, group); }),
                "session: expected the same " + expected + " on all ranks, but rank 2 has another than rank 0");
    });
  };
  refused(stateful_config({"solver.lr=0.02"}), dataset, "configuration");
  refused(stateful_config(), other, "dataset");
}

/** Trains some steps on 2 ranks and saves them; goes on with other numbers. */
void expect_same_after_resuming(const ModelConfig& config, const data::Dataset& dataset, const TemporaryFolder& root) {
  Session whole(config, dataset);
  const Found expected = train(whole, kFloat64);
  const Values of_two = train_with(2, config, dataset, kFloat64)[0].weights;
  CheckpointStore store(root / "run", 1);
  run_ranks(2, [&](ProcessGroup& group) {
    Session session(config, dataset, group);
    session.initialize(kFloat64);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(session.step());
    session.save(store);
  });
  const std::string checkpoint = *store.latest();
  ModelConfig moved = config;  // the placement is one of the things that may change
  moved.solver.table_placements = {{"e1", Placement::Distributed, {1, 0}}};
  const auto go_on = [&checkpoint](Session& session, ProcessGroup* group) {
    session.initialize(kFloat64);
    EXPECT_EQ(session.load(Checkpoint(checkpoint)), std::vector<std::string>());
    while (session.step()) {
    }
    return weights_of(session, group);
  };
  Session alone(config, dataset);
  expect_near(go_on(alone, nullptr), expected.weights, 1e-8);
  for (const int64_t ranks : {2, 3}) {
    SCOPED_TRACE(ranks);
    run_ranks(ranks, [&](ProcessGroup& group) {
      Session session(ranks == 2 ? config : moved, dataset, group);
      const Values found = go_on(session, &group);
      expect_near(found, expected.weights, 1e-8);
      if (ranks == 2) {
        EXPECT_EQ(found, of_two) << "the same bits";
      }
    });
  }
  const Checkpoint written(checkpoint);
  Session saved(config, dataset);
  saved.initialize(kFloat64);
  saved.load(written);
  LoadedModel loaded = load_model(checkpoint);
  for (size_t t = 0; t < loaded.model.embeddings().tables().size(); ++t) {
    Values of_session, of_model;
    append_table(*saved.model().embeddings().tables()[t], nullptr, of_session);
    append_table(*loaded.model.embeddings().tables()[t], nullptr, of_model);
    EXPECT_EQ(of_model, of_session) << t;
  }
  remove_dir_atomically(root / "run");
}

TEST(RanksOnThreads, CheckpointsAreReadByAnyNumberOfRanks) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 300);
  const std::string table = "layers.e2.sparse_embedding_hparam.", hashed = table + "table_type=hashed";
  for (const std::vector<std::string>& options : {
           std::vector<std::string>{"solver.placement=replicated"},
           {"solver.placement=distributed"},
           {"solver.placement=localized"},
           {"solver.placement=replicated", hashed},
           {"solver.placement=distributed", hashed},
           {"solver.placement=distributed", hashed, table + "admission=3"},
       }) {
    SCOPED_TRACE(options.back());
    expect_same_after_resuming(stateful_config(options), dataset, root);
  }
}

TEST(RanksOnThreads, ShardsOfACheckpointMustHaveAllRows) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 300);
  const ModelConfig config = stateful_config({"solver.placement=distributed"});
  CheckpointStore store(root / "run", 1);
  run_ranks(2, [&](ProcessGroup& group) {
    Session session(config, dataset, group);
    session.initialize();
    ASSERT_TRUE(session.step());
    session.save(store);
  });
  const std::string folder = *store.latest();
  ASSERT_TRUE(exists(folder + "/table-0-shard-0-of-2.safetensors"));
  ASSERT_TRUE(exists(folder + "/table-0-shard-1-of-2.safetensors"));
  EXPECT_FALSE(exists(folder + "/table-0.safetensors"));
  const auto refused = [&](const std::function<void(Json&)>& change, const std::string& message) {
    const std::string path = folder + "/manifest.json", before = read_file(path, 1 << 20);
    Json manifest = Json::parse(before);
    change(manifest["content"]);
    const std::string content = manifest["content"].dump();
    manifest["checksum"] = checksum_to_hex(checksum(content.data(), content.size()));
    write_file_atomically(path, manifest.dump());
    Session session(config, dataset);
    session.initialize();
    const std::string found = message_of<DataError>([&] { session.load(Checkpoint(folder)); });
    EXPECT_NE(found.find(message), std::string::npos) << found;
    write_file_atomically(path, before);
  };
  refused([](Json& content) { content["shards"][0]["rows"][0]["first"] = 1; }, "once, found row");
  refused([](Json& content) { content["shards"][0]["rows"][0]["step"] = 1e14; }, "once, found row 100000000000000");
  refused([](Json& content) { content["shards"].erase(0); }, "expected shards with each of");
  refused([](Json& content) { content["shards"][1]["name"] = "table-9.safetensors"; }, "expected one of its files");
  refused([](Json& content) { content["shards"][0]["rows"] = Json::array(); }, "expected shards with each of");
  Session session(config, dataset);
  session.initialize();
  session.load(Checkpoint(folder));
}

/** Damages rows of the first file of the train part, so that their checksums are wrong. */
void damage(const data::Dataset& dataset, const std::vector<int64_t>& rows) {
  const data::DataFile& file = dataset.train.files.front();
  std::fstream bytes(dataset.path_of(file), std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekg(0, std::ios::end);
  const int64_t header = data::norm_header_bytes(data::CheckMode::Sum),
                record = (static_cast<int64_t>(bytes.tellg()) - header) / file.rows;
  for (const int64_t row : rows) {
    bytes.seekp(header + (row + 1) * record - 3);
    bytes.put('\x7f');
  }
}

TEST(RanksOnThreads, CountTheBadRecordsOfAll) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 300);
  damage(dataset, {3, 20, 21, 22, 90});
  // Without dropout: masks are those of the rows that are left of the part, behind a bad record others than of one.
  std::vector<std::string> skip = {"data.on_bad_record=skip", "solver.batchsize=32", "layers.dropped.rate=0"};
  Session alone(stateful_config(skip), dataset);
  const Found expected = train(alone);
  EXPECT_EQ(alone.bad_records(), 10);
  EXPECT_NE(alone.first_bad_record().find("record 3: "), std::string::npos) << alone.first_bad_record();
  for (const auto& [ranks, placement] : {std::pair(2, "replicated"), std::pair(2, "distributed"),
                                         std::pair(3, "replicated"), std::pair(3, "distributed")}) {
    skip.emplace_back(std::string("solver.placement=") + placement);
    const std::string run = root / (placement + std::to_string(ranks));
    run_ranks(ranks, [&](ProcessGroup& group) {
      Session session(stateful_config(skip), dataset, group);
      session.initialize();
      for (int i = 0; i < 4; ++i) ASSERT_TRUE(session.step());
      EXPECT_EQ(session.bad_records(), 5) << "those of the first 128 rows";
      EXPECT_EQ(session.first_bad_record(), alone.first_bad_record());
      CheckpointStore store(run, 1);
      session.save(store);
      while (session.step()) {
      }
      EXPECT_EQ(session.bad_records(), 10);
    });
    // On another number of ranks the count goes on.
    const Checkpoint checkpoint(*CheckpointStore(run, 1).latest());
    for (const int64_t others : {1, 2}) {
      run_ranks(others, [&](ProcessGroup& group) {
        Session session(stateful_config(skip), dataset, group);
        session.initialize();
        session.load(checkpoint);
        EXPECT_EQ(session.bad_records(), 5);
        expect_near(train_on(session, &group), expected.weights, 1e-4);
        EXPECT_EQ(session.bad_records(), 10);
        EXPECT_NE(session.first_bad_record(), "");
      });
    }
  }
}

TEST(RanksOnThreads, RefuseTooManyBadRecordsOfAll) {
  const TemporaryFolder root;
  data::Dataset dataset = small_dataset(root, 300);
  damage(dataset, {3, 20, 21, 22, 90});
  const auto config = [](const char* most) {
    return stateful_config({"data.on_bad_record=skip", "solver.batchsize=32", most});
  };
  for (const char* placement : {"solver.placement=replicated", "solver.placement=distributed"})
    run_ranks(2, [&](ProcessGroup& group) {
      ModelConfig placed = config("data.max_bad_records=3");
      set_config(placed, placement);
      Session session(placed, dataset, group);
      session.initialize();
      // Each rank has at most three of them.
      const std::string message = message_of<DataError>([&] { session.step(); });
      EXPECT_NE(message.find("4 bad records were left out, the first: "), std::string::npos) << message;
      EXPECT_NE(message.find("expected at most 3 of all ranks, by max_bad_records"), std::string::npos) << message;
      EXPECT_TRUE(session.is_whole());
      EXPECT_EQ(session.steps(), 1);
      EXPECT_EQ(message_of<DataError>([&] { session.step(); }), message) << "without another step";
      EXPECT_EQ(session.steps(), 1);
    });
  run_ranks(2, [&](ProcessGroup& group) {  // one that follows leaves the error to rank 0
    Session session(config("data.max_bad_records=3"), dataset, group, RankCalls::FirstLeads);
    session.initialize();
    if (group.rank() == 0)
      EXPECT_NE(message_of<DataError>([&] { session.step(); }), "");
    else
      EXPECT_EQ(session.follow().command, RankCommand::End);
  });
  // Each evaluation counts its own.
  dataset.test = dataset.train;
  std::mutex mutex;
  std::vector<std::string> warnings;
  const WarningHandler before = set_warning_handler([&](const std::string& text) {
    const std::lock_guard lock(mutex);
    warnings.push_back(text);
  });
  run_ranks(2, [&](ProcessGroup& group) {
    const auto go_on = [](int64_t) { return true; };
    Session session(config("data.max_bad_records=5"), dataset, group);
    session.initialize();
    EXPECT_FALSE(session.evaluate(go_on).empty());
    Session strict(config("data.max_bad_records=4"), dataset, group);
    strict.initialize();
    EXPECT_NE(message_of<DataError>([&] { strict.evaluate(go_on); }).find("5 bad records were left out"),
              std::string::npos);
  });
  set_warning_handler(before);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("evaluate: 5 bad records were left out, the first: "), std::string::npos) << warnings[0];
}

/** Steps with what may come between them, and is told by all ranks alike. */
Values train_with_pauses(Session& session, const std::string& folder, ProcessGroup* group) {
  const auto go_on = [](int64_t) { return true; };
  session.initialize(kFloat64);
  EXPECT_TRUE(session.step());
  EXPECT_TRUE(session.skip());
  EXPECT_TRUE(session.skip());
  EXPECT_TRUE(session.step());
  EXPECT_FALSE(session.evaluate(go_on).empty());
  EXPECT_TRUE(session.step());
  CheckpointStore store(folder, 1);
  session.save(store);
  EXPECT_TRUE(session.step());
  EXPECT_TRUE(session.step());
  session.load(Checkpoint(*store.latest()));
  EXPECT_EQ(session.steps(), 3);
  while (session.step()) session.freeze(std::vector<std::string>{"e1"});
  EXPECT_FALSE(session.step());
  return weights_of(session, group);
}

TEST(RanksOnThreads, KeysAheadAreThoseOfTheNextStep) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const std::string hashed = "layers.e2.sparse_embedding_hparam.table_type=hashed";
  for (const std::string& more : {std::string("solver.max_iter=0"), std::string("solver.max_iter=6"), hashed}) {
    SCOPED_TRACE(more);
    const ModelConfig config = stateful_config({"solver.placement=distributed", "solver.batchsize=32", more});
    Session alone(config, dataset);
    const Values expected = train_with_pauses(alone, root / ("alone-" + more), nullptr);
    for (const int64_t ranks : {2, 3})
      run_ranks(ranks, [&](ProcessGroup& group) {
        Session session(config, dataset, group);
        const std::string folder = root / (std::to_string(ranks) + more);
        expect_near(train_with_pauses(session, folder, &group), expected, 1e-8);
        EXPECT_EQ(session.steps(), alone.steps());
      });
  }
}

TEST(RanksOnThreads, AnErrorInTheBatchAheadIsThatOfItsStep) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 300);
  damage(dataset, {50, 60});  // in the parts of both ranks of the fourth batch
  const ModelConfig config = stateful_config({"solver.placement=distributed", "solver.batchsize=16"});
  run_ranks(2, [&](ProcessGroup& group) {
    Session session(config, dataset, group);
    session.initialize();
    const std::string message = message_of<DataError>([&] {
      while (session.step()) {
      }
    });
    EXPECT_EQ(session.steps(), 3);
    EXPECT_NE(message.find(group.rank() == 0 ? "record 50: " : "record 60: "), std::string::npos) << message;
  });
}

TEST(RanksOnThreads, BeginWithTheWeightsOfAnotherRun) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 300);
  const std::vector<std::string> grows = {"layers.e2.sparse_embedding_hparam.table_type=hashed",
                                          "data.validation=none"};
  const ModelConfig config = stateful_config(grows);
  const auto ignore = [](const Progress&) {};
  const auto go_on = [] { return true; };
  Trainer(config, dataset, root / "first", Resume::Never).run(ignore);
  std::vector<Values> expected;
  const auto train_from = [&](Trainer& trainer) {
    LoadedModel from = load_model(root / "first");
    trainer.warm_start(from);
    std::vector<Values> weights = {weights_of(trainer.session())};
    trainer.run(ignore);
    weights.push_back(weights_of(trainer.session()));
    return weights;
  };
  {
    Trainer alone(config, dataset, root / "alone", Resume::Never);
    expected = train_from(alone);
  }
  run_ranks(3, [&](ProcessGroup& group) {
    if (group.rank() > 0) return follow_trainer(config, dataset, group);
    Trainer trainer(config, dataset, root / "ranks", Resume::Never, NewData::Refuse, go_on, &group);
    const std::vector<Values> found = train_from(trainer);
    EXPECT_EQ(found[0], expected[0]);
    expect_near(found[1], expected[1], 1e-3);
  });
  // With a part of each table: the checkpoint of the end has all of them.
  std::vector<std::string> distributed = grows;
  distributed.emplace_back("solver.placement=distributed");
  const ModelConfig config_of_parts = stateful_config(distributed);
  run_ranks(2, [&](ProcessGroup& group) {
    if (group.rank() > 0) return follow_trainer(config_of_parts, dataset, group);
    Trainer trainer(config_of_parts, dataset, root / "parts", Resume::Never, NewData::Refuse, go_on, &group);
    LoadedModel from = load_model(root / "first");
    trainer.warm_start(from);
    trainer.run(ignore);
  });
  Session last(config, dataset);
  last.initialize();
  last.load(Checkpoint(list_checkpoints(root / "parts/checkpoints").back()));
  expect_near(weights_of(last), expected[1], 1e-3);
  // What does not fit is the error of rank 0.
  run_ranks(2, [&](ProcessGroup& group) {
    const ModelConfig other = small_preset_config("fm");
    if (group.rank() > 0) return follow_trainer(other, dataset, group);
    Trainer trainer(other, dataset, root / "other", Resume::Never, NewData::Refuse, go_on, &group);
    LoadedModel from = load_model(root / "first");
    EXPECT_NE(message_of<ConfigError>([&] { trainer.warm_start(from); }), "");
  });
}

TEST(RanksOnThreads, SumsHaveSumsAsGradients) {
  run_ranks(3, [](ProcessGroup& group) {
    const auto rank = static_cast<double>(group.rank());
    Tensor x = full({2}, rank + 1, kFloat64);
    x.requires_grad_(true);
    const Tensor y = recorded_sum_over_ranks(group, x);
    EXPECT_EQ(values_of(y.detach()), (Values{6, 6}));
    y.backward(full({2}, std::pow(10.0, rank), kFloat64));
    EXPECT_EQ(values_of(x.grad()), (Values{111, 111}));
  });
}

}  // namespace
}  // namespace tercel::recsys
