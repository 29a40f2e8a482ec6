// for r: out[r, :] = 0; for e in row r: out[r, :] += values[e] * dense[columns[e], :]
//
// The rows that later entries need are prefetched: they are scattered in memory.
#include "tercel/ops/sparse/csr_kernels.h"

#include "tercel/ops/common/cpu/simd.h"
#include "tercel/util/complex.h"

namespace tercel::TERCEL_ISA {

namespace {

/** How many entries ahead rows are fetched. */
constexpr int64_t kAhead = 16;
/** Long rows are read sequentially, so the hardware prefetches everything after the first lines. */
constexpr int64_t kMaxPrefetchBytes = 512;
/** Terms of one column of a product that are computed at once. */
constexpr int64_t kTerms = 1024;

template <class T>
constexpr bool kVectors = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <class T>
TERCEL_ALWAYS_INLINE T add_product(T a, T b, T sum) {
  if constexpr (kVectors<T>)
    return multiply_add(a, b, sum);
  else if constexpr (std::is_integral_v<T>)  // wraps
    return static_cast<T>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return sum + a * b;
}
template <class T>
TERCEL_ALWAYS_INLINE T product_of(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}
template <class T>
TERCEL_ALWAYS_INLINE T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

template <class I>
struct Entries {
  const I* offsets;
  const I* columns;
  uint64_t num_columns;

  explicit Entries(const CsrLoop& m)
      : offsets(static_cast<const I*>(m.offsets)),
        columns(static_cast<const I*>(m.columns)),
        num_columns(static_cast<uint64_t>(m.num_columns)) {}
  int64_t begin(int64_t row) const { return static_cast<int64_t>(offsets[row]); }
  int64_t column(int64_t entry) const { return static_cast<int64_t>(columns[entry]); }
  /** Whether the columns of entries [first, stop) exist. */
  bool valid(int64_t first, int64_t stop) const {
    bool outside = false;
    for (int64_t e = first; e < stop; ++e) outside |= static_cast<uint64_t>(column(e)) >= num_columns;
    return !outside;
  }
  int64_t first_invalid_row(int64_t row) const {
    while (valid(begin(row), begin(row + 1))) ++row;
    return row;
  }
};

template <bool Write = false>
TERCEL_ALWAYS_INLINE void prefetch_row(const void* rows, int64_t index, int64_t row_bytes, int64_t fetch_bytes) {
  // Integers, since an index out of range gives an address outside the rows, which is never read.
  const uintptr_t row =
      reinterpret_cast<uintptr_t>(rows) + static_cast<uintptr_t>(index) * static_cast<uintptr_t>(row_bytes);
  TERCEL_UNROLL
  for (int64_t byte = 0; byte < kMaxPrefetchBytes; byte += 64)
    if (byte < fetch_bytes)
      __builtin_prefetch(reinterpret_cast<const void*>(row + static_cast<uintptr_t>(byte)), Write);
}

template <class T>
TERCEL_ALWAYS_INLINE void store_past_caches(T* p, Simd<T> v) {
#if TERCEL_ISA_LEVEL == 2
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), reinterpret_cast<__m512i>(v));
#elif TERCEL_ISA_LEVEL == 1
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), reinterpret_cast<__m256i>(v));
#else
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), reinterpret_cast<__m128i>(v));
#endif
}

/** One row's sums of V vectors of columns from k. */
template <int V, bool Fetch, bool Stream, class T, class I>
TERCEL_ALWAYS_INLINE void block_of_row(const CsrProduct& work, const Entries<I>& entries, int64_t row, int64_t last,
                                       int64_t k) {
  const T *values = static_cast<const T*>(work.matrix.values), *dense = static_cast<const T*>(work.dense);
  const int64_t n = work.n, row_bytes = n * static_cast<int64_t>(sizeof(T));
  const int64_t fetch = row_bytes < kMaxPrefetchBytes ? row_bytes : kMaxPrefetchBytes;
  Simd<T> sums[V];
  for (int v = 0; v < V; ++v) sums[v] = Simd<T>{};
  const int64_t stop = entries.begin(row + 1);
  for (int64_t e = entries.begin(row); e < stop; ++e) {
    if constexpr (Fetch)
      if (e + kAhead < last) prefetch_row(dense, entries.column(e + kAhead), row_bytes, fetch);
    const Simd<T> value = broadcast(values[e]);
    const T* from = dense + entries.column(e) * n + k;
    TERCEL_UNROLL
    for (int v = 0; v < V; ++v) sums[v] = multiply_add(value, load(from + v * kLanes<T>), sums[v]);
  }
  T* to = static_cast<T*>(work.out) + row * n + k;
  TERCEL_UNROLL
  for (int v = 0; v < V; ++v) {
    if constexpr (Stream)
      store_past_caches(to + v * kLanes<T>, sums[v]);
    else
      store(to + v * kLanes<T>, sums[v]);
  }
}

/** The same, of `width` columns, at most `Most`. */
template <int64_t Most, class T, class I>
TERCEL_ALWAYS_INLINE void narrow_block_of_row(const CsrProduct& work, const Entries<I>& entries, int64_t row,
                                              int64_t last, int64_t k, int64_t width) {
  const T *values = static_cast<const T*>(work.matrix.values), *dense = static_cast<const T*>(work.dense);
  const int64_t n = work.n, row_bytes = n * static_cast<int64_t>(sizeof(T));
  T sums[Most] = {};
  const int64_t stop = entries.begin(row + 1);
  for (int64_t e = entries.begin(row); e < stop; ++e) {
    if (k == 0 && e + kAhead < last) prefetch_row(dense, entries.column(e + kAhead), row_bytes, 64);
    const T value = values[e];
    const T* from = dense + entries.column(e) * n + k;
    for (int64_t i = 0; i < width; ++i) sums[i] = add_product(value, from[i], sums[i]);
  }
  T* to = static_cast<T*>(work.out) + row * n + k;
  for (int64_t i = 0; i < width; ++i) to[i] = sums[i];
}

template <bool Stream, class T, class I>
int64_t matrix_rows(const CsrProduct& work, int64_t begin, int64_t end) {
  const Entries<I> entries(work.matrix);
  const int64_t n = work.n, last = entries.begin(end);
  for (int64_t r = begin; r < end; ++r) {
    if (!entries.valid(entries.begin(r), entries.begin(r + 1))) [[unlikely]]
      return r;
    int64_t k = 0;
    if constexpr (kVectors<T>) {
      constexpr int64_t kWidth = kLanes<T>;
      const auto block = [&]<int V>() {
        if (k == 0)
          block_of_row<V, true, Stream, T>(work, entries, r, last, k);
        else
          block_of_row<V, false, Stream, T>(work, entries, r, last, k);
        return k + V * kWidth;
      };
      while (k + 8 * kWidth <= n) k = block.template operator()<8>();
      if (k + 4 * kWidth <= n) k = block.template operator()<4>();
      if (k + 2 * kWidth <= n) k = block.template operator()<2>();
      if (k + kWidth <= n) k = block.template operator()<1>();
      if (k < n) narrow_block_of_row<kWidth, T>(work, entries, r, last, k, n - k);
    } else {
      constexpr int64_t kWidth = 8;
      for (; k + kWidth <= n; k += kWidth) narrow_block_of_row<kWidth, T>(work, entries, r, last, k, kWidth);
      if (k < n) narrow_block_of_row<kWidth, T>(work, entries, r, last, k, n - k);
    }
  }
  if constexpr (Stream) _mm_sfence();
  return -1;
}

TERCEL_ALWAYS_INLINE float sum_of_lanes(Simd<float> v) {
#if TERCEL_ISA_LEVEL == 2
  return _mm512_reduce_add_ps(reinterpret_cast<__m512>(v));
#else
  float lanes[kLanes<float>];
  store(lanes, v);
  for (int s = kLanes<float> / 2; s > 0; s /= 2)
    for (int i = 0; i < s; ++i) lanes[i] += lanes[i + s];
  return lanes[0];
#endif
}
TERCEL_ALWAYS_INLINE double sum_of_lanes(Simd<double> v) {
#if TERCEL_ISA_LEVEL == 2
  return _mm512_reduce_add_pd(reinterpret_cast<__m512d>(v));
#else
  double lanes[kLanes<double>];
  store(lanes, v);
  for (int s = kLanes<double> / 2; s > 0; s /= 2)
    for (int i = 0; i < s; ++i) lanes[i] += lanes[i + s];
  return lanes[0];
#endif
}

/** Sums in vectors; reads, but does not use, terms up to a vector beyond the last. */
template <class T>
TERCEL_ALWAYS_INLINE T sum_terms(const T* terms, int64_t count) {
  if constexpr (kVectors<T>) {
    using Int = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    Simd<Int> lane;
    TERCEL_UNROLL
    for (int i = 0; i < kLanes<T>; ++i) lane[i] = static_cast<Int>(i);
    // Not a loop for each term: its end would be mispredicted for most rows.
    Simd<T> sums{};
    int64_t i = 0;
    for (; i + kLanes<T> <= count; i += kLanes<T>) sums += load(terms + i);
    const Simd<T> rest = load(terms + i);
    sums += lane < broadcast(static_cast<Int>(count - i)) ? rest : Simd<T>{};
    return sum_of_lanes(sums);
  } else {
    T sum{};
    for (int64_t i = 0; i < count; ++i) sum = sum_of(sum, terms[i]);
    return sum;
  }
}

/** terms[i] = values[i] * dense[columns[i]] */
template <class T, class I>
TERCEL_ALWAYS_INLINE void multiply_gathered(const T* values, const I* columns, const T* dense, int64_t count,
                                            T* terms) {
  int64_t i = 0;
#if TERCEL_ISA_LEVEL == 2
  if constexpr (std::is_same_v<T, float> && std::is_same_v<I, int32_t>) {
    for (; i + 16 <= count; i += 16) {
      const __m512 x = _mm512_i32gather_ps(_mm512_loadu_si512(columns + i), dense, 4);
      _mm512_storeu_ps(terms + i, _mm512_mul_ps(_mm512_loadu_ps(values + i), x));
    }
  } else if constexpr (std::is_same_v<T, float>) {
    for (; i + 8 <= count; i += 8) {
      const __m256 x = _mm512_i64gather_ps(_mm512_loadu_si512(columns + i), dense, 4);
      _mm256_storeu_ps(terms + i, _mm256_mul_ps(_mm256_loadu_ps(values + i), x));
    }
  } else if constexpr (std::is_same_v<T, double>) {
    for (; i + 8 <= count; i += 8) {
      __m512d x;
      if constexpr (std::is_same_v<I, int32_t>)
        x = _mm512_i32gather_pd(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(columns + i)), dense, 8);
      else
        x = _mm512_i64gather_pd(_mm512_loadu_si512(columns + i), dense, 8);
      _mm512_storeu_pd(terms + i, _mm512_mul_pd(_mm512_loadu_pd(values + i), x));
    }
  }
#endif
  for (; i < count; ++i) terms[i] = product_of(values[i], dense[static_cast<int64_t>(columns[i])]);
}

/** One dense column. Terms are computed for many rows at once: the ends of short rows would be mispredicted. */
template <class T, class I>
int64_t vector_rows(const CsrProduct& work, int64_t begin, int64_t end) {
  const Entries<I> entries(work.matrix);
  const T *values = static_cast<const T*>(work.matrix.values), *dense = static_cast<const T*>(work.dense);
  T* out = static_cast<T*>(work.out);
  T terms[kTerms + 64 / sizeof(T)];
  for (int64_t i = kTerms; i < kTerms + 64 / static_cast<int64_t>(sizeof(T)); ++i) terms[i] = T{};
  const auto compute = [&](int64_t first, int64_t count) {
    if (!entries.valid(first, first + count)) [[unlikely]]
      return false;
    multiply_gathered(values + first, entries.columns + first, dense, count, terms);
    return true;
  };
  for (int64_t r = begin; r < end;) {
    const int64_t first = entries.begin(r);
    int64_t stop = r;
    while (stop < end && entries.begin(stop + 1) - first <= kTerms) ++stop;
    if (stop == r) {  // a long row
      T sum{};
      for (int64_t e = first; e < entries.begin(r + 1); e += kTerms) {
        const int64_t rest = entries.begin(r + 1) - e, count = rest < kTerms ? rest : kTerms;
        if (!compute(e, count)) return r;
        sum = sum_of(sum, sum_terms(terms, count));
      }
      out[r++] = sum;
      continue;
    }
    if (!compute(first, entries.begin(stop) - first)) return entries.first_invalid_row(r);
    int64_t from = 0;
    for (; r < stop; ++r) {
      const int64_t to = entries.begin(r + 1) - first;
      out[r] = sum_terms(terms + from, to - from);
      from = to;
    }
  }
  return -1;
}

template <class T, class I>
int64_t scatter_rows(const CsrScatter& work, int64_t begin, int64_t end, int64_t k0, int64_t k1) {
  const Entries<I> entries(work.matrix);
  const T *values = static_cast<const T*>(work.matrix.values), *dense = static_cast<const T*>(work.dense);
  T* out = static_cast<T*>(work.out);
  const int64_t n = work.n, row_bytes = n * static_cast<int64_t>(sizeof(T)), last = entries.begin(end);
  const int64_t used = (k1 - k0) * static_cast<int64_t>(sizeof(T));
  const int64_t fetch = used < kMaxPrefetchBytes ? used : kMaxPrefetchBytes;
  for (int64_t r = begin; r < end; ++r) {
    const int64_t first = entries.begin(r), stop = entries.begin(r + 1);
    if (!entries.valid(first, stop)) [[unlikely]]
      return r;
    const T* from = dense + r * n;
    for (int64_t e = first; e < stop; ++e) {
      const T value = values[e];
      T* to = out + entries.column(e) * n;
      if (n == 1) {
        *to = add_product(value, *from, *to);
        continue;
      }
      if (e + kAhead < last) prefetch_row<true>(out + k0, entries.column(e + kAhead), row_bytes, fetch);
      int64_t k = k0;
      if constexpr (kVectors<T>) {
        const Simd<T> values_of_entry = broadcast(value);
        for (; k + kLanes<T> <= k1; k += kLanes<T>)
          store(to + k, multiply_add(values_of_entry, load(from + k), load(to + k)));
      }
      for (; k < k1; ++k) to[k] = add_product(value, from[k], to[k]);
    }
  }
  return -1;
}

template <class T>
TERCEL_ALWAYS_INLINE T dot(const T* a, const T* b, int64_t k) {
  int64_t i = 0;
  T sum{};
  if constexpr (kVectors<T>) {
    if (k >= kLanes<T>) {
      Simd<T> sums{}, more{};
      for (; i + 2 * kLanes<T> <= k; i += 2 * kLanes<T>) {
        sums = multiply_add(load(a + i), load(b + i), sums);
        more = multiply_add(load(a + i + kLanes<T>), load(b + i + kLanes<T>), more);
      }
      if (i + kLanes<T> <= k) {
        sums = multiply_add(load(a + i), load(b + i), sums);
        i += kLanes<T>;
      }
      sums += more;
      sum = sum_of_lanes(sums);
    }
  }
  for (; i < k; ++i) sum = add_product(a[i], b[i], sum);
  return sum;
}

template <class T, class I>
int64_t sample_rows(const CsrSample& work, int64_t begin, int64_t end) {
  const Entries<I> entries(work.matrix);
  const T *left = static_cast<const T*>(work.left), *right = static_cast<const T*>(work.right);
  T* out = static_cast<T*>(work.out);
  const int64_t k = work.k, row_bytes = k * static_cast<int64_t>(sizeof(T)), last = entries.begin(end);
  const int64_t fetch = row_bytes < kMaxPrefetchBytes ? row_bytes : kMaxPrefetchBytes;
  for (int64_t r = begin; r < end; ++r) {
    const int64_t first = entries.begin(r), stop = entries.begin(r + 1);
    if (!entries.valid(first, stop)) [[unlikely]]
      return r;
    for (int64_t e = first; e < stop; ++e) {
      if (e + kAhead < last) prefetch_row(right, entries.column(e + kAhead), row_bytes, fetch);
      out[e] = dot(left + r * k, right + entries.column(e) * k, k);
    }
  }
  return -1;
}

/** Calls fn.template operator()<T, I>(). */
template <class Fn>
TERCEL_ALWAYS_INLINE int64_t visit(const CsrLoop& matrix, Fn fn) {
  const auto with = [&]<class T>() {
    return matrix.wide ? fn.template operator()<T, int64_t>() : fn.template operator()<T, int32_t>();
  };
  switch (matrix.dtype) {
    case ScalarType::Float32: return with.template operator()<float>();
    case ScalarType::Float64: return with.template operator()<double>();
    case ScalarType::Int64: return with.template operator()<int64_t>();
    case ScalarType::Complex64: return with.template operator()<Complex<float>>();
    case ScalarType::Complex128: return with.template operator()<Complex<double>>();
    default: __builtin_unreachable();
  }
}

}  // namespace

int64_t csr_product(const CsrProduct& work, int64_t begin, int64_t end) {
  return visit(work.matrix, [&]<class T, class I>() {
    if (work.n == 1) return vector_rows<T, I>(work, begin, end);
    if constexpr (kVectors<T>)
      if (work.stream && reinterpret_cast<uintptr_t>(work.out) % kSimdBytes == 0 && work.n % kLanes<T> == 0)
        return matrix_rows<true, T, I>(work, begin, end);
    return matrix_rows<false, T, I>(work, begin, end);
  });
}

int64_t csr_scatter(const CsrScatter& work, int64_t begin, int64_t end, int64_t first, int64_t last) {
  return visit(work.matrix, [&]<class T, class I>() { return scatter_rows<T, I>(work, begin, end, first, last); });
}

int64_t csr_sample(const CsrSample& work, int64_t begin, int64_t end) {
  return visit(work.matrix, [&]<class T, class I>() { return sample_rows<T, I>(work, begin, end); });
}

}  // namespace tercel::TERCEL_ISA
