// How a reader groups the slots of a row.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "tercel/util/options.h"

namespace tercel::data {

/** Some consecutive slots that a batch holds together: HugeCTR's DataReaderSparseParam. */
struct SparseInput {
  std::string name;
  int64_t slot_num = 1;
  std::string table = {};
  int64_t num_keys = 0;

  static constexpr auto fields() {
    return std::tuple(Field{"name", &SparseInput::name, "name of the input"},
                      Field{"slot_num", &SparseInput::slot_num, "slots that it takes", at_least(1)},
                      Field{"table", &SparseInput::table, "table that the keys are for, to be named in errors"},
                      Field{"num_keys", &SparseInput::num_keys,
                            "keys of slots without a size must be below this, 0 if any may occur", at_least(0)});
  }
};

}  // namespace tercel::data
