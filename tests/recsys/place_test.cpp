// Models in float64, and what takes a device.
#include <gtest/gtest.h>

#include <cmath>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/io/safetensors.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/recsys/model/batch_place.h"
#include "tercel/recsys/prediction.h"
#include "tercel/recsys/session.h"
#include "tests/recsys/session_state.h"
#include "tests/recsys/training_data.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

using tercel::test::message_of;
using tercel::test::values_of;
using test::batches_of;
using test::saved_state;
using test::small_dataset;
using test::stateful_config;
using test::TemporaryFolder;

constexpr auto kAlways = [](int64_t) { return true; };

/** All weights, states and buffers by their names in a checkpoint. */
std::vector<io::NamedTensor> tensors_of(const std::string& checkpoint) {
  std::vector<io::NamedTensor> all;
  for (const std::string& file : list_dir(checkpoint)) {
    if (!file.ends_with(".safetensors")) continue;
    for (io::NamedTensor& t : io::load_safetensors(checkpoint + "/" + file)) all.push_back(std::move(t));
  }
  return all;
}

TEST(Place, AFloat64SessionTrainsAsOneOfFloat32) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 1200);
  std::vector<ModelConfig> configs{stateful_config()};
  for (const char* rule : {"SGD", "MomentumSGD", "AdaGrad", "Ftrl"})
    configs.push_back(stateful_config({std::string("optimizer.type=") + rule}));
  for (const std::string_view name : preset_names()) configs.push_back(test::small_preset_config(name));
  for (const ModelConfig& config : configs) {
    SCOPED_TRACE(config.model_name + " " + std::string(to_string(config.optimizer.type)));
    Session narrow(config, dataset), wide(config, dataset);
    narrow.initialize();
    wide.initialize(kFloat64);
    EXPECT_EQ(wide.model().place().dtype, kFloat64);
    EXPECT_EQ(values_of(wide.model().parameters().weights()), values_of(narrow.model().parameters().weights()));
    bool differs = false;
    for (int64_t step = 1; step <= 3; ++step) {
      ASSERT_TRUE(narrow.step());
      ASSERT_TRUE(wide.step());
      EXPECT_NEAR(wide.loss(), narrow.loss(), 1e-4 * narrow.loss()) << step;
      differs |= wide.loss() != narrow.loss();
    }
    EXPECT_TRUE(differs) << "it calculates in float64";
    const MetricValues a = narrow.evaluate(kAlways), b = wide.evaluate(kAlways);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i].second, b[i].second, 1e-2) << a[i].first;
  }
}

TEST(Place, GradientsInFloat64AreCentralDifferences) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 120);
  Session session(stateful_config(), dataset);
  session.initialize(kFloat64);
  Model& model = session.model();
  const data::Batch batch = batches_of(dataset, session.config())[0];
  session.forward_backward(batch);
  const std::vector<double> dense = values_of(model.parameters().gradients());
  std::vector<std::vector<double>> rows;
  for (const auto& table : model.embeddings().tables()) {
    const Tensor all = zeros(table->weight().sizes(), kFloat64);
    add_rows(all, gradient_of(table->weight()));
    rows.push_back(values_of(all));
  }
  session.discard();
  const NoGradGuard guard;
  const auto loss = [&] { return model.forward(batch, /*training=*/true, /*step=*/1).loss.item<double>(); };
  const auto check = [&](const Tensor& weight, const std::vector<double>& gradient, const std::string& name) {
    constexpr double kStep = 1e-6;
    int64_t checked = 0;
    for (int64_t i = 0; i < weight.numel() && checked < 25; ++i) {
      const double expected = gradient[static_cast<size_t>(i)];
      if (expected == 0) continue;
      ++checked;
      double& x = weight.data<double>()[i];
      const double before = x;
      x = before + kStep;
      const double above = loss();
      x = before - kStep;
      const double below = loss();
      x = before;
      EXPECT_NEAR((above - below) / (2 * kStep), expected, 1e-7 + 1e-5 * std::abs(expected)) << name << " " << i;
    }
    EXPECT_GT(checked, 0) << name;
  };
  for (const auto& entry : model.parameters().entries()) {
    const auto first = dense.begin() + entry.offset;
    check(entry.tensor, std::vector<double>(first, first + entry.tensor.numel()), entry.name);
  }
  for (size_t t = 0; t < rows.size(); ++t) {
    const auto& table = *model.embeddings().tables()[t];
    check(table.weight(), rows[t], table.name());
  }
}

TEST(Place, AFloat64CheckpointContinuesAndPredicts) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  const ModelConfig config = stateful_config();
  Session whole(config, dataset), first(config, dataset), second(config, dataset);
  for (Session* session : {&whole, &first, &second}) session->initialize(kFloat64);
  CheckpointStore store(root / "c", 1);
  for (int64_t step = 1; step <= 8; ++step) ASSERT_TRUE(whole.step());
  for (int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(first.step());
  first.save(store);
  const std::string folder = *store.latest();
  for (const io::NamedTensor& t : tensors_of(folder)) EXPECT_EQ(t.tensor.dtype(), kFloat64) << t.name;
  const Checkpoint checkpoint(folder);
  EXPECT_EQ(checkpoint.dtype(), kFloat64);
  EXPECT_EQ(checkpoint.info().fingerprint, Model(config, dataset.schema).fingerprint() + "-float64");
  second.load(checkpoint);
  for (int64_t step = 6; step <= 8; ++step) ASSERT_TRUE(second.step());
  EXPECT_EQ(saved_state(second, root / "second"), saved_state(whole, root / "whole"));

  LoadedModel loaded = load_model(folder);
  EXPECT_EQ(loaded.model.place().dtype, kFloat64);
  EXPECT_EQ(evaluate(loaded.model, dataset, data::PartName::Test, loaded.config, kAlways), first.evaluate(kAlways));
  std::vector<float> probabilities;
  const int64_t rows = predict(loaded, dataset, data::PartName::Test, [&probabilities](const Predictions& part) {
    probabilities.insert(probabilities.end(), part.probabilities.begin(), part.probabilities.end());
  });
  ASSERT_EQ(rows, 100);
  data::BatchReader reader(dataset, data::PartName::Test, evaluation_reading(first.model(), config));
  size_t row = 0;
  for (data::Batch batch; reader.next(batch);)
    for (const double logit : values_of(first.model().forward(batch).logits[0]))
      ASSERT_FLOAT_EQ(probabilities[row++], static_cast<float>(1 / (1 + std::exp(-logit))));
  EXPECT_EQ(row, probabilities.size());
}

TEST(Place, ACheckpointOfAnotherDtypeIsRefused) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  Session narrow(stateful_config(), dataset), wide(stateful_config(), dataset);
  narrow.initialize();
  wide.initialize(kFloat64);
  for (Session* session : {&narrow, &wide}) ASSERT_TRUE(session->step());
  CheckpointStore of_narrow(root / "narrow", 1), of_wide(root / "wide", 1);
  narrow.save(of_narrow);
  wide.save(of_wide);
  const auto before = saved_state(narrow, root / "before");
  TERCEL_EXPECT_THROW(narrow.load(Checkpoint(*of_wide.latest())), DataError,
                      "step-000000000001: a checkpoint of a model with float64 parameters: expected float32");
  TERCEL_EXPECT_THROW(wide.load(Checkpoint(*of_narrow.latest())), DataError,
                      "a checkpoint of a model with float32 parameters: expected float64");
  EXPECT_TRUE(narrow.is_whole());
  EXPECT_EQ(saved_state(narrow, root / "after"), before);
  // A run that continues would do so in float32.
  std::filesystem::create_directories(root / "run");
  std::filesystem::rename(root / "wide", root / "run/checkpoints");
  root.put("run/lock", "");
  TERCEL_EXPECT_THROW(Trainer(stateful_config(), dataset, root / "run", Resume::Auto), DataError,
                      "a checkpoint of a model with float64 parameters: expected float32");
}

TEST(Place, RefusedBeforeAnythingIsAllocated) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  Session session(stateful_config(), dataset);
  for (const ScalarType dtype : {kFloat16, kBFloat16, kInt64})
    EXPECT_EQ(message_of<ConfigError>([&] { session.initialize(dtype); }),
              "model: expected float32 or float64 parameters but got " + std::string(to_string(dtype)));
  TERCEL_EXPECT_THROW(session.initialize(kCuda), NotImplementedError, "no allocator for device cuda in this build");
  EXPECT_FALSE(session.is_initialized());
  session.initialize(kFloat64);
  TERCEL_EXPECT_THROW(session.initialize(), RuntimeError, "session: initialize: it was called before");
  EXPECT_EQ(session.model().place().dtype, kFloat64);
  EXPECT_TRUE(session.step());
}

TEST(Place, ABatchIsTakenWhereTheModelIs) {
  const TemporaryFolder root;
  const data::Dataset dataset = small_dataset(root, 400);
  data::Batch batch = batches_of(dataset, stateful_config())[0];
  batch.sparse[0].key_weights = ones(batch.sparse[0].keys.sizes());
  batch.columns.push_back({"time", zeros({batch.rows}, kInt64)});
  EXPECT_TRUE(is_at(batch, {}));
  EXPECT_FALSE(is_at(batch, kFloat64));
  EXPECT_FALSE(is_at(batch, kCuda));

  const data::Batch same = batch_at(batch, {}), wide = batch_at(batch, kFloat64);
  EXPECT_TRUE(same.dense.is_same(batch.dense));
  EXPECT_TRUE(is_at(wide, kFloat64));
  EXPECT_EQ(wide.rows, batch.rows);
  EXPECT_EQ(wide.global_rows, batch.global_rows);
  EXPECT_EQ(values_of(wide.dense), values_of(batch.dense));
  EXPECT_EQ(wide.labels.dtype(), kFloat64);
  EXPECT_EQ(wide.sparse[0].key_weights.dtype(), kFloat64);
  EXPECT_TRUE(wide.sparse[0].keys.is_same(batch.sparse[0].keys)) << "keys keep their dtype";
  EXPECT_TRUE(wide.sparse[1].row_offsets.is_same(batch.sparse[1].row_offsets));
  EXPECT_TRUE(wide.columns[0].values.is_same(batch.columns[0].values));

  TERCEL_EXPECT_THROW(batch_at(batch, kCuda), NotImplementedError, "no allocator for device cuda");
}

}  // namespace
}  // namespace tercel::recsys
