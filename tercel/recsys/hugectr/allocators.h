// Where a GeneralBuffer2 takes its memory from: HugeCTR's four allocators, by name.
#pragma once

#include <concepts>
#include <cstddef>

#include "tercel/core/allocator.h"
#include "tercel/core/cuda_allocators.h"

namespace tercel::recsys::hugectr {

/** A type that names an Allocator, and says whether the host may read and write its memory. */
template <class A>
concept BufferAllocator = requires {
  { A::allocator() } -> std::convertible_to<Allocator&>;
  { A::kHostAccess } -> std::convertible_to<bool>;
};

// allocate() returns the owner of a block, which frees it: there is no deallocate(). Without CUDA, or without a device,
// the last three throw the errors of core/cuda_allocators.h.

/** Memory of the host, 64-byte aligned. */
struct HostAllocator {
  static constexpr bool kHostAccess = true;
  static Allocator& allocator() { return cpu_allocator(); }
  DataPtr allocate(size_t nbytes) const { return allocator().allocate(nbytes); }
};

/** Pinned memory of the host. */
struct CudaHostAllocator {
  static constexpr bool kHostAccess = true;
  static Allocator& allocator() { return cuda_host_allocator(); }
  DataPtr allocate(size_t nbytes) const { return allocator().allocate(nbytes); }
};

/** Memory that host and device share. */
struct CudaManagedAllocator {
  static constexpr bool kHostAccess = true;
  static Allocator& allocator() { return cuda_managed_allocator(); }
  DataPtr allocate(size_t nbytes) const { return allocator().allocate(nbytes); }
};

/** Memory of the current device. */
struct CudaAllocator {
  static constexpr bool kHostAccess = false;
  static Allocator& allocator() { return cuda_allocator(); }
  DataPtr allocate(size_t nbytes) const { return allocator().allocate(nbytes); }
};

}  // namespace tercel::recsys::hugectr
