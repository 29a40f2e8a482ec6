// HugeCTR's files of a model: dense weights, tables and states of optimizers, read with the checks that it lacks.
//
// Dense weights are all parameters in the order of the layers, float32 without a header, and beside them the running
// statistics of BatchNorm layers as JSON. A table is a folder with its keys (`key`, int64), their vectors
// (`emb_vector`, float32) and, of a LocalizedSlot embedding, their slots (`slot_id`, uint64). States of the dense
// weights' optimizer are as long as the weights each, and padded to 256 bytes but for the last; those of a table are
// parallel to its keys.
//
// With several ranks, functions that take a group write and read the rows of all of them: all ranks call them, rank 0
// writes, each rank reads its own rows, and an error of one is thrown on all (Note [Rows in the order of keys]).
// docs/guide/from_hugectr.md says how they are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/distributed/process_group.h"
#include "tercel/recsys/embedding/embedding_table.h"
#include "tercel/recsys/model/model.h"
#include "tercel/recsys/table_order.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::recsys::hugectr {

/** The names of the files that belong together. */
struct SnapshotName {
  std::string prefix;
  int64_t iteration = 0;  ///< steps that were trained

  TERCEL_API std::string dense() const;         ///< PREFIX_dense_N.model
  TERCEL_API std::string statistics() const;    ///< PREFIX_dense_N.model.ntp.json
  TERCEL_API std::string dense_states() const;  ///< PREFIX_opt_dense_N.model
  /** The folder PREFIX<i>_sparse_N.model of the i-th table. */
  TERCEL_API std::string table(size_t i) const;
  TERCEL_API std::string table_states(size_t i) const;  ///< PREFIX<i>_opt_sparse_N.model
};

/** The names of which `path` is dense(); DataError if it is not of that form. */
TERCEL_API SnapshotName snapshot_of(const std::string& path);

/** The states of all optimizers of a model. */
struct ModelStates {
  std::vector<Tensor> dense;                ///< each as long as ParameterArena::weights()
  std::vector<std::vector<Tensor>> tables;  ///< of each table: [rows, dim], or [rows, 1] of RowWiseAdaGrad
};

/**
 * How many states of a table's optimizer its file has: those of the rule. The last steps of LazyGlobal's rows are not
 * among them; HugeCTR does not keep them either.
 */
TERCEL_API size_t states_in_file(const optim::OptimizerOptions& optimizer);

/** Nodes of the graph whose tables have files of their own, in the order of their numbers: not lookups of a collection.
 */
TERCEL_API std::vector<size_t> nodes_with_table(const Model& model);

/** Writes dense weights and, if layers have some, running statistics. */
TERCEL_API void write_dense(const SnapshotName& name, Model& model);
/**
 * Sets the dense weights from a file, and the running statistics from that beside it, if there is one. DataError, and
 * no change, for a file of another size, statistics of other layers, and numbers that are not finite.
 */
TERCEL_API void read_dense(const std::string& path, Model& model);

/** Writes the states of the dense weights' optimizer. */
TERCEL_API void write_dense_states(const std::string& path, Model& model, Span<Tensor> states);
/** Sets them; `names` is for messages. DataError, and no change, for a file of another size or numbers not finite. */
TERCEL_API void read_dense_states(const std::string& path, Model& model, Span<Tensor> states, Span<const char*> names);

/** Writes the keys that have a row, ascending, and their vectors, into a folder, which is created if missing. */
TERCEL_API void write_table(const std::string& folder, EmbeddingTable& table,
                            distributed::ProcessGroup* group = nullptr);
/**
 * Writes which slot each of these keys has, for a LocalizedSlot embedding; 0 where neither the data nor the graph says
 * which keys a slot has.
 */
TERCEL_API void write_slots(const std::string& folder, const Model& model, size_t node, EmbeddingTable& table,
                            distributed::ProcessGroup* group = nullptr);
/**
 * Sets the vectors of the folder's keys; others keep theirs, and a table that grows gets rows for them. Returns those
 * that this rank has, in the order of the file. DataError, and no change, for wrong sizes, keys that the table does not
 * have, keys twice, and vectors that are not finite.
 */
TERCEL_API RowOrder read_table(const std::string& folder, EmbeddingTable& table,
                               distributed::ProcessGroup* group = nullptr);

/** Writes the states of the keys that have a row, ascending. */
TERCEL_API void write_table_states(const std::string& path, EmbeddingTable& table, Span<Tensor> states,
                                   distributed::ProcessGroup* group = nullptr);
/**
 * Sets the states of rows, in the order of the file. DataError, and no change, for a file of another size and
 * numbers that are not finite.
 */
TERCEL_API void read_table_states(const std::string& path, const EmbeddingTable& table, Span<Tensor> states,
                                  const RowOrder& rows, distributed::ProcessGroup* group = nullptr);

/** Writes all these files. Each appears complete or not at all, but not all of them together. */
TERCEL_API void write_snapshot(const SnapshotName& name, Model& model, const ModelStates& states,
                               distributed::ProcessGroup* group = nullptr);

}  // namespace tercel::recsys::hugectr
