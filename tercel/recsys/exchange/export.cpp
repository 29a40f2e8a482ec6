#include <utility>

#include "tercel/io/pt.h"
#include "tercel/io/safetensors.h"
#include "tercel/recsys/exchange/exchange.h"
#include "tercel/recsys/exchange/named_tensors.h"
#include "tercel/recsys/hugectr/collection_files.h"
#include "tercel/recsys/hugectr/graph_json.h"
#include "tercel/recsys/hugectr/model_files.h"
#include "tercel/recsys/model_files.h"
#include "tercel/recsys/prediction.h"
#include "tercel/recsys/table_reader.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

namespace {

/** The states of all optimizers, those of tables mapped from the checkpoint. */
hugectr::ModelStates states_of(LoadedModel& loaded) {
  hugectr::ModelStates states;
  const Checkpoint checkpoint(loaded.checkpoint, Verify::Sizes);
  const optim::Optimizer dense(loaded.config.optimizer, loaded.model.parameters().weights());
  checkpoint.read(dense_file(loaded.model, dense));
  states.dense = dense.states();
  const EmbeddingCollection& embeddings = loaded.model.embeddings();
  const TableReader reader(loaded.model, checkpoint);
  for (size_t t = 0; t < embeddings.tables().size(); ++t) {
    states.tables.push_back(reader.states(t));
    states.tables.back().resize(hugectr::states_in_file(embeddings.optimizer(t)));
  }
  return states;
}

void export_hugectr(LoadedModel& loaded, const std::string& out) {
  AtomicDir folder(out);
  const std::string to = folder.temporary_path();
  hugectr::write_snapshot({join_path(to, "model"), loaded.step}, loaded.model, states_of(loaded));
  const std::vector<hugectr::CollectionTable> shared = hugectr::collection_of(loaded.model);
  if (!shared.empty()) hugectr::write_collection(join_path(to, "embedding_collection_0"), shared, /*wide_keys=*/true);
  write_file_atomically(join_path(to, "graph.json"), hugectr::graph_json(loaded.config, loaded.model));
  folder.commit();
}

}  // namespace

ExportedModel export_model(const std::string& run, const std::string& out, ModelFormat format) {
  check_local(out);
  LoadedModel loaded = load_model(run);
  TERCEL_CHECK(!exists(out) || (format == ModelFormat::HugeCtr && is_directory(out) && list_dir(out).empty()), IoError,
               printable(out), ": expected the name of a new ", format == ModelFormat::HugeCtr ? "folder" : "file",
               ", but it exists");
  ExportedModel exported{loaded.checkpoint, loaded.step, 0, 0, loaded.warnings};
  for (const auto& entry : loaded.model.parameters().entries()) exported.parameters += numel_of(IntSpan(entry.sizes));
  for (const auto& table : loaded.model.embeddings().tables())
    exported.rows += table->rows() - table->rows_without_key();
  switch (format) {
    case ModelFormat::HugeCtr: export_hugectr(loaded, out); break;
    case ModelFormat::Safetensors:
      io::save_safetensors(
          out, named_tensors(loaded.model),
          {{"format", "pt"}, {"model_name", loaded.config.model_name}, {"step", std::to_string(loaded.step)}});
      break;
    case ModelFormat::StateDict: {
      std::vector<std::pair<std::string, Tensor>> tensors;
      for (io::NamedTensor& tensor : named_tensors(loaded.model))
        tensors.emplace_back(std::move(tensor.name), std::move(tensor.tensor));
      io::save_pt(out, io::Value::state_dict(tensors));
      break;
    }
  }
  return exported;
}

}  // namespace tercel::recsys
