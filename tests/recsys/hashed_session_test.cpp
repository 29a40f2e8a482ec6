// Training, resuming and prediction with tables that grow.
#include <gtest/gtest.h>

#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/recsys/prediction.h"
#include "tercel/recsys/session.h"
#include "tests/recsys/session_state.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

using test::batches_of;
using test::saved_state;
using test::small_dataset;
using test::stateful_config;
using test::TemporaryFolder;

ModelConfig hashed_config(const std::vector<std::string>& options) {
  std::vector<std::string> assignments = {"solver.batchsize=8",  // at most 24 keys
                                          "layers.e2.sparse_embedding_hparam.table_type=hashed"};
  for (const std::string& option : options) assignments.push_back("layers.e2.sparse_embedding_hparam." + option);
  return stateful_config(assignments);
}

const HashedTable& table_of(Session& session) {
  return dynamic_cast<const HashedTable&>(*session.model().embeddings().tables()[1]);
}

TEST(HashedSession, LoadContinuesWithTheSameBits) {
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{},
        {"admission=2", "max_vocabulary_size_global=30", "eviction=frequency"},
        {"max_vocabulary_size_global=30", "eviction=age", "default_value=0.01"}}) {
    const TemporaryFolder root;
    const data::Dataset dataset = small_dataset(root, 400);
    const ModelConfig config = hashed_config(options);
    const auto run = [](Session& session, int64_t to) {
      while (session.steps() < to) ASSERT_TRUE(session.step());
    };
    Session whole(config, dataset), first(config, dataset), second(config, dataset), fresh(config, dataset);
    for (Session* session : {&whole, &first, &second, &fresh}) session->initialize();
    run(whole, 30);
    run(first, 10);
    CheckpointStore store(root / "parts", 1);
    first.save(store);
    run(second, 20);  // has more rows by then, and forgets them
    for (Session* session : {&second, &fresh}) {
      session->load(Checkpoint(*store.latest()));
      run(*session, 30);
    }
    const HashedTableStatistics found = table_of(second).statistics(), expected = table_of(whole).statistics();
    EXPECT_GT(found.keys, 10);
    EXPECT_EQ(found.keys, expected.keys);
    EXPECT_EQ(found.evicted, expected.evicted);
    EXPECT_EQ(found.evicted > 0, !options.empty());
    const auto state = saved_state(whole, root / "whole");
    EXPECT_EQ(saved_state(second, root / "second"), state);
    EXPECT_EQ(saved_state(fresh, root / "fresh"), state);
  }
}

TEST(HashedSession, PredictionReadsTheRowsOfACheckpoint) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const ModelConfig config = hashed_config({"admission=3"});
  Session session(config, dataset);
  session.initialize();
  while (session.step()) {
  }
  CheckpointStore store(root / "c", 1);
  session.save(store);
  LoadedModel loaded = load_model(*store.latest());
  for (const data::Batch& batch : batches_of(dataset, config))
    EXPECT_EQ(tercel::test::bytes_of(predict(loaded.model, batch)),
              tercel::test::bytes_of(predict(session.model(), batch)));
  TERCEL_EXPECT_THROW(loaded.model.forward(batches_of(dataset, config)[0], /*training=*/true, 1), RuntimeError,
                      "it has the rows of a file, for prediction; it cannot be trained");
}

TEST(HashedSession, ACheckpointOfAnotherKindOfTableIsRefused) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  Session plain(stateful_config(), dataset);
  plain.initialize();
  CheckpointStore store(root / "c", 1);
  plain.save(store);
  Session session(hashed_config({}), dataset);
  session.initialize();
  TERCEL_EXPECT_THROW(session.load(Checkpoint(*store.latest())), ConfigError,
                      "a checkpoint of another model: layers.e2.sparse_embedding_hparam.table");
}

}  // namespace
}  // namespace tercel::recsys
