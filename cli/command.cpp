#include "cli/command.h"

#include <stdio_ext.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "cli/console.h"
#include "cli/help_text.h"
#include "tercel/data/remote_store.h"
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

std::string flag_name(std::string_view field) {
  std::string name = "--" + std::string(field);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/** Whether a word of the command line is a flag; "-" is an argument, the standard input. */
bool is_flag(std::string_view word) { return word.size() > 1 && word.starts_with('-'); }

/** "--row-count" of "--row_count=5": a flag may also be written with underscores, as its field is. */
std::string name_of(std::string_view word) {
  std::string name(word.substr(0, word.find('=')));
  if (name.starts_with("--")) std::replace(name.begin(), name.end(), '_', '-');
  return name;
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
  return help_entry(name, help_of(field, options));
}

std::string prefix(std::string_view command) { return command.empty() ? std::string() : std::string(command) + ": "; }

/** Whether a required option, a string or list, is empty. */
bool is_empty(const OptionType& type, const void* value) {
  if (type.kind == OptionKind::String) return static_cast<const std::string*>(value)->empty();
  return type.kind == OptionKind::List && type.list.size(value) == 0;
}

/** Joins "--positive A --positive B" to one list. */
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

void CommandLine::add_options(OptionTable table, void* options, std::string_view argument) {
  groups_.push_back({table, options, argument});
}

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
      if (group.has_flag(field)) out += option_entry(field, group.options);
  for (const Repeated& flag : repeated_) out += help_entry(std::string(flag.flag), flag.help);
  out += help_entry("--help", "show this");
  if (!example_.empty()) out += "\nexample:\n  " + std::string(example_) + "\n";
  return out;
}

bool CommandLine::asks_for_help() const {
  const auto dashes = std::find(words_.begin(), words_.end(), "--");
  return std::any_of(words_.begin(), dashes, [](const std::string& word) { return word == "--help" || word == "-h"; });
}

bool CommandLine::parse() {
  struct Flag {
    std::string name;
    std::string_view alone;  // the value of a flag given without one; empty if the flag needs a value
    std::vector<std::string>* values;
  };
  struct Option {
    const OptionField* field;
    const Group* group;
    std::vector<std::string> values;
  };
  std::vector<Option> options;
  for (const Group& group : groups_)
    for (const OptionField& field : group.table)
      if (group.has_flag(field)) options.push_back({&field, &group, {}});
  std::vector<Flag> flags;
  for (Option& option : options) {
    const bool is_bool = option.field->type->kind == OptionKind::Bool;
    flags.push_back({flag_name(option.field->name), is_bool ? "true" : "", &option.values});
    if (is_default_true(*option.field, option.group->options))
      flags.push_back({"--no-" + flags.back().name.substr(2), "false", &option.values});
  }
  for (const Repeated& flag : repeated_) flags.push_back({std::string(flag.flag), "", flag.values});
  const auto find = [&](const std::string& name) {
    return std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.name == name; });
  };

  const auto dashes = std::find(words_.begin(), words_.end(), "--");
  if (asks_for_help()) {
    print_line(help());
    return false;
  }
  std::vector<std::string> rest;
  for (auto word = words_.begin(); word != dashes; ++word) {
    if (!is_flag(*word)) {
      rest.push_back(*word);
      continue;
    }
    const std::string name = name_of(*word);
    const auto flag = find(name);
    if (flag == flags.end()) {
      std::vector<std::string> known = {"--help"};
      for (const Flag& other : flags) known.push_back(other.name);
      fail_unknown(*this, "option", name, known);
    }
    const size_t equals = word->find('=');
    TERCEL_CHECK(equals == std::string::npos || flag->alone != "false", ConfigError, prefix(command()), "option ", name,
                 ": expected no value, found '", printable(word->substr(equals + 1)), "'");
    if (equals != std::string::npos) {
      flag->values->push_back(word->substr(equals + 1));
    } else if (!flag->alone.empty()) {
      flag->values->emplace_back(flag->alone);
    } else {
      const auto next = word + 1;
      TERCEL_CHECK(next != dashes, ConfigError, prefix(command()), "option ", name, ": expected a value, found none");
      TERCEL_CHECK(!is_flag(*next) || find(name_of(*next)) == flags.end(), ConfigError, prefix(command()), "option ",
                   name, ": expected a value, found the option ", name_of(*next),
                   "; a value that looks so is given as ", name, "=", printable(*next));
      flag->values->push_back(*next);
      word = next;
    }
  }
  if (dashes != words_.end()) rest.insert(rest.end(), dashes + 1, words_.end());

  for (const Option& option : options) {
    if (option.values.empty()) continue;
    detail::set_option(option.group->table, option.group->options, command(), option.field->name,
                       joined(option.values, *option.field, command()));
  }
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
    out += "\n" + name_ + " COMMAND --help shows the options of a command.\n";
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

void use_threads(int64_t threads, const CommonOptions& common) {
  if (threads > 0) set_num_threads(threads);
  if (const int64_t cpus = usable_cpus(); num_threads() > cpus)
    print_warning(common, str_cat({"expected at most ", cpus, cpus == 1 ? " thread" : " threads",
                                   ", one per usable CPU, but got ", num_threads(), ": more threads are slower"}));
}

void prepare_output_folder(const std::string& folder, bool force) {
  check_local(folder);
  const std::string parent = parent_path(folder);
  if (is_directory(parent)) remove_stale_temporaries(parent, file_name(folder));
  if (force || !exists(folder)) return;
  TERCEL_CHECK(is_directory(folder) && list_dir(folder).empty(), IoError, printable(folder),
               ": expected a new folder, but the path exists; --force replaces a dataset");
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
    // A reader that closed the pipe, such as head, expects the program to end silently.
    if (interrupted.signal != SIGPIPE) print_error(str_cat({"stopped by ", signal_name(interrupted.signal)}));
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

/** Whether the main thread's stack may grow to the size of our threads' stacks. */
bool has_enough_stack() {
  rlimit limit{};
  return getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeastThreadStack;
}

}  // namespace

int run_program(std::string_view name, std::string_view summary, Span<Command> commands, int argc, char** argv) {
  const ScopedSignals signals;
  data::set_remote_wait_check(check_interrupted);
  int code = static_cast<int>(ExitCode::Memory);
  const auto run = [&] { code = run_here(name, summary, commands, argc, argv); };
  try {
    if (has_enough_stack())
      run();
    else
      Thread(run).join();
  } catch (const std::system_error& error) {
    print_error(
        str_cat({"the limit of the stack (ulimit -s) is below ", format_bytes(static_cast<int64_t>(kLeastThreadStack)),
                 ", and no thread with a larger one could be started: ", error.code().message()}));
  }
  // Unwritten output is not retried at exit, where SIGPIPE would kill the process.
  if (std::fflush(stdout) != 0) ::__fpurge(stdout);
  return code;
}

}  // namespace tercel::cli
