// Table lookups.
//
//   gather:  for bag b:  out[b] = table[indices[b]]
//   sum:     for bag b:  out[b] = sum over i in bag of weight[i] * table[indices[i]]   (/ count)
//   entries: for bag b, i in bag:  rows[n] = indices[i];  sources[n++] = b;  values[b] = grad[b] / count
//   weighted entries:              rows[n] = indices[i];  values[n++] = weight[i] * grad[b]
//
// Rows are scattered in memory, so those of the next indices are prefetched.
#include "tercel/ops/embedding/embedding_bag_kernels.h"

#include "tercel/ops/common/cpu/simd.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kPrefetchAhead = 16;
// The same for sums, which take longer per row.
constexpr int64_t kSumAhead = 32;
// Long rows are read sequentially, so the hardware prefetches everything after the first lines.
constexpr int64_t kMaxPrefetchBytes = 512;

template <class I>
struct Bags {
  const BagLoop& loop;
  const I* indices;
  const I* offsets;

  explicit Bags(const BagLoop& of)
      : loop(of), indices(static_cast<const I*>(of.indices)), offsets(static_cast<const I*>(of.offsets)) {}

  int64_t begin(int64_t bag) const { return offsets ? static_cast<int64_t>(offsets[bag]) : bag; }
  int64_t end(int64_t bag) const {
    if (!offsets) return bag + 1;
    return bag + 1 < loop.num_offsets ? static_cast<int64_t>(offsets[bag + 1]) : loop.num_indices;
  }
};

// Checks the offsets of bags [begin, end); returns whether each bag has exactly one index.
template <class I>
BagResult check_offsets(const Bags<I>& bags, int64_t begin, int64_t end) {
  BagResult result;
  if (!bags.offsets) return result;
  bool ordered = true, one_each = true;
  const int64_t with_end = end < bags.loop.num_offsets ? end : bags.loop.num_offsets - 1;
  for (int64_t b = begin; b < with_end; ++b) {
    ordered &= bags.offsets[b + 1] >= bags.offsets[b];
    one_each &= static_cast<std::make_unsigned_t<I>>(bags.offsets[b + 1]) -
                    static_cast<std::make_unsigned_t<I>>(bags.offsets[b]) ==
                1u;
  }
  // If offsets never decrease, from 0 to the number of indices, all are in range. Other chunks are checked by other
  // threads, so both ends are checked here.
  const int64_t first = bags.begin(begin), last = bags.end(end - 1);
  ordered &= first >= 0 && last <= bags.loop.num_indices && bags.begin(end - 1) <= last;
  if (!ordered) {
    result.fault = BagResult::Fault::Offset;
    for (int64_t b = begin; b < end; ++b) {
      result.bag = b;
      if (bags.begin(b) < 0 || bags.begin(b) > bags.end(b) || bags.end(b) > bags.loop.num_indices) break;
    }
  }
  result.one_each = one_each && bags.end(end - 1) - bags.begin(end - 1) == 1;
  return result;
}

TERCEL_ALWAYS_INLINE void prefetch_row(const void* table, int64_t index, int64_t row_bytes, int64_t fetch_bytes) {
  // Integers, since an index out of range gives an address outside the table, which is never read.
  const uintptr_t row =
      reinterpret_cast<uintptr_t>(table) + static_cast<uintptr_t>(index) * static_cast<uintptr_t>(row_bytes);
  // Unrolled: a loop's end would be mispredicted for each row.
  TERCEL_UNROLL
  for (int64_t byte = 0; byte < kMaxPrefetchBytes; byte += 64)
    if (byte < fetch_bytes) __builtin_prefetch(reinterpret_cast<const void*>(row + static_cast<uintptr_t>(byte)));
}

// Copies one row; Bytes is 0 if the size is known only at run time.
template <int64_t Bytes, bool Stream>
TERCEL_ALWAYS_INLINE void copy_row(char* to, const char* from, int64_t bytes) {
  if constexpr (Bytes == 0) {
    if (bytes != 0) __builtin_memcpy(to, from, static_cast<size_t>(bytes));  // without columns the pointers may be null
  } else if constexpr (Stream) {
    for (int64_t i = 0; i < Bytes; i += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  } else {
    __builtin_memcpy(to, from, Bytes);
  }
}

template <int64_t Bytes, bool Stream, class I>
BagResult gather_rows(const Bags<I>& bags, char* out, int64_t begin, int64_t end) {
  const BagLoop& loop = bags.loop;
  const int64_t item = static_cast<int64_t>(item_size(loop.dtype));
  const int64_t bytes = Bytes != 0 ? Bytes : loop.dim * item, stride = loop.row_stride * item;
  const int64_t fetch = bytes < kMaxPrefetchBytes ? bytes : kMaxPrefetchBytes;
  const int64_t tables = loop.num_tables;
  // All bags of this chunk have one index each; earlier bags need not.
  const I* indices = bags.indices + (bags.begin(begin) - begin);
  int64_t table = begin % tables, next_table = table;
  const auto fetch_ahead = [&](int64_t b) {
    prefetch_row(loop.tables[next_table], static_cast<int64_t>(indices[b]), stride, fetch);
    next_table = next_table + 1 == tables ? 0 : next_table + 1;
  };
  for (int64_t b = begin; b < end && b < begin + kPrefetchAhead; ++b) fetch_ahead(b);
  for (int64_t b = begin; b < end; ++b) {
    if (b + kPrefetchAhead < end) fetch_ahead(b + kPrefetchAhead);
    const int64_t index = static_cast<int64_t>(indices[b]);
    if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(loop.table_rows[table])) [[unlikely]]
      return {BagResult::Fault::Index, b, static_cast<int64_t>(indices + b - bags.indices), true};
    copy_row<Bytes, Stream>(out + b * bytes, static_cast<const char*>(loop.tables[table]) + index * stride, bytes);
    table = table + 1 == tables ? 0 : table + 1;
  }
  if constexpr (Stream) _mm_sfence();
  return {};
}

template <class I>
BagResult gather(const Bags<I>& bags, char* out, bool stream, int64_t begin, int64_t end) {
  const int64_t bytes = bags.loop.dim * static_cast<int64_t>(item_size(bags.loop.dtype));
  stream = stream && reinterpret_cast<uintptr_t>(out) % 16 == 0;
  switch (bytes) {
    case 64:
      return stream ? gather_rows<64, true>(bags, out, begin, end) : gather_rows<64, false>(bags, out, begin, end);
    case 128:
      return stream ? gather_rows<128, true>(bags, out, begin, end) : gather_rows<128, false>(bags, out, begin, end);
    case 256:
      return stream ? gather_rows<256, true>(bags, out, begin, end) : gather_rows<256, false>(bags, out, begin, end);
    case 512:
      return stream ? gather_rows<512, true>(bags, out, begin, end) : gather_rows<512, false>(bags, out, begin, end);
    default: return gather_rows<0, false>(bags, out, begin, end);
  }
}

// One bag, whose indices have been checked.
template <class T, class I>
struct Bag {
  const T* table;
  int64_t stride;
  const I* indices;
  const T* weights;
  int64_t begin, end;
  int64_t padding;
  int64_t count;  // number of indices that are not padding
  bool mean;
  // While the first columns are summed, the rows of later indices within [0, fetch_end), in any bag, are prefetched:
  // one for each row that is used, because the processor stalls if a bag's rows are all requested at once.
  int64_t fetch_end, fetch_bytes;

  TERCEL_ALWAYS_INLINE void fetch_ahead_of(int64_t i) const {
    if (i + kSumAhead < fetch_end)
      prefetch_row(table, static_cast<int64_t>(indices[i + kSumAhead]), stride * static_cast<int64_t>(sizeof(T)),
                   fetch_bytes);
  }
};

// The bag is passed by value, so that its fields stay in registers.
template <int N, bool kWeighted, class T, class I>
TERCEL_ALWAYS_INLINE void sum_columns_of(const Bag<T, I> bag, int64_t column, T* out) {
  Simd<T> sum[N] = {};
  for (int64_t i = bag.begin; i < bag.end; ++i) {
    bag.fetch_ahead_of(i);
    const int64_t index = static_cast<int64_t>(bag.indices[i]);
    if (index == bag.padding) continue;
    const T* row = bag.table + index * bag.stride + column;
    if constexpr (kWeighted) {
      const Simd<T> weight = broadcast(bag.weights[i]);
      TERCEL_UNROLL
      for (int v = 0; v < N; ++v) sum[v] = multiply_add(load(row + v * kLanes<T>), weight, sum[v]);
    } else {
      TERCEL_UNROLL
      for (int v = 0; v < N; ++v) sum[v] += load(row + v * kLanes<T>);
    }
  }
  if (bag.mean && bag.count > 1)
    for (int v = 0; v < N; ++v) sum[v] /= broadcast(static_cast<T>(bag.count));
  for (int v = 0; v < N; ++v) store(out + column + v * kLanes<T>, sum[v]);
}

template <int N, class T, class I>
void sum_columns(const Bag<T, I>& bag, int64_t column, T* out) {
  if (bag.weights)
    sum_columns_of<N, true>(bag, column, out);
  else
    sum_columns_of<N, false>(bag, column, out);
}

// Columns [first, first + columns), at most 64, for any dtype.
template <class T, class I>
void sum_few_columns(const Bag<T, I>& bag, int64_t first, int64_t columns, T* out) {
  using A = ComputeType<T>;
  A sum[64] = {};
  for (int64_t i = bag.begin; i < bag.end; ++i) {
    bag.fetch_ahead_of(i);
    const int64_t index = static_cast<int64_t>(bag.indices[i]);
    if (index == bag.padding) continue;
    const T* row = bag.table + index * bag.stride + first;
    if (bag.weights) {
      const A weight = static_cast<A>(bag.weights[i]);
      for (int64_t c = 0; c < columns; ++c) sum[c] = multiply_add(static_cast<A>(row[c]), weight, sum[c]);
    } else {
      for (int64_t c = 0; c < columns; ++c) sum[c] += static_cast<A>(row[c]);
    }
  }
  const A divisor = bag.mean && bag.count > 1 ? static_cast<A>(bag.count) : A(1);
  for (int64_t c = 0; c < columns; ++c) out[first + c] = T(sum[c] / divisor);
}

template <class T, class I>
void sum_bag(Bag<T, I>& bag, int64_t dim, T* out) {
  int64_t column = 0;
  const auto pass = [&](int64_t columns, auto sum) {
    sum();
    column += columns;
    bag.fetch_end = 0;
  };
  if constexpr (sizeof(T) > 2) {
    constexpr int64_t kLane = kLanes<T>;
    while (column + 8 * kLane <= dim) pass(8 * kLane, [&] { sum_columns<8>(bag, column, out); });
    if (column + 4 * kLane <= dim) pass(4 * kLane, [&] { sum_columns<4>(bag, column, out); });
    if (column + 2 * kLane <= dim) pass(2 * kLane, [&] { sum_columns<2>(bag, column, out); });
    if (column + kLane <= dim) pass(kLane, [&] { sum_columns<1>(bag, column, out); });
  }
  while (column < dim) pass(64, [&] { sum_few_columns(bag, column, dim - column < 64 ? dim - column : 64, out); });
}

template <class T, class I>
BagResult sum_bags(const Bags<I>& bags, T* out, int64_t begin, int64_t end) {
  const BagLoop& loop = bags.loop;
  const int64_t row_bytes = loop.row_stride * static_cast<int64_t>(sizeof(T));
  const int64_t used_bytes = loop.dim * static_cast<int64_t>(sizeof(T));
  const int64_t fetch = used_bytes < kMaxPrefetchBytes ? used_bytes : kMaxPrefetchBytes;
  const int64_t last = bags.end(end - 1);
  int64_t fetched = bags.begin(begin), fetched_bag = begin;
  const bool one_table = loop.num_tables == 1;
  BagResult result;
  for (int64_t b = begin; b < end; ++b) {
    const int64_t table = b % loop.num_tables;
    Bag<T, I> bag{static_cast<const T*>(loop.tables[table]),
                  loop.row_stride,
                  bags.indices,
                  static_cast<const T*>(loop.index_weights),
                  bags.begin(b),
                  bags.end(b),
                  loop.padding,
                  0,
                  loop.mean,
                  one_table ? last : 0,
                  fetch};
    // Several tables are processed bag by bag, since the table of an index depends on its bag.
    const int64_t ahead = one_table ? fetched : bag.end + kPrefetchAhead < last ? bag.end + kPrefetchAhead : last;
    for (; fetched < ahead; ++fetched) {
      while (fetched >= bags.end(fetched_bag)) ++fetched_bag;
      prefetch_row(loop.tables[fetched_bag % loop.num_tables], static_cast<int64_t>(bags.indices[fetched]), row_bytes,
                   fetch);
    }
    for (int64_t i = bag.begin; i < bag.end; ++i) {
      const int64_t index = static_cast<int64_t>(bag.indices[i]);
      if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(loop.table_rows[table])) [[unlikely]]
        return {BagResult::Fault::Index, b, i, false};
      bag.count += index != loop.padding;
    }
    sum_bag(bag, loop.dim, out + b * loop.dim);
  }
  return result;
}

template <class Fn>
TERCEL_ALWAYS_INLINE decltype(auto) visit_index(bool wide, Fn fn) {
  return wide ? fn.template operator()<int64_t>() : fn.template operator()<int32_t>();
}

template <class T, class I>
int64_t bag_entries(const Bags<I>& bags, const T* grad, const BagEntries& entries) {
  using A = ComputeType<T>;
  const BagLoop& loop = bags.loop;
  const int64_t dim = loop.dim;
  int64_t written = 0;
  for (int64_t n = 0; n < entries.count; ++n) {
    const int64_t b = entries.first + n * entries.step, bag = b / entries.step, before = written;
    for (int64_t i = bags.begin(b); i < bags.end(b); ++i) {
      const int64_t index = static_cast<int64_t>(bags.indices[i]);
      if (index == loop.padding) continue;
      if (entries.rows) entries.rows[written] = index;
      entries.sources[written++] = bag;
    }
    if (!entries.values) continue;
    const T* from = grad + b * dim;
    T* to = static_cast<T*>(entries.values) + bag * dim;
    const A divisor = static_cast<A>(written - before > 1 ? written - before : 1);
    for (int64_t c = 0; c < dim; ++c) to[c] = T(static_cast<A>(from[c]) / divisor);
  }
  return written;
}

template <class T, class I>
int64_t weighted_bag_entries(const Bags<I>& bags, const T* grad, const BagEntries& entries) {
  using A = ComputeType<T>;
  const BagLoop& loop = bags.loop;
  const auto* weights = static_cast<const T*>(loop.index_weights);
  const int64_t dim = loop.dim;
  int64_t written = 0;
  for (int64_t n = 0; n < entries.count; ++n) {
    const int64_t b = entries.first + n * entries.step;
    const T* from = grad + b * dim;
    for (int64_t i = bags.begin(b); i < bags.end(b); ++i) {
      const int64_t index = static_cast<int64_t>(bags.indices[i]);
      if (index == loop.padding) continue;
      if (entries.rows) entries.rows[written] = index;
      T* to = static_cast<T*>(entries.values) + written++ * dim;
      const A weight = static_cast<A>(weights[i]);
      for (int64_t c = 0; c < dim; ++c) to[c] = T(static_cast<A>(from[c]) * weight);
    }
  }
  return written;
}

template <class T, class I>
void weight_grads(const Bags<I>& bags, const T* grad, T* grads, int64_t begin, int64_t end) {
  using A = ComputeType<T>;
  constexpr int64_t kPartial = 16;  // independent sums, so that additions do not wait for each other
  const BagLoop& loop = bags.loop;
  const int64_t dim = loop.dim;
  for (int64_t b = begin; b < end; ++b) {
    const T* g = grad + b * dim;
    const auto* table = static_cast<const T*>(loop.tables[b % loop.num_tables]);
    for (int64_t i = bags.begin(b); i < bags.end(b); ++i) {
      const int64_t index = static_cast<int64_t>(bags.indices[i]);
      A sums[kPartial] = {};
      if (index != loop.padding) {
        const T* row = table + index * loop.row_stride;
        int64_t c = 0;
        for (; c + kPartial <= dim; c += kPartial)
          for (int64_t k = 0; k < kPartial; ++k) sums[k] += static_cast<A>(row[c + k]) * static_cast<A>(g[c + k]);
        for (; c < dim; ++c) sums[0] += static_cast<A>(row[c]) * static_cast<A>(g[c]);
        for (int64_t half = kPartial / 2; half > 0; half /= 2)
          for (int64_t k = 0; k < half; ++k) sums[k] += sums[k + half];
      }
      grads[i] = T(sums[0]);
    }
  }
}

}  // namespace

BagResult embedding_bag(const BagLoop& loop, void* out, bool stream, int64_t begin, int64_t end) {
  return visit_index(loop.wide, [&]<class I>() {
    const Bags<I> bags(loop);
    BagResult result = check_offsets(bags, begin, end);
    if (result.fault != BagResult::Fault::None) return result;
    const bool one_each = result.one_each;
    if (one_each && !loop.index_weights && loop.padding < 0) {
      result = gather(bags, static_cast<char*>(out), stream, begin, end);
    } else {
      visit_floating(loop.dtype, [&]<class T>() { result = sum_bags(bags, static_cast<T*>(out), begin, end); });
    }
    result.one_each = one_each;
    return result;
  });
}

int64_t embedding_bag_entries(const BagLoop& loop, const void* grad, const BagEntries& entries) {
  int64_t written = 0;
  visit_index(loop.wide, [&]<class I>() {
    visit_floating(loop.dtype,
                   [&]<class T>() { written = bag_entries(Bags<I>(loop), static_cast<const T*>(grad), entries); });
  });
  return written;
}

int64_t embedding_bag_weighted_entries(const BagLoop& loop, const void* grad, const BagEntries& entries) {
  int64_t written = 0;
  visit_index(loop.wide, [&]<class I>() {
    visit_floating(loop.dtype, [&]<class T>() {
      written = weighted_bag_entries(Bags<I>(loop), static_cast<const T*>(grad), entries);
    });
  });
  return written;
}

void embedding_bag_weight_grad(const BagLoop& loop, const void* grad, void* grads, int64_t begin, int64_t end) {
  visit_index(loop.wide, [&]<class I>() {
    visit_floating(loop.dtype, [&]<class T>() {
      weight_grads(Bags<I>(loop), static_cast<const T*>(grad), static_cast<T*>(grads), begin, end);
    });
  });
}

}  // namespace tercel::TERCEL_ISA
