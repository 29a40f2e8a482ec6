// The settings that a dataset's description records: every option of the tool that made it. Private.
#pragma once

#include <string>
#include <vector>

#include "tercel/data/dataset.h"

namespace tercel::data {

template <OptionStruct Options>
std::vector<Conversion::Setting> settings_of(const Options& options) {
  std::vector<Conversion::Setting> settings;
  for (const OptionField& field : option_table<Options>())
    settings.push_back({std::string(field.name), option_text(field, &options)});
  return settings;
}

}  // namespace tercel::data
