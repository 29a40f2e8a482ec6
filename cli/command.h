// The command line of a subcommand, and the main function of a program with subcommands.
//
// A subcommand is a function. It declares its arguments (options of a struct come from the struct's fields()), parses,
// works, and returns an exit code; run_program() turns exceptions into one line and an exit code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tercel/util/options.h"
#include "tercel/util/span.h"

namespace tercel::cli {

class CommandLine;

using CommandFunction = int(CommandLine&);

/** A subcommand in a list. */
struct Command {
  std::string_view name;
  std::string_view summary;  // one line, without a capital or full stop
  CommandFunction* run;
};

/** Options of every subcommand. */
struct CommonOptions {
  bool json = false;
  bool quiet = false;

  static constexpr auto fields() {
    return option_list(
        option_field<&CommonOptions::json>("json",
                                           "print the result as one line of JSON; all other text goes to stderr"),
        option_field<&CommonOptions::quiet>("quiet", "print nothing but errors (and JSON), no warnings either"));
  }
};

class CommandLine {
 public:
  /** `name` is the command as it was called, "tercel generate"; `words` is what follows it. */
  CommandLine(std::string name, std::string_view summary, std::vector<std::string> words);

  const std::string& name() const { return name_; }
  /** The command without the program, "generate", for messages; empty for the program itself. */
  std::string_view command() const;
  const std::vector<std::string>& words() const { return words_; }
  /** Whether parse() will print help. */
  bool asks_for_help() const;

  /** A positional argument; they are in the order of these calls. */
  void argument(std::string_view name, std::string_view help, std::string& value);
  /** An optional positional argument; must be the last one. */
  void optional_argument(std::string_view name, std::string_view help, std::string& value);
  /** One or more positional arguments; at most one such list, with others before or after it. */
  void arguments(std::string_view name, std::string_view help, std::vector<std::string>& values);
  /** A flag --field-name for every field of the struct that is not a struct. The struct must outlive parse(). */
  template <OptionStruct S>
  void options(S& options) {
    add_options(option_table<S>(), &options);
  }
  /** The same for a struct that is known by its table only; `argument` is a field without a flag, or empty. */
  void options(OptionTable table, void* values, std::string_view argument = {}) {
    add_options(table, values, argument);
  }
  /** A flag that may be repeated; values are not parsed. */
  void repeated(std::string_view flag, std::string_view help, std::vector<std::string>& values) {
    repeated_.push_back({flag, help, &values});
  }
  /** A command that shows the use, below the help. */
  void example(std::string_view text) { example_ = text; }

  /**
   * False if help was requested and printed. ConfigError for unknown arguments, with the nearest known name, and for
   * values that break a rule.
   */
  bool parse();

  /** Runs the subcommand named by the first word; prints help if there is none. */
  int dispatch(Span<Command> commands);

 private:
  struct Argument {
    std::string_view name, help;
    std::string* value = nullptr;
    std::vector<std::string>* values = nullptr;
    bool optional = false;
  };
  struct Group {
    OptionTable table;
    void* options = nullptr;
    std::string_view argument = {};  // the field that an argument sets

    bool has_flag(const OptionField& field) const {
      return field.type->kind != OptionKind::Struct && field.name != argument;
    }
  };
  struct Repeated {
    std::string_view flag, help;
    std::vector<std::string>* values = nullptr;
  };

  void add_options(OptionTable table, void* options, std::string_view argument = {});
  void take_arguments(const std::vector<std::string>& words) const;
  std::string help() const;
  std::string usage() const;

  std::string name_;
  std::string_view summary_;
  std::vector<std::string> words_;
  std::vector<Argument> arguments_;
  std::vector<Group> groups_;
  std::vector<Repeated> repeated_;
  std::string_view example_;
};

/** Thrown when a signal has requested a stop; run_program() handles it. */
struct Interrupted {
  int signal;
};

/** Throws Interrupted once a signal has requested a stop. Long work calls it regularly. */
void check_interrupted();

/** Applies --threads, 0 for the default; warns if there are more threads than CPUs. */
void use_threads(int64_t threads, const CommonOptions& common);

/**
 * IoError if `folder` exists and `force` is not set. Removes temporaries that killed runs left
 * beside it.
 */
void prepare_output_folder(const std::string& folder, bool force);

/** Body of main(): finds the subcommand, runs it, reports errors; returns the exit code. */
int run_program(std::string_view name, std::string_view summary, Span<Command> commands, int argc, char** argv);

}  // namespace tercel::cli
