#include "tercel/recsys/table_reader.h"

#include <algorithm>
#include <cstring>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/recsys/model_files.h"

namespace tercel::recsys {

namespace {

// Positions in HashedTable::key_state().
constexpr size_t kKeys = 0, kFree = 1, kWaiting = 2, kScores = 3, kCounters = 4;

Span<int64_t> elements(const Tensor& t) { return {t.data<int64_t>(), static_cast<size_t>(t.numel())}; }

Tensor tensor_of(const std::vector<int64_t>& values, IntSpan sizes) {
  const Tensor t = empty(sizes, kInt64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return t;
}

Tensor tensor_of(const std::vector<int64_t>& values) {
  return tensor_of(values, {static_cast<int64_t>(values.size())});
}

/** What a file has of a table's keys. */
struct FileKeys {
  std::string file;
  std::vector<Tensor> state;
  std::vector<int64_t> rows;  // whose keys this table has, but for the first row
  bool has_others = false;    // keys of other ranks
};

/** The keys of several files together. */
std::vector<Tensor> joined_keys(const std::vector<FileKeys>& files, const EmbeddingTable& table) {
  std::vector<int64_t> keys = {0}, waiting, scores = {0}, counters;
  for (const FileKeys& file : files) {
    const Span<int64_t> file_keys = elements(file.state[kKeys]), file_scores = elements(file.state[kScores]),
                        file_waiting = elements(file.state[kWaiting]), file_counters = elements(file.state[kCounters]);
    for (const int64_t row : file.rows) {
      keys.push_back(file_keys[static_cast<size_t>(row)]);
      scores.push_back(file_scores.size() == file_keys.size() ? file_scores[static_cast<size_t>(row)] : 0);
    }
    for (size_t i = 0; i + 1 < file_waiting.size(); i += 2)
      if (table.shard().is_own(file_waiting[i])) waiting.insert(waiting.end(), {file_waiting[i], file_waiting[i + 1]});
    counters.resize(std::max(counters.size(), file_counters.size()), 0);
    // The first one is the number of the step, the same on all ranks; the others add up, on one of them.
    for (size_t i = 0; i < file_counters.size(); ++i) {
      if (i == 0)
        counters[i] = std::max(counters[i], file_counters[i]);
      else if (table.shard().is_first())
        counters[i] += file_counters[i];
    }
  }
  if (!table.evicts()) scores.clear();
  const auto pairs = static_cast<int64_t>(waiting.size() / 2);
  return {tensor_of(keys), tensor_of({}), tensor_of(waiting, {pairs, 2}), tensor_of(scores), tensor_of(counters)};
}

std::string state_name(const EmbeddingTable& table, const char* state) { return table.name() + "/" + state; }

}  // namespace

TableReader::TableReader(Model& model, const Checkpoint& checkpoint) : model_(model), checkpoint_(checkpoint) {
  for (size_t t = 0; t < model.embeddings().tables().size(); ++t) tables_.push_back(find_keys(t));
}

TableReader::GrowingTable TableReader::find_keys(size_t t) const {
  const EmbeddingTable& table = *model_.embeddings().tables()[t];
  if (table.key_state_names().empty()) return {};
  std::vector<FileKeys> files;
  for (const FileShard& shard : checkpoint_.shards(table_file(t))) files.push_back({shard.name, {}, {}});
  if (files.empty()) files.push_back({table_file(t), {}, {}});
  for (FileKeys& file : files) {
    for (const char* name : table.key_state_names())
      file.state.push_back(checkpoint_.read(file.file, state_name(table, name), kInt64));
    const auto check = [&](bool is_right, const char* what) {
      TERCEL_CHECK(is_right, DataError, checkpoint_.folder(), ": embedding table '", table.name(),
                   "': the state of its keys in ", file.file, " is damaged: ", what);
    };
    const Span<int64_t> keys = elements(file.state[kKeys]), waiting = elements(file.state[kWaiting]);
    check(!keys.empty(), "expected at least one row");
    std::vector<bool> is_free(keys.size(), false);
    is_free[0] = true;
    for (const int64_t row : elements(file.state[kFree])) {
      check(row > 0 && row < static_cast<int64_t>(keys.size()), "a free row is out of range");
      is_free[static_cast<size_t>(row)] = true;
    }
    for (size_t row = 0; row < keys.size(); ++row) {
      if (is_free[row]) continue;
      if (table.shard().is_own(keys[row]))
        file.rows.push_back(static_cast<int64_t>(row));
      else
        file.has_others = true;
    }
    for (size_t i = 0; i < waiting.size(); i += 2) file.has_others |= !table.shard().is_own(waiting[i]);
  }
  // The shard of the same rank, or a whole file for a whole table.
  const auto is_needed = [](const FileKeys& file) { return !file.rows.empty(); };
  const auto needed = std::count_if(files.begin(), files.end(), is_needed);
  const auto first = std::find_if(files.begin(), files.end(), is_needed);
  if (files.size() == 1 && !files[0].has_others) return {files[0].state, {{files[0].file, 0, {}}}, true};
  if (needed == 1 && !first->has_others) return {first->state, {{first->file, 0, {}}}, true};
  GrowingTable found{joined_keys(files, table), {}, false};
  for (FileKeys& file : files) found.sources.push_back({file.file, file.state[kKeys].numel(), std::move(file.rows)});
  return found;
}

void TableReader::set_keys() const {
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].keys.empty()) continue;
    try {
      model_.embeddings().tables()[t]->set_key_state(tables_[t].keys);
    } catch (const DataError& e) {
      throw_error<DataError>({checkpoint_.folder(), ": ", e.what()});
    }
  }
}

Tensor TableReader::rows(size_t t, const std::string& name, int64_t width) const {
  const EmbeddingTable& table = *model_.embeddings().tables()[t];
  const GrowingTable& growing = tables_[t];
  const ScalarType dtype = checkpoint_.dtype();
  if (growing.keys.empty()) return checkpoint_.map(table_file(t), name, dtype, {table.rows(), width});
  if (growing.is_as_in_file)
    return checkpoint_.map(growing.sources[0].file, name, dtype, {growing.keys[kKeys].numel(), width});
  const Tensor all = empty({growing.keys[kKeys].numel(), width}, dtype);
  const size_t bytes = static_cast<size_t>(width) * item_size(dtype);
  auto* target = static_cast<std::byte*>(all.data_ptr());
  for (size_t s = 0; s < growing.sources.size(); ++s) {
    const Source& source = growing.sources[s];
    const Tensor part = checkpoint_.map(source.file, name, dtype, {source.count, width});
    const auto* const from = static_cast<const std::byte*>(part.data_ptr());
    const auto copy = [&](int64_t row) {
      std::memcpy(target, from + static_cast<size_t>(row) * bytes, bytes);
      target += bytes;
    };
    if (s == 0) copy(0);  // that of keys without a row, the same in all of them
    for (const int64_t row : source.rows) copy(row);
  }
  return all;
}

void TableReader::read(size_t t, const CheckpointFile& file) const {
  const NoGradGuard no_grad;
  const GrowingTable& growing = tables_[t];
  if (growing.keys.empty() || (growing.is_as_in_file && growing.sources[0].file == file.name))
    return checkpoint_.read(file);
  for (const io::NamedTensor& tensor : file.tensors)
    copy_(tensor.tensor.detach(), rows(t, tensor.name, tensor.tensor.size(1)));
}

Tensor TableReader::weight(size_t t) const {
  const EmbeddingTable& table = *model_.embeddings().tables()[t];
  return rows(t, table.name(), table.dim());
}

std::vector<Tensor> TableReader::states(size_t t) const {
  const EmbeddingTable& table = *model_.embeddings().tables()[t];
  const optim::OptimizerOptions& optimizer = model_.embeddings().optimizer(t);
  const auto names = optim::Optimizer::state_names(optimizer);
  const size_t per_row = optim::Optimizer::row_states(optimizer);
  std::vector<Tensor> states;
  for (size_t i = 0; i < names.size(); ++i)
    states.push_back(rows(t, state_name(table, names[i]), i + per_row < names.size() ? table.dim() : 1));
  return states;
}

}  // namespace tercel::recsys
