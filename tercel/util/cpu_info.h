// Resources available to this process: instruction sets, CPUs, memory, huge pages.
//
// Containers and batch systems grant less than the hardware has, so cgroup (v1 and v2), affinity and rlimits count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tercel/util/export.h"

namespace tercel {

/** x86-64-v3 (AVX2, FMA, F16C, BMI1, BMI2, LZCNT, MOVBE) in the CPU and enabled by the operating system. */
TERCEL_API bool has_avx2() noexcept;

/** x86-64-v4 (v3 and AVX-512 F, BW, CD, DQ, VL) in the CPU and enabled by the operating system. */
TERCEL_API bool has_avx512() noexcept;

/** CPUs this process may use: its affinity mask, cut to the cgroup's quota (rounded up); at least 1. */
TERCEL_API int64_t usable_cpus();

/** Bytes of memory, each the least of machine, cgroup and RLIMIT_AS. */
struct MemoryInfo {
  int64_t total = 0;
  /** What can still be allocated without swapping; page cache counts as free. */
  int64_t available = 0;
};

/** Reads the present state; costs some 100 microseconds. */
TERCEL_API MemoryInfo memory_info();

/**
 * Whether so much memory can be allocated now, as far as the system says. Linux promises almost anything, and kills the
 * process when it is touched.
 */
TERCEL_API bool fits_in_memory(size_t bytes);
/** Throws OutOfMemoryError "out of memory: cannot allocate ..." with what is available. */
[[noreturn, gnu::cold, gnu::noinline]] TERCEL_API void throw_out_of_memory(size_t bytes);

/** Where the kernel backs memory with transparent huge pages: everywhere, where madvise asks for it, nowhere. */
enum class HugePageMode : uint8_t { Unknown, Always, Madvise, Never };
/** The mode's name; and which one the system is in. */
TERCEL_API std::string_view to_string(HugePageMode mode) noexcept;
TERCEL_API HugePageMode huge_page_mode();

/** Name of the processor as reported by the system; "unknown" if there is none. */
TERCEL_API std::string cpu_model_name();

namespace detail {

// The same against a root directory that holds proc/ and sys/; for tests.
TERCEL_API int64_t cgroup_cpus(const std::string& root);
TERCEL_API MemoryInfo memory_info(const std::string& root);
TERCEL_API HugePageMode huge_page_mode(const std::string& root);

}  // namespace detail

}  // namespace tercel
