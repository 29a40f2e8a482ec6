// What formats give to the list of them. Private.
#pragma once

#include "tercel/data/dataset.h"
#include "tercel/data/dataset_format.h"

namespace tercel::data {

/** A FilesSpec of an option struct and the function that describes files by it. */
template <OptionStruct Spec, Dataset (*kDescribe)(const Spec&)>
class SpecOf final : public FilesSpec {
 public:
  OptionTable option_table() const override { return tercel::option_table<Spec>(); }
  void* options() override { return &spec_; }
  Dataset describe() const override { return kDescribe(spec_); }

 private:
  Spec spec_;
};

FormatEntry norm_entry();

}  // namespace tercel::data
