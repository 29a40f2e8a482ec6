// --format NAME, and the flags of that format. Private.
#pragma once

#include <memory>
#include <string>
#include <tuple>

#include "cli/command.h"
#include "tercel/data/dataset_format.h"

namespace tercel::cli {

/** The format of the files that a command writes. Declared before parse(), and read after it. */
class FormatFlags {
 public:
  /** Adds the flags. The format is looked up in the words before they are parsed: its own flags depend on it. */
  explicit FormatFlags(CommandLine& line);

  std::shared_ptr<const data::DatasetFormat> format() const { return format_; }

 private:
  struct Choice {
    std::string format = "norm";

    static constexpr auto fields() { return std::tuple(Field{"format", &Choice::format, "format of the data files"}); }
  };

  Choice choice_;
  std::shared_ptr<data::DatasetFormat> format_;
};

}  // namespace tercel::cli
