// Dense weights in HugeCTR's files, running statistics and states of their optimizer.
#include <algorithm>
#include <optional>
#include <utility>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/hugectr/model_files.h"
#include "tercel/recsys/hugectr/raw_values_impl.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::recsys::hugectr {

namespace {

constexpr int64_t kAlignment = 256;  // of each state but the last, in bytes
constexpr const char* kNormal = "BatchNorm";
constexpr std::pair<const char*, const char*> kStatistics[] = {{"mean", "running_mean"}, {"var", "running_var"}};

int64_t count_of(Model& model) {
  int64_t count = 0;
  for (const auto& entry : model.parameters().entries()) count += numel_of(IntSpan(entry.sizes));
  return count;
}

/** The parameters' parts of a tensor that is as long as all of them with their padding, one after the other. */
template <class F>
void for_each_part(Model& model, const Tensor& all, F&& f) {
  for (const auto& entry : model.parameters().entries())
    f(all.narrow(0, entry.offset, numel_of(IntSpan(entry.sizes))), entry.name);
}

/** Sets the parts from values that follow one another. */
void set_parts(Model& model, const Tensor& all, const Tensor& values) {
  int64_t start = 0;
  for_each_part(model, all, [&](const Tensor& part, const std::string&) {
    copy_(part, values.narrow(0, start, part.numel()));
    start += part.numel();
  });
}

/** A layer with running statistics. */
struct Normal {
  std::string type, name;
};

/** BatchNorm layers first, which HugeCTR's files have; then those that have none there. */
std::vector<Normal> normal_layers(Model& model) {
  std::vector<Normal> found;
  for (const bool is_normal : {true, false})
    for (const GraphNode& node : model.graph().nodes)
      for (const auto& [name, tensor] : model.buffers())
        if (name == node.name + "." + kStatistics[0].second && (node.type == kNormal) == is_normal)
          found.push_back({node.type, node.name});
  return found;
}

Tensor buffer_of(Model& model, const std::string& name) {
  for (const auto& [key, tensor] : model.buffers())
    if (key == name) return tensor;
  throw_error<InternalError>({"there is no buffer ", name});
}

struct NewValues {
  Tensor tensor, values;
};

Tensor numbers_of(const Json& row, const char* key, const Tensor& target, const std::string& where) {
  TERCEL_CHECK(row.is_object() && row.contains(key) && row.at(key).is_array() &&
                   row.at(key).size() == static_cast<size_t>(target.numel()),
               DataError, where, ": expected ", target.numel(), " numbers in '", key, "', found ",
               row.is_object() && row.contains(key)
                   ? (row.at(key).is_array() ? std::to_string(row.at(key).size()) : describe_json(row.at(key)))
                   : "none");
  Tensor values = empty(target.sizes(), kFloat64);
  for (size_t i = 0; i < row.at(key).size(); ++i) {
    const Json& number = row.at(key)[i];
    TERCEL_CHECK(number.is_number(), DataError, where, ": '", key, "': expected a number, found ",
                 describe_json(number));
    values.data<double>()[i] = number.get<double>();
  }
  return values;
}

/** Of the layers of a file: those of all of the model's, or of its BatchNorm layers. */
std::vector<NewValues> read_statistics(const std::string& path, Model& model) {
  const std::vector<Normal> layers = normal_layers(model);
  if (layers.empty() || !exists(path)) return {};
  const std::string name = printable(path);
  const Json json = read_json_file(path, JsonErrors::Data);
  TERCEL_CHECK(json.is_object() && json.contains("layers") && json.at("layers").is_array(), DataError, name,
               ": expected an object with a list 'layers', found ", describe_json(json));
  const Json& rows = json.at("layers");
  const auto batch_norms = static_cast<size_t>(
      std::count_if(layers.begin(), layers.end(), [](const Normal& layer) { return layer.type == kNormal; }));
  TERCEL_CHECK(rows.size() == layers.size() || rows.size() == batch_norms, DataError, name, ": expected ",
               layers.size(), " layers with running statistics, found ", rows.size());
  std::vector<NewValues> found;
  for (size_t i = 0; i < rows.size(); ++i)
    for (const auto& [key, buffer] : kStatistics) {
      const Tensor target = buffer_of(model, layers[i].name + "." + buffer);
      const std::string where = str_cat({name, ": layers[", i, "] (", printable(layers[i].name), ")"});
      found.push_back({target, numbers_of(rows[i], key, target, where)});
      check_finite(path, to(found.back().values, target.dtype()), printable(layers[i].name));
    }
  return found;
}

}  // namespace

void write_dense(const SnapshotName& name, Model& model) {
  const NoGradGuard guard;
  AtomicFile file(name.dense());
  for_each_part(model, model.parameters().weights().detach(),
                [&](const Tensor& part, const std::string&) { write_floats(file.writer(), part); });
  file.commit();
  const std::vector<Normal> layers = normal_layers(model);
  if (layers.empty()) return;
  Json rows = Json::array();
  for (const Normal& layer : layers) {
    Json row = {{"type", layer.type}};
    for (const auto& [key, buffer] : kStatistics) {
      const Tensor values = to(buffer_of(model, layer.name + "." + buffer), kFloat64);
      row[key] = std::vector<double>(values.data<double>(), values.data<double>() + values.numel());
    }
    rows.push_back(std::move(row));
  }
  write_file_atomically(name.statistics(), dump_json({{"layers", std::move(rows)}}));
}

void read_dense(const std::string& path, Model& model) {
  const NoGradGuard guard;
  const int64_t count = count_of(model);
  const Tensor values =
      read_values(path, kFloat32, count, str_cat({"the ", format_count(count), " dense weights of this model"}));
  int64_t start = 0;
  for_each_part(model, model.parameters().weights(), [&](const Tensor& part, const std::string& name) {
    check_finite(path, values.narrow(0, start, part.numel()), printable(name));
    start += part.numel();
  });
  std::vector<NewValues> statistics = read_statistics(path + ".ntp.json", model);
  set_parts(model, model.parameters().weights().detach(), values);
  for (NewValues& buffer : statistics) copy_(buffer.tensor, buffer.values);
}

void write_dense_states(const std::string& path, Model& model, Span<Tensor> states) {
  const NoGradGuard guard;
  AtomicFile file(path);
  const std::string zeros(kAlignment, '\0');
  for (size_t i = 0; i < states.size(); ++i) {
    for_each_part(model, states[i], [&](const Tensor& part, const std::string&) { write_floats(file.writer(), part); });
    const int64_t over = file.writer().position() % kAlignment;
    if (i + 1 < states.size() && over > 0) file.write(zeros.data(), static_cast<size_t>(kAlignment - over));
  }
  file.commit();
}

void read_dense_states(const std::string& path, Model& model, Span<Tensor> states, Span<const char*> names) {
  const NoGradGuard guard;
  constexpr int64_t kPer = kAlignment / static_cast<int64_t>(sizeof(float));
  const int64_t count = count_of(model), padded = (count + kPer - 1) / kPer * kPer;
  const auto number = static_cast<int64_t>(states.size());
  std::string list;
  for (const char* name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  const Tensor values = read_values(path, kFloat32, number == 0 ? 0 : (number - 1) * padded + count,
                                    str_cat({"the states [", list, "] of ", format_count(count), " dense weights"}));
  for (int64_t i = 0; i < number; ++i)
    check_finite(path, values.narrow(0, i * padded, count), str_cat({"state ", i, " of the dense weights"}));
  for (int64_t i = 0; i < number; ++i)
    set_parts(model, states[static_cast<size_t>(i)], values.narrow(0, i * padded, count));
}

}  // namespace tercel::recsys::hugectr
