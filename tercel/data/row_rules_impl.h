// The rules of a row. Stated once for readers, checkers and writers of every format. Private.
//
// Predicates have no branches, for hot loops that only need to know whether a row is good; texts say what a rule
// expects, for the message about a bad one.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tercel/data/schema.h"
#include "tercel/data/sparse_input.h"
#include "tercel/util/span.h"

namespace tercel::data {

class RowRules {
 public:
  struct SlotRule {
    uint64_t first_key;  // keys with key - first_key <= key_range, unsigned, are in the slot
    uint64_t key_range;
    int64_t hotness;

    bool has(int64_t key) const { return static_cast<uint64_t>(key) - first_key <= key_range; }
  };

  /**
   * Rules of the schema. `max_key` is the largest one that files can hold. `inputs`, which cover all slots or none,
   * limit the keys of slots without a size, and name tables in messages.
   */
  RowRules(const Schema& schema, bool binary_labels, uint64_t max_key = std::numeric_limits<uint64_t>::max(),
           Span<SparseInput> inputs = {});

  const Schema& schema() const { return schema_; }
  const std::vector<SlotRule>& slots() const { return slots_; }

  bool is_label(float value) const {
    return binary_labels_ ? (value == 0.0f) | (value == 1.0f) : is_dense_value(value);
  }
  static bool is_dense_value(float value) {
    constexpr uint32_t kExponent = 0x7f800000;  // all ones: infinite or NaN
    return (std::bit_cast<uint32_t>(value) & kExponent) != kExponent;
  }

  /** "label 0 to be 0 or 1". */
  std::string expected_label(int64_t index) const;
  /** "dense value 3 to be a finite number". */
  std::string expected_dense(int64_t index) const;
  /** "0 to 5 keys in slot 2 ('genre')"; "5 keys in slot ..." if they must be as many as its hotness. */
  std::string expected_count(size_t slot, bool exact) const;
  /** "a key from 0 to 99 in slot 2 ('genre') of table 'genre'". */
  std::string expected_key(size_t slot) const;

 private:
  std::string slot_text(size_t slot) const;

  Schema schema_;
  bool binary_labels_;
  std::vector<SlotRule> slots_;
  std::vector<std::string> tables_;  // of each slot: the table that its keys are for, if any
};

}  // namespace tercel::data
