// The order of an epoch's rows: pure functions of epoch and position. See Note [Order of rows] in batch_reader.h.
#pragma once

#include <cstdint>
#include <vector>

#include "tercel/data/row_subset_impl.h"

namespace tercel::data {

/** Consecutive rows, counted over all files. */
struct RowRange {
  int64_t begin = 0;
  int64_t count = 0;

  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/** Rows [0, rows) cut into windows of any sizes. */
class RowWindows {
 public:
  /** Of equal sizes, but for the last one. */
  static RowWindows every(int64_t rows, int64_t window_rows);
  /** They begin at these rows: ascending from 0, below `rows`. */
  static RowWindows at(int64_t rows, std::vector<int64_t> starts);

  int64_t rows() const { return rows_; }
  int64_t count() const;
  /** First row of a window; `rows` for the one after the last. */
  int64_t begin(int64_t window) const;
  /** The window of a row. */
  int64_t of(int64_t row) const;

 private:
  int64_t rows_ = 0;
  int64_t window_rows_ = 0;  // 0: see starts_
  std::vector<int64_t> starts_;
};

/**
 * A random permutation of [0, count) that needs no memory: a Feistel network of Philox rounds over the next power of
 * four, walked until it hits the range.
 */
class Permutation {
 public:
  Permutation(int64_t count, uint64_t key);

  int64_t operator()(int64_t index) const;
  int64_t inverse(int64_t value) const;

 private:
  uint64_t encrypt(uint64_t value) const;
  uint64_t decrypt(uint64_t value) const;
  uint64_t round(uint64_t half, uint32_t number) const;

  uint64_t count_;
  uint64_t key_;
  int half_bits_ = 1;
};

/**
 * Cuts the positions of each epoch, as many as there are rows in the subset, into windows, the units of reading.
 * Without shuffling a window is a range of rows; with it, several blocks of rows, which are mixed. Where rows between
 * those of the subset are read too, mix() leaves them out.
 */
class RowOrder {
 public:
  /** In the order of the files, read in these windows; those without a row of the subset are not read. */
  static RowOrder in_order(RowWindows windows);
  static RowOrder in_order(const RowWindows& windows, const RowSubset& subset);
  /** Independent of windows, and so of the format. */
  static RowOrder shuffled(const RowSubset& subset, uint64_t seed, int64_t window_rows, int64_t block_rows);
  /** Blocks in random order, rows in a block as in the files; a short last block stays the last. */
  static RowOrder shuffled_blocks(const RowSubset& subset, uint64_t seed, int64_t block_rows);

  /** Whether the rows of a window are others, or in another order, than those that are read. */
  bool is_mixed() const { return mixed_ || !subset_.is_all(); }
  int64_t rows() const { return rows_; }
  int64_t num_windows() const { return num_windows_; }
  int64_t window_of(int64_t epoch, int64_t position) const;
  int64_t window_begin(int64_t epoch, int64_t window) const;
  int64_t window_end(int64_t epoch, int64_t window) const;

  /** Rows of a window, in the order in which they are to be read. */
  void ranges(int64_t epoch, int64_t window, std::vector<RowRange>& out) const;
  /** Which of the rows read is at each place; empty if it is each one in its order. */
  void mix(int64_t epoch, int64_t window, std::vector<uint32_t>& out) const;

 private:
  uint64_t epoch_key(int64_t epoch) const;
  /** Index of the last block, which may be short, among the permuted ones. */
  int64_t place_of_last_block(int64_t epoch) const;

  /** Positions of the block at a place of the order. */
  RowRange block(const Permutation& permutation, int64_t place) const;
  Permutation permutation_of(int64_t epoch) const;
  void append_places(const RowRange& positions, int64_t first, int64_t read, std::vector<uint32_t>& out) const;

  RowSubset subset_{0};
  bool shuffled_ = false, mixed_ = false;
  int64_t rows_ = 0;  // of the subset
  int64_t num_windows_ = 0;
  RowWindows windows_;           // of positions, without shuffling; with it, what follows reads_
  std::vector<RowRange> reads_;  // rows that are read for each, unless the subset is all
  uint64_t seed_ = 0;
  int64_t block_rows_ = 0;
  int64_t num_blocks_ = 0;
  int64_t num_permuted_ = 0;  // of them, the first in the files
  int64_t window_blocks_ = 1;
};

}  // namespace tercel::data
