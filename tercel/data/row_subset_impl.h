// The rows of a part that a reader delivers: all, or those left and those held out to choose a model by.
//
// Note [Rows held out]
// One row of every K is held out: of rows [g K, (g + 1) K), the one at a place that is a hash (Philox) of g. So rows
// that are neighbours in the files, or periodic in them, are treated alike, the share is exact, and the row of an index
// and the index of a row are computed, not stored. It is a function of the number of rows and K alone: runs that differ
// in their seed are compared on the same rows.
#pragma once

#include <cstdint>

namespace tercel::data {

/** Rows of a part, in their order. Private. */
class RowSubset {
 public:
  /** All rows; implicit, as most orders are of all. */
  RowSubset(int64_t rows) : rows_(rows) {}
  /** What one row of `every` (at least 2) that is held out leaves; or those held out. See Note [Rows held out]. */
  RowSubset(int64_t rows, int64_t every, bool held_out) : rows_(rows), every_(every), held_out_(held_out) {}

  bool is_all() const { return every_ == 0; }
  int64_t count() const { return before(rows_); }
  /** Those of them that lie before this row of the part. */
  int64_t before(int64_t row) const;
  /** The row of the part with this index. */
  int64_t row(int64_t index) const;

 private:
  /** Place of the row that is held out in a group of `every_` rows. */
  int64_t place(int64_t group) const;

  int64_t rows_;
  int64_t every_ = 0;
  bool held_out_ = false;
};

}  // namespace tercel::data
