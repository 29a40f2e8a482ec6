// Messages through MPI.
//
// The module libtercel_mpi.so is loaded when the first group asks for it; programs that ask for none need no MPI. It is
// looked for where the environment variable TERCEL_MPI_MODULE says; beside the library or program, and in lib, ../lib
// and ../lib64 of there; and where the system's loader looks.
#pragma once

#include <cstdint>
#include <memory>

#include "tercel/distributed/process_group.h"
#include "tercel/distributed/transport.h"
#include "tercel/util/export.h"

namespace tercel::distributed {

/**
 * Connects with the processes that mpirun or srun started together with this one; without them it is alone. To be
 * called by the thread that uses it. DistributedError that says what to install if there is no MPI.
 */
TERCEL_API std::unique_ptr<Transport> connect_mpi();

/** The group of these processes; one for a process. */
TERCEL_API std::unique_ptr<ProcessGroup> mpi_group(const GroupOptions& options = {});

/** Whether mpirun or srun started this process, as its environment says. */
TERCEL_API bool is_started_by_mpi();

/**
 * The tasks of the step of srun that this process is one of, where Slurm does not connect them for MPI; else 1. Each of
 * them is alone.
 */
TERCEL_API int64_t unconnected_tasks();

/** DistributedError as connect_mpi() if there is no MPI; connects with nobody. */
TERCEL_API void check_mpi();

/** Whether the library was built together with the module. */
TERCEL_API bool has_mpi_module();

}  // namespace tercel::distributed
