#include "cli/command.h"

#include <sys/resource.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "cli/console.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/cpu_info.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/options_impl.h"
#include "tercel/util/parallel.h"
#include "tercel/util/signals.h"
#include "tercel/util/suggest.h"
#include "tercel/util/thread_impl.h"
#include "tercel/util/version.h"

namespace tercel::cli {

namespace {

constexpr size_t kHelpWidth = 110;
constexpr size_t kNameWidth = 26;

std::string flag_name(std::string_view field) {
  std::string name = "--" + std::string(field);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/** A flag may also be written with underscores, as its field is. */
std::string with_dashes(std::string word) {
  if (word.starts_with("--")) {
    const size_t end = std::min(word.find('='), word.size());
    std::replace(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
  }
  return word;
}

/** "  name   text", the text broken between words and indented. */
std::string help_entry(const std::string& name, std::string_view text) {
  std::string out = "  " + name;
  if (name.size() + 2 > kNameWidth) {
    out += '\n' + std::string(kNameWidth + 2, ' ');
  } else {
    out += std::string(kNameWidth - name.size(), ' ');
  }
  size_t column = kNameWidth + 2;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (column + end > kHelpWidth && column > kNameWidth + 2) {
      out.back() = '\n';
      out += std::string(kNameWidth + 2, ' ');
      column = kNameWidth + 2;
    }
    out += text.substr(0, end);
    column += end;
    text.remove_prefix(end);
    if (!text.empty()) {
      out += ' ';
      ++column;
      text.remove_prefix(1);
    }
  }
  while (out.ends_with(' ')) out.pop_back();
  return out + '\n';
}

bool is_default_true(const OptionField& field, const void* options) {
  return field.type->kind == OptionKind::Bool && option_text(field, options) == "true";
}

/** Help of a field: "rows to write (integer, at least 1; default 1000000)". */
std::string option_entry(const OptionField& field, const void* options) {
  std::string name = flag_name(field.name);
  if (field.type->kind == OptionKind::Bool) {
    if (is_default_true(field, options)) name = "--no-" + name.substr(2);
    return help_entry(name, std::string(is_default_true(field, options) ? "not: " : "") + std::string(field.help));
  }
  std::string text = std::string(field.help) + " (" + option_type_text(field);
  const std::string value = option_text(field, options);
  if (!value.empty() && !field.rules.required && value != "[]") text += "; default " + value;
  return help_entry(name, text + ")");
}

std::string prefix(std::string_view command) { return command.empty() ? std::string() : std::string(command) + ": "; }

/** Whether a text or list, as a required option is, holds nothing. */
bool is_empty(const OptionType& type, const void* value) {
  if (type.kind == OptionKind::String) return static_cast<const std::string*>(value)->empty();
  return type.kind == OptionKind::List && type.list.size(value) == 0;
}

/** Several "--positive A --positive B" are one list. */
std::string joined(const std::vector<std::string>& texts, const OptionField& field, std::string_view owner) {
  if (texts.size() == 1) return texts.front();
  TERCEL_CHECK(field.type->kind == OptionKind::List, ConfigError, prefix(owner), "option ", flag_name(field.name),
               " is given ", texts.size(), " times");
  std::string list;
  for (const std::string& text : texts) {
    TERCEL_CHECK(!text.starts_with('['), ConfigError, prefix(owner), "option ", flag_name(field.name),
                 ": expected one JSON list, found it given ", texts.size(), " times");
    list += (list.empty() ? "" : ",") + text;
  }
  return list;
}

[[noreturn]] void fail_unknown(const CommandLine& line, std::string_view what, std::string_view word,
                               const std::vector<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view nearest = nearest_name(word, names);
  const std::string hint =
      nearest.empty() ? "; see " + line.name() + " --help" : "; did you mean '" + std::string(nearest) + "'?";
  throw_error<ConfigError>({prefix(line.command()), "unknown ", what, " '", printable(word), "'", hint});
}

}  // namespace

CommandLine::CommandLine(std::string name, std::string_view summary, std::vector<std::string> words)
    : name_(std::move(name)), summary_(summary), words_(std::move(words)) {}

std::string_view CommandLine::command() const {
  const size_t space = name_.find(' ');
  return space == std::string::npos ? std::string_view() : std::string_view(name_).substr(space + 1);
}

void CommandLine::argument(std::string_view name, std::string_view help, std::string& value) {
  arguments_.push_back({name, help, &value, nullptr});
}

void CommandLine::optional_argument(std::string_view name, std::string_view help, std::string& value) {
  arguments_.push_back({name, help, &value, nullptr, /*optional=*/true});
}

void CommandLine::arguments(std::string_view name, std::string_view help, std::vector<std::string>& values) {
  for (const Argument& argument : arguments_) TERCEL_ASSERT(argument.values == nullptr);
  arguments_.push_back({name, help, nullptr, &values});
}

void CommandLine::add_options(OptionTable table, void* options) { groups_.push_back({table, options}); }

std::string CommandLine::usage() const {
  std::string out = name_;
  for (const Argument& argument : arguments_) {
    out += argument.optional ? " [" : " ";
    out += argument.name;
    if (argument.optional) out += ']';
    if (argument.values != nullptr) out += "...";
  }
  return groups_.empty() ? out : out + " [options]";
}

std::string CommandLine::help() const {
  std::string out = name_ + ": " + std::string(summary_) + "\n\nusage: " + usage() + "\n";
  if (!arguments_.empty()) out += "\narguments:\n";
  for (const Argument& argument : arguments_) out += help_entry(std::string(argument.name), argument.help);
  out += "\noptions:\n";
  for (const Group& group : groups_)
    for (const OptionField& field : group.table)
      if (field.type->kind != OptionKind::Struct) out += option_entry(field, group.options);
  for (const Repeated& flag : repeated_) out += help_entry(std::string(flag.flag), flag.help);
  out += help_entry("--help", "show this");
  if (!example_.empty()) out += "\nexample:\n  " + std::string(example_) + "\n";
  return out;
}

bool CommandLine::parse() {
  std::vector<std::string> words, behind_dashes;
  const auto dashes = std::find(words_.begin(), words_.end(), "--");
  for (auto word = words_.begin(); word != dashes; ++word) {
    words.push_back(with_dashes(*word));
    // The library takes "--text=" for a flag without a value; an empty value is one.
    if (words.back().starts_with("--") && words.back().find('=') == words.back().size() - 1) {
      words.back().pop_back();
      words.emplace_back();
    }
  }
  if (dashes != words_.end()) behind_dashes.assign(dashes + 1, words_.end());

  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  bool help_wanted = false;
  app.add_flag("-h,--help", help_wanted);
  std::vector<std::string> known = {"--help"};
  std::vector<std::pair<const OptionField*, const Group*>> fields;
  std::vector<CLI::Option*> parsed;
  for (const Group& group : groups_) {
    for (const OptionField& field : group.table) {
      if (field.type->kind == OptionKind::Struct) continue;
      const std::string flag = flag_name(field.name);
      known.push_back(flag);
      fields.emplace_back(&field, &group);
      if (field.type->kind == OptionKind::Bool) {
        std::string names = flag;
        if (is_default_true(field, group.options)) {
          known.push_back("--no-" + flag.substr(2));
          names += ",!" + known.back();
        }
        parsed.push_back(app.add_flag(names));
      } else {
        parsed.push_back(app.add_option(flag)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
      }
    }
  }
  for (const Repeated& flag : repeated_) {
    known.emplace_back(flag.flag);
    app.add_option(std::string(flag.flag), *flag.values)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();  // "--rows: 1 required missing"
    throw_error<ConfigError>(
        {prefix(command()), "option ", printable(text.substr(0, text.find(':'))), ": expected a value, found none"});
  } catch (const CLI::ParseError& error) {
    throw_error<ConfigError>({prefix(command()), printable(error.what())});
  }
  if (help_wanted) {
    print_line(help());
    return false;
  }

  std::vector<std::string> rest = app.remaining();
  for (const std::string& word : rest)
    if (word.size() > 1 && word.starts_with('-')) fail_unknown(*this, "option", word.substr(0, word.find('=')), known);
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto& [field, group] = fields[i];
    if (parsed[i]->count() == 0) continue;
    const std::string text = joined(parsed[i]->results(), *field, command());
    detail::set_option(group->table, group->options, command(), field->name, text);
  }
  rest.insert(rest.end(), behind_dashes.begin(), behind_dashes.end());
  take_arguments(rest);
  for (const Group& group : groups_) {
    for (const OptionField& field : group.table)
      TERCEL_CHECK(!field.rules.required || !is_empty(*field.type, field.locate(group.options)), ConfigError,
                   prefix(command()), "option ", flag_name(field.name), " is missing; usage: ", usage());
    detail::check_options(group.table, group.options, command());
  }
  return true;
}

void CommandLine::take_arguments(const std::vector<std::string>& words) const {
  const bool has_list =
      std::any_of(arguments_.begin(), arguments_.end(), [](const Argument& a) { return a.values != nullptr; });
  const bool may_miss_last = !arguments_.empty() && arguments_.back().optional;
  if (words.size() + (may_miss_last ? 1 : 0) < arguments_.size()) {
    throw_error<ConfigError>(
        {prefix(command()), "argument ", arguments_[words.size()].name, " is missing; usage: ", usage()});
  }
  TERCEL_CHECK(has_list || words.size() <= arguments_.size(), ConfigError, prefix(command()), "unexpected argument '",
               printable(words[arguments_.size()]), "'; usage: ", usage());
  size_t next = 0;
  for (const Argument& argument : arguments_) {
    if (argument.value != nullptr) {
      if (next < words.size()) *argument.value = words[next++];
      continue;
    }
    for (size_t count = words.size() - arguments_.size() + 1; count > 0; --count)
      argument.values->push_back(words[next++]);
  }
}

int CommandLine::dispatch(Span<Command> commands) {
  if (words_.empty() || words_.front() == "--help" || words_.front() == "-h" || words_.front() == "help") {
    if (words_.size() > 1 && words_.front() == "help") {  // "tercel help generate"
      words_ = {words_.begin() + 1, words_.end()};
      words_.emplace_back("--help");
      return dispatch(commands);
    }
    std::string out = name_ + ": " + std::string(summary_) + "\n\nusage: " + name_ + " COMMAND ...\n\ncommands:\n";
    for (const Command& command : commands) out += help_entry(std::string(command.name), command.summary);
    out += "\n" + name_ + " COMMAND --help tells more.\n";
    if (words_.empty())
      throw_error<ConfigError>({prefix(command()), "expected a command, found none; see ", name_, " --help"});
    print_text({}, out);
    return 0;
  }
  const std::string& word = words_.front();
  for (const Command& command : commands) {
    if (command.name != word) continue;
    CommandLine line(name_ + " " + word, command.summary, {words_.begin() + 1, words_.end()});
    return command.run(line);
  }
  std::vector<std::string> known;
  for (const Command& command : commands) known.emplace_back(command.name);
  fail_unknown(*this, word.starts_with('-') ? "option" : "command", word, known);
}

void check_interrupted() {
  if (const int signal = stop_signal()) throw Interrupted{signal};
}

void use_threads(int64_t threads) {
  if (threads > 0) set_num_threads(threads);
  if (const int64_t cpus = usable_cpus(); num_threads() > cpus)
    print_warning(str_cat({"expected at most ", cpus, cpus == 1 ? " thread" : " threads",
                           ", one for each CPU that may be used, found ", num_threads(), ": more make it slower"}));
}

void prepare_output_folder(const std::string& folder, bool force) {
  const std::string parent = parent_path(folder);
  if (is_directory(parent)) remove_stale_temporaries(parent, file_name(folder));
  if (force || !exists(folder)) return;
  TERCEL_CHECK(is_directory(folder) && list_dir(folder).empty(), IoError, printable(folder),
               ": expected a new folder, found something there; --force replaces a dataset");
}

namespace {

int run_here(std::string_view name, std::string_view summary, Span<Command> commands, int argc, char** argv) {
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 1 && words.front() == "--version") {
      print_line(str_cat({name, " ", version(), revision().empty() ? "" : " ", revision()}));
      flush_output();
      return 0;
    }
    CommandLine line{std::string(name), summary, std::move(words)};
    const int code = line.dispatch(commands);
    flush_output();
    return code;
  } catch (const Interrupted& interrupted) {
    print_error(str_cat({"stopped by ", signal_name(interrupted.signal)}));
    return 128 + interrupted.signal;
  } catch (const Error& error) {
    print_error(error.what());
    return static_cast<int>(error.exit_code());
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
    return static_cast<int>(ExitCode::Memory);
  } catch (const std::exception& error) {
    print_error(std::string("internal: ") + error.what());
    return static_cast<int>(ExitCode::Internal);
  }
}

/** Whether the main thread's stack may grow to what our threads have. */
bool has_enough_stack() {
  rlimit limit{};
  return getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeastThreadStack;
}

}  // namespace

int run_program(std::string_view name, std::string_view summary, Span<Command> commands, int argc, char** argv) {
  const ScopedSignals signals;
  if (has_enough_stack()) return run_here(name, summary, commands, argc, argv);
  int code = 0;
  try {
    Thread([&] { code = run_here(name, summary, commands, argc, argv); }).join();
  } catch (const std::system_error& error) {
    print_error(
        str_cat({"the limit of the stack (ulimit -s) is below ", format_bytes(static_cast<int64_t>(kLeastThreadStack)),
                 ", and no thread with a larger one could be started: ", error.code().message()}));
    return static_cast<int>(ExitCode::Memory);
  }
  return code;
}

}  // namespace tercel::cli
