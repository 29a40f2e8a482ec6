#include "tercel/ops/nn/depthwise_impl.h"

#include <algorithm>

#include "tercel/util/ceil_div.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<DepthwiseForwardFn> forward_kernels = TERCEL_CPU_KERNELS(depthwise_forward);
constinit const KernelTable<DepthwiseInputFn> input_kernels = TERCEL_CPU_KERNELS(depthwise_input);
constinit const KernelTable<DepthwiseWeightFn> weight_kernels = TERCEL_CPU_KERNELS(depthwise_weight);

/** out[c][r] = in[r][c]. */
template <class T>
void transpose_matrix(const T* in, int64_t rows, int64_t columns, T* out) {
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) out[c * rows + r] = in[r * columns + c];
}

}  // namespace

template <class T>
Depthwise<T>::Depthwise(const ConvPlan& plan)
    : plan_(plan),
      loop_(loop_of<DepthwiseLoop>(plan, sizeof(T) == 8, plan.channels)),
      in_size_(plan.channels * plan.in_pixels()),
      out_size_(plan.channels * plan.out_pixels()) {
  // Images run on different threads; if there are too few, channels do too.
  const int64_t parts = ceil_div(num_threads(), std::max<int64_t>(1, plan.n));
  part_ = ceil_div(ceil_div(plan.channels, parts), kPartChannels) * kPartChannels;
  parts_ = ceil_div(plan.channels, part_);
}

template <class T>
ConvBuffer<T> Depthwise<T>::weight_by_tap(const T* weight) const {
  ConvBuffer<T> by_tap(plan_.channels * plan_.window());
  transpose_matrix(weight, plan_.channels, plan_.window(), by_tap.get());
  return by_tap;
}

template <class T>
template <class Fn>
void Depthwise<T>::for_each_part(Fn fn) const {
  parallel_for(0, plan_.n * parts_, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = i % parts_ * part_;
      fn(i / parts_, begin, std::min(begin + part_, plan_.channels));
    }
  });
}

template <class T>
void Depthwise<T>::forward(const T* x, const T* weight, const T* bias, T* y) const {
  const ConvBuffer<T> by_tap = weight_by_tap(weight);
  for_each_part([&](int64_t image, int64_t begin, int64_t end) {
    forward_kernels[kCpu](loop_, x + image * in_size_, by_tap.get(), bias, y + image * out_size_, begin, end);
  });
}

template <class T>
void Depthwise<T>::input(const T* y, const T* weight, T* x) const {
  const ConvBuffer<T> by_tap = weight_by_tap(weight);
  std::fill_n(x, plan_.n * in_size_, T(0));
  for_each_part([&](int64_t image, int64_t begin, int64_t end) {
    input_kernels[kCpu](loop_, y + image * out_size_, by_tap.get(), x + image * in_size_, begin, end);
  });
}

template <class T>
void Depthwise<T>::weight(const T* x, const T* y, T* weight) const {
  const int64_t size = plan_.channels * plan_.window();
  const Partition partition(0, plan_.n, 1);
  const int64_t chunks = std::max<int64_t>(1, partition.chunks());
  const ConvBuffer<T> sums(chunks * size);
  std::fill_n(sums.get(), chunks * size, T(0));
  partition.run([&](int64_t chunk, int64_t begin, int64_t end) {
    T* sum = sums.get() + chunk * size;
    for (int64_t image = begin; image < end; ++image)
      weight_kernels[kCpu](loop_, x + image * in_size_, y + image * out_size_, sum, 0, plan_.channels);
  });
  for (int64_t chunk = 1; chunk < chunks; ++chunk)
    for (int64_t i = 0; i < size; ++i) sums.get()[i] += sums.get()[chunk * size + i];
  transpose_matrix(sums.get(), plan_.window(), plan_.channels, weight);
}

template class Depthwise<float>;
template class Depthwise<double>;

}  // namespace tercel
