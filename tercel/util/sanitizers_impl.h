// TERCEL_ADDRESS_SANITIZER and TERCEL_THREAD_SANITIZER: 1 in code that the sanitizer instruments, else 0.
#pragma once

#ifdef __has_feature  // clang; g++ defines macros
#define TERCEL_HAS_FEATURE(name) __has_feature(name)
#else
#define TERCEL_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TERCEL_HAS_FEATURE(address_sanitizer)
#define TERCEL_ADDRESS_SANITIZER 1
#else
#define TERCEL_ADDRESS_SANITIZER 0
#endif
#if defined(__SANITIZE_THREAD__) || TERCEL_HAS_FEATURE(thread_sanitizer)
#define TERCEL_THREAD_SANITIZER 1
#else
#define TERCEL_THREAD_SANITIZER 0
#endif
