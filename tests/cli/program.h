// Runs the program as its users do: another process, with a command line, and what it prints.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tercel::test {

/** What a run of the program came to. */
struct Outcome {
  int code = -1;  // exit code, or 1000 + the signal that killed it
  std::string out;
  std::string err;
  int64_t peak_bytes = 0;  // most memory that was resident at once
};

struct ProgramOptions {
  std::string input;            // what the standard input holds; it is a pipe only with keep_open
  bool keep_open = false;       // more may come: the standard input does not end before close_input()
  int64_t max_file_bytes = -1;  // a longer file cannot be written, as on a full disk; -1: any
  int64_t stack_bytes = -1;     // limit of the stack (ulimit -s); -1: that of the test
  int64_t address_bytes = -1;   // limit of the address space (ulimit -v); -1: that of the test
  std::string out;              // the standard output goes to this file; empty: to Outcome::out
};

/** The program `tercel` as it runs. It is killed if it is still there in the end. */
class Program {
 public:
  /** The program is the one in TERCEL_PROGRAM, or beside the test. */
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

/** Expects that a run failed with this code and printed one line with all of these texts, on stderr alone. */
void expect_error(const Outcome& outcome, int code, const std::vector<std::string>& texts);

}  // namespace tercel::test
