// A build with CUDA has those of cuda/cuda_allocators.cu instead.
#include "tercel/core/cuda_allocators.h"

#ifndef TERCEL_CUDA

#include "tercel/util/error.h"

namespace tercel {

namespace {
[[noreturn]] void refuse(const char* name) {
  throw_error<NotImplementedError>(
      {name, ": this build of Tercel has no CUDA; configure it with -DTERCEL_CUDA=ON, which needs nvcc"});
}
}  // namespace

Allocator& cuda_allocator() { refuse("cuda_allocator"); }
Allocator& cuda_managed_allocator() { refuse("cuda_managed_allocator"); }
Allocator& cuda_host_allocator() { refuse("cuda_host_allocator"); }

}  // namespace tercel

#endif
