// Identity of a training run: model, options, data, instruction set and version.
//
// Every checkpoint contains it, so that no run is resumed or evaluated under another identity silently.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/data/data_identity.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/model.h"

namespace tercel::recsys {

struct RunIdentity {
  ModelConfig config;  ///< resolved: layers have every option written out, see Model::layers()
  data::DataIdentity data;
  std::string instruction_set;  ///< of the kernels: "avx2"
  std::string tercel_version;
};

/** The identity of a run of this process; `config` and `dataset` are what `model` was built from. */
TERCEL_API RunIdentity identity_of_run(const ModelConfig& config, const Model& model, const data::Dataset& dataset);

/** Whether a run may continue with other rows than its checkpoint's. */
enum class NewData : uint8_t { Refuse, Accept };

/** Result of check_resume(). */
struct ResumeCheck {
  std::vector<std::string> warnings;  ///< accepted differences, one line each
  bool new_train_rows = false;        ///< they are read from the first row; steps and learning rate continue
};

/**
 * Compares a run with the one that wrote a checkpoint in `folder`, for `dataset_name`'s rows. ConfigError for other
 * layers, another optimizer type or (unless the train rows are new) batch size; DataError for data with another
 * meaning, and for other rows unless they are accepted. Every other difference is a warning.
 */
TERCEL_API ResumeCheck check_resume(const RunIdentity& checkpoint, const RunIdentity& run, NewData new_data,
                                    const std::string& folder, const std::string& dataset_name);

}  // namespace tercel::recsys
