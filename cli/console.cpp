#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::cli {

namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kPlainLine{10};

void write(std::FILE* stream, std::string_view text) { std::fwrite(text.data(), 1, text.size(), stream); }

bool is_terminal(int stream) {
  const char* const term = std::getenv("TERM");
  return ::isatty(stream) == 1 && (term == nullptr || std::strcmp(term, "dumb") != 0);
}

size_t terminal_width() {
  struct winsize size = {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

bool is_colored(int stream) {
  const char* const no_color = std::getenv("NO_COLOR");
  return is_terminal(stream) && (no_color == nullptr || *no_color == '\0');
}

void print_text(const CommonOptions& common, std::string_view text) {
  if (common.quiet) return;
  std::FILE* const stream = common.json ? stderr : stdout;
  write(stream, printable_lines(text));
  std::fflush(stream);  // a reader of a pipe sees each line at once, and closing the pipe stops the run
}

void print_line(std::string_view line) {
  write(stdout, line);
  write(stdout, "\n");
}

void print_exactly(std::string_view text) { write(stdout, text); }

namespace {

void print_message(std::string_view kind, std::string_view color, std::string_view message) {
  // Flushes stdout first, so that the order is kept if both streams go to one place.
  std::fflush(stdout);
  std::string line(message);
  for (char& c : line)
    if (c == '\n' || c == '\r') c = ' ';
  const bool colored = is_colored(STDERR_FILENO);
  write(stderr, str_cat({"tercel: ", colored ? color : "", kind, ":", colored && !color.empty() ? "\033[0m " : " ",
                         printable_lines(line), "\n"}));
}

}  // namespace

void print_warning(const CommonOptions& common, std::string_view message) {
  if (!common.quiet) print_message("warning", "\033[33m", message);
}
void print_note(const CommonOptions& common, std::string_view message) {
  if (!common.quiet) print_message("note", "", message);
}
void print_error(std::string_view message) { print_message("error", "\033[31m", message); }

void flush_output() {
  const bool failed = std::fflush(stdout) != 0;
  if (failed) check_interrupted();  // the reader has closed the pipe: SIGPIPE
  TERCEL_CHECK(!failed && std::ferror(stdout) == 0, IoError, "standard output: write: ", std::strerror(errno));
}

Progress::Progress(const CommonOptions& common, std::string what)
    : what_(std::move(what)), quiet_(common.quiet), terminal_(is_terminal(STDERR_FILENO)) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (drawn_) write(stderr, "\r\033[K");
  drawn_ = false;
}

std::string Progress::text(double share, int64_t rows, std::string_view note, Clock::time_point now) const {
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double done = std::clamp(share, 0.0, 1.0);
  const auto percent = static_cast<int64_t>(std::floor(done * 100));
  std::string out = what_ + "  " + std::to_string(percent) + " %  " + format_short(static_cast<double>(rows)) + " rows";
  if (seconds > 0) out += "  " + format_short(static_cast<double>(rows) / seconds) + " rows/s";
  if (!note.empty()) out += "  " + std::string(note);
  if (done > 0) out += "  " + format_clock(seconds * (1 - done) / done) + " left";
  return out;
}

void Progress::update(double share, int64_t rows, std::string_view note) {
  if (quiet_) return;
  const Clock::time_point now = Clock::now();
  if (now - last_ < (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kPlainLine))) return;
  last_ = now;
  const std::string line = text(share, rows, note, now);
  if (!terminal_) {
    write(stderr, line + "\n");
    return;
  }
  // A line that wraps could not be redrawn.
  write(stderr, "\r" + line.substr(0, terminal_width() - 1) + "\033[K");
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace tercel::cli
