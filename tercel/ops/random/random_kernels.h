// Kernels that generate random numbers in bulk, used by random.cpp and sampling.cpp.
//
// Note [Reproducible numbers]
// Results have the same bits on every instruction set: kernels use integers, and floating-point additions, products,
// quotients and square roots in a fixed order, without fusing. So logarithms and sines are implemented here.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"

namespace tercel {

/** Blocks computed in parallel; requests to the kernels are rounded up to multiples of it. */
constexpr int64_t kRandomLanes = 16;
/** Normal numbers computed in parallel. */
constexpr int64_t kNormalsTogether = 2 * kRandomLanes;

/** The words of blocks [first, first + blocks) of a Philox stream in order, four each; blocks % kRandomLanes = 0. */
using RandomWordsFn = void(uint64_t seed, uint64_t stream, uint64_t first, int64_t blocks, uint32_t* words);
/** Numbers in [0, 1), multiples of 2^-24, times span plus low; those not below high become low. */
using UniformF32Fn = void(const uint32_t* words, int64_t count, float low, float span, float high, float* out);
/** The same, multiples of 2^-53, each from two words. */
using UniformF64Fn = void(const uint32_t* words, int64_t count, double low, double span, double high, double* out);
/** Standard normal numbers (Box and Muller, 1958), a pair from every two words: |x| <= 5.77; count is a multiple of
 * kNormalsTogether. */
using NormalF32Fn = void(const uint32_t* words, int64_t count, float* out);
/** The same, each from two words: |x| <= 8.58. */
using NormalF64Fn = void(const uint32_t* words, int64_t count, double* out);
/** values = log(values), for positive normal numbers; within 2 ulp. */
using RandomLogFn = void(int64_t count, double* values);

TERCEL_DECLARE_KERNELS(RandomWordsFn, random_words)
TERCEL_DECLARE_KERNELS(UniformF32Fn, uniform_numbers_f32)
TERCEL_DECLARE_KERNELS(UniformF64Fn, uniform_numbers_f64)
TERCEL_DECLARE_KERNELS(NormalF32Fn, normal_numbers_f32)
TERCEL_DECLARE_KERNELS(NormalF64Fn, normal_numbers_f64)
TERCEL_DECLARE_KERNELS(RandomLogFn, random_log)

}  // namespace tercel
