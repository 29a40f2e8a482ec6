// The only loop of elementwise ops on a GPU: a thread processes every n-th element, of any dtype and stride.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

#include "tercel/core/convert.h"
#include "tercel/core/load_element.h"
#include "tercel/ops/common/cuda/scalar_math.cuh"
#include "tercel/ops/common/elementwise_loop_impl.h"
#include "tercel/ops/common/op_list_impl.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/error.h"

namespace tercel::cuda {
namespace {

/** The stream on which ops are queued: the default stream. */
inline cudaStream_t current_stream() { return nullptr; }

/** Operands that are single numbers in host memory, as the compute type. */
template <class T>
struct Numbers {
  T value[kMaxOperands];
};

template <class T>
__device__ T load(const char* p, ScalarType dtype) {
  switch (dtype) {
    case ScalarType::UInt8: return convert<T>(*reinterpret_cast<const uint8_t*>(p));
    case ScalarType::Int8: return convert<T>(*reinterpret_cast<const int8_t*>(p));
    case ScalarType::Int16: return convert<T>(*reinterpret_cast<const int16_t*>(p));
    case ScalarType::Int32: return convert<T>(*reinterpret_cast<const int32_t*>(p));
    case ScalarType::Int64: return convert<T>(*reinterpret_cast<const int64_t*>(p));
    case ScalarType::Float16: return convert<T>(*reinterpret_cast<const Half*>(p));
    case ScalarType::Float32: return convert<T>(*reinterpret_cast<const float*>(p));
    case ScalarType::Float64: return convert<T>(*reinterpret_cast<const double*>(p));
    case ScalarType::Bool: return convert<T>(load_element(reinterpret_cast<const bool*>(p)));
    case ScalarType::BFloat16: return convert<T>(*reinterpret_cast<const BFloat16*>(p));
    case ScalarType::UInt16: return convert<T>(*reinterpret_cast<const uint16_t*>(p));
    case ScalarType::UInt32: return convert<T>(*reinterpret_cast<const uint32_t*>(p));
    case ScalarType::UInt64: return convert<T>(*reinterpret_cast<const uint64_t*>(p));
    case ScalarType::Complex64: return convert<T>(*reinterpret_cast<const Complex<float>*>(p));
    case ScalarType::Complex128: return convert<T>(*reinterpret_cast<const Complex<double>*>(p));
    case ScalarType::Undefined: break;
  }
  return T(0);
}

template <class T>
__device__ void store(char* p, ScalarType dtype, T value) {
  switch (dtype) {
    case ScalarType::UInt8: *reinterpret_cast<uint8_t*>(p) = convert<uint8_t>(value); break;
    case ScalarType::Int8: *reinterpret_cast<int8_t*>(p) = convert<int8_t>(value); break;
    case ScalarType::Int16: *reinterpret_cast<int16_t*>(p) = convert<int16_t>(value); break;
    case ScalarType::Int32: *reinterpret_cast<int32_t*>(p) = convert<int32_t>(value); break;
    case ScalarType::Int64: *reinterpret_cast<int64_t*>(p) = convert<int64_t>(value); break;
    case ScalarType::Float16: *reinterpret_cast<Half*>(p) = convert<Half>(value); break;
    case ScalarType::Float32: *reinterpret_cast<float*>(p) = convert<float>(value); break;
    case ScalarType::Float64: *reinterpret_cast<double*>(p) = convert<double>(value); break;
    case ScalarType::Bool: *reinterpret_cast<bool*>(p) = convert<bool>(value); break;
    case ScalarType::BFloat16: *reinterpret_cast<BFloat16*>(p) = convert<BFloat16>(value); break;
    case ScalarType::UInt16: *reinterpret_cast<uint16_t*>(p) = convert<uint16_t>(value); break;
    case ScalarType::UInt32: *reinterpret_cast<uint32_t*>(p) = convert<uint32_t>(value); break;
    case ScalarType::UInt64: *reinterpret_cast<uint64_t*>(p) = convert<uint64_t>(value); break;
    case ScalarType::Complex64: *reinterpret_cast<Complex<float>*>(p) = convert<Complex<float>>(value); break;
    case ScalarType::Complex128: *reinterpret_cast<Complex<double>*>(p) = convert<Complex<double>>(value); break;
    case ScalarType::Undefined: break;
  }
}

// Functors compute with scalars of these types.
template <class T>
using Number = std::conditional_t<std::is_integral_v<T>, Int<T>, T>;
template <class T>
__device__ T plain(Int<T> x) {
  return x.v;
}
template <class T>
__device__ T plain(T x) {
  return x;
}

template <int kInputs, class T, class F>
__global__ void elementwise_kernel(ElementwiseLoop loop, Numbers<T> numbers) {
  const int64_t total = loop.n[0] * loop.n[1], step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += step) {
    const int64_t i0 = i % loop.n[0], i1 = i / loop.n[0];
    const auto in = [&](int a) {
      if ((loop.host_scalars >> a & 1) != 0) return Number<T>(numbers.value[a]);
      return Number<T>(load<T>(loop.data[a] + i0 * loop.stride[a][0] + i1 * loop.stride[a][1], loop.dtype[a]));
    };
    T result;
    if constexpr (kInputs == 1)
      result = static_cast<T>(plain(F{}(in(1))));
    else if constexpr (kInputs == 2)
      result = static_cast<T>(plain(F{}(in(1), in(2))));
    else if constexpr (kInputs == 3)
      result = static_cast<T>(plain(F{}(in(1), in(2), in(3))));
    else
      result = static_cast<T>(plain(F{}(in(1), in(2), in(3), in(4))));
    store(loop.data[0] + i0 * loop.stride[0][0] + i1 * loop.stride[0][1], loop.dtype[0], result);
  }
}

template <int kInputs, class T, class F>
void launch(const ElementwiseLoop& loop) {
  constexpr int kThreads = 256, kMaxBlocks = 8192;
  Numbers<T> numbers{};
  for (int a = 1; a < loop.nargs; ++a)
    if ((loop.host_scalars >> a & 1) != 0) numbers.value[a] = *reinterpret_cast<const T*>(loop.data[a]);
  const int64_t blocks = ceil_div(loop.n[0] * loop.n[1], kThreads);
  elementwise_kernel<kInputs, T, F>
      <<<static_cast<unsigned>(std::min<int64_t>(blocks, kMaxBlocks)), kThreads, 0, current_stream()>>>(loop, numbers);
  const cudaError_t error = cudaGetLastError();
  TERCEL_CHECK(error == cudaSuccess, InternalError, "elementwise kernel: ", cudaGetErrorString(error));
}

/** Kernels of an op by compute type; null outside its domain. */
struct Launches {
  using Launch = void (*)(const ElementwiseLoop&);
  Launch launch[kNumComputes];
  Launch operator[](Compute c) const {
    TERCEL_CHECK(launch[static_cast<int>(c)], NotImplementedError,
                 "elementwise kernel: not implemented on CUDA for dtype ", to_string(native_dtype(c)));
    return launch[static_cast<int>(c)];
  }
};
template <int kInputs, class F>
constexpr Launches float_launches() {
  return {{nullptr, nullptr, &launch<kInputs, float, F>, &launch<kInputs, double, F>, nullptr, nullptr, nullptr}};
}
template <class Op, int kInputs, class F>
constexpr Launches launches_for() {
  if constexpr (Op::domain == Domain::Complex)
    return {};
  else if constexpr (Op::domain == Domain::Float)
    return float_launches<kInputs, F>();
  else if constexpr (Op::domain == Domain::Integral)
    return {{&launch<kInputs, int32_t, F>, &launch<kInputs, int64_t, F>, nullptr, nullptr,
             &launch<kInputs, uint64_t, F>, nullptr, nullptr}};
  else
    return {{&launch<kInputs, int32_t, F>, &launch<kInputs, int64_t, F>, &launch<kInputs, float, F>,
             &launch<kInputs, double, F>, &launch<kInputs, uint64_t, F>, nullptr, nullptr}};
}

}  // namespace
}  // namespace tercel::cuda
