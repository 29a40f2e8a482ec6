#include "tercel/recsys/model_files.h"

namespace tercel::recsys {

namespace {

/** Adds the parameters' parts of an arena-sized tensor, under their names. */
void add_parts(CheckpointFile& file, const nn::ParameterArena& arena, const Tensor& all, const std::string& suffix) {
  for (const auto& entry : arena.entries())
    file.tensors.push_back(
        {entry.name + suffix,
         Tensor(make_intrusive<TensorImpl>(all.storage(), all.dtype(), IntSpan(entry.sizes),
                                           contiguous_strides(entry.sizes), all.storage_offset() + entry.offset))});
}

}  // namespace

CheckpointFile dense_file(Model& model) {
  CheckpointFile file{"dense", {}};
  add_parts(file, model.parameters(), model.parameters().weights(), "");
  for (const auto& [name, tensor] : model.buffers()) file.tensors.push_back({name, tensor});
  return file;
}

std::string table_file(size_t table) { return "table-" + std::to_string(table); }

namespace {

std::string state_name(const EmbeddingTable& table, const char* state) { return table.name() + "/" + state; }

}  // namespace

CheckpointFile dense_file(Model& model, const optim::Optimizer& dense) {
  CheckpointFile file = dense_file(model);
  const auto names = optim::Optimizer::state_names(dense.options().type);
  for (size_t i = 0; i < names.size(); ++i)
    add_parts(file, model.parameters(), dense.states()[i], std::string("/") + names[i]);
  return file;
}

std::vector<CheckpointFile> training_files(Model& model, const optim::Optimizer& dense) {
  std::vector<CheckpointFile> files{dense_file(model, dense)};
  const EmbeddingCollection& embeddings = model.embeddings();
  for (size_t t = 0; t < embeddings.tables().size(); ++t) {
    const EmbeddingTable& table = *embeddings.tables()[t];
    CheckpointFile& file = files.emplace_back(CheckpointFile{table_file(t), {{table.name(), table.weight()}}});
    file.all_rows = table.rows_of_all_ranks();
    if (!table.shard().is_whole()) file.shard = table.shard().runs();
    const auto names = optim::Optimizer::state_names(embeddings.optimizer(t));
    for (size_t i = 0; i < names.size(); ++i)
      file.tensors.push_back({state_name(table, names[i]), table.store().states()[i]});
    if (const Tensor history = embeddings.history(t); history.defined())
      file.others.push_back({table.name() + "/history", history});
    const std::vector<Tensor> keys = table.key_state();
    for (size_t i = 0; i < keys.size(); ++i)
      file.others.push_back({state_name(table, table.key_state_names()[i]), keys[i]});
  }
  return files;
}

}  // namespace tercel::recsys
