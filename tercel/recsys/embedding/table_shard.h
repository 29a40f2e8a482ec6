// Which rows of a table of a range each rank has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

/** The rows first, first + step, ..., of which there are `count`. */
struct RowRun {
  int64_t first = 0, count = 0, step = 1;
  bool operator==(const RowRun&) const = default;
};

/** Rows of a table in the order in which a rank or a file has them: those of the first run, then of the next. */
using RowRuns = std::vector<RowRun>;

/** How many rows they are. */
TERCEL_API int64_t count_of(Span<RowRun> runs);

/** The rows of a table of a range over ranks, and those of this rank. By default, the rank has all rows. */
class TERCEL_API TableShard {
 public:
  TableShard() = default;
  /** Row r is on ranks[r modulo their number], as row r / that number: HugeCTR's Distributed. */
  static TableShard by_row(int64_t rows, std::vector<int64_t> ranks, int64_t rank);
  /**
   * The rows of slot s, which end at slot_ends[s], ascending, are on ranks[s modulo their number], behind those of its
   * slots before: HugeCTR's Localized. With one rank, that has the whole table.
   */
  static TableShard by_slot(std::vector<int64_t> slot_ends, std::vector<int64_t> ranks, int64_t rank);

  /** Whether every rank has all rows. */
  bool is_whole() const { return ranks_.empty(); }
  /** Of this rank, in their order there; none if it is whole. */
  const RowRuns& runs() const { return runs_; }
  /** Rows of this rank. RuntimeError if it is whole. */
  int64_t rows() const { return count_of(runs_); }
  /** The rank of a row of the table. */
  int64_t owner(int64_t row) const;
  /** Replaces rows of the table by their ranks. */
  void replace_by_owners(int64_t* rows, size_t count) const;
  /** This rank; 0 if it is whole. */
  int64_t rank() const { return rank_; }
  /** Whether this rank has the row. */
  bool is_own(int64_t row) const { return is_whole() || owner(row) == rank_; }
  /** Whether it is the first of the ranks that have rows, or has all of them. */
  bool is_first() const { return is_whole() || ranks_.front() == rank_; }
  /** The row's number there. */
  int64_t place(int64_t row) const;
  /** Replaces rows of the table by their places on this rank; -1 for those of others and for -1. Not if it is whole. */
  void replace_by_own_places(int64_t* rows, size_t count) const;
  /** Whether rows are at the same places, for the same rank. */
  bool operator==(const TableShard&) const = default;

 private:
  /** A slot's rows: where they begin in the table and on their rank. */
  struct Slot {
    int64_t first = 0, end = 0, owner = 0, place = 0;
    bool operator==(const Slot&) const = default;
  };
  const Slot& slot_of(int64_t row) const;

  int64_t rank_ = 0;
  std::vector<int64_t> ranks_;
  std::vector<Slot> slots_;  // empty by row
  RowRuns runs_;
};

}  // namespace tercel::recsys
