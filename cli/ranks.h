// Commands that several processes, the ranks of a job, work on together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "tercel/distributed/process_group.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/span.h"

namespace tercel::cli {

/** Processes of this machine, for mpirun to start. */
struct RankJob {
  int64_t ranks = 0;
  int64_t threads = 0;               // of each process; 0: an equal part of the CPUs that may be used
  std::vector<std::string> command;  // "train" and the words behind it, without --ranks and --threads
};

/**
 * Runs a job by mpirun and, while it ends because a rank was lost and nobody asked it to stop, runs it again, at most
 * `restarts` times; its last exit code. `again` is the command of a job that goes on, `progress` says in words from
 * where: "step 100 of runs/dlrm-1". Passes on a signal that asks this process to stop or to save. DistributedError
 * without mpirun or MPI.
 */
int run_ranks(RankJob job, int64_t restarts, const std::vector<std::string>& again, FunctionRef<std::string()> progress,
              const CommonOptions& common);

/** The words of a command without these flags, which have values. */
std::vector<std::string> without_flags(const std::vector<std::string>& words, Span<std::string_view> flags);

/**
 * The ranks that mpirun or srun started together with this process; null if it is alone, with a warning if it is one of
 * several tasks of srun. ConfigError unless they are as many as `expected`, where that is not 0; DistributedError
 * without MPI.
 */
std::unique_ptr<distributed::ProcessGroup> connect_ranks(int64_t expected, const CommonOptions& common);

/** Ends the job with an error that this rank alone has: prints it with the rank; its exit code is that of the job. */
[[noreturn]] void end_job(distributed::ProcessGroup& group, std::string_view message, ExitCode code);

/**
 * Does the work of a rank, and ends the group together with the others. An error of this rank alone ends the job: it is
 * printed with the rank, and its exit code is that of all processes.
 */
void work_with(distributed::ProcessGroup& group, FunctionRef<void()> work);

}  // namespace tercel::cli
