// Trained models in files of other programs, and runs made of such files.
//
// Note [Files of other programs]
// HugeCtr is a folder: graph.json and, as HugeCTR names them, model_dense_N.model, model0_sparse_N.model and so on, of
// step N, with the states of the optimizers, and embedding_collection_0 of tables that lookups share. Safetensors and
// StateDict are one file of named_tensors(), without states. HugeCTR keeps no step of Adam, but its files are named by
// it: an imported model goes on behind step N.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/recsys/model/config.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"

namespace tercel::recsys {

/** See Note [Files of other programs]. */
enum class ModelFormat : uint8_t { HugeCtr, Safetensors, StateDict };

constexpr auto enum_names(ModelFormat) {
  return std::to_array<EnumName<ModelFormat>>({{ModelFormat::HugeCtr, "hugectr"},
                                               {ModelFormat::Safetensors, "safetensors"},
                                               {ModelFormat::StateDict, "state_dict"}});
}

struct ExportedModel {
  std::string checkpoint;  ///< that was read
  int64_t step = 0;
  int64_t parameters = 0;                  ///< numbers of the dense weights
  int64_t rows = 0;                        ///< of all tables
  std::vector<std::string> warnings = {};  ///< about damaged checkpoints that were passed over
};

/**
 * Writes the best checkpoint of a run, or a given checkpoint, to a new file or folder, which appears complete or not at
 * all. IoError if there is something at `out`; DataError as load_model(); ValueError as named_tensors().
 */
TERCEL_API ExportedModel export_model(const std::string& run, const std::string& out, ModelFormat format);

struct ImportedModel {
  std::string checkpoint;    ///< that was written
  int64_t step = 0;          ///< of it: 0 without states of optimizers
  int64_t rows = 0;          ///< of the tables that the files have
  int64_t initial_rows = 0;  ///< of the tables that the files do not have, which keep their initial values
  bool has_states = false;   ///< the states of the optimizers came with it
};

/**
 * Makes a run folder, with one checkpoint, of a model in files: a .safetensors or .pt file or, of HugeCTR's, the file
 * PREFIX_dense_N.model, which the others are beside, or a folder with one such file. The configuration is that of the
 * model, and the dataset what it is trained on: a run is made as Trainer makes one, so that it can be evaluated,
 * resumed, and begun with. ConfigError if the folder has a run; DataError, and no run, for files that are damaged or
 * of another model: each size, name and key is checked, and each number must be finite.
 */
TERCEL_API ImportedModel import_model(const ModelConfig& config, const data::Dataset& dataset, const std::string& files,
                                      ModelFormat format, const std::string& folder);

}  // namespace tercel::recsys
