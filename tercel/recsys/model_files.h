// The files of a model in a checkpoint: which tensors are in which, and their names.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tercel/optim/optimizer.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/model/model.h"

namespace tercel::recsys {

/** The part of the first file that prediction needs, as views: dense weights and buffers. */
TERCEL_API CheckpointFile dense_file(Model& model);
/** The whole first file, as views: also the states of the dense weights' optimizer. */
TERCEL_API CheckpointFile dense_file(Model& model, const optim::Optimizer& dense);
/** The name of a table's file, by its number in the graph; the table has the name of its layer there. */
TERCEL_API std::string table_file(size_t table);
/**
 * Everything that training needs: dense weights, the states of their optimizer and buffers in one file, each table with
 * its states in another, or what the model has of it. All are views, except for the keys of tables that grow:
 * TableReader reads those.
 */
TERCEL_API std::vector<CheckpointFile> training_files(Model& model, const optim::Optimizer& dense);

}  // namespace tercel::recsys
