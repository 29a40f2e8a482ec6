// Output of programs: results on stdout, everything else on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/command.h"

namespace tercel::cli {

/** Whether a stream (1 or 2) is a terminal that may be coloured: NO_COLOR is not set, and TERM is not "dumb". */
bool is_colored(int stream);

/** Prints text for people: on stdout, or on stderr if stdout is for JSON; with quiet, nowhere. Control characters,
 * which names in files may contain, are shown as \x1b. */
void print_text(const CommonOptions& common, std::string_view text);

/** Prints a line on stdout. */
void print_line(std::string_view line);

/** Prints text on stdout as it is. */
void print_exactly(std::string_view text);

/** Prints "tercel: warning: ..." on stderr; with quiet, nowhere. */
void print_warning(const CommonOptions& common, std::string_view message);
/** Prints "tercel: note: ..." on stderr, unless quiet: standard output may be for data. */
void print_note(const CommonOptions& common, std::string_view message);

/** Prints "tercel: error: ..." on stderr, on one line whatever the message contains. */
void print_error(std::string_view message);

/** Flushes stdout; IoError if that fails, for instance on a full disk. */
void flush_output();

/**
 * Progress of long work, on stderr: on a terminal one line that is redrawn at most ten times a second, else a plain
 * line every ten seconds. "generate  41 %  412k rows  830k rows/s  00:00:01 left".
 */
class Progress {
 public:
  Progress(const CommonOptions& common, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /** The fraction `share` of the work is done, with `rows` rows so far; `note` is appended. Costs a clock reading. */
  void update(double share, int64_t rows, std::string_view note = {});
  /** Clears the line on the terminal, for other text; the next update draws it again. */
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string text(double share, int64_t rows, std::string_view note, Clock::time_point now) const;

  std::string what_;
  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace tercel::cli
