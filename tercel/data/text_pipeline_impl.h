// Text as parsed blocks of rows, read and parsed on several threads. Private.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "tercel/data/row_encoder.h"
#include "tercel/data/text_table.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/thread_impl.h"

namespace tercel::data {

/** A block of text and its rows. */
struct ParsedBlock {
  TextBlock text;
  TextRows rows;
  EncodedRows encoded;
  std::vector<uint8_t> parts;  // the PartName of each row, by who reads them
};

/**
 * Groups of blocks in order: a few for each thread, parsed at the same time, while the next ones are read. With one
 * thread there is no other. Memory is that of two groups.
 */
class TextPipeline {
 public:
  /** Table and `work` must outlive it; the latter is done with each block after it is parsed, on any thread. */
  TextPipeline(TextTable& table, FunctionRef<void(ParsedBlock&)> work);
  ~TextPipeline();
  TextPipeline(const TextPipeline&) = delete;
  TextPipeline& operator=(const TextPipeline&) = delete;

  /** The next group; empty at the end. Errors come where the blocks before them have been delivered. */
  std::span<ParsedBlock> next();
  /** Bytes of the files of all groups delivered. */
  int64_t bytes_done() const { return bytes_done_; }

 private:
  struct Group {
    std::vector<ParsedBlock> blocks;
    size_t count = 0;
    int64_t bytes_done = 0;
    std::exception_ptr error;
  };

  void read(Group& group);
  void start_reading(Group& group);
  void finish_reading();

  TextTable& table_;
  FunctionRef<void(ParsedBlock&)> work_;
  Group groups_[2];
  size_t present_ = 0;
  bool started_ = false;
  std::optional<Thread> reader_;
  int64_t bytes_done_ = 0;
};

}  // namespace tercel::data
