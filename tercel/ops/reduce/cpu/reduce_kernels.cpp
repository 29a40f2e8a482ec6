// Reductions.
//
//   rows:     for each output and block:  out = combine of map(x) over the block, pairwise over leaves of 128 vectors
//   columns:  for each strip of adjacent outputs:
//               for 4 rows at a time:  sums[:] = combine(sums[:], (r0 + r1) + (r2 + r3)[:])
//               every 128 rows sums are added to a second row of sums, and reset
#include "tercel/ops/reduce/cpu/reduce_vec.h"
#include "tercel/util/ceil_div.h"

namespace tercel::TERCEL_ISA {

namespace {

/** Combines vectors pairwise, like a binary counter: level i holds 2^i leaves. */
template <class Op, class T>
class Cascade {
 public:
  using V = AnyVec<T>;

  void add(const T* x, int64_t n) {
    for (int64_t i = 0; i < n; i += kLeaf) push(leaf(x + i, n - i < kLeaf ? n - i : kLeaf));
  }
  T result() const {
    if (count_ == 0) return Op::template identity<T>();
    V total = levels_[__builtin_ctzll(count_)];
    for (uint64_t rest = count_ & (count_ - 1); rest != 0; rest &= rest - 1)
      total = Op::combine(levels_[__builtin_ctzll(rest)], total);
    return combine_lanes<Op, T>(total);
  }

  static constexpr int64_t kLeaf = 128 * V::kSize;
  static T of_leaf(const T* x, int64_t n) { return combine_lanes<Op, T>(leaf(x, n)); }

 private:
  static constexpr int kLevels = 48;
  static constexpr int64_t kAhead = 8;

  static V leaf(const T* x, int64_t n) {
    constexpr int64_t kSize = V::kSize;
    V total(Op::template identity<T>());
    int64_t i = 0;
    if (n >= kAhead * kSize) {
      V part[kAhead];
      TERCEL_UNROLL
      for (int64_t k = 0; k < kAhead; ++k) part[k] = Op::map(V::load(x + k * kSize));
      for (i = kAhead * kSize; i + kAhead * kSize <= n; i += kAhead * kSize) {
        TERCEL_UNROLL
        for (int64_t k = 0; k < kAhead; ++k) part[k] = Op::combine(part[k], Op::map(V::load(x + i + k * kSize)));
      }
      // Unrolled, to keep them in registers.
      total = Op::combine(Op::combine(Op::combine(part[0], part[4]), Op::combine(part[2], part[6])),
                          Op::combine(Op::combine(part[1], part[5]), Op::combine(part[3], part[7])));
    }
    for (; i + kSize <= n; i += kSize) total = Op::combine(total, Op::map(V::load(x + i)));
    if (i < n) {
      T rest[kSize];
      for (int64_t k = 0; k < kSize; ++k) rest[k] = k < n - i ? x[i + k] : Op::template identity<T>();
      total = Op::combine(total, Op::map(V::load(rest)));
    }
    return total;
  }

  void push(V value) {
    int level = 0;
    for (; (count_ >> level & 1) != 0; ++level) value = Op::combine(levels_[level], value);
    levels_[level] = value;
    ++count_;
  }

  V levels_[kLevels];
  uint64_t count_ = 0;
};

// Contiguous rows of at most one leaf each.
template <class Op, class T>
void short_rows(const ReduceLoop& loop, int64_t begin, int64_t end) {
  Odometer kept(loop.num_kept, loop.kept_sizes, begin);
  for (int64_t row = begin; row < end;) {
    // Up to the end of the innermost dimension.
    const int64_t left = kept.sizes[0] - kept.index[0], count = left < end - row ? left : end - row;
    const char* in = loop.in + kept.offset(loop.kept_strides);
    char* out = loop.out + kept.offset(loop.out_strides);
    for (int64_t i = 0; i < count; ++i, in += loop.kept_strides[0], out += loop.out_strides[0]) {
      const T result = Cascade<Op, T>::of_leaf(reinterpret_cast<const T*>(in), loop.reduced);
      std::memcpy(out, &result, sizeof(T));
    }
    row += count;
    kept.index[0] += count - 1;
    kept.advance();
  }
}

template <class Op, class T>
void rows(const ReduceLoop& loop, int64_t begin, int64_t end) {
  const RowReader<T> reader(loop.dtype, loop.compute);
  const bool direct = reader.direct(loop.reduced_strides[0]);
  if (direct && loop.num_reduced == 1 && loop.blocks == 1 && loop.reduced <= Cascade<Op, T>::kLeaf)
    return short_rows<Op, T>(loop, begin, end);
  Odometer kept(loop.num_kept, loop.kept_sizes, begin / loop.blocks);
  int64_t block = begin % loop.blocks;
  alignas(64) T tile[RowReader<T>::kMax];
  for (int64_t task = begin; task < end; ++task) {
    const char* in = loop.in + kept.offset(loop.kept_strides);
    int64_t position = block * loop.block;
    const int64_t stop = position + loop.block < loop.reduced ? position + loop.block : loop.reduced;
    Cascade<Op, T> sum;
    if (loop.num_reduced == 1 && direct) {
      sum.add(reinterpret_cast<const T*>(in) + position, stop - position);
    } else {
      Odometer reduced(loop.num_reduced, loop.reduced_sizes, position);
      int64_t filled = 0;
      while (position < stop) {
        // Up to the end of the innermost dimension, the block and the tile.
        int64_t n = reduced.sizes[0] - reduced.index[0];
        if (n > stop - position) n = stop - position;
        const char* from = in + reduced.offset(loop.reduced_strides);
        if (direct && n >= RowReader<T>::kMax / 4) {
          sum.add(reinterpret_cast<const T*>(from), n);
        } else {
          if (n > RowReader<T>::kMax - filled) n = RowReader<T>::kMax - filled;
          reader.read(tile + filled, from, loop.reduced_strides[0], n);
          filled += n;
          if (filled == RowReader<T>::kMax) {
            sum.add(tile, filled);
            filled = 0;
          }
        }
        position += n;
        reduced.index[0] += n - 1;
        reduced.advance();
      }
      if (filled > 0) sum.add(tile, filled);
    }
    const T result = sum.result();
    std::memcpy(loop.out + kept.offset(loop.out_strides) + block * loop.out_block_stride, &result, sizeof(T));
    if (++block == loop.blocks) {
      block = 0;
      kept.advance();
    }
  }
}

/** Sums of a strip of columns, in L1. */
template <class Op, class T>
class Strip {
 public:
  using V = AnyVec<T>;
  static constexpr int64_t kWidth = RowReader<T>::kMax;
  static constexpr int64_t kSize = V::kSize;

  // A partial last vector overlaps the one before it. It has separate sums, of which only the last lanes are used. A
  // strip narrower than a vector is read through tiles, which are wide enough.
  explicit Strip(int64_t width) : width_(width) {
    vectors_ = width / kSize;
    tail_ = width % kSize == 0 ? -1 : (width < kSize ? 0 : width - kSize);
    reset(sums_);
    reset(totals_);
  }

  void add(const T* const* rows, int64_t count) {
    if (count == 4)
      add_rows<4>(rows);
    else
      for (int64_t r = 0; r < count; ++r) add_rows<1>(rows + r);
    rows_ += count;
    if (rows_ >= 128) flush();
  }
  void store(char* out, int64_t stride) {
    flush();
    if (tail_ > 0) {
      const int64_t used = width_ % kSize;
      std::memmove(totals_ + vectors_ * kSize, totals_ + vectors_ * kSize + kSize - used,
                   static_cast<size_t>(used) * sizeof(T));
    }
    scatter(out, stride, totals_, width_, sizeof(T));
  }

 private:
  void reset(T* sums) const {
    for (int64_t i = 0; i < (vectors_ + 1) * kSize; ++i) sums[i] = Op::template identity<T>();
  }
  template <int kRows>
  static V step(const T* const* rows, int64_t column) {
    if constexpr (kRows == 4)
      return Op::combine(Op::combine(Op::map(V::load(rows[0] + column)), Op::map(V::load(rows[1] + column))),
                         Op::combine(Op::map(V::load(rows[2] + column)), Op::map(V::load(rows[3] + column))));
    else
      return Op::map(V::load(rows[0] + column));
  }
  template <int kRows>
  void add_rows(const T* const* given) {
    const T* rows[kRows];
    for (int r = 0; r < kRows; ++r) rows[r] = given[r];
    const int64_t vectors = vectors_;
    for (int64_t v = 0; v < vectors; ++v) {
      T* sum = sums_ + v * kSize;
      Op::combine(V::load(sum), step<kRows>(rows, v * kSize)).store(sum);
    }
    if (tail_ >= 0) {
      T* sum = sums_ + vectors * kSize;
      Op::combine(V::load(sum), step<kRows>(rows, tail_)).store(sum);
    }
  }
  void flush() {
    for (int64_t v = 0; v <= vectors_; ++v) {
      T *sum = sums_ + v * kSize, *total = totals_ + v * kSize;
      Op::combine(V::load(total), V::load(sum)).store(total);
    }
    reset(sums_);
    rows_ = 0;
  }

  alignas(64) T sums_[kWidth + kSize];
  alignas(64) T totals_[kWidth + kSize];
  int64_t width_, vectors_, tail_;
  int64_t rows_ = 0;
};

template <class Op, class T>
void columns(const ReduceLoop& loop, int64_t begin, int64_t end) {
  using S = Strip<Op, T>;
  const RowReader<T> reader(loop.dtype, loop.compute);
  const int64_t columns = loop.kept_sizes[0], column_stride = loop.kept_strides[0];
  const int64_t strips = ceil_div(columns, S::kWidth);
  const bool in_line = loop.num_reduced == 1;
  int64_t outer_count = 1;
  for (int d = 1; d < loop.num_kept; ++d) outer_count *= loop.kept_sizes[d];
  alignas(64) T tiles[4][S::kWidth + S::kSize];
  for (int64_t task = begin; task < end; ++task) {
    const int64_t strip = task % strips, outer = task / strips % outer_count, block = task / strips / outer_count;
    const int64_t first = strip * S::kWidth;
    const int64_t width = columns - first < S::kWidth ? columns - first : S::kWidth;
    const bool direct = reader.direct(column_stride) && width >= S::kSize;
    const Odometer kept(loop.num_kept - 1, loop.kept_sizes + 1, outer);
    const char* in = loop.in + kept.offset(loop.kept_strides + 1) + first * column_stride;
    int64_t row = block * loop.block;
    const int64_t stop = row + loop.block < loop.reduced ? row + loop.block : loop.reduced;
    Odometer reduced(loop.num_reduced, loop.reduced_sizes, row);
    S sums(width);
    while (row < stop) {
      const int64_t count = stop - row < 4 ? stop - row : 4;
      const T* rows[4];
      for (int64_t r = 0; r < count; ++r) {
        const char* from = in + (in_line ? (row + r) * loop.reduced_strides[0] : reduced.offset(loop.reduced_strides));
        if (direct) {
          rows[r] = reinterpret_cast<const T*>(from);
        } else {
          reader.read(tiles[r], from, column_stride, width);
          rows[r] = tiles[r];
        }
        if (!in_line) reduced.advance();
      }
      sums.add(rows, count);
      row += count;
    }
    sums.store(
        loop.out + kept.offset(loop.out_strides + 1) + first * loop.out_strides[0] + block * loop.out_block_stride,
        loop.out_strides[0]);
  }
}

using Kernel = void (*)(const ReduceLoop&, int64_t, int64_t);
struct Kernels {
  Kernel rows[kNumComputes];
  Kernel columns[kNumComputes];
};

template <class Op, class T>
constexpr void put(Kernels& out, Compute compute) {
  out.rows[static_cast<int>(compute)] = &rows<Op, T>;
  out.columns[static_cast<int>(compute)] = &columns<Op, T>;
}

template <class Op>
constexpr Kernels kernels_of() {
  Kernels out{};
  put<Op, float>(out, Compute::F32);
  put<Op, double>(out, Compute::F64);
  if constexpr (!is_floating_only<Op>) {
    put<Op, int32_t>(out, Compute::I32);
    put<Op, int64_t>(out, Compute::I64);
    // Ops that do not compare elements give the same bits as for int64.
    put<Op, std::conditional_t<is_ordering<Op>, uint64_t, int64_t>>(out, Compute::U64);
  }
  if constexpr (takes_complex_elements<Op>) {
    put<Op, Complex<float>>(out, Compute::C64);
    put<Op, Complex<double>>(out, Compute::C128);
  }
  return out;
}
template <class... Ops>
const Kernels& find_kernels(OpList<Ops...>, int op) {
  static constexpr Kernels table[] = {kernels_of<Ops>()...};
  return table[op];
}

}  // namespace

void reduce_rows(const ReduceLoop& loop, int64_t begin, int64_t end) {
  find_kernels(ReduceOps{}, loop.op).rows[static_cast<int>(loop.compute)](loop, begin, end);
}

void reduce_columns(const ReduceLoop& loop, int64_t begin, int64_t end) {
  find_kernels(ReduceOps{}, loop.op).columns[static_cast<int>(loop.compute)](loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
