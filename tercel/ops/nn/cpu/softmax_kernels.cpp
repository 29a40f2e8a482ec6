// Softmax and its logarithm along n of [outer, n, inner].
//
//   m = max x;  s = sum exp(x - m);  softmax: exp(x - m) / s;  log: x - (m + log s)
//   backward, from the result y:  softmax: y * (g - sum(g * y));  log: g - exp(y) * sum(g)
//
// For rows (inner = 1) vectors run along n; otherwise across columns, in strips. Sums are computed for stretches of n
// and then added to totals, so that rounding errors do not grow with n. The maximum ignores NaN, which reaches the
// results through the sum.
//
// Note [Softmax of long columns]
// Columns that do not fit the cache are read twice: once for both m and s, once for the result. If an element exceeds m
// by more than kMargin it becomes the new m, and the sum so far is scaled by exp(old m - m), which is at most
// exp(-kMargin), so the errors of earlier scalings fade. Elements exceed m by at most kMargin, so the rounding errors
// of the differences are those of numbers of that size.
#include "tercel/ops/nn/softmax_kernels.h"

#include "tercel/ops/common/cpu/lanes.h"
#include "tercel/ops/common/cpu/tile_io.h"
#include "tercel/ops/common/cpu/vec_math.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kStretch = 256;
constexpr int64_t kMargin = 1;
constexpr int64_t kRowsAhead = 2;
// Exponentials of rows up to this length are stored, those of longer rows recomputed.
constexpr int64_t kKeptBytes = 64 * 1024;
constexpr int64_t kTile = kMaxStripColumns;

template <class T>
constexpr T kLowest = -std::numeric_limits<T>::infinity();

// Calls step(i, load, store) for each vector of [0, n); load and store handle a partial last one, whose other lanes are
// `fill`.
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
      i, [rest, fill](const T* p) { return load_partial(p, rest, V(fill)); },
      [rest](T* p, V v) { store_partial(p, v, rest); });
}

/** b where a is NaN. */
template <class T>
Vec<T> larger(Vec<T> a, Vec<T> b) {
  return xsimd::max(a.v, b.v);
}

template <class T>
Vec<T> largest_lane(Vec<T> v) {
  return combine_all_lanes(v, [](Vec<T> a, Vec<T> b) { return larger(a, b); });
}
template <class T>
Vec<T> sum_of_lanes(Vec<T> v) {
  return combine_all_lanes(v, [](Vec<T> a, Vec<T> b) { return a + b; });
}

// Sum over vectors [0, n) of value(i, load, store), in stretches. Missing lanes have the value of `fill`.
template <class T, class Value>
TERCEL_ALWAYS_INLINE Vec<T> sum_over(int64_t n, T fill, Value value) {
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

/** Writes rows of results, with non-temporal stores if they are large. */
template <class T>
class Writer {
 public:
  explicit Writer(bool stream) : stream_(stream) {}
  ~Writer() {
    // Streamed results must be in memory before other threads are notified.
    if (stream_) _mm_sfence();
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /** out[0, n) = value(i, load) for each vector. */
  template <class Value>
  TERCEL_ALWAYS_INLINE void write(T* out, int64_t n, Value value) {
    if (!stream_)
      return for_each_vector<T>(n, T(0), [&](int64_t i, auto load, auto store) { store(out + i, value(i, load)); });
    for (int64_t first = 0; first < n; first += kTile) {
      const int64_t m = n - first < kTile ? n - first : kTile;
      for_each_vector<T>(m, T(0), [&](int64_t i, auto load, auto store) { store(tile_ + i, value(first + i, load)); });
      stream_copy(reinterpret_cast<char*>(out + first), reinterpret_cast<const char*>(tile_),
                  m * static_cast<int64_t>(sizeof(T)));
    }
  }

 private:
  bool stream_;
  alignas(64) T tile_[kTile];
};

// A row that fits in a vector.
template <class T>
Vec<T> load_row(const T* x, int64_t n) {
  return n == Vec<T>::kSize ? Vec<T>::load(x) : load_partial(x, n, Vec<T>(kLowest<T>));
}

template <class T>
Vec<T> top_of_row(const T* x, int64_t n) {
  using V = Vec<T>;
  V largest[2] = {V(kLowest<T>), V(kLowest<T>)};
  int64_t which = 0;
  for_each_vector<T>(n, kLowest<T>, [&](int64_t i, auto load, auto) {
    largest[which] = larger(load(x + i), largest[which]);
    which ^= 1;
  });
  return largest_lane(larger(largest[0], largest[1]));
}

template <class T>
void softmax_row(const T* x, T* out, int64_t n, T* kept, Writer<T>& writer) {
  using V = Vec<T>;
  if (n <= V::kSize) {
    const V row = load_row(x, n), e = exp(row - largest_lane(row)), sum = sum_of_lanes(e);
    return writer.write(out, n, [&](int64_t, auto) { return e / sum; });
  }
  const V top = top_of_row(x, n);
  const bool keeps = n * static_cast<int64_t>(sizeof(T)) <= kKeptBytes;
  const V sum = sum_over<T>(n, kLowest<T>, [&](int64_t i, auto load, auto store) {
    const V e = exp(load(x + i) - top);
    if (keeps) store(kept + i, e);
    return e;
  });
  if (keeps)
    writer.write(out, n, [&](int64_t i, auto load) { return load(kept + i) / sum; });
  else
    writer.write(out, n, [&](int64_t i, auto load) { return exp(load(x + i) - top) / sum; });
}

// Rows [0, count), count <= kLogRows, whose logarithms are computed together.
template <class T>
constexpr int64_t kLogRows = Vec<T>::kSize;
template <class T>
void log_softmax_rows(const T* x, T* out, int64_t n, int64_t count, Writer<T>& writer) {
  using V = Vec<T>;
  V top[kLogRows<T>], sum[kLogRows<T>];
  alignas(64) T sums[kLogRows<T>];
  for (int64_t r = 0; r < count; ++r) {
    const T* row = x + r * n;
    if (n <= V::kSize) {
      const V values = load_row(row, n);
      top[r] = largest_lane(values);
      sum[r] = sum_of_lanes(exp(values - top[r]));
      continue;
    }
    top[r] = top_of_row(row, n);
    sum[r] = sum_over<T>(n, kLowest<T>, [&](int64_t i, auto load, auto) { return exp(load(row + i) - top[r]); });
  }
  V(T(1)).store(sums);
  for (int64_t r = 0; r < count; ++r) std::memcpy(sums + r, sum + r, sizeof(T));
  log(V::load(sums)).store(sums);
  for (int64_t r = 0; r < count; ++r) {
    const T* row = x + r * n;
    const V log_sum(sums[r]);
    writer.write(out + r * n, n, [&](int64_t i, auto load) { return load(row + i) - top[r] - log_sum; });
  }
}

template <class T>
void backward_row(const T* y, const T* grad, T* out, int64_t n, bool log_of, Writer<T>& writer) {
  using V = Vec<T>;
  if (log_of) {
    const V sum = sum_over<T>(n, T(0), [&](int64_t i, auto load, auto) { return load(grad + i); });
    writer.write(out, n, [&](int64_t i, auto load) { return load(grad + i) - exp(load(y + i)) * sum; });
    return;
  }
  const V sum = sum_over<T>(n, T(0), [&](int64_t i, auto load, auto) { return load(grad + i) * load(y + i); });
  writer.write(out, n, [&](int64_t i, auto load) { return load(y + i) * (load(grad + i) - sum); });
}

// Columns [0, width) of n rows, `stride` elements apart.
template <class T>
struct Columns {
  using V = Vec<T>;
  alignas(64) T top[kMaxStripColumns];
  alignas(64) T part[kMaxStripColumns];
  alignas(64) T total[kMaxStripColumns];
  alignas(64) T lost[kMaxStripColumns];
  alignas(64) T limit[kMaxStripColumns];
  int64_t width;
  Writer<T> writer;

  explicit Columns(bool stream) : writer(stream) {}

  void fill(T* values, T value) const {
    for (int64_t c = 0; c < width; ++c) values[c] = value;
  }
  // total += part; `lost` accumulates the rounding errors.
  void add_part() {
    for_each_vector<T>(width, T(0), [&](int64_t c, auto load, auto store) {
      const V before = load(total + c), more = load(part + c) - load(lost + c), after = before + more;
      // Infinities and NaN have no rounding error.
      const V rounded = (after - before) - more;
      store(lost + c, where(isfinite(rounded), rounded, V(T(0))));
      store(total + c, after);
      store(part + c, V(T(0)));
    });
  }
  void begin_sums() {
    fill(total, T(0));
    fill(part, T(0));
    fill(lost, T(0));
  }

  // part += value(row, column, load, store) of rows [begin, end).
  template <class Value>
  TERCEL_ALWAYS_INLINE void add_rows(int64_t begin, int64_t end, Value value) {
    for (int64_t r = begin; r < end; ++r)
      for_each_vector<T>(width, T(0), [&](int64_t c, auto load, auto store) {
        // This order is needed, since value() may rescale the sum.
        const V more = value(r, c, load, store);
        store(part + c, load(part + c) + more);
      });
  }
  // total = sum over the n rows.
  template <class Value>
  TERCEL_ALWAYS_INLINE void sum_rows(int64_t n, Value value) {
    begin_sums();
    for (int64_t r = 0; r < n; r += kStretch) {
      add_rows(r, n - r < kStretch ? n : r + kStretch, value);
      add_part();
    }
  }
  void forward(const T* x, T* out, int64_t n, int64_t stride, bool log_of, bool cached) {
    if (!cached) return forward_twice(x, out, n, stride, log_of);
    fill(top, kLowest<T>);
    for (int64_t r = 0; r < n; ++r)
      for_each_vector<T>(width, T(0), [&](int64_t c, auto load, auto store) {
        store(top + c, larger(load(x + r * stride + c), load(top + c)));
      });
    if (log_of) {
      sum_rows(n, [&](int64_t r, int64_t c, auto load, auto) { return exp(load(x + r * stride + c) - load(top + c)); });
      return write_logs(x, out, n, stride);
    }
    sum_rows(n, [&](int64_t r, int64_t c, auto load, auto store) {
      const V e = exp(load(x + r * stride + c) - load(top + c));
      store(out + r * stride + c, e);
      return e;
    });
    for (int64_t r = 0; r < n; ++r)
      for_each_vector<T>(width, T(1), [&](int64_t c, auto load, auto store) {
        store(out + r * stride + c, load(out + r * stride + c) / load(total + c));
      });
  }

  // See Note [Softmax of long columns].
  void forward_twice(const T* x, T* out, int64_t n, int64_t stride, bool log_of) {
    fill(top, T(0));
    fill(limit, kLowest<T>);
    sum_rows(n, [&](int64_t r, int64_t c, auto load, auto store) {
      fetch(x + (r + kRowsAhead) * stride + c);
      const V value = load(x + r * stride + c);
      if (any(value > load(limit + c))) [[unlikely]]
        raise_top(value, c, load, store);
      return exp(value - load(top + c));
    });
    if (log_of) return write_logs(x, out, n, stride);
    for (int64_t r = 0; r < n; ++r)
      writer.write(out + r * stride, width, [&](int64_t c, auto load) {
        fetch(x + (r + kRowsAhead) * stride + c);
        return exp(load(x + r * stride + c) - load(top + c)) / load(total + c);
      });
  }
  template <class Load, class Store>
  void raise_top(V value, int64_t c, Load load, Store store) {
    const V before = load(limit + c), old = load(top + c);
    const auto raised = value > before;
    // Nothing has been summed before the first number, which may be far from 0.
    const V scale = where(before == V(kLowest<T>), V(T(0)), exp(old - value));
    const V factor = where(raised, scale, V(T(1)));
    store(top + c, where(raised, value, old));
    store(limit + c, where(raised, value + V(T(kMargin)), before));
    for (T* sum : {part, total, lost}) store(sum + c, load(sum + c) * factor);
  }
  // The hardware does not prefetch rows that are pages apart. Prefetching beyond the last row reads nothing.
  static void fetch(const T* p) { _mm_prefetch(p, _MM_HINT_T0); }

  void write_logs(const T* x, T* out, int64_t n, int64_t stride) {
    for_each_vector<T>(width, T(1), [&](int64_t c, auto load, auto store) { store(total + c, log(load(total + c))); });
    for (int64_t r = 0; r < n; ++r)
      writer.write(out + r * stride, width, [&](int64_t c, auto load) {
        fetch(x + (r + kRowsAhead) * stride + c);
        return load(x + r * stride + c) - load(top + c) - load(total + c);
      });
  }

  void backward(const T* y, const T* grad, T* out, int64_t n, int64_t stride, bool log_of) {
    if (log_of)
      sum_rows(n, [&](int64_t r, int64_t c, auto load, auto) {
        fetch(grad + (r + kRowsAhead) * stride + c);
        return load(grad + r * stride + c);
      });
    else
      sum_rows(n, [&](int64_t r, int64_t c, auto load, auto) {
        fetch(grad + (r + kRowsAhead) * stride + c);
        fetch(y + (r + kRowsAhead) * stride + c);
        return load(grad + r * stride + c) * load(y + r * stride + c);
      });
    for (int64_t r = 0; r < n; ++r)
      writer.write(out + r * stride, width, [&](int64_t c, auto load) {
        const int64_t at = r * stride + c, ahead = at + kRowsAhead * stride;
        fetch(grad + ahead);
        fetch(y + ahead);
        const V g = load(grad + at), result = load(y + at), sum = load(total + c);
        return log_of ? g - exp(result) * sum : result * (g - sum);
      });
  }
};

// Calls visit(columns, offset of the first element) for strips of columns.
template <class T, class Visit>
void for_each_strip(const SoftmaxLoop& loop, int64_t begin, int64_t end, Visit visit) {
  const int64_t strips = (loop.inner + loop.strip - 1) / loop.strip;
  Columns<T> columns(loop.stream);
  for (int64_t task = begin; task < end; ++task) {
    const int64_t first = task % strips * loop.strip;
    columns.width = loop.inner - first < loop.strip ? loop.inner - first : loop.strip;
    visit(columns, task / strips * loop.n * loop.inner + first);
  }
}

template <class T>
void softmax(const SoftmaxLoop& loop, int64_t begin, int64_t end, Writer<T>& writer) {
  alignas(64) T kept[kKeptBytes / static_cast<int64_t>(sizeof(T))];
  const T* x = static_cast<const T*>(loop.x);
  T* out = static_cast<T*>(loop.out);
  for (int64_t r = begin; r < end; ++r) softmax_row(x + r * loop.n, out + r * loop.n, loop.n, kept, writer);
}

template <class T>
void log_softmax(const SoftmaxLoop& loop, int64_t begin, int64_t end, Writer<T>& writer) {
  const T* x = static_cast<const T*>(loop.x);
  T* out = static_cast<T*>(loop.out);
  // Long rows would be evicted from the cache before they are read again.
  const int64_t together = loop.n * kLogRows<T> * static_cast<int64_t>(sizeof(T)) <= kKeptBytes / 2 ? kLogRows<T> : 1;
  for (int64_t r = begin; r < end; r += together)
    log_softmax_rows(x + r * loop.n, out + r * loop.n, loop.n, end - r < together ? end - r : together, writer);
}

template <class T>
void forward(const SoftmaxLoop& loop, int64_t begin, int64_t end) {
  const T* x = static_cast<const T*>(loop.x);
  T* out = static_cast<T*>(loop.out);
  if (loop.inner == 1) {
    Writer<T> writer(loop.stream);
    return loop.log ? log_softmax(loop, begin, end, writer) : softmax(loop, begin, end, writer);
  }
  for_each_strip<T>(loop, begin, end, [&](Columns<T>& columns, int64_t first) {
    columns.forward(x + first, out + first, loop.n, loop.inner, loop.log, loop.cached);
  });
}

template <class T>
void backward(const SoftmaxLoop& loop, int64_t begin, int64_t end) {
  const T *y = static_cast<const T*>(loop.x), *grad = static_cast<const T*>(loop.grad);
  T* out = static_cast<T*>(loop.out);
  if (loop.inner == 1) {
    Writer<T> writer(loop.stream);
    for (int64_t r = begin; r < end; ++r)
      backward_row(y + r * loop.n, grad + r * loop.n, out + r * loop.n, loop.n, loop.log, writer);
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
