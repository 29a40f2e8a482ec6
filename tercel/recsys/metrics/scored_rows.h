// Rows as 64-bit numbers, in which a logit comes first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/span.h"

namespace tercel {
class ByteCursor;
}

namespace tercel::recsys {

/** Collects numbers in any order and delivers them in ascending order; 8 bytes for each. */
class TERCEL_API ScoredRows {
 public:
  void add(uint64_t row);
  void clear() { blocks_.clear(); }
  bool empty() const { return blocks_.empty(); }
  /** Calls `visit` with runs of all numbers, ascending; add() may follow. Sorts on all threads. */
  void visit_ascending(FunctionRef<void(Span<uint64_t> run)> visit);
  /** Appends their number and all of them. */
  void write(std::string& bytes) const;
  /** Adds what write() wrote, up to the end of the bytes. DataError, and no change, if they are damaged, or if
   * is_valid() is false for a number, which is described by `expected`. */
  void merge(ByteCursor& bytes, FunctionRef<bool(uint64_t row)> is_valid, const char* expected);

 private:
  // In blocks, all but the last of the same size: a single vector would need twice the memory when it grows.
  std::vector<std::vector<uint64_t>> blocks_;
};

}  // namespace tercel::recsys
