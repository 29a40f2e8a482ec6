#include "cli/ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <sstream>

#include "cli/console.h"
#include "tercel/distributed/error.h"
#include "tercel/distributed/mpi_transport.h"
#include "tercel/util/cpu_info.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/signals.h"

namespace tercel::cli {

namespace {

/** How mpirun ended. */
struct JobEnd {
  int code = 0;             // its exit code, or 128 + the signal that ended it
  bool was_killed = false;  // by that signal
};

/** Whether somebody may still read what is written there. */
bool is_read(int fd) {
  struct pollfd at = {fd, 0, 0};
  return ::poll(&at, 1, 0) <= 0 || (at.revents & POLLERR) == 0;
}

/** Whether a rank was lost, which may be otherwise when the job is run again. */
bool has_lost_rank(const JobEnd& end) {
  if (end.code == static_cast<int>(ExitCode::Communication)) return true;
  const int signal = end.code - 128;
  if (signal <= 0 || signal >= NSIG || signal == SIGHUP || signal == SIGINT || signal == SIGTERM) return false;
  if (signal != SIGPIPE) return true;
  // Ranks end so when nobody reads their output; mpirun also when a rank that it talks to is killed.
  return end.was_killed && is_read(STDOUT_FILENO) && is_read(STDERR_FILENO);
}

/** That of the job. A broken pipe of mpirun's own is a rank that was lost. */
int exit_code_of(const JobEnd& end) {
  return end.code == 128 + SIGPIPE && has_lost_rank(end) ? static_cast<int>(ExitCode::Communication) : end.code;
}

std::string cause_text(const JobEnd& end) {
  if (end.code == static_cast<int>(ExitCode::Communication)) return "a rank was lost";
  const int signal = end.code - 128;
  return str_cat(
      {end.was_killed ? "mpirun" : "a rank", " was ended by signal ", signal, " (", ::strsignal(signal), ")"});
}

/** mpirun's command line. */
std::vector<std::string> words_of(const RankJob& job) {
  std::vector<std::string> words = {"mpirun", "-n", std::to_string(job.ranks), "/proc/self/exe", job.command.front()};
  char program[4096];
  const ssize_t length = ::readlink("/proc/self/exe", program, sizeof(program));
  if (length > 0) words[3].assign(program, static_cast<size_t>(length));
  const int64_t threads = job.threads > 0 ? job.threads : std::max<int64_t>(1, usable_cpus() / job.ranks);
  // In front: behind "--" they would not be flags.
  words.insert(words.end(), {"--threads", std::to_string(threads)});
  words.insert(words.end(), job.command.begin() + 1, job.command.end());
  return words;
}

/** Settings of mpirun, by the environment: other releases of Open MPI ignore names there that they do not know. */
void set_environment() {
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);
  // Seconds after which mpirun, when it ends a job, sends SIGTERM, and again after which it sends SIGKILL.
  // More than the silence after which a rank counts as lost, so that the others can say so and save.
  setenv("OMPI_MCA_odls_base_sigkill_timeout", "12", 0);
  if (::geteuid() != 0) return;
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
}

[[noreturn]] void throw_no_mpirun(int64_t ranks, int error) {
  throw_error<DistributedError>({"--ranks ", ranks, ": expected the program mpirun, found: ", std::strerror(error),
                                 "; apt-get install openmpi-bin installs it on Debian"});
}

/** For exec(); the words must outlive it. */
std::vector<char*> arguments_of(std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return arguments;
}

constexpr struct timespec kPause = {0, 20'000'000};

/**
 * While it lives, this thread takes the signals that ask for the end from here, and not in their handler, which would
 * end the process at the second one and leave mpirun alone with its time-outs.
 */
class StopSignals {
 public:
  StopSignals() {
    ::sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action = {};
      ::sigaction(signal, nullptr, &action);
      if (action.sa_handler != SIG_IGN) ::sigaddset(&set_, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~StopSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /** Waits for a moment, shorter if one comes; 0: none has. */
  int wait_briefly() const { return std::max(0, ::sigtimedwait(&set_, nullptr, &kPause)); }
  /** The signals that were blocked before. */
  const sigset_t& before() const { return before_; }

 private:
  sigset_t set_, before_;
};

/** Waits for ranks that outlive mpirun, as they do for a moment when it is killed: the run's folder is theirs. */
void wait_for_orphans() {
  constexpr int kPauses = 1500;  // 30 s
  for (int i = 0; i < kPauses; ++i) {
    const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
    if (ended < 0) return;
    if (ended == 0) ::nanosleep(&kPause, nullptr);
  }
}

/** The children of a process that run. */
std::vector<pid_t> running_children(pid_t parent) {
  std::vector<pid_t> running;
  std::istringstream children(read_system_file(str_cat({"/proc/", parent, "/task/", parent, "/children"})));
  for (pid_t child = 0; children >> child;) {
    const std::string stat = read_system_file(str_cat({"/proc/", child, "/stat"}));
    const size_t name_end = stat.rfind(')');
    if (name_end + 2 < stat.size() && stat[name_end + 2] != 'Z') running.push_back(child);
  }
  return running;
}

/** Watches whether mpirun has ranks, and ends it when it has not ended itself long after them. */
class Watch {
 public:
  explicit Watch(pid_t mpirun) : mpirun_(mpirun) {}

  /** `is_asked`: to stop, perhaps before it had any. */
  void look(bool is_asked) {
    had_ranks_ = had_ranks_ || is_asked;
    const auto now = Clock::now();
    if (now < next_) return;
    if (!running_children(mpirun_).empty()) {
      had_ranks_ = true;
      seen_ = now;
      next_ = now + std::chrono::milliseconds(100);
    } else if (had_ranks_) {
      // That of Open MPI ends a job with two sleeps of the time-out that set_environment() sets, also where no rank is
      // left; what is left of a sleep(3) that a signal interrupts is rounded down. That of 4.1 waits for itself for
      // ever at the end of some jobs of which a rank was killed while it connected.
      ::kill(mpirun_, now - seen_ > kMostWithoutRanks ? SIGKILL : SIGCHLD);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kMostWithoutRanks{10};

  pid_t mpirun_;
  Clock::time_point next_ = Clock::now(), seen_ = next_;
  bool had_ranks_ = false;
};

/**
 * Asks the ranks to stop; mpirun only before it has started any: that of Open MPI passes no signal on that asks to
 * stop, but ends the job, its first SIGTERM after a time-out. Whether there were ranks.
 */
bool ask_to_stop(pid_t mpirun, int signal) {
  std::vector<pid_t> processes = running_children(mpirun);
  const bool has_ranks = !processes.empty();
  if (!has_ranks) processes.push_back(mpirun);
  for (const pid_t process : processes) ::kill(process, signal == SIGPIPE ? SIGTERM : signal);
  return has_ranks;
}

/** Starts mpirun in a process group of its own, so that this process alone gets the signals of a terminal. */
pid_t fork_mpirun(const RankJob& job, const sigset_t& blocked) {
  std::vector<std::string> words = words_of(job);
  const std::vector<char*> arguments = arguments_of(words);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) throw_error<IoError>({"--ranks: pipe: ", std::strerror(errno)});
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // without this process nobody would stop the job
    if (::getppid() != parent) ::_exit(1);
    const int nothing = ::open("/dev/null", O_RDONLY);
    if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
    ::execvp("mpirun", arguments.data());
    const int error = errno;
    static_cast<void>(!::write(report[1], &error, sizeof(error)));
    ::_exit(127);
  }
  const int fork_error = errno;
  ::close(report[1]);
  int error = 0;
  const bool has_error = child > 0 && ::read(report[0], &error, sizeof(error)) == sizeof(error);
  ::close(report[0]);
  if (child < 0) throw_error<OutOfMemoryError>({"--ranks: fork: ", std::strerror(fork_error)});
  if (has_error) {
    ::waitpid(child, nullptr, 0);
    throw_no_mpirun(job.ranks, error);
  }
  return child;
}

/** Ends the group with the others; false if they do something else. */
bool close(distributed::ProcessGroup& group) {
  try {
    group.close();
    return true;
  } catch (const DistributedError&) {
    return false;
  }
}

JobEnd run_mpirun(const RankJob& job) {
  const StopSignals signals;
  const pid_t child = fork_mpirun(job, signals.before());
  Watch watch(child);
  int status = 0, second = 0;
  bool is_asked = false, had_ranks = true;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    const int came = signals.wait_briefly();
    if (came != 0 && stop_signal() == 0) request_stop(came);
    if (const int signal = stop_signal(); signal != 0 && !is_asked) {  // of SIGPIPE, too
      is_asked = true;
      had_ranks = ask_to_stop(child, signal);
    } else if (came == SIGINT || came == SIGTERM) {
      second = came;
      for (const pid_t rank : running_children(child)) ::kill(rank, SIGKILL);
    }
    if (take_save_request()) ::kill(child, SIGUSR1);
    watch.look(is_asked);
  }
  wait_for_orphans();
  if (second != 0) return {128 + second, false};
  // mpirun has codes of its own where a rank ends before it is one.
  constexpr int kFailedToStart = 1;
  if (!had_ranks || (is_asked && WIFEXITED(status) && WEXITSTATUS(status) == kFailedToStart)) check_interrupted();
  if (WIFEXITED(status)) return {WEXITSTATUS(status), false};
  return {128 + WTERMSIG(status), true};
}

}  // namespace

int run_ranks(RankJob job, int64_t restarts, const std::vector<std::string>& again, FunctionRef<std::string()> progress,
              const CommonOptions& common) {
  distributed::check_mpi();
  set_environment();
  flush_output();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // for wait_for_orphans()
  ::signal(SIGCHLD, SIG_DFL);          // where it is ignored, a child leaves no status
  for (int64_t restart = 1;; ++restart) {
    const JobEnd end = run_mpirun(job);
    if (!has_lost_rank(end) || stop_signal() != 0 || restarts == 0) return exit_code_of(end);
    if (restart > restarts) {
      print_warning(common, str_cat({cause_text(end), "; the job was restarted ", restarts,
                                     restarts == 1 ? " time" : " times", ", as often as --restarts allows"}));
      return exit_code_of(end);
    }
    print_warning(common, str_cat({cause_text(end), "; restart ", restart, " of ", restarts, ", from ", progress()}));
    job.command = again;
  }
}

std::vector<std::string> without_flags(const std::vector<std::string>& words, Span<std::string_view> flags) {
  std::vector<std::string> kept;
  const auto dashes = std::find(words.begin(), words.end(), "--");
  for (auto word = words.begin(); word != dashes; ++word) {
    const std::string_view name = std::string_view(*word).substr(0, word->find('='));
    if (std::find(flags.begin(), flags.end(), name) == flags.end())
      kept.push_back(*word);
    else if (name.size() == word->size() && word + 1 != dashes)
      ++word;
  }
  kept.insert(kept.end(), dashes, words.end());
  return kept;
}

void end_job(distributed::ProcessGroup& group, std::string_view message, ExitCode code) {
  print_error(str_cat({"rank ", group.rank(), " of ", group.size(), ": ", message}));
  group.abort(static_cast<int>(code));
}

std::unique_ptr<distributed::ProcessGroup> connect_ranks(int64_t expected, const CommonOptions& common) {
  if (const int64_t tasks = distributed::unconnected_tasks(); tasks > 1)
    print_warning(common,
                  str_cat({"srun started ", tasks, " tasks, which are not connected: each of them does all of the ",
                           "work; srun --mpi=pmix starts the ranks of one job"}));
  if (!distributed::is_started_by_mpi()) return nullptr;
  // Shorter than what mpirun waits for once a rank is lost, so that rank 0 can save.
  std::unique_ptr<distributed::ProcessGroup> group = distributed::mpi_group({.silence_seconds = 10});
  if (expected == 0 || group->size() == expected) return group;
  const ConfigError error(
      str_cat({"--ranks ", expected, ": expected as many processes, found that ", group->size(), " were started"}));
  const bool is_first = group->rank() == 0;
  group->close();  // all ranks have the error, and the first one reports it
  group.reset();
  if (!is_first) std::exit(static_cast<int>(error.exit_code()));
  throw error;
}

void work_with(distributed::ProcessGroup& group, FunctionRef<void()> work) {
  try {
    work();
  } catch (const JobEndedError& error) {
    // That rank says why; the first one says what is saved.
    if (group.rank() > 0) group.abort(static_cast<int>(error.exit_code()));
    end_job(group, error.what(), error.exit_code());
  } catch (const DistributedError& error) {
    end_job(group, error.what(), error.exit_code());
  } catch (const Error& error) {
    // Where all ranks had it, the others have ended their work, too.
    if (group.rank() == 0 && close(group)) throw;
    end_job(group, error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    end_job(group, "out of memory", ExitCode::Memory);
  }
  group.close();
}

}  // namespace tercel::cli
