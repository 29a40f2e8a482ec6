#include "tercel/distributed/mpi_transport.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "tercel/distributed/error.h"
#include "tercel/distributed/mpi_abi_impl.h"
#include "tercel/util/format.h"
#include "tercel/util/module_paths.h"

// The name of the MPI library that the module is built for; empty where it is not built.
#ifndef TERCEL_MPI_LIBRARY
#define TERCEL_MPI_LIBRARY ""
#endif

namespace tercel::distributed {

namespace {

constexpr const char* kModule = "libtercel_mpi.so";
constexpr const char* kLibrary = TERCEL_MPI_LIBRARY;
constexpr int64_t kMessageBytes = int64_t{1} << 30;

const MpiApi& load() {
  TERCEL_CHECK(has_mpi_module(), DistributedError,
               "mpi: expected the module libtercel_mpi.so, found that this Tercel was built without it; build it where "
               "MPI is (apt-get install libopenmpi-dev openmpi-bin)");
  // Plugins of Open MPI find its symbols only where they are global.
  if (!::dlopen(kLibrary, RTLD_NOW | RTLD_GLOBAL))
    throw_error<DistributedError>({"mpi: expected the MPI library ", kLibrary, ", found that the loader says: ",
                                   printable(::dlerror()), "; apt-get install openmpi-bin installs it on Debian"});
  void* module = nullptr;
  std::string refused;
  for (const std::string& path : module_paths(kModule, "TERCEL_MPI_MODULE")) {
    module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module) break;
    if (refused.empty()) refused = ::dlerror();
  }
  TERCEL_CHECK(module, DistributedError, "mpi: expected the module ", kModule,
               ", found that the loader says: ", printable(refused));
  const auto entry = reinterpret_cast<MpiEntry>(::dlsym(module, kMpiEntry));
  const MpiApi* const api = entry ? entry() : nullptr;
  TERCEL_CHECK(api && api->abi_version == kMpiAbiVersion, DistributedError, "mpi: expected ", kModule,
               " of this version of Tercel, found one of another; install both together");
  return *api;
}

void check(int32_t code, const MpiFailure& failure) {
  if (code != 0) throw_error<DistributedError>({"MPI: ", printable(failure.text)});
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(const MpiApi& api, int32_t rank, int32_t size) : Transport(rank, size), api_(api) {}

  std::string_view name() const override { return "mpi"; }

  Ticket send(int64_t to, int32_t tag, const void* data, int64_t bytes) override {
    const auto* const begin = static_cast<const char*>(data);
    return start(bytes, [&](int64_t at, int32_t part, int32_t* request, MpiFailure* failure) {
      return api_.send(begin + at, part, static_cast<int32_t>(to), tag, request, failure);
    });
  }
  Ticket receive(int64_t from, int32_t tag, void* data, int64_t bytes) override {
    auto* const begin = static_cast<char*>(data);
    const Ticket ticket = start(bytes, [&](int64_t at, int32_t part, int32_t* request, MpiFailure* failure) {
      return api_.receive(begin + at, part, static_cast<int32_t>(from), tag, request, failure);
    });
    transfers_[static_cast<size_t>(ticket)].expected = bytes;
    return ticket;
  }

  bool is_done(Ticket ticket) override {
    Transfer& transfer = transfers_[static_cast<size_t>(ticket)];
    while (!transfer.requests.empty()) {
      MpiFailure failure{};
      int32_t is_done = 0, bytes = 0;
      check(api_.test(transfer.requests.back(), &is_done, &bytes, &failure), failure);
      if (is_done == 0) return false;
      transfer.arrived += bytes;
      transfer.requests.pop_back();
    }
    free_.push_back(ticket);
    TERCEL_CHECK(transfer.expected < 0 || transfer.arrived == transfer.expected, DistributedError, "expected ",
                 transfer.expected, " bytes, found ", transfer.arrived,
                 "; do all ranks the same, with tensors of the same sizes?");
    return true;
  }

  void finish() override {
    MpiFailure failure{};
    check(api_.finish(&failure), failure);
  }
  void abort(int code) noexcept override {
    api_.abort(code);
    std::_Exit(code);
  }

 private:
  struct Transfer {
    std::vector<int32_t> requests;       // that are not done
    int64_t expected = -1, arrived = 0;  // bytes; -1: they are sent
  };

  template <class Start>
  Ticket start(int64_t bytes, const Start& start_part) {
    Transfer transfer;
    int64_t at = 0;
    do {
      const auto part = static_cast<int32_t>(std::min(bytes - at, kMessageBytes));
      MpiFailure failure{};
      int32_t request = 0;
      check(start_part(at, part, &request, &failure), failure);
      transfer.requests.push_back(request);
      at += part;
    } while (at < bytes);
    if (free_.empty()) {
      transfers_.push_back(std::move(transfer));
      return static_cast<Ticket>(transfers_.size()) - 1;
    }
    const Ticket ticket = free_.back();
    free_.pop_back();
    transfers_[static_cast<size_t>(ticket)] = std::move(transfer);
    return ticket;
  }

  const MpiApi& api_;
  std::vector<Transfer> transfers_;  // by ticket
  std::vector<Ticket> free_;
};

}  // namespace

bool is_started_by_mpi() {
  // Of Open MPI, PMIx, and PMI as of MPICH and Slurm.
  constexpr const char* kNames[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
  return std::any_of(std::begin(kNames), std::end(kNames), [](const char* name) { return std::getenv(name); });
}

int64_t unconnected_tasks() {
  const char* const tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return tasks == nullptr || is_started_by_mpi() ? 1 : std::max<int64_t>(1, std::atoll(tasks));
}

void check_mpi() { load(); }

bool has_mpi_module() { return *kLibrary != '\0'; }

std::unique_ptr<Transport> connect_mpi() {
  const MpiApi& api = load();
  MpiFailure failure{};
  int32_t rank = 0, size = 0;
  check(api.init(&rank, &size, &failure), failure);
  return std::make_unique<MpiTransport>(api, rank, size);
}

std::unique_ptr<ProcessGroup> mpi_group(const GroupOptions& options) {
  return std::make_unique<ProcessGroup>(Callable<std::unique_ptr<Transport>()>(&connect_mpi), options);
}

}  // namespace tercel::distributed
