// Configurations, models, and their predictions and metrics.
#include "python/src/models.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/src/convert.h"
#include "python/src/datasets.h"
#include "python/src/options.h"
#include "python/src/out.h"
#include "tercel/data/array_inputs.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/embedding/table_rows.h"
#include "tercel/recsys/layers/layers_impl.h"
#include "tercel/recsys/model/graph_options_impl.h"
#include "tercel/recsys/prediction.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/options.h"
#include "tercel/util/suggest.h"

namespace tercel::python {

namespace {

using recsys::Model;
using recsys::ModelConfig;

/** A tensor of a batch, without its gradient: batches are data. */
Tensor tensor_of_batch(nb::handle o, std::string_view what) {
  const Tensor& t = to_tensor(o, what);
  TERCEL_CHECK(t.has_storage() && t.device().is_cpu(), TypeError, what, ": expected a strided tensor on the CPU");
  return t.requires_grad() ? t.detach() : t;
}

Tensor tensor_or_none(nb::handle o, std::string_view what) { return o.is_none() ? Tensor() : tensor_of_batch(o, what); }

nb::dict named(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  nb::dict out;
  for (const auto& [name, tensor] : tensors) out[to_str(name)] = own(wrap(tensor));
  return out;
}

/** Probabilities [rows], or [rows, columns] of several columns. */
Tensor without_single_column(const Tensor& probabilities) {
  return probabilities.size(1) == 1 ? probabilities.select(1, 0) : probabilities;
}

}  // namespace

recsys::EmbeddingTable& table_of(Model& model, const std::string& name) {
  std::vector<std::string_view> known;
  for (const auto& table : model.embeddings().tables()) {
    if (table->name() == name) return *table;
    known.push_back(table->name());
  }
  throw_error<ConfigError>({"there is no embedding table '", printable(name), "'", known_names(name, known)});
}

namespace {

template <class T>
Tensor tensor_with(const std::vector<T>& values, IntSpan sizes, ScalarType dtype) {
  const Tensor out = empty(sizes, dtype);
  if (!values.empty()) std::memcpy(out.data_ptr(), values.data(), values.size() * sizeof(T));
  return out;
}

/** Gathers the predictions of `rows` rows, which may turn out to be fewer or more. */
class GatheredPredictions {
 public:
  GatheredPredictions(const Model& model, int64_t rows, nb::handle progress)
      : columns_(static_cast<size_t>(model.graph().prediction_columns())), expected_(rows), watch_(progress) {
    values_.reserve(static_cast<size_t>(rows) * columns_);
  }

  void operator()(const recsys::Predictions& more) {
    const auto append = [](const auto& from, auto& to) { to.insert(to.end(), from.begin(), from.end()); };
    append(more.probabilities, values_);
    append(more.ids.integers, integers_);
    append(more.ids.floats, floats_);
    append(more.ids.texts, texts_);
    watch_(rows(), expected_);
  }
  /** The probabilities, or (probabilities, ids): a tensor, or a list of texts. */
  nb::object result(std::optional<data::ValueType> ids) const {
    const nb::object probabilities =
        own(wrap(without_single_column(tensor_with(values_, {rows(), static_cast<int64_t>(columns_)}, kFloat32))));
    if (!ids) return probabilities;
    if (*ids == data::ValueType::I64)
      return nb::make_tuple(probabilities, own(wrap(tensor_with(integers_, {rows()}, kInt64))));
    if (*ids == data::ValueType::F32)
      return nb::make_tuple(probabilities, own(wrap(tensor_with(floats_, {rows()}, kFloat32))));
    nb::list texts;
    for (const std::string& text : texts_) texts.append(to_str(text));
    return nb::make_tuple(probabilities, texts);
  }

 private:
  int64_t rows() const { return static_cast<int64_t>(values_.size() / columns_); }

  size_t columns_;
  int64_t expected_;
  std::vector<float> values_;
  std::vector<int64_t> integers_;  // ids
  std::vector<float> floats_;
  std::vector<std::string> texts_;
  Watch watch_;
};

/** Metrics of batches that Python has. */
class MetricsObject {
 public:
  explicit MetricsObject(ModelObject& of)
      : owner_(nb::find(of)), of_(of), evaluator_(of.model(), of.config().solver, recsys::sampling_shift(of.data())) {
    if (of.group() != nullptr) evaluator_.set_group(of.group()->get());
  }
  MetricsObject(const MetricsObject&) = delete;
  MetricsObject& operator=(const MetricsObject&) = delete;

  void add(nb::handle parts) {
    const data::Batch batch = to_batch(parts);
    TERCEL_CHECK(batch.labels.defined(), RuntimeError, "evaluate: the batch has no labels");
    const SingleUser::Use use(of_.user());
    released_of(of_, [&] { evaluator_.add(batch, of_.model().forward(batch).logits); });
  }
  nb::dict values() const { return from_metrics(evaluator_.values()); }

 private:
  nb::object owner_;
  ModelObject& of_;
  recsys::Evaluator evaluator_;
};

/** DataError unless the dataset's rows mean what those mean that the model was trained on. */
void check_rows(ModelObject& self, const data::Dataset& dataset) {
  const std::string difference = recsys::check_dataset_fits(self.data(), dataset);
  if (!difference.empty()) warn(dataset.folder + ": " + difference);
}

nb::dict evaluate(ModelObject& self, const data::Dataset& dataset, const std::string& part, nb::handle progress,
                  const std::optional<std::string>& weight) {
  const data::PartName name = to_part(part);
  const SingleUser::Use use(self.user());
  check_rows(self, dataset);
  Watch watch(progress);
  const int64_t total = dataset.part(name).rows();
  const double shift = recsys::sampling_shift(self.data(), dataset, name);
  const auto observer = [&](int64_t rows) {
    watch(rows, total);
    return true;
  };
  recsys::ModelConfig config = self.config();
  if (weight) config.data.weight = *weight;
  return from_metrics(released([&] { return recsys::evaluate(self.model(), dataset, name, config, observer, shift); }));
}

nb::object predict_dataset(ModelObject& self, const data::Dataset& dataset, const std::string& part,
                           nb::handle progress, const std::string& id) {
  const data::PartName name = to_part(part);
  const SingleUser::Use use(self.user());
  check_rows(self, dataset);
  std::optional<data::ValueType> ids;
  if (!id.empty()) ids = recsys::RowIds(dataset.schema, self.model().sparse_inputs(), id, dataset.name()).type();
  GatheredPredictions predictions(self.model(), dataset.part(name).rows(), progress);
  released([&] { recsys::predict(self.model(), self.config(), self.data(), dataset, name, predictions, id); });
  return predictions.result(ids);
}

class LoadedModelObject final : public ModelObject {
 public:
  explicit LoadedModelObject(const std::string& path) : of_(released([&] { return recsys::load_model(path); })) {
    for (const std::string& warning : of_.warnings) warn(warning);
  }

  Model& model() override { return of_.model; }
  const ModelConfig& config() override { return of_.config; }
  const data::DataIdentity& data() override { return of_.data; }
  SingleUser& user() override { return user_; }
  const recsys::LoadedModel& loaded() const { return of_; }

  nb::object predict_text(const nb::list& paths, nb::handle progress, const std::string& id) {
    std::vector<data::TextSource> sources;
    for_each_item(paths.ptr(), [&](PyObject* path, Py_ssize_t) { sources.push_back({to_path(path), ""}); });
    const SingleUser::Use use(user_);
    GatheredPredictions predictions(of_.model, 0, progress);
    released([&] { recsys::predict_text(of_, std::move(sources), predictions, id); });
    return predictions.result(id.empty() ? std::nullopt : std::optional(data::ValueType::Text));
  }

 private:
  recsys::LoadedModel of_;
  SingleUser user_{"model", "a signal handler or a callback may not", "load one for each"};
};

/** Embeddings have no entry of their own in the list of layers, and one set of options; lookups have more. */
constexpr std::string_view kEmbedding = "SparseEmbedding", kLookup = "EmbeddingLookup";

/** Adds (group, whether it is required, name, default, text, type) of each option; `group` is "" for none. */
void describe_grouped(OptionTable table, const void* defaults, std::string_view group, nb::list& out) {
  const nb::list rows = describe_options(table, defaults);
  size_t next = 0;
  for (const OptionField& field : table) {
    const auto row = nb::cast<nb::tuple>(rows[next++]);
    if (field.type->kind == OptionKind::Struct)
      describe_grouped(field.type->nested(), field.locate(const_cast<void*>(defaults)), field.name, out);
    else
      out.append(nb::make_tuple(to_str(group), field.rules.required, row[0], row[1], row[2], row[3]));
  }
}

/** The options of a lookup, and those of its table. */
nb::list describe_lookup() {
  nb::list lookup, table;
  const recsys::LookupOptions options;
  const recsys::EmbeddingParameters parameters;
  describe_grouped(option_table<recsys::LookupOptions>(), &options, "", lookup);
  describe_grouped(option_table<recsys::EmbeddingParameters>(), &parameters, "sparse_embedding_hparam", table);
  for (const nb::handle option : table)
    if (!option[2].equal(to_str("combiner"))) lookup.append(option);  // of the lookup, not of its table
  return lookup;
}

/** (type, whether it is a loss, options) of every layer that a graph may have, but Data. */
nb::list describe_layers() {
  nb::list out;
  const auto add = [&out](std::string_view type, bool is_loss, OptionTable table, const void* defaults,
                          std::string_view group) {
    nb::list options;
    describe_grouped(table, defaults, group, options);
    out.append(nb::make_tuple(to_str(type), is_loss, options));
  };
  const recsys::EmbeddingParameters embedding;
  add(kEmbedding, false, option_table<recsys::EmbeddingParameters>(), &embedding, "sparse_embedding_hparam");
  out.append(nb::make_tuple(to_str(kLookup), false, describe_lookup()));
  for (const recsys::LayerEntry& layer : recsys::layer_entries())
    layer.show_options(
        [&](OptionTable table, const void* defaults) { add(layer.type, layer.is_loss, table, defaults, ""); });
  return out;
}

/** ValueError for a weight that readers do not give. The model checks dtype and size. */
void check_weights(const Tensor& weights) {
  if (weights.dtype() != kFloat32 && weights.dtype() != kFloat64) return;
  const Tensor all = to(weights, kFloat64).contiguous();
  for (int64_t row = 0; row < all.numel(); ++row)
    TERCEL_CHECK(all.data<double>()[row] >= 0 && std::isfinite(all.data<double>()[row]), ValueError,
                 "batch: weights: row ", row, ": expected a finite weight that is not negative but got ",
                 all.data<double>()[row]);
}

}  // namespace

nb::dict from_metrics(const recsys::MetricValues& values) {
  nb::dict out;
  for (const auto& [name, value] : values) out[to_str(name)] = value;
  return out;
}

data::Batch to_batch(nb::handle parts) {
  const auto all = nb::cast<nb::tuple>(parts);
  data::Batch batch;
  int64_t* const numbers[] = {&batch.epoch, &batch.row, &batch.rows, &batch.global_row, &batch.global_rows};
  size_t next = 0;
  for (int64_t* number : numbers) *number = to_int(all[next++].ptr());
  batch.labels = tensor_or_none(all[next++], "batch: labels");
  batch.dense = tensor_of_batch(all[next++], "batch: dense");
  for (const nb::handle part : nb::cast<nb::list>(all[next])) {
    const auto of = nb::cast<nb::tuple>(part);
    data::SparseBatch input;
    input.name = std::string(to_text(of[0].ptr()));
    input.slot_num = to_int(of[1].ptr());
    const bool known = parse_enum(to_text(of[2].ptr()), input.order);
    TERCEL_CHECK(known, ValueError, "batch: expected a bag_order 'sample_major' or 'slot_major'");
    input.row_offsets = tensor_of_batch(of[3], "batch: row_offsets");
    input.keys = tensor_of_batch(of[4], "batch: keys");
    input.key_weights = tensor_or_none(of[5], "batch: key_weights");
    batch.sparse.push_back(std::move(input));
  }
  for (const nb::handle part : nb::cast<nb::list>(all[++next])) {
    const auto of = nb::cast<nb::tuple>(part);
    const std::string name(to_text(of[0].ptr()));
    batch.columns.push_back({name, tensor_of_batch(of[1], "batch: column " + name)});
  }
  batch.weights = tensor_or_none(all[++next], "batch: weights");
  if (batch.weights.defined()) check_weights(batch.weights);
  return batch;
}

RowArrays::RowArrays(nb::handle arrays, nb::handle given_labels, nb::handle given_weights)
    : labels(tensor_or_none(given_labels, "labels")), weights(tensor_or_none(given_weights, "weights")) {
  for (const nb::handle array : nb::cast<nb::list>(arrays)) {
    const auto of = nb::cast<nb::tuple>(array);
    const std::string name(to_text(of[0].ptr()));
    inputs.push_back({name, tensor_of_batch(of[1], name), tensor_or_none(of[2], name), tensor_or_none(of[3], name)});
  }
}

void register_models(nb::module_& m) {
  nb::class_<ModelConfig>(m, "_ModelConfig")
      .def_static("parse",
                  [](const nb::dict& values, const std::string& name) {
                    return recsys::parse_config(dict_to_json(values, "model"), name);
                  })
      .def("to_dict", [](const ModelConfig& config) { return json_to_object(recsys::to_json(config)); });
  nb::class_<ModelObject>(m, "_Model")
      .def("config", [](ModelObject& self) { return json_to_object(recsys::to_json(self.config())); })
      .def("schema", [](ModelObject& self) { return schema_to_dict(self.model().schema()); })
      .def("summary", [](ModelObject& self) { return to_str(self.model().summary()); })
      .def("dense_name", [](ModelObject& self) { return to_str(self.model().dense_name()); })
      .def("inputs",
           [](ModelObject& self) {
             nb::dict out;
             for (const data::SparseInput& input : self.model().sparse_inputs())
               out[to_str(input.name)] = input.slot_num;
             return out;
           })
      .def("prediction_columns", [](ModelObject& self) { return self.model().graph().prediction_columns(); })
      .def("has_binary_labels", [](ModelObject& self) { return self.model().graph().has_binary_labels(); })
      .def("heads",
           [](ModelObject& self) {
             nb::list out;
             for (const recsys::Head& head : self.model().graph().heads) out.append(to_str(head.name));
             return out;
           })
      .def("parameters",
           [](ModelObject& self) {
             std::vector<std::pair<std::string, Tensor>> all;
             self.expect_writes();
             for (const auto& entry : self.model().parameters().entries())
               all.emplace_back(entry.name, entry.tensor.detach());
             return named(all);
           })
      .def("buffers",
           [](ModelObject& self) {
             self.expect_writes();
             return named(self.model().buffers());
           })
      .def("tables",
           [](ModelObject& self) {
             std::vector<std::pair<std::string, Tensor>> all;
             self.expect_writes();
             for (const auto& table : self.model().embeddings().tables())
               all.emplace_back(table->name(), table->weight().detach());
             return named(all);
           })
      .def("key_rows",
           [](ModelObject& self, const std::string& name) {
             const SingleUser::Use use(self.user());
             recsys::EmbeddingTable& table = table_of(self.model(), name);
             const recsys::KeyRows found = released([&] { return recsys::rows_of_keys(table); });
             return nb::make_tuple(own(wrap(found.keys)), own(wrap(found.rows)));
           })
      .def("has_all_rows",
           [](ModelObject& self, const std::string& name) {
             const SingleUser::Use use(self.user());
             return table_of(self.model(), name).shard().is_whole();
           })
      .def("table_rows",
           [](ModelObject& self, const std::string& name) {
             const SingleUser::Use use(self.user());
             recsys::EmbeddingTable& table = table_of(self.model(), name);
             Tensor keys, vectors;
             released([&] {
               const recsys::KeyRows found = recsys::rows_of_keys(table);
               keys = found.keys;
               vectors = index_select(table.weight().detach(), 0, found.rows);
             });
             return nb::make_tuple(own(wrap(keys)), own(wrap(vectors)));
           })
      .def("check_rows", check_rows)
      .def("evaluate_dataset", evaluate, nb::arg("dataset"), nb::arg("part"), nb::arg("progress").none(),
           nb::arg("weight"))
      .def("predict_dataset", predict_dataset, nb::arg("dataset"), nb::arg("part"), nb::arg("progress").none(),
           nb::arg("id"))
      .def("compute_batch",
           [](ModelObject& self, nb::handle parts, const std::string& tensor) {
             const data::Batch batch = to_batch(parts);
             const SingleUser::Use use(self.user());
             Model& model = self.model();
             return own(wrap(released_of(self, [&] { return model.compute(batch, tensor); })));
           })
      .def("predict_batch",
           [](ModelObject& self, nb::handle parts) {
             const data::Batch batch = to_batch(parts);
             const SingleUser::Use use(self.user());
             Model& model = self.model();
             const double shift = recsys::sampling_shift(self.data());
             return own(
                 wrap(released_of(self, [&] { return without_single_column(recsys::predict(model, batch, shift)); })));
           })
      .def(
          "predict_arrays",
          [](ModelObject& self, const nb::list& arrays) {
            const RowArrays rows(arrays, nb::none(), nb::none());
            const SingleUser::Use use(self.user());
            Model& model = self.model();
            const double shift = recsys::sampling_shift(self.data());
            return own(wrap(released_of(self, [&] { return recsys::predict(model, rows.inputs, shift); })));
          },
          nb::arg("arrays"));
  nb::class_<MetricsObject>(m, "_Metrics")
      .def(nb::init<ModelObject&>())
      .def("add", &MetricsObject::add)
      .def("values", &MetricsObject::values);
  nb::class_<LoadedModelObject, ModelObject>(m, "_LoadedModel")
      .def("__init__", [](LoadedModelObject* self, nb::handle path) { new (self) LoadedModelObject(to_path(path)); })
      .def("predict_text", &LoadedModelObject::predict_text, nb::arg("paths"), nb::arg("progress").none(),
           nb::arg("id"))
      .def("step", [](const LoadedModelObject& self) { return self.loaded().step; })
      .def("last_step", [](const LoadedModelObject& self) { return self.loaded().last_step; })
      .def("checkpoint", [](const LoadedModelObject& self) { return from_path(self.loaded().checkpoint); });
  m.def("_preset_names", [] {
    nb::list out;
    for (const std::string_view name : recsys::preset_names()) out.append(to_str(name));
    return out;
  });
  m.def("_preset", [](const std::string& name) { return json_to_object(std::string(recsys::preset(name))); });
  m.def("_describe_layers", describe_layers);
  m.def("_config_sections", [] {
    nb::dict out;
    const recsys::SolverOptions solver;
    const optim::OptimizerOptions optimizer;
    const recsys::DataOptions data;
    out["solver"] = describe_options(option_table<recsys::SolverOptions>(), &solver);
    out["optimizer"] = describe_options(option_table<optim::OptimizerOptions>(), &optimizer);
    out["data"] = describe_options(option_table<recsys::DataOptions>(), &data);
    return out;
  });
}

}  // namespace tercel::python
