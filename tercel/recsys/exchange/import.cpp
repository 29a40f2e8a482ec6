#include <algorithm>
#include <utility>

#include "tercel/autograd/grad_mode.h"
#include "tercel/io/pt.h"
#include "tercel/io/safetensors.h"
#include "tercel/ops/common/copy.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/exchange/exchange.h"
#include "tercel/recsys/exchange/named_tensors.h"
#include "tercel/recsys/hugectr/collection_files.h"
#include "tercel/recsys/hugectr/model_files.h"
#include "tercel/recsys/hugectr/session_states.h"
#include "tercel/recsys/run_folder_impl.h"
#include "tercel/recsys/run_plan.h"
#include "tercel/recsys/session.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

namespace {

std::vector<io::NamedTensor> load_state_dict(const std::string& path) {
  std::vector<io::NamedTensor> tensors;
  try {
    for (auto& [name, tensor] : io::load_pt(path).to_state_dict()) tensors.push_back({name, tensor});
  } catch (const TypeError& e) {
    throw_error<DataError>({printable(path), ": expected a dict of tensors with names: ", e.what()});
  }
  return tensors;
}

/** The file of dense weights that `files` names, or that the folder `files` has. */
hugectr::SnapshotName find_snapshot(const std::string& files) {
  if (!is_directory(files)) return hugectr::snapshot_of(files);
  std::vector<std::string> found;
  for (const std::string& name : list_dir(files))
    if (name.ends_with(".model") && name.find("_dense_") != std::string::npos &&
        name.find("_opt_dense_") == std::string::npos)
      found.push_back(join_path(files, name));
  TERCEL_CHECK(found.size() == 1, DataError, printable(files),
               ": expected one file of dense weights, PREFIX_dense_N.model, found ", found.size(),
               found.empty() ? "" : ": name one of them, as in " + printable(found.back()));
  return hugectr::snapshot_of(found.front());
}

/** Reads a snapshot into a session. */
class SnapshotReader {
 public:
  SnapshotReader(Session& session, hugectr::SnapshotName name)
      : session_(session), model_(session.model()), name_(std::move(name)), rows_(tables().size()) {}

  ImportedModel read() {
    const bool has_statistics = std::any_of(model_.graph().nodes.begin(), model_.graph().nodes.end(),
                                            [](const GraphNode& node) { return node.type == "BatchNorm"; });
    TERCEL_CHECK(!has_statistics || exists(name_.statistics()), DataError, printable(name_.statistics()),
                 ": expected the running statistics of BatchNorm layers, found no such file");
    hugectr::read_dense(name_.dense(), model_);
    nodes_ = hugectr::nodes_with_table(model_);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const size_t t = table_of(i);
      rows_[t] = hugectr::read_table(name_.table(i), *tables()[t]);
    }
    read_collection();
    if (imported_.has_states) read_states();
    for (size_t t = 0; t < tables().size(); ++t) {
      imported_.rows += rows_[t].count;
      imported_.initial_rows += tables()[t]->rows() - tables()[t]->rows_without_key() - rows_[t].count;
    }
    return imported_;
  }

 private:
  const std::vector<std::unique_ptr<EmbeddingTable>>& tables() { return model_.embeddings().tables(); }
  size_t table_of(size_t i) const { return static_cast<size_t>(model_.graph().nodes[nodes_[i]].table); }

  /** HugeCTR keeps no states of it. */
  void read_collection() {
    const std::vector<hugectr::CollectionTable> shared = hugectr::collection_of(model_);
    imported_.has_states = shared.empty() && exists(name_.dense_states());
    if (shared.empty()) return;
    const std::string folder = join_path(parent_path(name_.dense()), "embedding_collection_0");
    const std::vector<RowOrder> rows = hugectr::read_collection(folder, shared);
    for (size_t i = 0; i < shared.size(); ++i)
      for (size_t t = 0; t < tables().size(); ++t)
        if (tables()[t].get() == shared[i].table) rows_[t] = rows[i];
  }

  void read_states() {
    const hugectr::ModelStates states = hugectr::states_of(session_);
    hugectr::read_dense_states(name_.dense_states(), model_, states.dense,
                               optim::Optimizer::state_names(session_.config().optimizer.type));
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const size_t t = table_of(i);
      hugectr::read_table_states(name_.table_states(i), *tables()[t], states.tables[t], rows_[t]);
    }
    imported_.step = name_.iteration;
  }

  Session& session_;
  Model& model_;
  hugectr::SnapshotName name_;
  std::vector<size_t> nodes_;
  std::vector<RowOrder> rows_;  // of each table
  ImportedModel imported_;
};

ImportedModel read_files(Session& session, const std::string& files, ModelFormat format) {
  const NoGradGuard guard;
  if (format == ModelFormat::HugeCtr) return SnapshotReader(session, find_snapshot(files)).read();
  ImportedModel imported;
  imported.rows = set_named_tensors(
      session.model(), format == ModelFormat::Safetensors ? io::load_safetensors(files) : load_state_dict(files),
      files);
  return imported;
}

}  // namespace

ImportedModel import_model(const ModelConfig& config, const data::Dataset& dataset, const std::string& files,
                           ModelFormat format, const std::string& path) {
  check_local(path);
  TERCEL_CHECK(exists(files), IoError, printable(files), ": expected a model's files, found nothing of that name");
  const RunPlan plan = plan_run(config, dataset);
  Session session(plan.config, dataset);
  const RunFolder folder = RunFolder::of_new_run(path);
  LockedFolder lock(folder);
  TERCEL_CHECK(list_checkpoints(folder.checkpoints()).empty(), ConfigError, printable(path),
               ": already contains a run; choose another folder");
  session.initialize();
  ImportedModel imported = read_files(session, files, format);
  session.begin_after(imported.step);
  folder.write_config(plan.config);
  folder.write_description(dataset);
  CheckpointStore store(folder.checkpoints(), plan.config.solver.keep_checkpoints);
  session.save(store);
  lock.keep();
  imported.checkpoint = store.latest().value_or("");
  return imported;
}

}  // namespace tercel::recsys
