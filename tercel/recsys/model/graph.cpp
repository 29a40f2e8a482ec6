#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/recsys/embedding/static_table.h"
#include "tercel/recsys/layers/layers_impl.h"
#include "tercel/recsys/layers/loss.h"
#include "tercel/recsys/model/config_impl.h"
#include "tercel/recsys/model/graph_impl.h"
#include "tercel/recsys/model/graph_options_impl.h"
#include "tercel/recsys/model/size_expressions_impl.h"
#include "tercel/util/format.h"
#include "tercel/util/options_impl.h"
#include "tercel/util/suggest.h"

namespace tercel::recsys {

namespace {

// Far larger than any trainable size; products of these do not overflow.
constexpr int64_t kMaxRow = int64_t{1} << 31, kMaxTableRows = int64_t{1} << 44;

constexpr std::string_view kLookup = "EmbeddingLookup";

bool is_embedding(std::string_view type) {
  return std::find(std::begin(kEmbeddingTypes), std::end(kEmbeddingTypes), type) != std::end(kEmbeddingTypes);
}

/** One name or a list of names. */
std::vector<std::string> names_of(const Json& layer, const char* key, std::string_view where) {
  TERCEL_CHECK(layer.contains(key), ConfigError, where, ": '", key, "' is missing");
  const Json& value = layer.at(key);
  std::vector<std::string> names;
  const auto add = [&](const Json& name) {
    TERCEL_CHECK(name.is_string() && !name.get_ref<const std::string&>().empty(), ConfigError, where, ": ", key,
                 ": expected a name but found ", describe_json(name));
    names.push_back(name.get<std::string>());
  };
  if (value.is_array())
    for (const Json& name : value) add(name);
  else
    add(value);
  TERCEL_CHECK(!names.empty(), ConfigError, where, ": '", key, "' is empty");
  return names;
}

/** Writes a list of one name as that name. */
Json resolved_names(const std::vector<std::string>& names) { return names.size() == 1 ? Json(names[0]) : Json(names); }

Json resolved_layer(const std::string& type, const std::vector<std::string>& bottoms,
                    const std::vector<std::string>& tops) {
  return {{"type", type}, {"bottom", resolved_names(bottoms)}, {"top", resolved_names(tops)}};
}

// Note [Absent tensors]
// One graph serves datasets with and without dense values. Without them the tensor `dense` is absent. A layer whose
// inputs are all absent is left out, and its outputs are absent too. A layer that combines its inputs (Add, Concat,
// Interaction) uses those that are present; for any other layer an absent input is an error.
class Builder {
 public:
  Builder(const data::Schema& schema, nn::ParameterArena& parameters, const optim::OptimizerOptions& optimizer)
      : schema_(schema), parameters_(parameters), optimizer_(optim::options_of_tables(optimizer)) {}

  ModelGraph build(const Json& layers) {
    TERCEL_CHECK(!layers.empty(), ConfigError, "layers: the list is empty");
    layers_ = &layers;
    for (size_t i = 0; i < layers.size(); ++i) {
      const Json& layer = layers[i];
      TERCEL_CHECK(layer.is_object() && layer.contains("type") && layer.at("type").is_string(), ConfigError, "layers[",
                   i, "]: expected an object with a 'type' but found ", describe_json(layer));
      const std::string type = layer.at("type").get<std::string>();
      TERCEL_CHECK(
          (type == "Data") == (i == 0), ConfigError, "layers[", i, "]: ",
          i == 0 ? "the first layer is Data, not " : "expected only one Data layer, the first, but found another ",
          type);
      if (type == "Data")
        add_data(layer);
      else if (is_embedding(type))
        add_embedding(layer, type);
      else if (type == kLookup)
        add_lookup(layer);
      else
        add_layer(layer, type);
    }
    TERCEL_CHECK(!graph_.heads.empty(), ConfigError, "layers: expected a loss layer: ", loss_types());
    for (size_t t = 0; t < graph_.tensors.size(); ++t)
      TERCEL_CHECK(read_[t] || is_loss(t) || graph_.tensors[t].absent || may_be_unread(graph_.tensors[t].kind),
                   ConfigError, "layers: nothing reads '", graph_.tensors[t].name, "' ",
                   shape_text(graph_.tensors[t].shape));
    check_names_of_tables();
    return std::move(graph_);
  }

 private:
  /** Freezing and checkpoints know parameters by these names. */
  void check_names_of_tables() const {
    for (const auto& [name, shared] : shared_)
      for (const GraphNode& node : graph_.nodes)
        TERCEL_CHECK(node.name != name || node.type == kLookup || (node.parameters.empty() && node.table < 0),
                     ConfigError, "[", kLookup, " ", shared.first, "] the table '", name,
                     "' has the name of a layer with parameters");
  }

  /** "BinaryCrossEntropyLoss, ...". */
  static std::string loss_types() {
    std::string types;
    for (const LayerEntry& entry : layer_entries())
      if (entry.is_loss) types += (types.empty() ? "" : ", ") + std::string(entry.type);
    return types;
  }

  bool is_loss(size_t tensor) const {
    return std::any_of(graph_.heads.begin(), graph_.heads.end(),
                       [tensor](const Head& head) { return head.loss == tensor; });
  }

  bool may_be_unread(TensorKind kind) const {
    return kind == TensorKind::Label || (allow_unread_ && kind != TensorKind::Value);
  }

  size_t add_tensor(std::string name, TensorShape shape, std::string_view where, TensorKind kind = TensorKind::Value) {
    for (const GraphTensor& t : graph_.tensors)
      TERCEL_CHECK(t.name != name, ConfigError, where, ": a tensor '", name, "' exists already");
    int64_t row = std::max<int64_t>(1, shape.rows_per_sample);
    for (const int64_t size : shape.sizes)
      TERCEL_CHECK(!__builtin_mul_overflow(row, size, &row) && row <= kMaxRow, ConfigError, where, " makes '", name,
                   "' ", shape_text(shape), ": more than ", kMaxRow, " elements in a row");
    graph_.tensors.push_back({std::move(name), std::move(shape), kind});
    read_.push_back(false);
    return graph_.tensors.size() - 1;
  }

  size_t find_tensor(const std::string& name, std::string_view where) {
    std::vector<std::string_view> known;
    for (size_t t = 0; t < graph_.tensors.size(); ++t) {
      if (graph_.tensors[t].name == name) {
        read_[t] = true;
        return t;
      }
      if (!is_loss(t)) known.push_back(graph_.tensors[t].name);
    }
    throw_error<ConfigError>({where, ": no layer before it makes '", name, "'", known_names(name, known)});
  }

  void add_data(const Json& layer) {
    for (const auto& [key, value] : layer.items()) {
      constexpr std::string_view known[] = {"type", "label", "dense", "sparse", "allow_unread"};
      TERCEL_CHECK(std::find(std::begin(known), std::end(known), key) != std::end(known), ConfigError,
                   "[Data] unknown option '", key, "'", known_names(key, known));
    }
    if (layer.contains("allow_unread")) {
      const Json& allow = layer.at("allow_unread");
      TERCEL_CHECK(allow.is_boolean(), ConfigError, "[Data] allow_unread: expected true or false but found ",
                   describe_json(allow));
      allow_unread_ = allow.get<bool>();
    }
    DenseOptions dense;
    if (layer.contains("dense")) read_options(layer.at("dense"), dense, "Data dense");
    TERCEL_CHECK(dense.dense_dim == 0 || dense.dense_dim == schema_.dense_dim, ConfigError, "[Data] dense_dim is ",
                 dense.dense_dim, " but the dataset has ", schema_.dense_dim);
    const Json label = add_labels(layer.contains("label") ? layer.at("label") : Json::object({{"top", "label"}}));
    const size_t t = add_tensor(dense.top, {schema_.dense_dim}, "[Data]", TensorKind::Dense);
    graph_.tensors[t].absent = schema_.dense_dim == 0;
    dense.dense_dim = schema_.dense_dim;
    data_ = {{"type", "Data"}, {"label", label}, {"dense", write_options(dense)}, {"sparse", Json::array()}};
    if (allow_unread_) data_["allow_unread"] = true;
    if (layer.contains("sparse")) {
      TERCEL_CHECK(layer.at("sparse").is_array(), ConfigError, "[Data] sparse: expected a list but found ",
                   describe_json(layer.at("sparse")));
      for (const Json& entry : layer.at("sparse")) add_sparse(entry);
    }
    TERCEL_CHECK(next_slot_ == schema_.slot_num(), ConfigError, "[Data] the sparse inputs take ", next_slot_,
                 " slots but the dataset has ", schema_.slot_num());
    GraphNode node;
    node.type = "Data";
    node.options = dump_json_line(data_);
    for (size_t top = 0; top < graph_.tensors.size(); ++top) node.tops.push_back(top);
    graph_.nodes.push_back(std::move(node));
  }

  /** Adds the tensors of the labels; returns their options. HugeCTR writes one label with or without lists. */
  Json add_labels(Json json) {
    for (const char* key : {"top", "label_dim"})
      if (json.is_object() && json.contains(key) && !json.at(key).is_array()) json[key] = Json::array({json.at(key)});
    LabelOptions label;
    read_options(json, label, "Data label");
    const size_t count = label.top.size();
    if (label.label_dim.empty()) label.label_dim.assign(count, 0);
    TERCEL_CHECK(label.label_dim.size() == count, ConfigError, "[Data] label: label_dim has ", label.label_dim.size(),
                 " entries for ", count, " labels");
    if (count == 1 && label.label_dim[0] == 0) label.label_dim[0] = schema_.label_dim;
    int64_t sum = 0;
    for (size_t i = 0; i < count; ++i) {
      const int64_t columns = label.label_dim[i];
      TERCEL_CHECK(columns > 0, ConfigError, "[Data] label '", label.top[i],
                   "': each of several labels needs its label_dim");
      TERCEL_CHECK(!__builtin_add_overflow(sum, columns, &sum), ConfigError, "[Data] label_dim overflows");
      add_tensor(label.top[i], {columns}, "[Data]", TensorKind::Label);
      first_label_.push_back(sum - columns);
    }
    TERCEL_CHECK(sum == schema_.label_dim, ConfigError, "[Data] label_dim is ", sum, count == 1 ? "" : " in all",
                 " but the dataset has ", schema_.label_dim);
    Json resolved = write_options(label);
    if (count == 1)
      for (const char* key : {"top", "label_dim"}) resolved[key] = Json(resolved.at(key).front());
    return resolved;
  }

  void add_sparse(const Json& entry) {
    SparseOptions sparse;
    read_options(entry, sparse, "Data sparse");
    TERCEL_CHECK(schema_.slot_num() > 0, ConfigError, "[Data sparse ", sparse.top,
                 "] the model needs categorical fields, but the dataset has none");
    const int64_t slots = sparse.slot_num > 0 ? sparse.slot_num : schema_.slot_num() - next_slot_;
    TERCEL_CHECK(slots >= 1 && next_slot_ + slots <= schema_.slot_num(), ConfigError, "[Data sparse ", sparse.top,
                 "] takes ", slots, " slots but ", schema_.slot_num() - next_slot_, " of the dataset's ",
                 schema_.slot_num(), " are left");
    check_nnz(sparse, slots);
    input_of_[add_tensor(sparse.top, {slots}, "[Data]", TensorKind::SparseInput)] =
        static_cast<int64_t>(graph_.sparse_inputs.size());
    graph_.sparse_inputs.push_back({sparse.top, slots});
    first_slot_.push_back(next_slot_);
    keys_per_slot_.push_back(most_keys(sparse, slots));
    next_slot_ += slots;
    sparse.slot_num = slots;
    data_["sparse"].push_back(write_options(sparse));
  }

  /** The most keys that a slot of the next input may have: as nnz_per_slot says, else as the dataset does. */
  int64_t most_keys(const SparseOptions& sparse, int64_t slots) const {
    if (!sparse.nnz_per_slot.empty()) return *std::max_element(sparse.nnz_per_slot.begin(), sparse.nnz_per_slot.end());
    int64_t most = 1;
    for (int64_t s = next_slot_; s < next_slot_ + slots; ++s)
      most = std::max(most, schema_.slots[static_cast<size_t>(s)].hotness);
    return most;
  }

  void check_nnz(const SparseOptions& sparse, int64_t slots) const {
    const std::vector<int64_t>& nnz = sparse.nnz_per_slot;
    if (nnz.empty()) return;
    TERCEL_CHECK(static_cast<int64_t>(nnz.size()) == slots, ConfigError, "[Data sparse ", sparse.top,
                 "] nnz_per_slot has ", nnz.size(), " entries for ", slots, " slots");
    for (size_t s = 0; s < nnz.size(); ++s) {
      const data::Slot& slot = schema_.slots[static_cast<size_t>(next_slot_) + s];
      TERCEL_CHECK(slot.hotness <= nnz[s], ConfigError, "[Data sparse ", sparse.top, "] nnz_per_slot allows ", nnz[s],
                   " keys in slot '", printable(slot.name), "' but the dataset has up to ", slot.hotness);
    }
  }

  void add_embedding(const Json& layer, const std::string& type) {
    const std::vector<std::string> tops = names_of(layer, "top", type);
    const std::string& name = tops.front();
    const std::string where = str_cat({"[", type, " ", name, "]"});
    TERCEL_CHECK(tops.size() == 1, ConfigError, where, " makes 1 tensor, but ", tops.size(), " tops are named");
    for (const auto& [key, value] : layer.items()) {
      constexpr std::string_view known[] = {"type", "bottom", "top", "sparse_embedding_hparam", "optimizer"};
      TERCEL_CHECK(std::find(std::begin(known), std::end(known), key) != std::end(known), ConfigError, where,
                   " unknown option '", key, "'", known_names(key, known));
    }
    EmbeddingParameters p;
    if (layer.contains("sparse_embedding_hparam"))
      read_options(layer.at("sparse_embedding_hparam"), p, str_cat({type, " ", name}));
    const size_t bottom = sparse_bottom(layer, where);
    const auto input = static_cast<size_t>(input_of_.at(bottom));
    const int64_t slots = graph_.sparse_inputs[input].slot_num;
    GraphNode node;
    node.type = type;
    node.name = name;
    node.bottoms.push_back(bottom);
    node.tops.push_back(add_tensor(name, {slots, p.embedding_vec_size}, where));
    const optim::OptimizerOptions optimizer = optimizer_of(layer, str_cat({type, " ", name}), where);
    const Table table = add_table(name, p, optimizer, {input}, where);
    const size_t lookup =
        graph_.embeddings.add_lookup({name, table.number, graph_.sparse_inputs[input].name,
                                      p.combiner == Combiner::Mean ? BagMode::Mean : BagMode::Sum, slots});
    note_reader(input, table, name);
    node.table = static_cast<int64_t>(table.number);
    node.table_name = name;
    Json resolved = resolved_layer(type, {graph_.tensors[bottom].name}, tops);
    resolved["sparse_embedding_hparam"] = write_options(p);
    resolved["optimizer"] = write_options(optimizer);
    add_lookup_node(std::move(node), resolved, lookup);
  }

  // Note [Shared tables]
  // Lookups that name one table share it: the first one says what the table is, and later ones may repeat that. Its
  // rows are those of the slots of all of them, which is why the list is searched for them when the first one is built.
  void add_lookup(const Json& layer) {
    const std::vector<std::string> tops = names_of(layer, "top", kLookup);
    const std::string& name = tops.front();
    const std::string where = str_cat({"[", kLookup, " ", name, "]"});
    TERCEL_CHECK(tops.size() == 1, ConfigError, where, " makes 1 tensor, but ", tops.size(), " tops are named");
    LookupOptions options;
    constexpr std::string_view others[] = {"type", "bottom", "top", "sparse_embedding_hparam", "optimizer"};
    read_options(layer, options, str_cat({kLookup, " ", name}), others);
    const size_t bottom = sparse_bottom(layer, where);
    const auto input = static_cast<size_t>(input_of_.at(bottom));
    const SharedTable& shared = shared_table(layer, options.table, name, where);
    const int64_t slots = graph_.sparse_inputs[input].slot_num;
    const bool concat = options.combiner == LookupCombiner::Concat;
    const int64_t places = concat ? keys_per_slot_[input] : 0;
    int64_t width = shared.parameters.embedding_vec_size;
    TERCEL_CHECK(!concat || !__builtin_mul_overflow(width, places, &width), ConfigError, where,
                 " the vectors of a slot's keys are too long side by side");
    GraphNode node;
    node.type = kLookup;
    node.name = name;
    node.bottoms.push_back(bottom);
    node.tops.push_back(add_tensor(name, {slots, width}, where));
    node.table = static_cast<int64_t>(shared.table.number);
    node.table_name = options.table;
    const BagMode mode = options.combiner == LookupCombiner::Mean ? BagMode::Mean : BagMode::Sum;
    const size_t lookup = graph_.embeddings.add_lookup(
        {name, shared.table.number, graph_.sparse_inputs[input].name, mode, slots, places});
    note_reader(input, shared.table, options.table);
    Json resolved = resolved_layer(std::string(kLookup), {graph_.tensors[bottom].name}, tops);
    resolved.update(write_options(options));
    resolved["sparse_embedding_hparam"] = write_options(shared.parameters);
    resolved["sparse_embedding_hparam"].erase("combiner");
    resolved["optimizer"] = write_options(shared.optimizer);
    add_lookup_node(std::move(node), resolved, lookup);
  }

  struct KeyRange {
    int64_t first = 0, count = 0;
  };

  /** A table of the collection. */
  struct Table {
    size_t number = 0;
    std::optional<int64_t> keys;  // none: any
  };

  /** See Note [Shared tables]. */
  struct SharedTable {
    Table table;
    EmbeddingParameters parameters;
    optim::OptimizerOptions optimizer;
    Json given;  // its options, as its first lookup has them
    std::string first;
  };

  /** The sparse input that an embedding reads. */
  size_t sparse_bottom(const Json& layer, std::string_view where) {
    const std::vector<std::string> bottoms = names_of(layer, "bottom", where);
    TERCEL_CHECK(bottoms.size() == 1, ConfigError, where, " expected one bottom, a sparse input, but ", bottoms.size(),
                 " are named");
    const size_t bottom = find_tensor(bottoms.front(), where);
    TERCEL_CHECK(graph_.tensors[bottom].kind == TensorKind::SparseInput, ConfigError, where, " its bottom '",
                 graph_.tensors[bottom].name, "' is not a sparse input but ", shape_text(graph_.tensors[bottom].shape));
    return bottom;
  }

  optim::OptimizerOptions optimizer_of(const Json& layer, const std::string& owner, std::string_view where) const {
    optim::OptimizerOptions optimizer = optimizer_;
    if (layer.contains("optimizer"))
      optimizer = read_optimizer(layer.at("optimizer"), optimizer_, owner + " optimizer");
    optim::check_update_type(optimizer, where);
    return optimizer;
  }

  /** A table with the rows of these inputs' keys, or of any. */
  Table add_table(const std::string& name, const EmbeddingParameters& p, const optim::OptimizerOptions& optimizer,
                  const std::vector<size_t>& inputs, std::string_view where) {
    if (has_hashed_table(p, inputs, where)) {
      TERCEL_CHECK(optimizer.update_type != optim::UpdateType::LazyGlobal || optimizer.type != optim::Rule::Adam,
                   ConfigError, where, " update_type LazyGlobal needs a static table");
      TERCEL_CHECK(p.init == TableInit::Range, ConfigError, where, " init: expected Range for a hashed table");
      auto hashed =
          std::make_unique<HashedTable>(name, p.embedding_vec_size, range_init(p), hashed_options(p, optimizer, where));
      return {graph_.embeddings.add_table(std::move(hashed), optimizer), std::nullopt};
    }
    const KeyRange keys = table_keys(p, inputs, optimizer, where);
    auto table =
        std::make_unique<StaticTable>(name, keys.first, p.embedding_vec_size, initial_rows(p, keys, inputs, where));
    table->set_slots(slot_ends(p, keys, inputs));
    return {graph_.embeddings.add_table(std::move(table), optimizer), keys.count};
  }

  /** If several tables with a range read an input, its keys must be in the smallest one. */
  void note_reader(size_t input, const Table& table, const std::string& name) {
    data::SparseInput& source = graph_.sparse_inputs[input];
    if (!table.keys || (!source.table.empty() && *table.keys >= source.num_keys)) return;
    source.table = name;
    source.num_keys = *table.keys;
  }

  void add_lookup_node(GraphNode node, const Json& resolved, size_t lookup) {
    node.options = dump_json_line(resolved);
    graph_.steps.push_back({graph_.nodes.size(), nullptr, lookup});
    graph_.nodes.push_back(std::move(node));
  }

  /** The options of a lookup's table. */
  static Json table_options(const Json& layer) {
    Json options = Json::object();
    for (const char* key : {"sparse_embedding_hparam", "optimizer"})
      if (layer.contains(key)) options[key] = layer.at(key);
    return options;
  }

  const SharedTable& shared_table(const Json& layer, const std::string& table, const std::string& name,
                                  std::string_view where) {
    const Json given = table_options(layer);
    if (const auto found = shared_.find(table); found != shared_.end()) {
      TERCEL_CHECK(given.empty() || given == found->second.given, ConfigError, where, " says of the table '", table,
                   "' something else than its first lookup '", found->second.first, "'");
      return found->second;
    }
    SharedTable shared{{}, {}, {}, given, name};
    if (given.contains("sparse_embedding_hparam")) {
      const Json& hparam = given.at("sparse_embedding_hparam");
      TERCEL_CHECK(!hparam.is_object() || !hparam.contains("combiner"), ConfigError, where,
                   " the combiner of a lookup is an option beside 'table', not of the table");
      read_options(hparam, shared.parameters, str_cat({kLookup, " ", name}));
    }
    shared.optimizer = optimizer_of(layer, str_cat({kLookup, " ", name}), where);
    shared.table = add_table(table, shared.parameters, shared.optimizer, readers_of(table), where);
    return shared_.emplace(table, std::move(shared)).first->second;
  }

  /** The inputs of all lookups of a table, each once and in their order, as far as they are named correctly. */
  std::vector<size_t> readers_of(const std::string& table) const {
    std::vector<size_t> inputs;
    for (const Json& layer : *layers_) {
      if (!layer.is_object() || layer.value("type", Json()) != Json(std::string(kLookup)) ||
          layer.value("table", Json()) != Json(table))
        continue;
      const Json bottom = layer.value("bottom", Json());
      const Json& first = bottom.is_array() && !bottom.empty() ? bottom.front() : bottom;
      for (const auto& [tensor, input] : input_of_)
        if (first == Json(graph_.tensors[tensor].name)) inputs.push_back(static_cast<size_t>(input));
    }
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    return inputs;
  }

  bool has_hashed_table(const EmbeddingParameters& p, const std::vector<size_t>& inputs, std::string_view where) const {
    bool is_known = p.max_vocabulary_size_global > 0 || !p.slot_size_array.empty();
    if (!is_known) {
      is_known = p.max_vocabulary_size_global == 0;
      for (const size_t input : inputs)
        for (int64_t s = 0; s < graph_.sparse_inputs[input].slot_num; ++s)
          is_known &= schema_.slots[static_cast<size_t>(first_slot_[input] + s)].size > 0;
    }
    const bool is_hashed = p.table == TableKind::Hashed || (p.table == TableKind::Auto && !is_known);
    TERCEL_CHECK(is_hashed || (p.eviction == Eviction::None && p.admission == 1 && p.default_value == 0), ConfigError,
                 where, " eviction, admission and default_value need a hashed table");
    TERCEL_CHECK(is_hashed || p.max_vocabulary_size_global >= 0, ConfigError, where,
                 " max_vocabulary_size_global is -1, which a static table cannot have");
    return is_hashed;
  }

  static HashedTableOptions hashed_options(const EmbeddingParameters& p, const optim::OptimizerOptions& optimizer,
                                           std::string_view where) {
    HashedTableOptions options{std::max<int64_t>(0, p.max_vocabulary_size_global), p.eviction, p.admission,
                               p.default_value};
    if (p.max_vocabulary_size_global == 0 && p.workspace_size_per_gpu_in_mb > 0) {
      options.capacity = workspace_rows(p, optimizer);
      TERCEL_CHECK(options.capacity > 0, ConfigError, where, " workspace_size_per_gpu_in_mb: not even one row fits");
    }
    TERCEL_CHECK(options.capacity > 0 || options.eviction == Eviction::None, ConfigError, where,
                 " eviction needs max_vocabulary_size_global or workspace_size_per_gpu_in_mb");
    return options;
  }

  /**
   * Keys are globally unique: the table has a row for every key from the first to the last one of the slots that it is
   * for. Where the dataset does not say which there are, the options do.
   */
  KeyRange table_keys(const EmbeddingParameters& p, const std::vector<size_t>& inputs,
                      const optim::OptimizerOptions& optimizer, std::string_view where) const {
    int64_t first = INT64_MAX, end = 0, slots = 0;
    bool known = true;
    for (const size_t input : inputs) {
      slots += graph_.sparse_inputs[input].slot_num;
      for (int64_t s = 0; s < graph_.sparse_inputs[input].slot_num; ++s) {
        const data::Slot& slot = schema_.slots[static_cast<size_t>(first_slot_[input] + s)];
        known &= slot.size > 0;
        first = std::min(first, slot.first_key);
        end = std::max(end, slot.first_key + slot.size);
      }
    }
    const KeyRange keys = known ? KeyRange{first, end - first} : KeyRange{0, end};
    int64_t given = p.max_vocabulary_size_global;
    const char* option = "max_vocabulary_size_global";
    if (!p.slot_size_array.empty()) {
      TERCEL_CHECK(static_cast<int64_t>(p.slot_size_array.size()) == slots, ConfigError, where, " slot_size_array has ",
                   p.slot_size_array.size(), " entries for ", slots, " slots");
      option = "slot_size_array";
      given = 0;
      for (const int64_t size : p.slot_size_array)
        TERCEL_CHECK(!__builtin_add_overflow(given, size, &given), ConfigError, where, " slot_size_array overflows");
    }
    if (!known && given == 0) given = workspace_rows(p, optimizer);
    TERCEL_CHECK(known || given > 0, ConfigError, where,
                 " the dataset does not say how many keys its slots have: slot_size_array, "
                 "max_vocabulary_size_global or workspace_size_per_gpu_in_mb is needed");
    TERCEL_CHECK(given == 0 || given >= keys.count, ConfigError, where, " ", option, " makes ", given,
                 " rows but the dataset has ", keys.count, " keys in these slots");
    const int64_t rows = std::max(given, keys.count);
    TERCEL_CHECK(rows <= kMaxTableRows, ConfigError, where, " a table of ", rows, " rows is too large");
    return {keys.first, rows};
  }

  static nn::Init range_init(const EmbeddingParameters& p) {
    return p.init_stddev > 0 ? nn::Init::normal(p.init_stddev) : nn::Init::uniform(p.init_range);
  }

  /** The distributions of the initial values of a table's rows. */
  std::vector<RowsInit> initial_rows(const EmbeddingParameters& p, const KeyRange& keys,
                                     const std::vector<size_t>& inputs, std::string_view where) const {
    const auto by_count = [](int64_t count) {
      return nn::Init::uniform(std::sqrt(1 / static_cast<double>(std::max<int64_t>(1, count))));
    };
    switch (p.init) {
      case TableInit::Range: return {{keys.count, range_init(p)}};
      case TableInit::TableSize: return {{keys.count, by_count(keys.count)}};
      case TableInit::SlotSize: break;
    }
    std::vector<RowsInit> parts;
    int64_t done = 0;  // rows of the slots before
    std::vector<int64_t> slots;
    for (const size_t input : inputs)
      for (int64_t s = 0; s < graph_.sparse_inputs[input].slot_num; ++s) slots.push_back(first_slot_[input] + s);
    for (size_t s = 0; s < slots.size(); ++s) {
      const data::Slot& slot = schema_.slots[static_cast<size_t>(slots[s])];
      // A slot that shares the keys of earlier ones has their rows.
      if (slot.size > 0 && slot.first_key + slot.size - keys.first <= done) continue;
      TERCEL_CHECK(slot.size > 0 && slot.first_key - keys.first == done, ConfigError, where,
                   " init SlotSize: expected slots whose keys follow one another, but slot '", printable(slot.name),
                   "' has the ", slot.size, " keys from ", slot.first_key, " on");
      const int64_t size = p.slot_size_array.empty() ? slot.size : p.slot_size_array[s];
      parts.push_back({slot.size, by_count(size)});
      done += slot.size;
    }
    parts.back().rows += keys.count - done;  // of the table, without keys in the data
    return parts;
  }

  /**
   * Where the rows of the table's slots end, if they follow one another, which the keys of slots without a size do that
   * slot_size_array gives one; else the table is one slot.
   */
  std::vector<int64_t> slot_ends(const EmbeddingParameters& p, const KeyRange& keys,
                                 const std::vector<size_t>& inputs) const {
    std::vector<int64_t> ends;
    bool has_sizes = false;
    for (const size_t input : inputs)
      for (int64_t s = 0; s < graph_.sparse_inputs[input].slot_num; ++s)
        has_sizes |= schema_.slots[static_cast<size_t>(first_slot_[input] + s)].size > 0;
    if (!has_sizes && !p.slot_size_array.empty()) {
      for (const int64_t size : p.slot_size_array) ends.push_back((ends.empty() ? 0 : ends.back()) + size);
      return ends;  // table_keys() has the same rows
    }
    for (const size_t input : inputs)
      for (int64_t s = 0; s < graph_.sparse_inputs[input].slot_num; ++s) {
        const data::Slot& slot = schema_.slots[static_cast<size_t>(first_slot_[input] + s)];
        const int64_t done = ends.empty() ? 0 : ends.back(), first = slot.first_key - keys.first;
        if (slot.size > 0 && first + slot.size <= done) continue;  // it shares the keys of earlier ones
        if (slot.size <= 0 || first != done) return {keys.count};
        ends.push_back(done + slot.size);
      }
    if (ends.empty()) return {keys.count};
    ends.back() = keys.count;  // rows without keys in the data
    return ends;
  }

  /** HugeCTR's formula: the rows, of 4 bytes for each weight and state, that fit into the workspace. */
  static int64_t workspace_rows(const EmbeddingParameters& p, const optim::OptimizerOptions& optimizer) {
    const auto values = static_cast<int64_t>(1 + optim::Optimizer::state_names(optimizer).size());
    return (p.workspace_size_per_gpu_in_mb << 20) / (values * 4 * p.embedding_vec_size);
  }

  /** HugeCTR's name of an option of losses, which cannot be a name of a parameter in Python. */
  static Json with_own_names(Json layer, std::string_view where) {
    if (!layer.contains("lambda")) return layer;
    TERCEL_CHECK(!layer.contains("regularizer_lambda"), ConfigError, where,
                 " has both 'lambda' and 'regularizer_lambda'");
    layer["regularizer_lambda"] = layer.at("lambda");
    layer.erase("lambda");
    return layer;
  }

  void add_layer(const Json& given, const std::string& type) {
    const std::vector<std::string> tops = names_of(given, "top", type);
    const std::string where = str_cat({"[", type, " ", tops.front(), "]"});
    const LayerEntry* entry = nullptr;
    std::vector<std::string_view> known(std::begin(kEmbeddingTypes), std::begin(kEmbeddingTypes) + 2);
    known.push_back(kLookup);
    for (const LayerEntry& candidate : layer_entries()) {
      if (candidate.type == type) entry = &candidate;
      known.push_back(candidate.type);
    }
    TERCEL_CHECK(entry, ConfigError, where, " unknown layer type '", type, "'", known_names(type, known));
    const Json layer = entry->is_loss ? with_own_names(given, where) : given;

    GraphNode node;
    node.type = type;
    node.name = tops.front();
    BuildContext context{type, node.name, {}, parameters_};
    std::vector<std::string> bottoms;
    std::string absent;
    size_t position = 0;
    for (const std::string& bottom : names_of(layer, "bottom", where)) {
      const size_t t = find_tensor(bottom, where);
      const bool second_of_loss = entry->is_loss && position++ == 1;
      TERCEL_CHECK(graph_.tensors[t].kind != TensorKind::SparseInput, ConfigError, where, " its bottom '", bottom,
                   "' is a sparse input; an embedding is needed between them");
      TERCEL_CHECK(graph_.tensors[t].kind != TensorKind::Label || second_of_loss, ConfigError, where, " its bottom '",
                   bottom, "' is a label, which only losses may read, as the second bottom");
      TERCEL_CHECK(!is_loss(t), ConfigError, where, " its bottom '", bottom,
                   "' is a loss, which no layer may read: losses are summed");
      if (graph_.tensors[t].absent) {
        absent = bottom;
        continue;
      }
      bottoms.push_back(bottom);
      node.bottoms.push_back(t);
      context.bottoms.push_back(graph_.tensors[t].shape);
    }
    if (node.bottoms.empty()) {
      entry->check_options(layer, str_cat({type, " ", node.name}));
      for (const std::string& top : tops) graph_.tensors[add_tensor(top, {}, where)].absent = true;
      return;
    }
    TERCEL_CHECK(absent.empty() || entry->joins, ConfigError, where, " its bottom '", absent,
                 "' depends only on dense values, and the dataset has none");
    Json resolved = resolved_layer(type, bottoms, tops);
    const size_t first_parameter = parameters_.entries().size();
    GraphStep step;
    try {
      step.layer = entry->make(layer, context, resolved);
    } catch (const RuntimeError& e) {  // overflowing sizes, duplicate names of parameters
      throw_error<ConfigError>({where, " ", e.what()});
    }
    for (size_t i = first_parameter; i < parameters_.entries().size(); ++i)
      node.parameters.push_back({parameters_.entries()[i].name, DimVector(IntSpan(parameters_.entries()[i].sizes))});
    const std::vector<TensorShape>& shapes = step.layer->tops();
    TERCEL_CHECK(shapes.size() == tops.size(), ConfigError, where, " makes ", shapes.size(), " tensors, but ",
                 tops.size(), " tops are named");
    for (size_t i = 0; i < tops.size(); ++i) node.tops.push_back(add_tensor(tops[i], shapes[i], where));
    if (entry->is_loss) add_head(node, static_cast<const LossLayer&>(*step.layer), where);
    node.options = dump_json_line(resolved);
    step.node = graph_.nodes.size();
    graph_.steps.push_back(std::move(step));
    graph_.nodes.push_back(std::move(node));
  }

  void add_head(const GraphNode& node, const LossLayer& layer, std::string_view where) {
    Head head;
    head.name = node.name;
    head.loss = node.tops[0];
    head.logits = node.bottoms[0];
    head.label = node.bottoms[1];
    std::string labels;  // their tensors are the first
    for (size_t t = 0; t < first_label_.size(); ++t) labels += (t == 0 ? "'" : ", '") + graph_.tensors[t].name + "'";
    TERCEL_CHECK(graph_.tensors[head.label].kind == TensorKind::Label, ConfigError, where,
                 first_label_.size() == 1 ? " expected the label " : " expected one of the labels ", labels,
                 " as the second bottom");
    head.first_label = first_label_[head.label];
    head.label_columns = graph_.tensors[head.label].shape.sizes[0];
    head.weight = layer.weight();
    const LossOptions& options = layer.options();
    head.l1 = options.regularizer == Regularizer::L1 ? options.regularizer_lambda : 0;
    head.l2 = options.regularizer == Regularizer::L2 ? options.regularizer_lambda : 0;
    head.kind = layer.kind();
    head.columns = graph_.tensors[head.logits].shape.sizes[0];
    head.has_binary_labels = layer.has_binary_labels();
    graph_.heads.push_back(std::move(head));
  }

  const data::Schema& schema_;
  nn::ParameterArena& parameters_;
  const optim::OptimizerOptions optimizer_;  // of tables without their own
  ModelGraph graph_;
  Json data_;                           // options of Data
  std::vector<bool> read_;              // of each tensor
  std::vector<int64_t> first_label_;    // of each label's tensor: its first column
  std::map<size_t, int64_t> input_of_;  // of tensors that are sparse inputs: its number
  std::vector<int64_t> first_slot_;     // of each sparse input
  std::vector<int64_t> keys_per_slot_;  // of each sparse input: the most
  std::map<std::string, SharedTable> shared_;
  const Json* layers_ = nullptr;
  bool allow_unread_ = false;
  int64_t next_slot_ = 0;
};

}  // namespace

bool Graph::has_binary_labels() const {
  return std::all_of(heads.begin(), heads.end(), [](const Head& head) { return head.has_binary_labels; });
}

int64_t Graph::prediction_columns() const {
  int64_t columns = 0;
  for (const Head& head : heads) columns += head.columns;
  return columns;
}

ModelGraph build_graph(const ModelConfig& config, const data::Schema& schema, nn::ParameterArena& parameters) {
  const Json layers = with_sizes(parse_json(config.layers, "layers", JsonErrors::Config), schema);
  return Builder(schema, parameters, config.optimizer).build(layers);
}

}  // namespace tercel::recsys
