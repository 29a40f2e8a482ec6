// Which ranks get the rows of which embedding table, by what a step is expected to cost.
//
// Note [Cost of a step]
// A rank reads a part of a batch, whose keys need some unique rows. Replicated, it sends their gradients to each other
// rank and adds up those of all ranks; otherwise it sends keys, and vectors and gradients travel to and from the ranks
// that have the rows, each of which changes its own (Note [Exchange of rows]): of each slot those of unique rows, or of
// sums of bags where these are fewer bytes (Note [Rows or sums]). Keys are sent during the step before, and take no
// time. The number of unique rows is that of keys that are drawn evenly from their slot, which is the most that there
// can be; real data, where few keys are frequent, has fewer, and a sample of it says how many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tercel/recsys/embedding/placement.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/model.h"

namespace tercel::recsys {

/** The keys of a slot that a table is read with. */
struct SlotLoad {
  int64_t size = 0;                 ///< different ones; 0: any number
  double keys = 1;                  ///< of a row
  std::vector<double> unique = {};  ///< different keys of 1, 2, 4, ... rows, in a sample; empty without one
  std::vector<double> sizes = {};   ///< the part of the rows with 0, 1, 2, ... keys, in a sample; empty without one
};

/** The expected number of different keys of so many rows. */
TERCEL_API double unique_keys(const SlotLoad& slot, double rows);

/** The expected number of ranks that have keys of a row, if each key is on any of so many with the same probability. */
TERCEL_API double ranks_of_row(const SlotLoad& slot, double ranks);

/** A table, as far as its placement depends on it. */
struct TableLoad {
  std::string name;
  int64_t rows = 0;  ///< 0: it grows
  int64_t dim = 0;
  int64_t numbers_per_row = 0;  ///< of the weight and the states of the optimizer
  bool is_static = true;
  bool is_limited = false;  ///< it grows up to a number of keys
  bool counts_keys = false;
  std::vector<SlotLoad> slots;
  // Tables with the same rows for the keys of an input share their exchange.
  int64_t dims_of_keys = 0;  ///< of all tables that share; 0: dim
  bool shares_keys = false;  ///< with one before
  /** What the configuration says of this table; no ranks: all. */
  std::optional<TablePlacement> given = {};
};

/** The tables of a model, with as many keys as the slots of its schema may have. */
TERCEL_API std::vector<TableLoad> table_loads(Model& model);
/** The same with the keys of some batches, of at least so many rows, as a reader gives them; it is rewound before. */
TERCEL_API std::vector<TableLoad> sampled_table_loads(Model& model, data::BatchReader& reader, int64_t rows);

/** What the machines of a job do in a second. */
struct MachineRates {
  double network_bytes = 4e9;      ///< that a rank sends, and receives at the same time
  double latency_seconds = 10e-6;  ///< of an exchange with any number of ranks
  double message_seconds = 5e-7;   ///< of each further message in it
  double memory_bytes = 4e9;       ///< of rows at random places, read or written by a rank
};

/** What a table costs a rank in a step: the rank that it costs most. */
struct PlacementCost {
  double bytes_sent = 0;
  double exchanges = 0;  ///< that a step waits for, each with a message to each other rank
  double rows_changed = 0;
  double seconds = 0;        ///< besides those of one process with the rank's part of the batch
  int64_t memory_bytes = 0;  ///< of weights and states
};

/** The cost of a table for batches of so many rows, of all ranks. */
TERCEL_API PlacementCost placement_cost(const TableLoad& table, const TablePlacement& placement, int64_t ranks,
                                        int64_t batch_rows, const MachineRates& rates = {});

/**
 * The placement of each table: as given, where it has no rank above their number; as chosen; or of those that a table
 * can have the one with the least time, and of those that are about as fast the one with all rows on every rank, with
 * which a run survives the loss of one. ConfigError if a table cannot have the chosen one.
 */
TERCEL_API std::vector<TablePlacement> plan_placements(Span<TableLoad> tables, PlacementChoice choice, int64_t ranks,
                                                       int64_t batch_rows, const MachineRates& rates = {});

/** What a step costs a rank besides its tables. */
struct StepLoad {
  double gradient_bytes = 0;  ///< of dense weights
  double fixed_seconds = 0;   ///< of a step of one process
  double row_seconds = 0;     ///< of each row of its batch
};

/** An estimate of a step. */
struct StepEstimate {
  int64_t ranks = 1;
  int64_t batch_rows = 0;
  double seconds = 0;                       ///< the sum of the following three
  double compute_seconds = 0;               ///< of one process with a rank's part of the batch
  double dense_seconds = 0;                 ///< for the sum of the dense gradients
  double table_seconds = 0;                 ///< for tables and their exchanges
  double dense_bytes = 0, table_bytes = 0;  ///< that a rank sends
  int64_t table_memory = 0;                 ///< bytes of a rank
  std::vector<TablePlacement> placements;
  double samples_per_second() const { return static_cast<double>(batch_rows) / seconds; }
};

/**
 * A step of so many ranks, as this library does it, without overlap of computation and exchange.
 */
TERCEL_API StepEstimate estimate_step(const StepLoad& step, Span<TableLoad> tables, PlacementChoice choice,
                                      int64_t ranks, int64_t batch_rows, const MachineRates& rates = {});

}  // namespace tercel::recsys
