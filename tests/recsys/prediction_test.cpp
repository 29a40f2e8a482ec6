#include "tercel/recsys/prediction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tercel/data/batch_reader.h"
#include "tercel/data/convert.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/trainer.h"
#include "tercel/util/error.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using tercel::test::values_of;
using test::preset_config;
using test::small_dataset;
using test::TemporaryFolder;

void ignore(const Progress&) {}

/** Text with a header "click,x,y,c,d"; categories start with that letter. */
std::string table(int64_t rows, const char* letter, bool label = true) {
  std::string text = label ? "click,x,y,c,d\n" : "x,y,c,d\n";
  for (int64_t r = 0; r < rows; ++r) {
    if (label) text += r % 3 == 0 ? "1," : "0,";
    text += (r % 7 == 0 ? "" : std::to_string(r % 11)) + "," + std::to_string(r % 5) + ",";
    text += letter + std::to_string(r * r % 13) + "," + (r % 9 == 0 ? "" : letter + std::to_string(r % 4)) + "\n";
  }
  return text;
}

data::Dataset convert(const TemporaryFolder& root, const std::string& text, const std::string& name) {
  data::CsvOptions options;
  options.label = "click";
  options.dense = {"x", "y"};
  options.categorical = {"c", "d"};
  options.min_count = {"2"};
  options.test_every = 0;
  return data::convert_csv({root.put(name + ".csv", text)}, root / name, options, /*replace=*/false,
                           [](const data::ConvertProgress&) {})
      .dataset;
}

void train(const ModelConfig& config, const data::Dataset& dataset, const std::string& folder) {
  Trainer(config, dataset, folder, Resume::Never).run(ignore);
}

/** Collects predictions. */
class Collected {
 public:
  void operator()(const Predictions& found) {
    ++calls;
    for (const float p : found.probabilities) values.push_back(p);
    integers.insert(integers.end(), found.ids.integers.begin(), found.ids.integers.end());
    floats.insert(floats.end(), found.ids.floats.begin(), found.ids.floats.end());
    texts.insert(texts.end(), found.ids.texts.begin(), found.ids.texts.end());
  }
  std::vector<float> values;
  std::vector<int64_t> integers;
  std::vector<float> floats;
  std::vector<std::string> texts;
  int64_t calls = 0;
};

std::vector<float> predict_rows(LoadedModel& model, const data::Dataset& dataset,
                                data::PartName part = data::PartName::Train) {
  Collected out;
  const int64_t rows = predict(model, dataset, part, out);
  EXPECT_EQ(rows, static_cast<int64_t>(out.values.size()));
  return out.values;
}
std::vector<float> predict_file(LoadedModel& model, const std::string& path) {
  Collected out;
  const int64_t rows = predict_text(model, {{path, ""}}, out);
  EXPECT_EQ(rows, static_cast<int64_t>(out.values.size()));
  return out.values;
}

TEST(Prediction, TextGivesWhatItsDatasetGives) {
  const TemporaryFolder root;
  const data::Dataset dataset = convert(root, table(300, "k"), "data");
  // 64 rows at once: 300 are four batches and a short one.
  train(preset_config("dlrm", {"solver.batchsize_eval=64"}), dataset, root / "run");
  std::filesystem::remove_all(root / "data");  // the run has everything that text needs
  LoadedModel model = load_model(root / "run");
  const std::vector<float> from_text = predict_file(model, root / "data.csv");
  ASSERT_EQ(from_text.size(), 300u);

  const data::Dataset again = convert(root, table(300, "k"), "data");
  EXPECT_EQ(predict_rows(model, again), from_text);
  EXPECT_EQ(predict_file(model, root.put("bare.csv", table(300, "k", /*label=*/false))), from_text)
      << "the label's column may be missing";

  // Against the model itself, row by row.
  data::ReaderOptions options;
  options.batch_size = 1000;
  options.inputs = model.model.sparse_inputs();
  data::BatchReader reader(again, data::PartName::Train, options);
  data::Batch batch;
  ASSERT_TRUE(reader.next(batch));
  const std::vector<double> logits = values_of(model.model.forward(batch).logits[0]);
  for (size_t i = 0; i < 300; ++i) ASSERT_NEAR(from_text[i], 1 / (1 + std::exp(-logits[i])), 1e-5) << i;
}

TEST(Prediction, RowsAsArraysByName) {
  const TemporaryFolder root;
  const data::Dataset dataset = convert(root, table(300, "k"), "data");
  train(preset_config("dlrm"), dataset, root / "run");
  LoadedModel model = load_model(root / "run");
  const std::vector<float> expected = predict_rows(model, dataset);
  data::ReaderOptions options;
  options.batch_size = 300;
  options.inputs = model.model.sparse_inputs();
  data::BatchReader reader(dataset, data::PartName::Train, options);
  data::Batch batch;
  ASSERT_TRUE(reader.next(batch));
  const Tensor keys = batch.sparse[0].keys.view({300, 2});
  const std::string input = model.model.sparse_inputs()[0].name;
  const Tensor whole = predict(model.model, {{"dense", batch.dense}, {input, keys}});
  ASSERT_EQ(whole.sizes(), IntSpan({300}));
  for (size_t i = 0; i < 300; ++i) ASSERT_NEAR(values_of(whole)[i], expected[i], 1e-6);
  const Tensor by_slot =
      predict(model.model, {{"d", keys.select(1, 1)}, {"c", keys.narrow(1, 0, 1)}, {"dense", batch.dense}});
  EXPECT_EQ(values_of(by_slot), values_of(whole));
  const Tensor one = predict(model.model, {{"dense", batch.dense.narrow(0, 7, 1)}, {input, keys.narrow(0, 7, 1)}});
  EXPECT_NEAR(values_of(one)[0], expected[7], 1e-6);
  EXPECT_EQ(predict(model.model, {{"dense", batch.dense.narrow(0, 7, 0)}, {input, keys.narrow(0, 7, 0)}}).numel(), 0);
  TERCEL_EXPECT_THROW(predict(model.model, {{"dense", batch.dense}, {"c", keys.select(1, 0)}}), ValueError,
                      "input 'd' is missing");
  TERCEL_EXPECT_THROW(predict(model.model, {{"dense", batch.dense}, {"dd", keys.select(1, 0)}}), ValueError,
                      "unknown input 'dd'; did you mean 'd'?");
}

TEST(Prediction, UnknownCategoriesAreTheRareOne) {
  const TemporaryFolder root;
  const data::Dataset dataset = convert(root, table(300, "k"), "data");
  train(preset_config("wdl"), dataset, root / "run");
  LoadedModel model = load_model(root / "run");
  const std::string header = "x,y,c,d\n";
  EXPECT_EQ(predict_file(model, root.put("a.csv", header + "1,2,never,seen\n")),
            predict_file(model, root.put("b.csv", header + "1,2,,\n")));
  EXPECT_EQ(predict_file(model, root.put("none.csv", header)), std::vector<float>());
}

TEST(Prediction, SeveralInputsTakeTheirSlots) {
  const TemporaryFolder root;
  const data::Dataset dataset = convert(root, table(300, "k"), "data");
  const ModelConfig config = parse_config(R"json({
    "solver": {"batchsize": 32, "batchsize_eval": 64},
    "layers": [
      {"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"},
       "sparse": [{"top": "a", "slot_num": 1}, {"top": "b", "slot_num": 1}]},
      {"type": "SparseEmbedding", "bottom": "a", "top": "ea"}, {"type": "SparseEmbedding", "bottom": "b", "top": "eb"},
      {"type": "Concat", "bottom": ["ea", "eb"], "top": "e"}, {"type": "Reshape", "bottom": "e", "top": "flat"},
      {"type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
      {"type": "InnerProduct", "bottom": "all", "top": "logit", "fc_param": {"num_output": 1}},
      {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}]})json",
                                          "two");
  train(config, dataset, root / "run");
  LoadedModel model = load_model(root / "run");
  EXPECT_EQ(predict_file(model, root / "data.csv"), predict_rows(model, dataset));
}

TEST(Prediction, TextThatDoesNotFitIsNamedByLine) {
  const TemporaryFolder root;
  const data::Dataset dataset = convert(root, table(300, "k"), "data");
  train(preset_config("wdl"), dataset, root / "run");
  LoadedModel model = load_model(root / "run");
  TERCEL_EXPECT_THROW(predict_file(model, root.put("a.csv", "x,y,c,d\n1,2,k1,k1\n1,2,k1\n")), DataError, "line 3");
  TERCEL_EXPECT_THROW(predict_file(model, root.put("b.csv", "x,y,c,d\n1,two,k1,k1\n")), DataError, "line 2");
  TERCEL_EXPECT_THROW(predict_file(model, root / "nowhere.csv"), IoError, "nowhere.csv");
}

TEST(Prediction, AnotherVocabularyIsRefused) {
  const TemporaryFolder root;
  const data::Dataset dataset = convert(root, table(300, "k"), "data");
  const data::Dataset renamed = convert(root, table(300, "q"), "renamed");  // the same numbers of other categories
  const data::Dataset shorter = convert(root, table(12, "k"), "shorter");
  ASSERT_EQ(renamed.schema, dataset.schema);
  train(preset_config("wdl"), dataset, root / "run");
  LoadedModel model = load_model(root / "run");
  EXPECT_NO_THROW(check_dataset_fits(model.data, dataset));
  Collected out;
  TERCEL_EXPECT_THROW(predict(model, renamed, data::PartName::Train, out), DataError,
                      "renamed: made with another vocabulary than the model's: expected checksum");
  TERCEL_EXPECT_THROW(predict(model, shorter, data::PartName::Train, out), DataError,
                      "shorter: made with another vocabulary than the model's: slot 'c'");
  TERCEL_EXPECT_THROW(predict(model, small_dataset(root, 20, 0, "other"), data::PartName::Train, out), DataError,
                      "1 labels, 2 dense values and 2 slots, found 1, 4 and 5");
  EXPECT_EQ(out.calls, 0);
  // Training does not continue on such data either: its keys have another meaning.
  TERCEL_EXPECT_THROW(Trainer(preset_config("wdl"), renamed, root / "run", Resume::Auto), DataError,
                      "another vocabulary");
}

TEST(Prediction, RowsOfADatasetHaveIds) {
  const TemporaryFolder root;
  const data::Dataset dataset = convert(root, table(300, "k"), "data");
  train(preset_config("wdl"), dataset, root / "run");
  LoadedModel model = load_model(root / "run");
  model.config.solver.batchsize_eval = 70;
  const std::vector<float> without = predict_rows(model, dataset);
  data::ReaderOptions reading;
  reading.batch_size = 300;
  reading.inputs = model.model.sparse_inputs();
  data::BatchReader reader(dataset, data::PartName::Train, reading);
  data::Batch batch;
  ASSERT_TRUE(reader.next(batch));
  Collected keys, numbers;
  EXPECT_EQ(predict(model, dataset, data::PartName::Train, keys, "d"), 300);
  EXPECT_EQ(keys.calls, 5);
  EXPECT_EQ(keys.values, without);
  ASSERT_EQ(keys.integers.size(), 300u);
  const Tensor all = batch.sparse[0].keys.view({300, 2});
  for (int64_t r = 0; r < 300; ++r) EXPECT_EQ(keys.integers[static_cast<size_t>(r)], all.data<int64_t>()[2 * r + 1]);
  EXPECT_EQ(predict(model, dataset, data::PartName::Train, numbers, "y"), 300);
  EXPECT_EQ(std::vector<double>(numbers.floats.begin(), numbers.floats.end()), values_of(batch.dense.select(1, 1)));
  TERCEL_EXPECT_THROW(predict(model, dataset, data::PartName::Train, keys, "z"), ConfigError,
                      "unknown slot or column 'z'; known: c, d, x, y");
}

TEST(Prediction, RowsOfTextHaveTheTextsOfAnyColumn) {
  const TemporaryFolder root;
  train(preset_config("wdl"), convert(root, table(300, "k"), "data"), root / "run");
  LoadedModel model = load_model(root / "run");
  model.config.solver.batchsize_eval = 2;
  const auto ids = [&](const std::string& text, const std::string& id) {
    Collected out;
    predict_text(model, {{root.put("new.csv", text), ""}}, out, id);
    EXPECT_EQ(out.values.size(), 3u);
    return out.texts;
  };
  const std::string text = "who,x,y,c,d\n007,1,2,k1,\n\"a,\"\"b\"\"\",1,2,k1,k2\n,3,4,k2,k3\n";
  EXPECT_EQ(ids(text, "who"), (std::vector<std::string>{"007", "a,\"b\"", ""}));
  EXPECT_EQ(ids(text, "d"), (std::vector<std::string>{"", "k2", "k3"})) << "a column that is read anyway";
  EXPECT_EQ(ids(text, ""), (std::vector<std::string>{})) << "none were asked for";
  TERCEL_EXPECT_THROW(ids(text, "whom"), DataError, "line 1: expected a column 'whom', found 5 columns of other names");
}

TEST(Prediction, TextWithoutAHeaderHasIdsByNumber) {
  const TemporaryFolder root;
  std::string rows;
  for (int r = 0; r < 200; ++r)
    rows += std::to_string(r) + "," + std::to_string(r % 2) + ",k" + std::to_string(r % 5) + "\n";
  data::CsvOptions options;
  options.no_header = true;
  options.label = "2";
  options.categorical = {"3"};
  options.min_count = {"1"};
  options.test_every = 0;
  const data::Dataset dataset =
      data::convert_csv({root.put("rows.csv", rows)}, root / "data", options, false, [](const data::ConvertProgress&) {
      }).dataset;
  train(preset_config("wdl", {"solver.batchsize=30"}), dataset, root / "run");
  LoadedModel model = load_model(root / "run");
  const auto ids = [&](const std::string& text, const std::string& id) {
    Collected out;
    predict_text(model, {{root.put("new.csv", text), ""}}, out, id);
    return out.texts;
  };
  EXPECT_EQ(ids("7,1,k1\n8,0,k2\n", "1"), (std::vector<std::string>{"7", "8"}));
  EXPECT_EQ(ids("7,k1\n8,k2\n", "3"), (std::vector<std::string>{"k1", "k2"})) << "without the label's column";
  TERCEL_EXPECT_THROW(ids("7,k1\n", "2"), DataError, "expected column 2, the label's, found text without labels");
  TERCEL_EXPECT_THROW(ids("7,1,k1\n", "4"), DataError, "expected a column 4, found 3 columns");
  TERCEL_EXPECT_THROW(ids("7,1,k1\n", "id"), ConfigError, "expected the number of a column");
}

TEST(Prediction, TextOfFeaturesHasNoIds) {
  const TemporaryFolder root;
  std::string rows;
  for (int r = 0; r < 200; ++r) rows += std::to_string(r % 2) + " " + std::to_string(r % 7 + 1) + ":1\n";
  const data::Dataset dataset =
      data::convert_libsvm({root.put("rows.svm", rows)}, root / "data", {}, false, [](const data::ConvertProgress&) {
      }).dataset;
  train(preset_config("wdl", {"solver.batchsize=30"}), dataset, root / "run");
  LoadedModel model = load_model(root / "run");
  Collected out;
  TERCEL_EXPECT_THROW(predict_text(model, {{root / "rows.svm", ""}}, out, "1"), ConfigError,
                      "an id is a column of a table; libsvm and libffm text has none");
}

TEST(Prediction, DatasetsThatWereNotTextCannotReadText) {
  const TemporaryFolder root;
  train(preset_config("wdl", {"solver.batchsize=30"}), small_dataset(root, 100), root / "run");
  LoadedModel model = load_model(root / "run");
  Collected out;
  TERCEL_EXPECT_THROW(predict_text(model, {{root.put("a.csv", "1,2\n"), ""}}, out), ConfigError,
                      "the model's dataset was not converted from text");
}

TEST(LoadModel, TakesTheBestCheckpointOrTheGivenOne) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  Trainer trainer(preset_config("dlrm", {"solver.eval_interval=1", "solver.keep_checkpoints=9"}), dataset, root / "run",
                  Resume::Never);
  trainer.run(ignore);
  const std::vector<std::string> all = list_checkpoints(root / "run/checkpoints");
  ASSERT_EQ(all.size(), 2u);
  for (const std::string& folder : all) {
    const LoadedModel model = load_model(folder);
    EXPECT_EQ(model.checkpoint, folder);
    EXPECT_EQ(model.step, Checkpoint(folder).info().step);
    EXPECT_EQ(model.last_step, model.step) << "of a given checkpoint";
  }
  const auto auc = [](const std::string& folder) { return Checkpoint(folder).evaluation()->metrics.at(0).value; };
  const bool first = auc(all[0]) >= auc(all[1]);
  EXPECT_EQ(load_model(root / "run").checkpoint, all[first ? 0 : 1]);

  LoadedModel last = load_model(all[first ? 0 : 1]);
  EXPECT_EQ(values_of(last.model.parameters().weights()), values_of(trainer.model().parameters().weights()));
  EXPECT_EQ(values_of(last.model.embeddings().tables()[0]->weight()),
            values_of(trainer.model().embeddings().tables()[0]->weight()));
  const MetricValues metrics =
      evaluate(last.model, dataset, data::PartName::Test, last.config, [](int64_t) { return true; });
  EXPECT_EQ(metrics, trainer.last_metrics());
  int64_t calls = 0;
  EXPECT_TRUE(evaluate(last.model, dataset, data::PartName::Test, last.config, [&](int64_t) {
                return ++calls, false;
              }).empty());
  EXPECT_EQ(calls, 1) << "the observer stops it";
}

TEST(LoadModel, AnyWayToWriteThePath) {
  const TemporaryFolder root;
  train(preset_config("dlrm", {"solver.batchsize=30"}), small_dataset(root, 40), root / "run");
  const std::string checkpoint = list_checkpoints(root / "run/checkpoints").back();
  EXPECT_EQ(load_model(root / "run/").step, 1);
  EXPECT_EQ(load_model(checkpoint + "/").step, 1);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(root / "run/checkpoints");
  EXPECT_NO_THROW({ EXPECT_EQ(load_model(std::filesystem::path(checkpoint).filename()).step, 1); });
  std::filesystem::current_path(checkpoint);
  EXPECT_NO_THROW({ EXPECT_EQ(load_model(".").step, 1); });
  std::filesystem::current_path(root / "run");
  EXPECT_NO_THROW({ EXPECT_EQ(load_model(".").step, 1); });
  std::filesystem::current_path(before);
}

TEST(LoadModel, RefusesWhatIsNoModel) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 40);
  TERCEL_EXPECT_THROW(load_model(root / "nowhere"), DataError, "nowhere: no trained model");
  TERCEL_EXPECT_THROW(load_model(root / "data"), DataError, "data: no trained model");
  { const Trainer started(preset_config("dlrm", {"solver.batchsize=30"}), dataset, root / "run", Resume::Never); }
  TERCEL_EXPECT_THROW(load_model(root / "run"), DataError, "run: no model: the run has no checkpoint yet");
  Trainer(preset_config("dlrm", {"solver.batchsize=30"}), dataset, root / "run", Resume::Auto).run(ignore);
  EXPECT_NO_THROW(load_model(root / "run"));
  const std::string checkpoint = list_checkpoints(root / "run/checkpoints").back();
  std::filesystem::resize_file(checkpoint + "/table-0.safetensors", 100);
  TERCEL_EXPECT_THROW(load_model(root / "run"), DataError, "all checkpoints are damaged: ");
  TERCEL_EXPECT_THROW(load_model(checkpoint), DataError, "table-0.safetensors: expected");
}

TEST(LoadModel, TheModelIsTheCheckpointsOwn) {
  const TemporaryFolder root;
  const data::Dataset dataset = convert(root, table(300, "k"), "data");
  train(preset_config("dlrm", {"solver.batchsize_eval=64"}), dataset, root / "run");
  LoadedModel model = load_model(root / "run");
  const std::vector<float> expected = predict_rows(model, dataset);
  // The run's configuration has another activation of the same shape, which nothing else would detect.
  const ModelConfig other = preset_config(
      "dlrm", {"layers.logit.mlp_param.activations=Non,Non,Non", "layers.bottom.mlp_param.activation=Non"});
  root.put("run/config.json", to_json(other));
  model = load_model(root / "run");
  EXPECT_EQ(model.config.solver.batchsize_eval, 64);
  EXPECT_EQ(predict_rows(model, dataset), expected);
  std::filesystem::remove(root / "run/config.json");
  model = load_model(root / "run");
  EXPECT_EQ(predict_rows(model, dataset), expected);
  // A checkpoint alone is also a model; raw text needs files of the run.
  std::filesystem::rename(list_checkpoints(root / "run/checkpoints").back(), root / "alone");
  model = load_model(root / "alone");
  EXPECT_EQ(predict_rows(model, dataset), expected);
  TERCEL_EXPECT_THROW(predict_file(model, root / "data.csv"), DataError, "not a run folder: trained_on.json");
}

TEST(LoadModel, TextIsNotReadWithAnotherVocabulary) {
  const TemporaryFolder root;
  train(preset_config("wdl"), convert(root, table(300, "k"), "data"), root / "run");
  train(preset_config("wdl"), convert(root, table(300, "q"), "renamed"), root / "other");
  std::filesystem::copy_file(root / "other/trained_on.json", root / "run/trained_on.json",
                             std::filesystem::copy_options::overwrite_existing);
  LoadedModel model = load_model(root / "run");
  TERCEL_EXPECT_THROW(predict_file(model, root / "data.csv"), DataError, "another vocabulary than the model's");
}

TEST(LoadModel, PassesOverADamagedCheckpoint) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  train(preset_config("dlrm", {"solver.checkpoint_interval=1", "solver.keep_checkpoints=9"}), dataset, root / "run");
  const std::vector<std::string> all = list_checkpoints(root / "run/checkpoints");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(load_model(root / "run").checkpoint, all[1]) << "the only one that was evaluated";
  std::filesystem::resize_file(all[1] + "/table-0.safetensors", 100);
  const LoadedModel model = load_model(root / "run");
  EXPECT_EQ(model.checkpoint, all[0]);
  EXPECT_EQ(model.step, 1);
  EXPECT_EQ(model.last_step, 2);
  ASSERT_EQ(model.warnings.size(), 1u);
  EXPECT_NE(model.warnings[0].find(all[1] + "/table-0.safetensors: expected"), std::string::npos) << model.warnings[0];
}

}  // namespace
}  // namespace tercel::recsys
