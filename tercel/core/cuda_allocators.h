// Memory of a CUDA device, and memory that it shares with the host.
#pragma once

#include "tercel/core/allocator.h"
#include "tercel/util/export.h"

namespace tercel {

// A build without CUDA has none of them: NotImplementedError. Where there is no CUDA device, allocate() throws
// RuntimeError; where its memory is used up, OutOfMemoryError. Their blocks may be used with raw_allocate().

/** Memory of the calling thread's current device; the host cannot read it. */
TERCEL_API Allocator& cuda_allocator();
/** Managed memory: both the host and the device read and write it. Its tensors are on the current device. */
TERCEL_API Allocator& cuda_managed_allocator();
/** Pinned memory of the host, from and to which a device copies fastest. Its tensors are on the CPU. */
TERCEL_API Allocator& cuda_host_allocator();

}  // namespace tercel
