// A flag that names a format, --format or --to, and the flags of that format. Private.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "tercel/data/dataset.h"

namespace tercel::cli {

/** The value of a flag in the words of a command, before they are parsed, or the default. */
std::string flag_value(const CommandLine& line, std::string_view flag, const std::string& otherwise);

/** The format of the files that a command writes. Declared before parse(), and read after it. */
class FormatFlags {
 public:
  /**
   * Adds --format and its flags. The format is looked up in the words before they are parsed: its flags depend on it.
   * `defaults`, if it is not null, is the format that is taken without the flag; flags of that format have its values
   * as defaults.
   */
  explicit FormatFlags(CommandLine& line, std::shared_ptr<const data::DatasetFormat> defaults = nullptr);
  /** Adds --to; defaults of its flags are those of make_format_like() for the dataset, if it is not null. */
  FormatFlags(CommandLine& line, const data::Dataset* source);
  FormatFlags(const FormatFlags&) = delete;
  FormatFlags& operator=(const FormatFlags&) = delete;

  /** With the options that parse() set. */
  std::shared_ptr<const data::DatasetFormat> format() const;

 private:
  struct Choice {
    std::string format = "norm";

    static constexpr auto fields() {
      return option_list(
          option_field<&Choice::format>("format", "format of the data files; its own options are below"));
    }
  };

  struct TargetChoice {
    std::string to = {};

    static constexpr auto fields() {
      return option_list(
          option_field<&TargetChoice::to>("to", "format of the new files; its own options are below", required()));
    }
  };

  Choice choice_;
  TargetChoice target_;
  std::string_view flag_;
  std::shared_ptr<data::DatasetFormat> format_;
};

}  // namespace tercel::cli
