// Tables in HugeCTR's files, and the states of their optimizers.
#include <algorithm>
#include <optional>
#include <utility>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/hugectr/model_files.h"
#include "tercel/recsys/hugectr/raw_values_impl.h"
#include "tercel/recsys/hugectr/table_vectors_impl.h"
#include "tercel/recsys/ranks.h"
#include "tercel/recsys/table_order.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::recsys::hugectr {

namespace {

constexpr const char* kKeys = "key";
constexpr const char* kVectors = "emb_vector";
constexpr const char* kSlots = "slot_id";
constexpr const char* kLookup = "EmbeddingLookup";

Span<int64_t> elements(const Tensor& t) { return {t.data<int64_t>(), static_cast<size_t>(t.numel())}; }

/** The first keys of the slots of a node's input, ascending; none where nothing says them. */
std::vector<int64_t> slot_starts(const Model& model, const GraphNode& node) {
  const data::Schema& schema = model.schema();
  const std::string& input = model.graph().tensors[node.bottoms[0]].name;
  size_t first = 0, count = 0;
  for (const data::SparseInput& candidate : model.sparse_inputs()) {
    count = static_cast<size_t>(candidate.slot_num);
    if (candidate.name == input) break;
    first += count;
  }
  const auto begin = schema.slots.begin() + static_cast<int64_t>(first), end = begin + static_cast<int64_t>(count);
  std::vector<int64_t> starts;
  if (std::all_of(begin, end, [](const data::Slot& slot) { return slot.size > 0; })) {
    for (auto slot = begin; slot != end; ++slot) starts.push_back(slot->first_key);
    return starts;
  }
  // Keys of such files continue from slot to slot.
  const Json options = parse_json(node.options, "layers", JsonErrors::Config);
  const Json sizes = options.at("sparse_embedding_hparam").value("slot_size_array", Json::array());
  if (sizes.size() != count) return starts;
  int64_t start = 0;
  for (const Json& size : sizes) {
    starts.push_back(start);
    start += size.get<int64_t>();
  }
  return starts;
}

}  // namespace

std::string SnapshotName::dense() const { return str_cat({prefix, "_dense_", iteration, ".model"}); }
std::string SnapshotName::statistics() const { return dense() + ".ntp.json"; }
std::string SnapshotName::dense_states() const { return str_cat({prefix, "_opt_dense_", iteration, ".model"}); }
std::string SnapshotName::table(size_t i) const { return str_cat({prefix, i, "_sparse_", iteration, ".model"}); }
std::string SnapshotName::table_states(size_t i) const {
  return str_cat({prefix, i, "_opt_sparse_", iteration, ".model"});
}

SnapshotName snapshot_of(const std::string& path) {
  constexpr std::string_view kMiddle = "_dense_", kEnd = ".model";
  constexpr size_t kMostDigits = 12;  // of a checkpoint's step
  const size_t middle = path.rfind(kMiddle);
  SnapshotName name;
  bool is_right = middle != std::string::npos && path.ends_with(kEnd);
  if (is_right) {
    const size_t first = middle + kMiddle.size(), end = path.size() - kEnd.size();
    const std::string digits = first <= end ? path.substr(first, end - first) : "";
    is_right =
        !digits.empty() && digits.size() <= kMostDigits && digits.find_first_not_of("0123456789") == std::string::npos;
    if (is_right) name = {path.substr(0, middle), std::stoll(digits)};
  }
  TERCEL_CHECK(is_right && name.dense() == path, DataError, printable(path),
               ": expected the file of dense weights, PREFIX_dense_N.model, whose other files are beside it");
  return name;
}

size_t states_in_file(const optim::OptimizerOptions& optimizer) {
  return optim::Optimizer::state_names(optimizer.type).size();
}

std::vector<size_t> nodes_with_table(const Model& model) {
  std::vector<size_t> found;
  const std::vector<GraphNode>& nodes = model.graph().nodes;
  for (size_t n = 0; n < nodes.size(); ++n)
    if (nodes[n].table >= 0 && nodes[n].type != kLookup) found.push_back(n);
  return found;
}

void write_table(const std::string& folder, EmbeddingTable& table, distributed::ProcessGroup* group) {
  std::optional<AtomicFile> keys, vectors;
  do_on_first(group, [&] {
    create_dirs(folder);
    keys.emplace(join_path(folder, kKeys));
    vectors.emplace(join_path(folder, kVectors));
  });
  const RowOrder order = order_of_keys(table, group);
  take_keys(order, group, [&](const Tensor& window) { keys->write(window.data_ptr(), window.nbytes()); });
  take_rows(order, group, table.weight().detach(),
            [&](const Tensor& window) { write_floats(vectors->writer(), window); });
  do_on_first(group, [&] {
    keys->commit();
    vectors->commit();
  });
}

void write_slots(const std::string& folder, const Model& model, size_t node, EmbeddingTable& table,
                 distributed::ProcessGroup* group) {
  std::vector<int64_t> starts = slot_starts(model, model.graph().nodes[node]);
  if (table.rows_without_key() > 0) starts.clear();
  std::optional<AtomicFile> file;
  do_on_first(group, [&] { file.emplace(join_path(folder, kSlots)); });
  take_keys(order_of_keys(table, group), group, [&](const Tensor& window) {
    std::vector<uint64_t> slots;
    slots.reserve(static_cast<size_t>(window.numel()));
    for (const int64_t key : elements(window)) {
      const auto behind = std::upper_bound(starts.begin(), starts.end(), key) - starts.begin();
      slots.push_back(static_cast<uint64_t>(std::max<int64_t>(0, behind - 1)));
    }
    file->write(slots.data(), slots.size() * sizeof(uint64_t));
  });
  do_on_first(group, [&] { file->commit(); });
}

namespace {

/** The files of a folder, with sizes that fit each other. */
VectorFiles open_table(const std::string& folder, const EmbeddingTable& table) {
  const std::string path = join_path(folder, kKeys), slots = join_path(folder, kSlots);
  const int64_t size = file_size(path), each = sizeof(int64_t);
  TERCEL_CHECK(size % each == 0, DataError, printable(path), ": expected keys of 8 bytes, found ", format_count(size),
               " bytes");
  const int64_t count = size / each;
  ValuesFile keys(path, kInt64, count, str_cat({format_count(count), " keys"}));
  if (exists(slots))
    TERCEL_CHECK(file_size(slots) == size, DataError, printable(slots), ": expected ", format_count(size),
                 " bytes, the slots of ", format_count(count), " keys, found ", format_count(file_size(slots)));
  int64_t numbers = 0;
  TERCEL_CHECK(!__builtin_mul_overflow(count, table.dim(), &numbers), DataError, printable(path), ": has ", count,
               " keys, too many");
  ValuesFile vectors(join_path(folder, kVectors), kFloat32, numbers,
                     str_cat({"vectors of ", table.dim(), " numbers for ", format_count(count), " keys"}));
  return {path, count, std::move(keys), /*wide_keys=*/true, std::move(vectors)};
}

/** The rows of a rank in each state of a file: the state, which of its rows, and what the file has of them. */
void for_each_state(const ValuesFile& file, Span<Tensor> states, const RowOrder& order,
                    FunctionRef<void(const Tensor& state, const Tensor& rows, const Tensor& values)> f) {
  int64_t start = 0;  // of a state, in the file
  for (const Tensor& state : states) {
    const int64_t width = state.size(1), part = std::max<int64_t>(1, kPartElements / std::max<int64_t>(1, width));
    for (int64_t begin = 0; begin < order.count; begin += part) {
      const int64_t n = std::min(part, order.count - begin);
      const RowRun own = order.within(begin, begin + n);
      if (own.count == 0) continue;
      Tensor values = file.read(start + begin * width, n * width).view({n, width});
      if (order.places.defined()) {
        Tensor places = order.places.narrow(0, own.first, own.count).clone();
        for (int64_t i = 0; i < own.count; ++i) places.data<int64_t>()[i] -= begin;
        values = index_select(values, 0, places);
      }
      f(state, order.rows.narrow(0, own.first, own.count), values);
    }
    start += order.count * width;
  }
}

}  // namespace

RowOrder read_table(const std::string& folder, EmbeddingTable& table, distributed::ProcessGroup* group) {
  return set_file_vectors([&] { return open_table(folder, table); }, table, group);
}

void write_table_states(const std::string& path, EmbeddingTable& table, Span<Tensor> states,
                        distributed::ProcessGroup* group) {
  std::optional<AtomicFile> file;
  do_on_first(group, [&] { file.emplace(path); });
  const RowOrder order = order_of_keys(table, group);
  for (const Tensor& state : states)
    take_rows(order, group, state, [&](const Tensor& window) { write_floats(file->writer(), window); });
  do_on_first(group, [&] { file->commit(); });
}

void read_table_states(const std::string& path, const EmbeddingTable& table, Span<Tensor> states, const RowOrder& rows,
                       distributed::ProcessGroup* group) {
  const NoGradGuard guard;
  std::optional<ValuesFile> file;
  do_together(group, [&] {
    int64_t width = 0;
    for (const Tensor& state : states) width += state.size(1);
    const std::string name = str_cat({"'", printable(table.name()), "'"});
    file.emplace(path, kFloat32, rows.count * width,
                 str_cat({states.size(), states.size() == 1 ? " state of " : " states of ", format_count(rows.count),
                          " rows of ", name}));
    for_each_state(*file, states, rows, [&](const Tensor&, const Tensor&, const Tensor& values) {
      check_finite(path, values, "the states of " + name);
    });
  });
  do_together(group, [&] {
    for_each_state(*file, states, rows, [](const Tensor& state, const Tensor& of, const Tensor& values) {
      index_copy_(state, 0, of, to(values, state.dtype()));
    });
  });
}

void write_snapshot(const SnapshotName& name, Model& model, const ModelStates& states,
                    distributed::ProcessGroup* group) {
  do_on_first(group, [&] {
    write_dense(name, model);
    write_dense_states(name.dense_states(), model, states.dense);
  });
  const std::vector<size_t> nodes = nodes_with_table(model);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const GraphNode& node = model.graph().nodes[nodes[i]];
    const auto t = static_cast<size_t>(node.table);
    EmbeddingTable& table = *model.embeddings().tables()[t];
    write_table(name.table(i), table, group);
    if (node.type == "LocalizedSlotSparseEmbeddingHash") write_slots(name.table(i), model, nodes[i], table, group);
    write_table_states(name.table_states(i), table, states.tables[t], group);
  }
}

}  // namespace tercel::recsys::hugectr
