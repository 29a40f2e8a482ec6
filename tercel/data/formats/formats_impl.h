// What formats give to the list of them. Private.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/dataset_format.h"

namespace tercel::data {

/**
 * A FilesSpec of an option struct and the function that describes files by it. A field `train` that is a list has the
 * files of the train part, and a field `metadata` a further file.
 */
template <OptionStruct Spec, Dataset (*kDescribe)(const Spec&)>
class SpecOf final : public FilesSpec {
 public:
  OptionTable option_table() const override { return tercel::option_table<Spec>(); }
  void* options() override { return &spec_; }
  std::string_view files_option() const override {
    if constexpr (requires(Spec & spec) { spec.train.push_back(std::string()); })
      return "train";
    else
      return {};
  }
  std::vector<std::string> further_files() const override {
    if constexpr (requires { spec_.metadata.empty(); })
      if (!spec_.metadata.empty()) return {spec_.metadata};
    return {};
  }
  Dataset describe() const override { return kDescribe(spec_); }

 private:
  Spec spec_;
};

FormatEntry norm_entry();
FormatEntry raw_entry();
FormatEntry rawasync_entry();
FormatEntry parquet_entry();

}  // namespace tercel::data
