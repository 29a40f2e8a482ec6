#include "tests/cli/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace tercel::test {

namespace {

std::string find_program() {
  const char* const path = std::getenv("TERCEL_PROGRAM");
  if (path != nullptr) return std::filesystem::absolute(path).string();
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tercel").string();
}

int memory_file(const std::string& content) {
  const int fd = ::memfd_create("tercel_test", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
      ::lseek(fd, 0, SEEK_SET) != 0)
    throw std::runtime_error("cannot write a file in memory");
  return fd;
}

std::string content_of(int fd) {
  std::string content(static_cast<size_t>(std::max<off_t>(0, ::lseek(fd, 0, SEEK_END))), '\0');
  if (::pread(fd, content.data(), content.size(), 0) != static_cast<ssize_t>(content.size()))
    throw std::runtime_error("cannot read a file in memory");
  return content;
}

/** Limits a resource of this process and its program, unless `bytes` is negative. */
void limit(decltype(RLIMIT_AS) what, int64_t bytes) {
  if (bytes < 0) return;
  const struct rlimit both = {static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  ::setrlimit(what, &both);
}

}  // namespace

/** Found once: a test may change the working folder. */
const std::string& program_path() {
  static const std::string path = find_program();
  return path;
}

Program::Program(std::vector<std::string> words, const ProgramOptions& options) {
  words.insert(words.begin(), program_path());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  int ends[2] = {-1, -1};
  if (options.keep_open) {
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
    input_ = ends[1];
  } else {
    ends[0] = memory_file(options.input);
  }
  out_ = options.out.empty() ? memory_file("") : ::open(options.out.c_str(), O_WRONLY | O_CLOEXEC);
  err_ = memory_file("");

  child_ = ::fork();
  if (child_ == 0) {
    ::dup2(ends[0], STDIN_FILENO);
    ::dup2(out_, STDOUT_FILENO);
    ::dup2(err_, STDERR_FILENO);
    // As started by a shell, regardless of how the test was started.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1}) ::signal(signal, SIG_DFL);
    limit(RLIMIT_FSIZE, options.max_file_bytes);
    limit(RLIMIT_STACK, options.stack_bytes);
    limit(RLIMIT_AS, options.address_bytes);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(ends[0]);
  if (options.keep_open) send(options.input);
}

Program::~Program() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  for (const int fd : {input_, out_, err_})
    if (fd >= 0) ::close(fd);
}

void Program::send(const std::string& text) {
  if (::write(input_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("the program does not read");
}

void Program::close_input() {
  ::close(input_);
  input_ = -1;
}

void Program::signal(int number) { ::kill(child_, number); }

/** Whether it has ended by now. */
bool Program::reap(int options) {
  struct rusage usage = {};
  if (child_ > 0 && ::wait4(child_, &status_, options, &usage) == child_) {
    child_ = -1;
    peak_bytes_ = int64_t{usage.ru_maxrss} * 1024;
  }
  return child_ <= 0;
}

bool Program::is_running() { return !reap(WNOHANG); }

Outcome Program::wait() {
  reap(0);
  Outcome outcome;
  outcome.peak_bytes = peak_bytes_;
  outcome.code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 1000 + WTERMSIG(status_);
  outcome.err = content_of(err_);
  if ((::fcntl(out_, F_GETFL) & O_ACCMODE) == O_RDWR) outcome.out = content_of(out_);
  return outcome;
}

Outcome run(std::vector<std::string> words, const ProgramOptions& options) {
  Program program(std::move(words), options);
  if (options.keep_open) program.close_input();
  return program.wait();
}

void expect_error(const Outcome& outcome, int code, const std::vector<std::string>& texts) {
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("tercel: error: ")) << outcome.err;
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << "one line: " << outcome.err;
  for (const std::string& text : texts)
    EXPECT_NE(outcome.err.find(text), std::string::npos) << text << " in " << outcome.err;
}

}  // namespace tercel::test
