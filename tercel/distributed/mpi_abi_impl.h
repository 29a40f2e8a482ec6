// The border between the library and the module libtercel_mpi.so, which alone knows MPI. Private.
//
// Note [MPI module]
// MPI libraries differ in their binary interfaces, and most machines have none. So the library does not link one: what
// needs it is a module, built where MPI's headers are, that is loaded when a run asks for MPI. Only plain structs and
// function pointers cross the border. Library and module are built together: kMpiAbiVersion changes with any struct
// here.
//
// The module's functions are called by one thread at a time, finish() by the one that calls init().
#pragma once

#include <cstdint>

namespace tercel::distributed {

constexpr int32_t kMpiAbiVersion = 2;
/** The module's only symbol, of type MpiEntry. */
constexpr const char* kMpiEntry = "tercel_mpi_api";

/** Why a function failed, with a zero at the end. */
struct MpiFailure {
  char text[512];
};

/** Functions that return 0 if they succeed describe failures in the last argument. */
struct MpiApi {
  int32_t abi_version;

  /** Begins the work with MPI, unless the program has; rank and size are those of all processes of the job. */
  int32_t (*init)(int32_t* rank, int32_t* size, MpiFailure* failure);
  /** Begin a transfer of at most 2^30 bytes; `request` is valid until it is done. */
  int32_t (*send)(const void* data, int32_t bytes, int32_t to, int32_t tag, int32_t* request, MpiFailure* failure);
  int32_t (*receive)(void* data, int32_t bytes, int32_t from, int32_t tag, int32_t* request, MpiFailure* failure);
  /** Whether a transfer is done, and how many bytes have arrived if it was one that receives. */
  int32_t (*test)(int32_t request, int32_t* is_done, int32_t* bytes, MpiFailure* failure);
  /** Ends the work, if init() began it. */
  int32_t (*finish)(MpiFailure* failure);
  /** Ends all processes of the job. */
  void (*abort)(int32_t code);
};

using MpiEntry = const MpiApi* (*)();

}  // namespace tercel::distributed
