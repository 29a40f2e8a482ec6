#include "cli/format_flags.h"

#include <string_view>

namespace tercel::cli {

FormatFlags::FormatFlags(CommandLine& line) {
  constexpr std::string_view kFlag = "--format";
  std::string name = choice_.format;
  const std::vector<std::string>& words = line.words();
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == kFlag && i + 1 < words.size()) name = words[i + 1];
    if (words[i].starts_with(std::string(kFlag) + "=")) name = words[i].substr(kFlag.size() + 1);
  }
  format_ = data::make_format(name, line.command());
  line.options(choice_);
  line.options(format_->option_table(), format_->options());
}

}  // namespace tercel::cli
