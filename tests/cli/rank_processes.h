// The processes of a job that `tercel train --ranks` has started.
#pragma once

#include <sys/types.h>

#include <string>

namespace tercel::test {

/** Whether this build and machine can start ranks; then also prepares the environment for them. */
bool can_start_ranks();

/** The process that is a rank of the run in this folder; -1 if there is none. */
pid_t process_of_rank(const std::string& run, int rank);

}  // namespace tercel::test
