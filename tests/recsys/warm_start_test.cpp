#include "tercel/recsys/warm_start.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "tercel/data/convert.h"
#include "tercel/data/vocabulary.h"
#include "tercel/recsys/session.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using tercel::test::values_of;
using test::CleanProcess;
using test::ignore;
using test::TemporaryFolder;

/** Rows whose category of `c` is `prefix` and a number from `first` on, and of `d` one of three. */
data::Dataset convert(const TemporaryFolder& root, const std::string& name, int first, int count,
                      const std::vector<std::string>& hash_buckets = {},
                      const std::vector<std::string>& shared_keys = {}) {
  std::string text = "y,x,c,d\n";
  for (int i = 0; i < 60 * count; ++i)
    text += std::to_string(i * i % 3 % 2) + "," + std::to_string(i % 5) + ",c" + std::to_string(first + i % count) +
            ",d" + std::to_string(i % 3) + "\n";
  data::CsvOptions options;
  options.label = "y";
  options.dense = {"x"};
  options.categorical = {"c", "d"};
  options.hash_buckets = hash_buckets;
  options.shared_keys = shared_keys;
  return data::convert_csv({root.put(name + ".csv", text)}, root / name, options, /*replace=*/false,
                           [](const data::ConvertProgress&) {})
      .dataset;
}

ModelConfig config_of(const std::vector<std::string>& assignments = {}) {
  return test::preset_config("wdl", [&] {
    std::vector<std::string> all = {"solver.batchsize=30", "data.validation=none"};
    all.insert(all.end(), assignments.begin(), assignments.end());
    return all;
  }());
}

LoadedModel trained(const TemporaryFolder& root, const data::Dataset& dataset, const std::string& name) {
  Trainer(config_of(), dataset, root / name, Resume::Never).run(ignore);
  return load_model(root / name);
}

/** The vector of a category, by the name of the slot and the category. */
std::map<std::string, std::vector<double>> vectors(Model& model, const data::Dataset& dataset) {
  std::map<std::string, std::vector<double>> found;
  const data::Vocabulary vocabulary = data::load_vocabulary(dataset.path_of(*dataset.conversion->vocabulary));
  const Tensor weight = model.embeddings().tables()[1]->weight().detach();
  for (int64_t f = 0; f < vocabulary.num_fields(); ++f) {
    int64_t key = dataset.schema.slots[static_cast<size_t>(f)].first_key;
    found[vocabulary.name(f)] = values_of(weight.select(0, key));
    for (const std::string_view category : vocabulary.categories(f))
      found[std::string(category)] = values_of(weight.select(0, ++key));
  }
  return found;
}

TEST(WarmStart, TakesTheVectorsOfCategoriesThatBothHave) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset first = convert(root, "first", 0, 20), second = convert(root, "second", 12, 25);
  LoadedModel from = trained(root, first, "run");
  Session session(config_of(), second);
  session.initialize();
  const auto before = vectors(session.model(), second);
  const WarmStart start = warm_start(session.model(), second, from);
  EXPECT_TRUE(start.left.empty());
  EXPECT_EQ(start.new_rows, 2 * 18) << "c19 (only in test rows of the first) to c36, in both tables";
  EXPECT_EQ(start.rows, 2 * (1 + 7 + 1 + 3));
  EXPECT_EQ(start.parameters, 6) << "weights and biases of three layers";
  const auto now = vectors(session.model(), second), old = vectors(from.model, first);
  for (const auto& [category, vector] : now)
    EXPECT_EQ(vector, old.contains(category) ? old.at(category) : before.at(category)) << category;
  EXPECT_EQ(values_of(session.model().parameters().weights()), values_of(from.model.parameters().weights()));
  // It trains on from there.
  session.step();
  EXPECT_TRUE(std::isfinite(session.loss()));
}

TEST(WarmStart, TellsWhatDoesNotFit) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset dataset = convert(root, "data", 0, 20);
  LoadedModel from = trained(root, dataset, "run");
  Session wider(config_of({"layers.embedding.sparse_embedding_hparam.embedding_vec_size=8"}), dataset);
  wider.initialize();
  const WarmStart start = warm_start(wider.model(), dataset, from);
  ASSERT_EQ(start.left.size(), 2u);
  EXPECT_NE(start.left[0].find(": has sizes [17, 256], not [33, 256]"), std::string::npos) << start.left[0];
  EXPECT_EQ(start.left[1], "table embedding: has vectors of 8 numbers, not 16");
  EXPECT_EQ(start.rows, 2 + 18 + 3) << "of the other table; c9 and c19 are only in test rows";

  Session other(parse_config(R"json({"layers": [
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "x"}, "sparse": [{"top": "keys"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "mine",
     "sparse_embedding_hparam": {"embedding_vec_size": 1}},
    {"type": "Reshape", "bottom": "mine", "top": "flat"},
    {"type": "Concat", "bottom": ["flat", "x"], "top": "all"},
    {"type": "InnerProduct", "bottom": "all", "top": "logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}], "solver": {"batchsize": 30}})json",
                             "other"),
                dataset);
  other.initialize();
  TERCEL_EXPECT_THROW(warm_start(other.model(), dataset, from), ConfigError, "no weight of this model fits: ");
}

TEST(WarmStart, HashedKeysBelongTogetherWhereBucketsAreAlike) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset first = convert(root, "first", 0, 20, {"c=40"}),
                      second = convert(root, "second", 12, 25, {"c=40"}),
                      other = convert(root, "other", 12, 25, {"c=50"});
  LoadedModel from = trained(root, first, "run");
  Session session(config_of(), second);
  session.initialize();
  EXPECT_EQ(warm_start(session.model(), second, from).new_rows, 0);
  EXPECT_EQ(values_of(session.model().embeddings().tables()[0]->weight()),
            values_of(from.model.embeddings().tables()[0]->weight()));
  Session changed(config_of(), other);
  changed.initialize();
  EXPECT_EQ(warm_start(changed.model(), other, from).new_rows, 2 * 50) << "other buckets mean other categories";
}

TEST(WarmStart, SlotsThatShareTheirKeysCountOnce) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset first = convert(root, "first", 0, 20, {}, {"c+d"}),
                      second = convert(root, "second", 12, 25, {}, {"c+d"}), apart = convert(root, "apart", 12, 25);
  LoadedModel from = trained(root, first, "run");
  Session session(config_of(), second);
  session.initialize();
  const WarmStart result = warm_start(session.model(), second, from);
  // Of each of the two tables: c12 to c18 and three d, as c19 occurs in test rows only, and the rest.
  EXPECT_EQ(result.rows, 2 * (1 + 7 + 3));
  EXPECT_EQ(result.new_rows, 2 * 18);
  LoadedModel of_apart = trained(root, apart, "apart-run");
  Session joined(config_of(), first);
  joined.initialize();
  EXPECT_EQ(warm_start(joined.model(), first, of_apart).rows, 2 * (1 + 7 + 3)) << "each key in the slot that has it";
  Session other(config_of(), apart);
  other.initialize();
  EXPECT_EQ(warm_start(other.model(), apart, from).rows, 2 * (1 + 7 + 1 + 3)) << "both slots find theirs";

  const data::Dataset hashed = convert(root, "hashed", 0, 20, {"40"}, {"c+d"}),
                      alone = convert(root, "alone", 0, 20, {"40"});
  LoadedModel of_hashes = trained(root, hashed, "hashes");
  Session changed(config_of(), alone);
  changed.initialize();
  EXPECT_EQ(warm_start(changed.model(), alone, of_hashes).new_rows, 2 * 40) << "d has other hashes than in c+d";
}

TEST(WarmStart, KeysWithoutVocabulariesAreThemselves) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset dataset = test::small_dataset(root, 400);
  ModelConfig config = config_of();
  Trainer(config, dataset, root / "run", Resume::Never).run(ignore);
  LoadedModel from = load_model(root / "run");
  config.solver.seed = 7;
  Session session(config, dataset);
  session.initialize();
  EXPECT_EQ(warm_start(session.model(), dataset, from).new_rows, 0);
  for (size_t t = 0; t < 2; ++t)
    EXPECT_EQ(values_of(session.model().embeddings().tables()[t]->weight()),
              values_of(from.model.embeddings().tables()[t]->weight()));
}

/** Expects a table that grows to have the keys and vectors of another, and the default vector for others. */
void expect_same_rows(EmbeddingTable& table, EmbeddingTable& from) {
  const Tensor keys = from.keys();
  ASSERT_EQ(table.keys().numel(), keys.numel());
  const Tensor rows = table.find_rows(keys, NewKeys::Refuse), old_rows = from.find_rows(keys, NewKeys::Refuse);
  for (int64_t i = 0; i < keys.numel(); ++i) {
    ASSERT_GT(rows.data<int64_t>()[i], 0);
    EXPECT_EQ(values_of(table.weight().detach().select(0, rows.data<int64_t>()[i])),
              values_of(from.weight().detach().select(0, old_rows.data<int64_t>()[i])));
  }
  for (const double value : values_of(table.weight().detach().select(0, 0))) EXPECT_EQ(value, 0);
}

TEST(WarmStart, TablesThatGrowTakeTheKeysThatOccurred) {
  const TemporaryFolder root;
  const CleanProcess clean;
  const data::Dataset dataset = convert(root, "data", 0, 20);
  const std::string table = "layers.embedding.sparse_embedding_hparam.";
  ModelConfig config = config_of({table + "table_type=hashed", table + "admission=100"});
  Trainer(config, dataset, root / "run", Resume::Never).run(ignore);
  LoadedModel from = load_model(root / "run");
  EmbeddingTable& old = *from.model.embeddings().tables()[1];
  EXPECT_EQ(old.keys().numel(), 3) << "the values of d are frequent enough";
  config.solver.seed = 7;
  Session session(config, dataset);
  session.initialize();
  const WarmStart start = warm_start(session.model(), dataset, from);
  EXPECT_EQ(start.rows, 2 + 18 + 3 + 3) << "of the static and of the hashed table";
  expect_same_rows(*session.model().embeddings().tables()[1], old);
}

TEST(WarmStart, TablesThatGrowTakeAllKeysWhereNoneAreKnown) {
  const TemporaryFolder root;
  const CleanProcess clean;
  data::Dataset dataset = test::small_dataset(root, 400);
  for (data::Slot& slot : dataset.schema.slots) slot.size = slot.first_key = 0;
  ModelConfig config = config_of();
  Trainer(config, dataset, root / "run", Resume::Never).run(ignore);
  LoadedModel from = load_model(root / "run");
  config.solver.seed = 7;
  Session session(config, dataset);
  session.initialize();
  const WarmStart start = warm_start(session.model(), dataset, from);
  EXPECT_TRUE(start.left.empty());
  EXPECT_GT(start.rows, 20);
  for (size_t t = 0; t < 2; ++t)
    expect_same_rows(*session.model().embeddings().tables()[t], *from.model.embeddings().tables()[t]);
}

}  // namespace
}  // namespace tercel::recsys
