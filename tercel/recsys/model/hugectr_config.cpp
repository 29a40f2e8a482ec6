#include "tercel/recsys/model/hugectr_config_impl.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/span.h"
#include "tercel/util/suggest.h"

namespace tercel::recsys {

namespace {

using Names = Span<std::string_view>;

bool is_among(std::string_view name, Names names) { return std::find(names.begin(), names.end(), name) != names.end(); }

// Entries that Tercel has too, by the same name.
constexpr std::string_view kSameSolver[] = {"max_iter", "batchsize", "batchsize_eval", "eval_interval", "seed"};
// What only HugeCTR has: the hardware, what its program prints, and when it writes snapshots.
constexpr std::string_view kOtherSolver[] = {"lr_policy",        "gpu",
                                             "display",          "snapshot",
                                             "snapshot_prefix",  "eval_batches",
                                             "max_eval_batches", "mixed_precision",
                                             "eval_metrics",     "auc_threshold",
                                             "input_key_type",   "enable_tf32_compute",
                                             "async_mlp_wgrad",  "algorithm_search",
                                             "cuda_graph",       "num_epochs"};
constexpr std::string_view kModelFiles[] = {"dense_model_file", "sparse_model_file", "dense_opt_states_file",
                                            "sparse_opt_states_file"};
constexpr std::string_view kRate[] = {"warmup_steps", "decay_start", "decay_steps", "decay_power", "end_lr"};
constexpr std::string_view kHparams[] = {"adam_hparam", "adagrad_hparam", "momentum_sgd_hparam", "nesterov_hparam",
                                         "sgd_hparam",  "rmsprop_hparam", "ftrl_hparam"};
constexpr std::string_view kOptimizer[] = {"type", "update_type", "global_update"};
// Entries of Data that the dataset answers.
constexpr std::string_view kSource[] = {"name",
                                        "source",
                                        "eval_source",
                                        "check",
                                        "format",
                                        "slot_size_array",
                                        "num_samples",
                                        "eval_num_samples",
                                        "cache_eval_data",
                                        "float_label_dense",
                                        "num_workers",
                                        "keyset",
                                        "async_param",
                                        "preload",
                                        "read_file_sequentially"};
constexpr std::string_view kSparse[] = {"type", "max_feature_num_per_sample", "max_nnz"};
constexpr std::string_view kVocabulary[] = {"max_vocabulary_size", "max_vocabulary_size_per_gpu",
                                            "max_vocabulary_size_global", "load_factor", "plan_file"};

class Translator {
 public:
  Translator(const Json& config, std::string_view name) : config_(config), name_(name) {}

  Json translate() {
    Json out;
    Json layers = Json::array();
    for (const auto& [key, value] : config_.items()) {
      if (key == "solver")
        add_solver(value);
      else if (key == "optimizer")
        out["optimizer"] = optimizer(value, "optimizer", /*has_rate=*/true);
      else if (key == "layers")
        layers = value;
      else
        out[key] = value;  // the reader of configurations knows the rest
    }
    TERCEL_CHECK(layers.is_array(), ConfigError, name_, ": layers: expected a list but found ", describe_json(layers));
    out["layers"] = Json::array();
    for (size_t i = 0; i < layers.size(); ++i) out["layers"].push_back(layer(layers[i], str_cat({"layers[", i, "]"})));
    out["solver"] = solver_;
    out["data"] = {{"drop_last", true}};
    return out;
  }

 private:
  [[noreturn]] void refuse_key(const std::string& path, std::string_view key,
                               const std::vector<std::string_view>& known) {
    throw_error<ConfigError>({name_, ": ", path, ".", key, ": unknown entry", known_names(key, known)});
  }

  static std::vector<std::string_view> joined(std::initializer_list<Names> lists) {
    std::vector<std::string_view> all;
    for (const Names& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
  }

  void check_object(const Json& value, const std::string& path) const {
    TERCEL_CHECK(value.is_object(), ConfigError, name_, ": ", path, ": expected an object but found ",
                 describe_json(value));
  }

  void add_solver(const Json& solver) {
    check_object(solver, "solver");
    for (const auto& [key, value] : solver.items()) {
      if (is_among(key, kSameSolver) || is_among(key, kRate))
        solver_[key] = value;
      else if (key == "num_epochs")
        solver_["epochs"] = value;
      else if (key == "lr" || key == "learning_rate")
        solver_["lr"] = value;
      else if (is_among(key, kModelFiles))
        throw_error<ConfigError>(
            {name_, ": solver.", key,
             ": a run does not begin with files of HugeCTR; in Python, tercel.hugectr loads them"});
      else if (!is_among(key, kOtherSolver))
        refuse_key("solver", key, joined({kSameSolver, kRate, kOtherSolver}));
    }
    if (solver_.contains("batchsize") && !solver_.contains("batchsize_eval"))
      solver_["batchsize_eval"] = solver_["batchsize"];
    const Json policy = solver.value("lr_policy", Json("fixed"));
    TERCEL_CHECK(policy == Json("fixed"), ConfigError, name_, ": solver.lr_policy: expected \"fixed\" but found ",
                 describe_json(policy));
  }

  /** HugeCTR has the learning rate and its schedule among the numbers of the optimizer's rule. */
  Json optimizer(const Json& given, const std::string& path, bool has_rate) {
    check_object(given, path);
    Json out;
    out["update_type"] = "Global";
    out["momentum_factor"] = 0;
    for (const auto& [key, value] : given.items()) {
      if (key == "global_update") {
        TERCEL_CHECK(value.is_boolean(), ConfigError, name_, ": ", path, ".", key,
                     ": expected true or false but found ", describe_json(value));
        out["update_type"] = value.get<bool>() ? "Global" : "Local";
      } else if (is_among(key, kHparams)) {
        out[key] = hparam(value, str_cat({path, ".", key}), has_rate);
      } else if (is_among(key, kOptimizer)) {
        out[key] = value;
      } else {
        refuse_key(path, key, joined({kOptimizer, kHparams}));
      }
    }
    return out;
  }

  Json hparam(const Json& given, const std::string& path, bool has_rate) {
    check_object(given, path);
    Json out = Json::object();
    for (const auto& [key, value] : given.items()) {
      const bool is_rate = key == "learning_rate" || key == "alpha";
      if (!is_rate && !is_among(key, kRate))
        out[key] = value;
      else if (has_rate)
        solver_[is_rate ? "lr" : key] = value;
    }
    return out;
  }

  Json layer(Json given, const std::string& path) {
    check_object(given, path);
    given.erase("name");
    const std::string type = given.value("type", Json()).is_string() ? given.at("type").get<std::string>() : "";
    if (type == "Data") return data(given, path);
    if (given.contains("sparse_embedding_hparam")) return embedding(std::move(given), path);
    if (type == "FusedInnerProduct") return fused(given, path);
    if (type == "DotProduct") given["type"] = "ElementwiseMultiply";
    if (type == "PReLU_Dice" && given.contains("prelu_dice_param")) rename(given["prelu_dice_param"], "epsilon", "eps");
    if (given.contains("elu_param") && type == "PReLU_Dice") rename(given, "elu_param", "prelu_dice_param");
    return given;
  }

  static void rename(Json& object, const char* from, const char* to) {
    if (!object.is_object() || !object.contains(from) || object.contains(to)) return;
    object[to] = object.at(from);
    object.erase(from);
  }

  Json data(const Json& given, const std::string& path) {
    Json out = {{"type", "Data"}, {"allow_unread", true}};
    for (const auto& [key, value] : given.items()) {
      if (key == "sparse")
        out[key] = sparse_inputs(value, str_cat({path, ".sparse"}));
      else if (key == "type" || key == "label" || key == "dense")
        out[key] = value;
      else if (!is_among(key, kSource))
        refuse_key(path, key, joined({kSource, {}}));
    }
    return out;
  }

  Json sparse_inputs(const Json& given, const std::string& path) {
    TERCEL_CHECK(given.is_array(), ConfigError, name_, ": ", path, ": expected a list but found ",
                 describe_json(given));
    Json out = Json::array();
    for (size_t i = 0; i < given.size(); ++i) {
      check_object(given[i], str_cat({path, "[", i, "]"}));
      Json input;
      for (const auto& [key, value] : given[i].items())
        if (!is_among(key, kSparse)) input[key] = value;  // bounds of what the dataset knows
      const Json nnz = input.value("nnz_per_slot", Json()), slots = input.value("slot_num", Json());
      if (nnz.is_number_integer() && slots.is_number_integer() && slots.get<int64_t>() > 0 &&
          slots.get<int64_t>() <= kMaxSlots)
        input["nnz_per_slot"] = Json(static_cast<size_t>(slots.get<int64_t>()), nnz);
      out.push_back(std::move(input));
    }
    return out;
  }

  Json embedding(Json given, const std::string& path) {
    Json& hparam = given["sparse_embedding_hparam"];
    check_object(hparam, str_cat({path, ".sparse_embedding_hparam"}));
    for (const std::string_view key : kVocabulary)
      hparam.erase(std::string(key));  // a row for every key of the dataset
    if (hparam.contains("combiner") && hparam.at("combiner").is_number_integer()) {
      const Json combiner = hparam.at("combiner");
      TERCEL_CHECK(combiner == Json(0) || combiner == Json(1), ConfigError, name_, ": ", path,
                   ".sparse_embedding_hparam.combiner: expected 0 (sum), 1 (mean) or a name but found ",
                   describe_json(combiner));
      hparam["combiner"] = combiner == Json(0) ? "sum" : "mean";
    }
    if (given.contains("optimizer"))
      given["optimizer"] = optimizer(given.at("optimizer"), str_cat({path, ".optimizer"}), /*has_rate=*/false);
    return given;
  }

  /** A fully connected layer with ReLU; its further outputs are memory of HugeCTR's backward pass. */
  Json fused(const Json& given, const std::string& path) {
    const auto first = [&given](const char* key) {
      const Json names = given.value(key, Json());
      return names.is_array() && !names.empty() ? names.front() : names;
    };
    Json out = {{"type", "MLP"}, {"bottom", first("bottom")}, {"top", first("top")}};
    Json mlp = given.value("fc_param", Json::object());
    check_object(mlp, str_cat({path, ".fc_param"}));
    mlp["activation"] = "Relu";
    out["mlp_param"] = mlp;
    for (const auto& [key, value] : given.items()) {
      constexpr std::string_view known[] = {"type", "bottom", "top", "fc_param", "position"};
      if (!is_among(key, known)) refuse_key(path, key, joined({known}));
    }
    return out;
  }

  static constexpr int64_t kMaxSlots = 1 << 20;

  const Json& config_;
  std::string_view name_;
  Json solver_ = Json::object();
};

}  // namespace

bool is_hugectr_config(const Json& config) {
  if (!config.is_object()) return false;
  const auto has = [](const Json& object, Names names) {
    return object.is_object() && std::any_of(names.begin(), names.end(), [&object](std::string_view name) {
             return object.contains(std::string(name));
           });
  };
  constexpr std::string_view solver[] = {"lr_policy",        "gpu",         "snapshot", "snapshot_prefix",
                                         "max_eval_batches", "eval_batches"};
  constexpr std::string_view data[] = {"name", "source", "eval_source", "check"};
  const Json layers = config.value("layers", Json());
  return has(config.value("solver", Json()), solver) ||
         (layers.is_array() && !layers.empty() && has(layers.front(), data));
}

Json translate_hugectr_config(const Json& config, std::string_view name) {
  return Translator(config, name).translate();
}

}  // namespace tercel::recsys
