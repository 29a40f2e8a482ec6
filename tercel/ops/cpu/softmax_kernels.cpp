// Softmax and its logarithm along n of [outer, n, inner].
//
//   m = max x;  s = sum exp(x - m);  softmax: exp(x - m) / s;  log: x - (m + log s)
//   backward, from the result y:  softmax: y * (g - sum(g * y));  log: g - exp(y) * sum(g)
//
// Along rows (inner = 1) vectors lie along n; otherwise they lie across columns, of which a strip is worked on at a
// time. Sums are kept for stretches of n and then added to totals, so that rounding errors do not grow with n.
#include "tercel/ops/softmax_impl.h"

#include "tercel/ops/cpu/vec_math.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kStretch = 256;
constexpr int64_t kMaxStrip = 1024;

template <class T>
constexpr T kLowest = -std::numeric_limits<T>::infinity();

// Calls step(i, load, store) for each vector of [0, n); load and store know whether it is a whole one. `fill` stands in
// the lanes that do not exist.
template <class T, class Step>
TERCEL_ALWAYS_INLINE void for_each_vector(int64_t n, T fill, Step step) {
  using V = Vec<T>;
  int64_t i = 0;
  for (; i + V::kSize <= n; i += V::kSize)
    step(
        i, [](const T* p) { return V::load(p); }, [](T* p, V v) { v.store(p); });
  const int64_t rest = n - i;
  if (rest == 0) return;
  step(
      i,
      [rest, fill](const T* p) {
        alignas(64) T lanes[V::kSize];
        for (int64_t k = 0; k < V::kSize; ++k) lanes[k] = k < rest ? p[k] : fill;
        return V::load(lanes);
      },
      [rest](T* p, V v) { store_partial(p, v, rest); });
}

template <class T>
Vec<T> larger(Vec<T> a, Vec<T> b) {
  return where((a > b) | (a != a), a, b);
}

template <class T>
T largest_lane(Vec<T> v) {
  alignas(64) T lanes[Vec<T>::kSize];
  v.store(lanes);
  T best = lanes[0];
  for (int64_t k = 1; k < Vec<T>::kSize; ++k) best = lanes[k] > best || lanes[k] != lanes[k] ? lanes[k] : best;
  return best;
}

template <class T>
T sum_of_lanes(Vec<T> v) {
  alignas(64) T lanes[Vec<T>::kSize];
  v.store(lanes);
  for (int64_t half = Vec<T>::kSize / 2; half > 0; half /= 2)
    for (int64_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  return lanes[0];
}

// Sum over vectors [0, n) of value(i, load), in stretches. What is not there counts as value of `fill`.
template <class T, class Value>
TERCEL_ALWAYS_INLINE T sum_over(int64_t n, T fill, Value value) {
  using V = Vec<T>;
  V total(T(0)), part(T(0));
  int64_t vectors = 0;
  for_each_vector<T>(n, fill, [&](int64_t i, auto load, auto store) {
    part = part + value(i, load, store);
    if (++vectors % kStretch == 0) {
      total = total + part;
      part = V(T(0));
    }
  });
  return sum_of_lanes(total + part);
}

template <class T>
void forward_row(const T* x, T* out, int64_t n, bool log_of) {
  using V = Vec<T>;
  V largest[2] = {V(kLowest<T>), V(kLowest<T>)};
  int64_t which = 0;
  for_each_vector<T>(n, kLowest<T>, [&](int64_t i, auto load, auto) {
    largest[which] = larger(largest[which], load(x + i));
    which ^= 1;
  });
  const T top = largest_lane(larger(largest[0], largest[1]));
  const V shift(top);
  if (log_of) {
    const T sum = sum_over<T>(n, kLowest<T>, [&](int64_t i, auto load, auto) { return exp(load(x + i) - shift); });
    alignas(64) T lanes[V::kSize];
    log(V(sum)).store(lanes);
    const V offset(lanes[0]);
    for_each_vector<T>(n, T(0),
                       [&](int64_t i, auto load, auto store) { store(out + i, load(x + i) - shift - offset); });
    return;
  }
  const T sum = sum_over<T>(n, kLowest<T>, [&](int64_t i, auto load, auto store) {
    const V e = exp(load(x + i) - shift);
    store(out + i, e);
    return e;
  });
  const V divisor(sum);
  for_each_vector<T>(n, T(0), [&](int64_t i, auto load, auto store) { store(out + i, load(out + i) / divisor); });
}

template <class T>
void backward_row(const T* y, const T* grad, T* out, int64_t n, bool log_of) {
  using V = Vec<T>;
  if (log_of) {
    const V sum(sum_over<T>(n, T(0), [&](int64_t i, auto load, auto) { return load(grad + i); }));
    for_each_vector<T>(
        n, T(0), [&](int64_t i, auto load, auto store) { store(out + i, load(grad + i) - exp(load(y + i)) * sum); });
    return;
  }
  const V sum(sum_over<T>(n, T(0), [&](int64_t i, auto load, auto) { return load(grad + i) * load(y + i); }));
  for_each_vector<T>(n, T(0),
                     [&](int64_t i, auto load, auto store) { store(out + i, load(y + i) * (load(grad + i) - sum)); });
}

// Columns [0, width) of n rows, `stride` elements apart.
template <class T>
struct Columns {
  alignas(64) T top[kMaxStrip];
  alignas(64) T part[kMaxStrip];
  alignas(64) T total[kMaxStrip];
  int64_t width;

  void fill(T* values, T value) const {
    for (int64_t c = 0; c < width; ++c) values[c] = value;
  }
  void add_part() {
    for (int64_t c = 0; c < width; ++c) {
      total[c] += part[c];
      part[c] = T(0);
    }
  }

  // total = sum over rows of value(row, column, load, store), where the rows are `n`.
  template <class Value>
  TERCEL_ALWAYS_INLINE void sum_rows(int64_t n, Value value) {
    fill(total, T(0));
    fill(part, T(0));
    for (int64_t r = 0; r < n; ++r) {
      for_each_vector<T>(width, T(0), [&](int64_t c, auto load, auto store) {
        store(part + c, load(part + c) + value(r, c, load, store));
      });
      if ((r + 1) % kStretch == 0) add_part();
    }
    add_part();
  }

  void forward(const T* x, T* out, int64_t n, int64_t stride, bool log_of) {
    fill(top, kLowest<T>);
    for (int64_t r = 0; r < n; ++r)
      for_each_vector<T>(width, T(0), [&](int64_t c, auto load, auto store) {
        store(top + c, larger(load(top + c), load(x + r * stride + c)));
      });
    if (log_of) {
      sum_rows(n, [&](int64_t r, int64_t c, auto load, auto) { return exp(load(x + r * stride + c) - load(top + c)); });
      for_each_vector<T>(width, T(1),
                         [&](int64_t c, auto load, auto store) { store(total + c, log(load(total + c))); });
      for (int64_t r = 0; r < n; ++r)
        for_each_vector<T>(width, T(0), [&](int64_t c, auto load, auto store) {
          store(out + r * stride + c, load(x + r * stride + c) - load(top + c) - load(total + c));
        });
      return;
    }
    sum_rows(n, [&](int64_t r, int64_t c, auto load, auto store) {
      const Vec<T> e = exp(load(x + r * stride + c) - load(top + c));
      store(out + r * stride + c, e);
      return e;
    });
    for (int64_t r = 0; r < n; ++r)
      for_each_vector<T>(width, T(1), [&](int64_t c, auto load, auto store) {
        store(out + r * stride + c, load(out + r * stride + c) / load(total + c));
      });
  }

  void backward(const T* y, const T* grad, T* out, int64_t n, int64_t stride, bool log_of) {
    if (log_of)
      sum_rows(n, [&](int64_t r, int64_t c, auto load, auto) { return load(grad + r * stride + c); });
    else
      sum_rows(n, [&](int64_t r, int64_t c, auto load, auto) {
        return load(grad + r * stride + c) * load(y + r * stride + c);
      });
    for (int64_t r = 0; r < n; ++r)
      for_each_vector<T>(width, T(0), [&](int64_t c, auto load, auto store) {
        const int64_t at = r * stride + c;
        if (log_of)
          store(out + at, load(grad + at) - exp(load(y + at)) * load(total + c));
        else
          store(out + at, load(y + at) * (load(grad + at) - load(total + c)));
      });
  }
};

// Calls visit(columns, offset of the first element) for strips of columns.
template <class T, class Visit>
void for_each_strip(const SoftmaxLoop& loop, int64_t begin, int64_t end, Visit visit) {
  const int64_t strips = (loop.inner + loop.strip - 1) / loop.strip;
  Columns<T> columns;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t first = task % strips * loop.strip;
    columns.width = loop.inner - first < loop.strip ? loop.inner - first : loop.strip;
    visit(columns, task / strips * loop.n * loop.inner + first);
  }
}

template <class T>
void forward(const SoftmaxLoop& loop, int64_t begin, int64_t end) {
  const T* x = static_cast<const T*>(loop.x);
  T* out = static_cast<T*>(loop.out);
  if (loop.inner == 1) {
    for (int64_t r = begin; r < end; ++r) forward_row(x + r * loop.n, out + r * loop.n, loop.n, loop.log);
    return;
  }
  for_each_strip<T>(loop, begin, end, [&](Columns<T>& columns, int64_t first) {
    columns.forward(x + first, out + first, loop.n, loop.inner, loop.log);
  });
}

template <class T>
void backward(const SoftmaxLoop& loop, int64_t begin, int64_t end) {
  const T *y = static_cast<const T*>(loop.x), *grad = static_cast<const T*>(loop.grad);
  T* out = static_cast<T*>(loop.out);
  if (loop.inner == 1) {
    for (int64_t r = begin; r < end; ++r)
      backward_row(y + r * loop.n, grad + r * loop.n, out + r * loop.n, loop.n, loop.log);
    return;
  }
  for_each_strip<T>(loop, begin, end, [&](Columns<T>& columns, int64_t first) {
    columns.backward(y + first, grad + first, out + first, loop.n, loop.inner, loop.log);
  });
}

}  // namespace

void softmax(const SoftmaxLoop& loop, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F64) return forward<double>(loop, begin, end);
  forward<float>(loop, begin, end);
}

void softmax_backward(const SoftmaxLoop& loop, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F64) return backward<double>(loop, begin, end);
  backward<float>(loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
