#include "tests/cli/rank_processes.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tercel/distributed/mpi_transport.h"
#include "tercel/util/file.h"

namespace tercel::test {

bool can_start_ranks() {
  if (!distributed::has_mpi_module() || std::system("command -v mpirun > /dev/null") != 0) return false;
  ::setenv("ASAN_OPTIONS", "allocator_may_return_null=1:detect_leaks=0", 1);  // MPI's libraries leak
  return true;
}

pid_t process_of_rank(const std::string& run, int rank) {
  const std::string variable = std::string("OMPI_COMM_WORLD_RANK=") + std::to_string(rank) + '\0';
  std::error_code gone;
  for (std::filesystem::directory_iterator at("/proc", gone), end; !gone && at != end; at.increment(gone)) {
    const std::string pid = at->path().filename();
    if (!std::all_of(pid.begin(), pid.end(), [](char c) { return c >= '0' && c <= '9'; })) continue;
    if (read_system_file((at->path() / "cmdline").string()).find(run + '\0') != std::string::npos &&
        read_system_file((at->path() / "environ").string()).find(variable) != std::string::npos)
      return std::stoi(pid);
  }
  return -1;
}

}  // namespace tercel::test
