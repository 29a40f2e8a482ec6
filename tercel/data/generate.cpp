#include "tercel/data/generate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tercel/data/click_model_impl.h"
#include "tercel/data/conversion_settings_impl.h"
#include "tercel/data/truth_score_impl.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/cpu_info.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/version.h"

namespace tercel::data {

namespace {

constexpr int64_t kBatchRows = 16384;

// Keys per field as in Criteo's display advertising logs, cut to 2,000. The exponents are steeper than Criteo's, whose
// long tails are mostly noise, so that a log of a million rows is enough to learn from.
ClickModelSpec criteo_spec() {
  constexpr int64_t kSizes[] = {1460, 583,  2000, 2000, 305,  24,   2000, 633,  3,  2000, 2000, 2000, 2000,
                                27,   2000, 2000, 10,   2000, 2000, 4,    2000, 18, 15,   2000, 105,  2000};
  ClickModelSpec spec;
  for (const int64_t size : kSizes) spec.fields.push_back({size, size > 30 ? 1.9 : 1.3});
  spec.dense_dim = 13;
  spec.interacting_fields = 5;
  return spec;
}

ClickModelSpec small_spec() {
  ClickModelSpec spec;
  spec.fields = {{3, 1.0}, {10, 1.2}, {25, 1.2}, {40, 1.5}, {200, 1.8}};
  spec.dense_dim = 4;
  spec.interacting_fields = 3;
  spec.sample_rows = int64_t{1} << 15;
  return spec;
}

ClickModelSpec spec_of(const GenerateOptions& options) {
  ClickModelSpec spec = options.preset == GeneratePreset::Criteo ? criteo_spec() : small_spec();
  const std::vector<int64_t>& sizes = options.slot_size_array;
  TERCEL_CHECK(sizes.size() <= 1 || sizes.size() == spec.fields.size(), ConfigError,
               "[generate] option 'slot_size_array': expected 1 or ", spec.fields.size(), " numbers, found ",
               sizes.size());
  if (!sizes.empty())
    for (size_t f = 0; f < spec.fields.size(); ++f) spec.fields[f].size = sizes[sizes.size() == 1 ? 0 : f];
  spec.ctr = options.ctr;
  spec.auc = options.auc;
  return spec;
}

Schema schema_of(const ClickModelSpec& spec) {
  Schema schema;
  schema.label_names = {"click"};
  schema.dense_dim = spec.dense_dim;
  for (int64_t d = 0; d < spec.dense_dim; ++d) schema.dense_names.push_back(str_cat({"I", d + 1}));
  for (size_t f = 0; f < spec.fields.size(); ++f)
    schema.slots.push_back({str_cat({"C", f + 1}), spec.fields[f].size, 0, 1});
  schema.set_consecutive_keys();
  return schema;
}

/** OutOfMemoryError unless there is memory for the model of the clicks, which has numbers for every key. */
void check_memory(const ClickModelSpec& spec, const Schema& schema) {
  const size_t needed = ClickModel::memory_of(spec);
  if (fits_in_memory(needed)) return;
  try {
    throw_out_of_memory(needed);
  } catch (const OutOfMemoryError& e) {
    throw_error<OutOfMemoryError>({"generate: ", schema.num_keys(), " keys: ", e.what()});
  }
}

struct Batch {
  std::vector<float> labels, dense, logits;
  std::vector<int64_t> keys;

  explicit Batch(const Schema& schema)
      : labels(kBatchRows),
        dense(static_cast<size_t>(kBatchRows * schema.dense_dim)),
        logits(kBatchRows),
        keys(static_cast<size_t>(kBatchRows * schema.slot_num())) {}
  ClickRows rows() { return {labels.data(), dense.data(), keys.data(), logits.data()}; }
};

struct PartPlan {
  std::string name;
  int64_t first_row, rows;
};

}  // namespace

GenerateResult generate_dataset(const std::string& folder, const GenerateOptions& options, bool replace,
                                FunctionRef<void(int64_t rows)> progress) {
  check_options(options, "generate");
  const auto test_rows = static_cast<int64_t>(std::llround(static_cast<double>(options.rows) * options.test_fraction));
  const int64_t train_rows = options.rows - test_rows;
  TERCEL_CHECK(train_rows >= 1, ConfigError,
               "[generate] expected at least 1 row in the train part, found rows = ", options.rows,
               " and test_fraction = ", options.test_fraction);
  const ClickModelSpec spec = spec_of(options);
  TERCEL_CHECK(options.format, ConfigError, "[generate] expected a format, such as norm_format(), found none");
  check_room(*options.format, schema_of(spec), options.rows, folder);
  check_memory(spec, schema_of(spec));
  AtomicDir target(folder, replace ? kDatasetFile : std::string_view());
  const ClickModel model(spec, options.seed);

  GenerateResult result;
  Dataset& dataset = result.dataset;
  dataset.format = options.format;
  dataset.schema = schema_of(spec);
  Conversion& conversion = dataset.conversion.emplace();
  conversion.tool = "generate";
  conversion.tercel_version = version();
  conversion.settings = settings_of(options);
  conversion.dense_transform = DenseTransform::Standard;
  conversion.dense_mean = model.dense_mean();
  conversion.dense_std = model.dense_std();

  const int64_t rows_per_file = (train_rows + options.files - 1) / options.files;

  Batch batch(dataset.schema);
  const auto write_part = [&](const char* name, int64_t first, int64_t rows, DataPart& part, int64_t& clicks) {
    WriterOptions writer_options;
    writer_options.folder = target.temporary_path();
    writer_options.prefix = str_cat({name, "/part-"});
    writer_options.file_list = str_cat({name, ".txt"});
    writer_options.rows_per_file = rows_per_file;
    const std::unique_ptr<DatasetWriter> writer = options.format->create_writer(dataset.schema, writer_options);
    TruthScore score(model.logit_mean(), model.logit_std());
    for (int64_t done = 0; done < rows;) {
      const int64_t count = std::min(kBatchRows, rows - done);
      model.generate(first + done, count, batch.rows());
      writer->write({count, batch.labels.data(), batch.dense.data(), nullptr, batch.keys.data()});
      score.add(count, batch.labels.data(), batch.logits.data());
      done += count;
      progress(first + done);
    }
    part = writer->finish();
    part.truth = score.result();
    clicks = score.clicks();
  };
  write_part("train", 0, train_rows, dataset.train, result.train_clicks);
  if (test_rows > 0) write_part("test", train_rows, test_rows, dataset.test, result.test_clicks);

  save_dataset(dataset, target.temporary_path());
  target.commit();
  dataset.folder = folder;
  return result;
}

}  // namespace tercel::data
