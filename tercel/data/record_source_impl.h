// Interface of a format to the readers: loads the raw bytes of a window of rows, prepares them, and decodes rows into a
// batch. Private.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/batch_buffer_impl.h"
#include "tercel/data/row_order_impl.h"
#include "tercel/data/sparse_input.h"
#include "tercel/util/error.h"
#include "tercel/util/span.h"

namespace tercel::data {

/** What a reader asks of a source. */
struct SourceOptions {
  Span<SparseInput> inputs;  // they cover all slots
  /** Names of further columns; ConfigError for one that the files do not have. */
  Span<std::string> columns;
  /** One of the columns, whose values are the weights of the rows: finite, not negative. Empty: none. */
  std::string_view weight = {};
  bool binary_labels = true;
  bool jumps = false;              // ranges are not requested in order
  int64_t workers = 1;             // threads that prepare and decode
  bool skips_bad_records = false;  // load() passes over a bad record if it knows where the next one begins
};

/** From decode(): the record of one place breaks a rule, and those behind it can be decoded. */
class BadRecord : public DataError {
 public:
  BadRecord(const std::string& message, int64_t bad_place) : DataError(message), place(bad_place) {}

  int64_t place;
};

/** Undecoded rows in memory. Formats derive their own windows. */
struct Window {
  virtual ~Window();

  int64_t rows = 0;           // that were loaded
  std::exception_ptr error;   // why the next one was not
  std::vector<uint32_t> mix;  // place i of the window's order is row mix[i]; empty: i
};

/** Consecutive places of a window's order, and where they go in a batch. */
struct Places {
  int64_t begin = 0;
  int64_t count = 0;
  int64_t batch_row = 0;
};

/**
 * A part's rows in one format. An implementer guarantees that load() may run at the same time as any number of
 * prepare() and decode() of other windows, that any bytes in the files lead to a DataError or to rows that follow
 * RowRules (of the schema, and of the inputs and binary_labels in SourceOptions), and that the rows do not depend on
 * the windows they are read in. Readers rely on the rules: narrow keys are not checked again.
 */
class RecordSource {
 public:
  virtual ~RecordSource();

  virtual int64_t rows() const = 0;
  /**
   * Where reading can go on if a row cannot be read, and that is no BadRecord: behind the unit that is decoded as a
   * whole. By default the next row, which may fail alike.
   */
  virtual int64_t row_behind_damage(int64_t row) const { return row + 1; }
  /** The units in which rows are best read in the order of the files: reads of similar size, or row groups. */
  virtual RowWindows windows() const = 0;
  virtual const BatchShape& shape() const = 0;
  virtual std::unique_ptr<Window> make_window() const = 0;
  /**
   * Loads the rows of the ranges into the window, in this order, replacing its content; window.rows counts them even if
   * it throws. Called by one thread at a time; returns early, with any content, once `stop` is set.
   */
  virtual void load(Span<RowRange> ranges, Window& window, const std::atomic<bool>& stop) = 0;
  /** Whether prepare() does anything. */
  virtual bool prepares() const { return false; }
  /**
   * Work on a loaded window that needs no order, such as decompression: called once, before the first decode(), by any
   * thread, while others prepare other windows. If load() threw after window.rows rows, those are prepared, unless none
   * of them will be decoded. An error counts as one of the first row.
   */
  virtual void prepare(Window& window) const;
  /**
   * Called with the places of a batch in order, by one thread per batch. A record that breaks a rule is a BadRecord if
   * the format can decode those behind it; what was written for it and later rows has no meaning then.
   */
  virtual void decode(const Window& window, const Places& places, BatchBuffer& out) const = 0;
};

}  // namespace tercel::data
