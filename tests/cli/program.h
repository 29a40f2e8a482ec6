// Runs the program as a separate process with a command line, and captures its output.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tercel::test {

/** For train: one pass over all train rows, in the order of the files. */
inline std::vector<std::string> one_pass(std::vector<std::string> words) {
  for (const char* word : {"--set", "solver.epochs=1", "--set", "data.validation=none", "--set", "data.shuffle=false"})
    words.emplace_back(word);
  return words;
}

/** Outcome of a run of the program. */
struct Outcome {
  int code = -1;  // exit code, or 1000 + the signal that killed it
  std::string out;
  std::string err;
  int64_t peak_bytes = 0;  // peak resident memory
};

struct ProgramOptions {
  std::string input;            // content of the standard input, which is a pipe only with keep_open
  bool keep_open = false;       // more may come: the standard input does not end before close_input()
  int64_t max_file_bytes = -1;  // a longer file cannot be written, as on a full disk; -1: any
  int64_t stack_bytes = -1;     // limit of the stack (ulimit -s); -1: that of the test
  int64_t address_bytes = -1;   // limit of the address space (ulimit -v); -1: that of the test
  std::string out;              // the standard output goes to this file; empty: to Outcome::out
};

/** The program, in TERCEL_PROGRAM or beside the test. */
const std::string& program_path();

/** The running program `tercel`. Killed on destruction if it still runs. */
class Program {
 public:
  explicit Program(std::vector<std::string> words, const ProgramOptions& options = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void send(const std::string& text);
  void close_input();
  void signal(int number);
  bool is_running();
  Outcome wait();

 private:
  bool reap(int options);

  pid_t child_ = -1;
  int status_ = 0;
  int64_t peak_bytes_ = 0;
  int input_ = -1, out_ = -1, err_ = -1;
};

/** Runs the program to its end. */
Outcome run(std::vector<std::string> words, const ProgramOptions& options = {});

/** Expects that a run failed with this code and printed one line with all of these texts, on stderr only. */
void expect_error(const Outcome& outcome, int code, const std::vector<std::string>& texts);

}  // namespace tercel::test
