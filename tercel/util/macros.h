// Compiler-specific attributes.
#pragma once

/** Marks a function for host and device; plain host compilers see nothing. */
#ifdef __CUDACC__
#define TERCEL_HD __host__ __device__
#else
#define TERCEL_HD
#endif

/** Inlined even where the optimiser would not, for fast paths. */
#define TERCEL_ALWAYS_INLINE inline __attribute__((always_inline))
