// From an op to the kernel for a device and, on the CPU, an instruction set.
//
// Note [Kernel tables]
// An op, or a family of ops, owns one constant table of function pointers. The table is data: nothing registers itself,
// so the linker drops nothing, and a missing kernel is a link error. A kernel that is missing intentionally is a null
// entry: calling it is an error that names op and device.
//
// Kernels live in namespaces of the same shape, tercel::cpu_generic, cpu_avx2, cpu_avx512 and cuda; a kernel file is
// compiled once per CPU namespace (see docs/design/dispatch.md).
#pragma once

#include <cstdint>
#include <string_view>

#include "tercel/core/device.h"
#include "tercel/util/error.h"
#include "tercel/util/export.h"

namespace tercel {

/** The CPU's instruction sets for which kernels are compiled, each including those before it. */
enum class CpuIsa : int8_t { Generic = 0, Avx2 = 1, Avx512 = 2 };

/** "generic", "avx2", "avx512". */
TERCEL_API std::string_view to_string(CpuIsa isa);
/** The best instruction set of this CPU that the library was built for. */
TERCEL_API CpuIsa best_cpu_isa();
/**
 * The instruction set in use: the best, or the one named by TERCEL_CPU_ISA=generic|avx2|avx512; RuntimeError if the
 * variable has another value, or names one that this CPU or this build lacks.
 */
TERCEL_API CpuIsa cpu_isa();
/** Changes it, for tests and comparisons; RuntimeError if this CPU or this build lacks it. */
TERCEL_API void set_cpu_isa(CpuIsa isa);

namespace detail {
constexpr int kNumKernelSlots = 4;
constexpr int kCudaSlot = 3;
/** -1 until cpu_isa() has chosen. */
TERCEL_API extern int8_t g_cpu_slot;
TERCEL_API int8_t choose_cpu_slot();
[[noreturn]] TERCEL_API void refuse_kernel(const char* op, Device device);
}  // namespace detail

/** Index of the device's kernels in every table. */
inline int kernel_slot(Device device) {
  if (!device.is_cpu()) return detail::kCudaSlot;
  const int8_t slot = __atomic_load_n(&detail::g_cpu_slot, __ATOMIC_RELAXED);
  return slot >= 0 ? slot : detail::choose_cpu_slot();
}

/** An op's kernels. */
template <class Fn>
struct KernelTable {
  const char* name;
  Fn* kernels[detail::kNumKernelSlots];

  /** NotImplementedError if there is no kernel for the device. */
  Fn* operator[](Device device) const {
    Fn* kernel = kernels[kernel_slot(device)];
    if (!kernel) [[unlikely]]
      detail::refuse_kernel(name, device);
    return kernel;
  }
};

}  // namespace tercel

/** Declares the kernels called `name`, one per namespace; use it in namespace tercel. */
#define TERCEL_DECLARE_KERNELS(Fn, name) \
  namespace cpu_generic {                \
  Fn name;                               \
  }                                      \
  namespace cpu_avx2 {                   \
  Fn name;                               \
  }                                      \
  namespace cpu_avx512 {                 \
  Fn name;                               \
  }                                      \
  namespace cuda {                       \
  Fn name;                               \
  }

// A build may leave out the higher instruction sets (CMake's TERCEL_MAX_ISA); their entries are never read.
#if defined(TERCEL_MAX_ISA_LEVEL) && TERCEL_MAX_ISA_LEVEL < 1
#define TERCEL_AVX2_KERNEL(name) nullptr
#else
#define TERCEL_AVX2_KERNEL(name) &cpu_avx2::name
#endif
#if defined(TERCEL_MAX_ISA_LEVEL) && TERCEL_MAX_ISA_LEVEL < 2
#define TERCEL_AVX512_KERNEL(name) nullptr
#else
#define TERCEL_AVX512_KERNEL(name) &cpu_avx512::name
#endif
#ifdef TERCEL_CUDA
#define TERCEL_CUDA_KERNEL(name) &cuda::name
#else
#define TERCEL_CUDA_KERNEL(name) nullptr
#endif

/** The table of kernels for the CPU and, in a build with CUDA, for CUDA. */
#define TERCEL_KERNELS(name)                                                                                      \
  {                                                                                                               \
#name, { &cpu_generic::name, TERCEL_AVX2_KERNEL(name), TERCEL_AVX512_KERNEL(name), TERCEL_CUDA_KERNEL(name) } \
  }
/** The table of kernels that intentionally exist for the CPU only. */
#define TERCEL_CPU_KERNELS(name)                                                                 \
  {                                                                                              \
#name, { &cpu_generic::name, TERCEL_AVX2_KERNEL(name), TERCEL_AVX512_KERNEL(name), nullptr } \
  }
