#include "cli/format_flags.h"

#include <utility>

#include "tercel/util/error.h"

namespace tercel::cli {

std::string flag_value(const CommandLine& line, std::string_view flag, const std::string& otherwise) {
  std::string name = otherwise;
  const std::vector<std::string>& words = line.words();
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (words[i] == flag && i + 1 < words.size()) name = words[i + 1];
    if (words[i].starts_with(std::string(flag) + "=")) name = words[i].substr(flag.size() + 1);
  }
  return name;
}

FormatFlags::FormatFlags(CommandLine& line, std::shared_ptr<const data::DatasetFormat> defaults) : flag_("--format") {
  if (defaults) choice_.format = defaults->name();
  const std::string name = flag_value(line, flag_, choice_.format);
  if (defaults) {
    data::Dataset like;
    like.format = std::move(defaults);
    format_ = data::make_format_like(like, name, line.command());
  } else {
    format_ = data::make_format(name, line.command());
  }
  line.options(choice_);
  line.options(format_->option_table(), format_->options());
}

FormatFlags::FormatFlags(CommandLine& line, const data::Dataset* source) : flag_("--to") {
  line.options(target_);
  const std::string name = flag_value(line, flag_, "");
  if (name.empty()) return;  // which parse() refuses
  format_ = source ? data::make_format_like(*source, name, line.command()) : data::make_format(name, line.command());
  line.options(format_->option_table(), format_->options());
}

std::shared_ptr<const data::DatasetFormat> FormatFlags::format() const {
  TERCEL_CHECK((flag_ == "--to" ? target_.to : choice_.format) == format_->name(), ConfigError, "option ", flag_,
               ": expected it before its value's options, ", "and once");
  return format_;
}

}  // namespace tercel::cli
