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
  FormatFlags(const FormatFlags&) = delete;
  FormatFlags& operator=(const FormatFlags&) = delete;

  /** With the options that parse() set. */
  std::shared_ptr<const data::DatasetFormat> format() const;

 private:
  struct Choice {
    std::string format = "norm";

    static constexpr auto fields() {
      return std::tuple(Field{"format", &Choice::format, "format of the data files; its own options are below"});
    }
  };

  Choice choice_;
  std::shared_ptr<data::DatasetFormat> format_;
};

}  // namespace tercel::cli
