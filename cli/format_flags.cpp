#include "cli/format_flags.h"

#include <string_view>

#include "tercel/util/error.h"

namespace tercel::cli {

FormatFlags::FormatFlags(CommandLine& line) {
  constexpr std::string_view kFlag = "--format";
  std::string name = choice_.format;
  const std::vector<std::string>& words = line.words();
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (words[i] == kFlag && i + 1 < words.size()) name = words[i + 1];
    if (words[i].starts_with(std::string(kFlag) + "=")) name = words[i].substr(kFlag.size() + 1);
  }
  format_ = data::make_format(name, line.command());
  line.options(choice_);
  line.options(format_->option_table(), format_->options());
}

std::shared_ptr<const data::DatasetFormat> FormatFlags::format() const {
  TERCEL_CHECK(choice_.format == format_->name(), ConfigError,
               "option --format: expected it before its value's options, ", "and once");
  return format_;
}

}  // namespace tercel::cli
