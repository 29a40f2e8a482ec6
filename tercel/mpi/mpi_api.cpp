// The module's table of functions: see Note [MPI module].
#include <mpi.h>

#include <cstdio>
#include <vector>

#include "tercel/distributed/mpi_abi_impl.h"
#include "tercel/util/export.h"

namespace tercel::mpi_module {

namespace {

using distributed::MpiFailure;

struct Request {
  MPI_Request handle = MPI_REQUEST_NULL;
  bool is_receive = false;
};

struct State {
  MPI_Comm comm = MPI_COMM_NULL;
  bool began = false;
  std::vector<Request> requests;  // by number
  std::vector<int32_t> free;      // numbers that are not in use
};

State& state() {
  static State state;
  return state;
}

int32_t refuse(const char* text, MpiFailure* failure) {
  std::snprintf(failure->text, sizeof(failure->text), "%s", text);
  return 1;
}

int32_t check(int code, MpiFailure* failure) {
  if (code == MPI_SUCCESS) return 0;
  int kind = MPI_SUCCESS;
  MPI_Error_class(code, &kind);
  if (kind == MPI_ERR_TRUNCATE)
    return refuse("found more bytes than expected; do all ranks the same, with tensors of the same sizes?", failure);
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  std::snprintf(failure->text, sizeof(failure->text), "%s", text);
  return 1;
}

int32_t init(int32_t* rank, int32_t* size, MpiFailure* failure) {
  State& s = state();
  if (s.comm != MPI_COMM_NULL) return refuse("there is a group already", failure);
  int is_initialized = 0, is_finalized = 0, provided = 0;
  MPI_Initialized(&is_initialized);
  MPI_Finalized(&is_finalized);
  if (is_finalized != 0)
    return refuse(
        "MPI is finalized: a process has one group, unless the program initializes MPI itself, as mpi4py does",
        failure);
  if (is_initialized == 0) {
    if (check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), failure) != 0) return 1;
    s.began = true;
    if (provided < MPI_THREAD_SERIALIZED)
      return refuse("this MPI cannot be used by more than one thread (MPI_THREAD_SERIALIZED)", failure);
  } else {
    MPI_Query_thread(&provided);
    if (provided < MPI_THREAD_MULTIPLE)
      return refuse("MPI was initialized by the program without MPI_THREAD_MULTIPLE, which another thread needs",
                    failure);
  }
  if (check(MPI_Comm_dup(MPI_COMM_WORLD, &s.comm), failure) != 0) return 1;
  MPI_Comm_set_errhandler(s.comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(s.comm, rank);
  MPI_Comm_size(s.comm, size);
  return 0;
}

int32_t add(const Request& request) {
  State& s = state();
  if (s.free.empty()) {
    s.requests.push_back(request);
    return static_cast<int32_t>(s.requests.size()) - 1;
  }
  const int32_t number = s.free.back();
  s.free.pop_back();
  s.requests[static_cast<size_t>(number)] = request;
  return number;
}

int32_t send(const void* data, int32_t bytes, int32_t to, int32_t tag, int32_t* request, MpiFailure* failure) {
  Request made;
  if (check(MPI_Isend(data, bytes, MPI_BYTE, to, tag, state().comm, &made.handle), failure) != 0) return 1;
  *request = add(made);
  return 0;
}

int32_t receive(void* data, int32_t bytes, int32_t from, int32_t tag, int32_t* request, MpiFailure* failure) {
  Request made{MPI_REQUEST_NULL, true};
  if (check(MPI_Irecv(data, bytes, MPI_BYTE, from, tag, state().comm, &made.handle), failure) != 0) return 1;
  *request = add(made);
  return 0;
}

int32_t test(int32_t number, int32_t* is_done, int32_t* bytes, MpiFailure* failure) {
  Request& request = state().requests[static_cast<size_t>(number)];
  MPI_Status status;
  int flag = 0;
  if (check(MPI_Test(&request.handle, &flag, &status), failure) != 0) return 1;
  *is_done = flag;
  if (flag == 0) return 0;
  state().free.push_back(number);
  if (!request.is_receive) return 0;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  *bytes = count;
  return 0;
}

int32_t finish(MpiFailure* failure) {
  State& s = state();
  if (check(MPI_Comm_free(&s.comm), failure) != 0) return 1;
  return s.began ? check(MPI_Finalize(), failure) : 0;
}

void abort(int32_t code) { MPI_Abort(MPI_COMM_WORLD, code); }

}  // namespace

extern "C" TERCEL_API const distributed::MpiApi* tercel_mpi_api() {
  static const distributed::MpiApi api{distributed::kMpiAbiVersion, init, send, receive, test, finish, abort};
  return &api;
}

}  // namespace tercel::mpi_module
