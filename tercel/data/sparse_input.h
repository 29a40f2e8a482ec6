// How a reader groups the slots of a row.
#pragma once

#include <cstdint>
#include <string>

#include "tercel/util/options.h"

namespace tercel::data {

/** Some consecutive slots that a batch holds together: HugeCTR's DataReaderSparseParam. */
struct SparseInput {
  std::string name;
  int64_t slot_num = 1;
  std::string table = {};
  int64_t num_keys = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&SparseInput::name>("name", "name of the input"),
        option_field<&SparseInput::slot_num>("slot_num", "slots that it takes", at_least(1)),
        option_field<&SparseInput::table>("table", "table that the keys are for, to be named in errors"),
        option_field<&SparseInput::num_keys>(
            "num_keys", "keys of slots without a size must be below this, 0 if any may occur", at_least(0)));
  }
};

}  // namespace tercel::data
