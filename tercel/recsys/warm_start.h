// Initial values of a new run from a trained model, also of other data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/recsys/model/model.h"
#include "tercel/recsys/prediction.h"

namespace tercel::recsys {

/** What a model took from another one. */
struct WarmStart {
  int64_t parameters = 0;              ///< dense tensors that were copied, running statistics included
  int64_t rows = 0, new_rows = 0;      ///< of the tables: copied, and with keys that the other model does not have
  std::vector<std::string> left = {};  ///< dense tensors and tables that keep their own values, with the reason
  std::vector<std::string> warnings = {};
};

/**
 * Copies the weights of `from` into an initialised model for `dataset`: dense tensors of the same name and size, and
 * rows of the tables of the same name and width, slot by slot. Rows belong together by the category where both datasets
 * have a vocabulary, by the key where neither has one or both hash into as many buckets. All others keep their initial
 * values, and optimizers begin without states. ConfigError, before anything is written, if nothing fits; DataError for
 * a damaged vocabulary.
 */
TERCEL_API WarmStart warm_start(Model& model, const data::Dataset& dataset, LoadedModel& from);

}  // namespace tercel::recsys
