#include "cli/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cli/console.h"
#include "tercel/distributed/error.h"
#include "tercel/distributed/mpi_transport.h"
#include "tercel/util/cpu_info.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::cli {

namespace {

/** The words of the command without --ranks and its value. */
std::vector<std::string> without_ranks(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--ranks")
      ++i;
    else if (!words[i].starts_with("--ranks="))
      kept.push_back(words[i]);
  }
  return kept;
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

[[noreturn]] void end_job(distributed::ProcessGroup& group, std::string_view message, ExitCode code) {
  print_error(str_cat({"rank ", group.rank(), " of ", group.size(), ": ", message}));
  group.abort(static_cast<int>(code));
}

}  // namespace

void start_ranks(int64_t ranks, int64_t threads, const CommandLine& line) {
  // By the environment, which other releases of Open MPI ignore where they do not know a name.
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);
  // Seconds after which mpirun, when it ends a job, sends SIGTERM, and again after which it sends SIGKILL.
  setenv("OMPI_MCA_odls_base_sigkill_timeout", "8", 0);
  if (::geteuid() == 0) {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  }
  std::vector<std::string> words = {"mpirun", "-n", std::to_string(ranks), "/proc/self/exe",
                                    std::string(line.command())};
  char program[4096];
  const ssize_t length = ::readlink("/proc/self/exe", program, sizeof(program));
  if (length > 0) words[3].assign(program, static_cast<size_t>(length));
  for (std::string& word : without_ranks(line.words())) words.push_back(std::move(word));
  if (threads == 0) {
    words.emplace_back("--threads");
    words.push_back(std::to_string(std::max<int64_t>(1, usable_cpus() / ranks)));
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  flush_output();
  ::execvp("mpirun", arguments.data());
  throw_error<DistributedError>({"--ranks ", ranks, ": expected the program mpirun, found: ", std::strerror(errno),
                                 "; apt-get install openmpi-bin installs it on Debian"});
}

std::unique_ptr<distributed::ProcessGroup> connect_ranks(int64_t expected) {
  if (!distributed::is_started_by_mpi()) return nullptr;
  // Shorter than what mpirun waits for once a rank is lost, so that rank 0 can save.
  std::unique_ptr<distributed::ProcessGroup> group = distributed::mpi_group({.silence_seconds = 10});
  TERCEL_CHECK(expected == 0 || group->size() == expected, ConfigError, "--ranks ", expected,
               ": expected as many processes, found that ", group->size(), " were started");
  return group;
}

void work_with(distributed::ProcessGroup& group, FunctionRef<void()> work) {
  try {
    work();
  } catch (const DistributedError&) {  // the group tells the others
    throw;
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
