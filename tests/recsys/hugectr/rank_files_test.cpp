// HugeCTR's files, written and read by several ranks, which are threads here.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tercel/ops/factories/factories.h"
#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/recsys/embedding/static_table.h"
#include "tercel/recsys/embedding/table_rows.h"
#include "tercel/recsys/hugectr/collection_files.h"
#include "tercel/recsys/hugectr/model_files.h"
#include "tercel/recsys/hugectr/session_states.h"
#include "tercel/recsys/ranks.h"
#include "tercel/recsys/session.h"
#include "tercel/util/file.h"
#include "tests/distributed/thread_ranks.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys::hugectr {
namespace {

using distributed::ProcessGroup;
using distributed::test::run_ranks;
using tercel::test::message_of;
using tercel::test::TemporaryFolder;
using tercel::test::values_of;

using Files = std::map<std::string, std::string>;

/** The bytes of all files of a folder. */
Files files_of(const std::string& folder) {
  Files found;
  for (const std::string& name : list_dir(folder)) {
    const std::string path = join_path(folder, name);
    if (!is_directory(path)) {
      found[name] = read_file(path, 1 << 24);
      continue;
    }
    for (const auto& [inner, bytes] : files_of(path)) found[join_path(name, inner)] = bytes;
  }
  return found;
}

void load(const SnapshotName& name, Session& session) {
  const ModelStates states = states_of(session);
  read_dense(name.dense(), session.model());
  read_dense_states(name.dense_states(), session.model(), states.dense,
                    optim::Optimizer::state_names(session.config().optimizer.type));
  const auto& tables = session.model().embeddings().tables();
  for (size_t t = 0; t < tables.size(); ++t) {
    read_table(name.table(t), *tables[t], session.group());
    read_table_states(name.table_states(t), *tables[t], states.tables[t], order_of_keys(*tables[t], session.group()),
                      session.group());
  }
}

void save(const SnapshotName& name, Session& session) {
  write_snapshot(name, session.model(), states_of(session), session.group());
}

TEST(HugeCtrFilesOnThreads, AnyNumberOfRanksWritesTheSameFiles) {
  const std::string hashed = "layers.e2.sparse_embedding_hparam.table_type=hashed";
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"solver.placement=distributed"},
        {"solver.placement=localized"},
        {"solver.placement=distributed", hashed},
        {"solver.placement=replicated", hashed,
         R"(solver.table_placements=[{"table": "e1", "placement": "distributed", "ranks": [1]}])"}}) {
    SCOPED_TRACE(options.back());
    const TemporaryFolder root;
    const data::Dataset dataset = test::small_dataset(root, 300);
    const ModelConfig config = test::stateful_config(options);
    create_dirs(root / "one");
    {
      Session alone(config, dataset);
      alone.initialize();
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(alone.step());
      save({root / "one/m", 3}, alone);
    }
    const Files expected = files_of(root / "one");
    ASSERT_EQ(expected.size(), 3u + 4 + 3);
    for (const int64_t ranks : {2, 3}) {
      const std::string folder = root / std::to_string(ranks);
      create_dirs(folder);
      run_ranks(ranks, [&](ProcessGroup& group) {
        Session session(config, dataset, group);
        session.initialize();
        load({root / "one/m", 3}, session);
        save({join_path(folder, "m"), 3}, session);
        for (const auto& table : session.model().embeddings().tables()) {
          if (table->shard().is_whole() || !table->grows()) continue;
          const Tensor keys = table->keys();
          for (int64_t i = 0; i < keys.numel(); ++i) EXPECT_TRUE(table->shard().is_own(keys.data<int64_t>()[i]));
        }
      });
      EXPECT_EQ(files_of(folder), expected) << ranks;
    }
  }
}

void make(EmbeddingTable& table, const TablePlacement& placement, ProcessGroup& group) {
  table.place(placement, group.rank());
  ASSERT_TRUE(table.allocate(1, {}, {}, [] { return true; }));
}

TEST(HugeCtrFilesOnThreads, CollectionsOfSeveralRanks) {
  const TemporaryFolder root;
  const nn::Init init = nn::Init::uniform(0.5);
  StaticTable a("a", 0, 7, 2, init);
  HashedTable b("b", 3, init);
  for (EmbeddingTable* table : {static_cast<EmbeddingTable*>(&a), static_cast<EmbeddingTable*>(&b)})
    ASSERT_TRUE(table->allocate(1, {}, {}, [] { return true; }));
  Tensor keys = empty({4}, kInt64), vectors = empty({4, 3}, kFloat32);
  for (int64_t i = 0; i < 4; ++i) keys.data<int64_t>()[i] = (7 * i + 3) % 10;
  for (int64_t i = 0; i < 12; ++i) vectors.data<float>()[i] = static_cast<float>(i);
  set_vectors(b, keys, vectors);
  for (const bool wide : {true, false}) {
    const std::string folder = root / (wide ? "wide" : "narrow");
    write_collection(folder, std::vector<CollectionTable>{{&a, 0}, {&b, 1}}, wide);
    run_ranks(3, [&](ProcessGroup& group) {
      StaticTable x("a", 0, 7, 2, nn::Init::constant(0));
      HashedTable y("b", 3, init);
      make(x, {Placement::Distributed, {2, 1}}, group);
      make(y, {Placement::Distributed, {0, 1, 2}}, group);
      const std::vector<CollectionTable> tables{{&x, 0}, {&y, 1}};
      EXPECT_EQ(read_collection(folder, tables, &group)[0].count, 7);
      EXPECT_EQ(x.rows(), group.rank() == 0 ? 0 : group.rank() == 2 ? 4 : 3);
      write_collection(folder + "-3", tables, wide, &group);
    });
    EXPECT_EQ(files_of(folder + "-3"), files_of(folder));
  }
}

TEST(HugeCtrFilesOnThreads, FailuresAreThoseOfAllAndLeaveNothing) {
  const TemporaryFolder root;
  root.put("in/m0_sparse_3.model", "a file, where a folder should be");
  root.put("damaged/key", std::string(24, '\0'));
  root.put("damaged/emb_vector", std::string(24, '\0'));
  root.put("short/key", std::string(16, '\0'));
  root.put("short/emb_vector", std::string(24, '\0'));
  const std::string before = root.get("in/m0_sparse_3.model");
  run_ranks(2, [&](ProcessGroup& group) {
    HashedTable table("t", 2, nn::Init::uniform(0.5));
    make(table, {Placement::Distributed, {0, 1}}, group);
    const std::string text = message_of<IoError>([&] { write_table(root / "in/m0_sparse_3.model", table, &group); });
    EXPECT_EQ(text.starts_with("rank 0 of 2: "), group.rank() == 1) << text;
    // Key 0, which rank 0 has, is there three times.
    if (group.rank() == 0)
      EXPECT_NE(message_of<DataError>([&] { read_table(root / "damaged", table, &group); }).find("occurs twice"),
                std::string::npos);
    else
      EXPECT_NE(message_of<IoError>([&] { read_table(root / "damaged", table, &group); }).find("rank 0 of 2: "),
                std::string::npos);
    EXPECT_EQ(table.keys().numel(), 0);
    TERCEL_EXPECT_THROW(read_table(root / "short", table, &group), DataError, "emb_vector: expected 16 bytes");
  });
  EXPECT_EQ(list_dir(root / "in"), std::vector<std::string>{"m0_sparse_3.model"});
  EXPECT_EQ(root.get("in/m0_sparse_3.model"), before);
}

}  // namespace
}  // namespace tercel::recsys::hugectr
