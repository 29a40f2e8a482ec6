// Commands that several processes, the ranks of a job, work on together.
#pragma once

#include <cstdint>
#include <memory>

#include "cli/command.h"
#include "tercel/distributed/process_group.h"
#include "tercel/util/function_ref.h"

namespace tercel::cli {

/**
 * Runs the same command again as so many processes of this machine, by mpirun, and does not return. `threads` are those
 * of each process; 0: an equal part of the CPUs that may be used. DistributedError without mpirun.
 */
[[noreturn]] void start_ranks(int64_t ranks, int64_t threads, const CommandLine& line);

/**
 * The ranks that mpirun or srun started together with this process; null if it is alone. ConfigError unless they are as
 * many as `expected`, where that is not 0; DistributedError without MPI.
 */
std::unique_ptr<distributed::ProcessGroup> connect_ranks(int64_t expected);

/**
 * Does the work of a rank, and ends the group together with the others. An error of this rank alone ends the job: it is
 * printed with the rank, and its exit code is that of all processes.
 */
void work_with(distributed::ProcessGroup& group, FunctionRef<void()> work);

}  // namespace tercel::cli
