// Scans along n of [outer, n, inner]; see Note [Scans].
//
//   rows:     for tiles of 8 runs of 8 elements:  scan the runs in parallel lanes;
//               out = combine(total before the tile, combine(total before the run, scanned))
//   short:    for each column c:  for 4 rows r:  out[r][c] = total[r] = combine(total[r], x[r][c])
//   columns:  for each row r:  for each column c:  out[r][c] = total[c] = combine(total[c], x[r][c])
#include "tercel/ops/reduce/scan_kernels.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tercel/util/macros.h"

namespace tercel::TERCEL_ISA {

namespace {

/** Accumulator type: twice the width, so that the error of a sum of n float32 numbers is half a unit, not n. */
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;

// Integers wrap.
template <class A>
TERCEL_ALWAYS_INLINE A add(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <class A>
TERCEL_ALWAYS_INLINE A multiply(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

/** Common base of cumulative sums, products etc. with a wider accumulator. */
template <class T>
struct WideScan {
  using Element = T;
  using Total = Wide<T>;
  static TERCEL_ALWAYS_INLINE Total lift(T x, int64_t) { return static_cast<Total>(x); }
  static TERCEL_ALWAYS_INLINE void store(const ScanLoop&, T* out, int64_t, int64_t at, Total total) {
    out[at] = static_cast<T>(total);
  }
};

template <class T>
struct SumScan : WideScan<T> {
  using Total = Wide<T>;
  static constexpr bool kRuns = true;
  static Total identity() { return Total(0); }
  static TERCEL_ALWAYS_INLINE Total combine(Total a, Total b) { return add(a, b); }
};

template <class T>
struct ProductScan : WideScan<T> {
  using Total = Wide<T>;
  static constexpr bool kRuns = false;
  static Total identity() { return Total(1); }
  static TERCEL_ALWAYS_INLINE Total combine(Total a, Total b) { return multiply(a, b); }
};

template <class T>
struct LogSumExpScan : WideScan<T> {
  using Total = Wide<T>;
  static constexpr bool kRuns = false;
  static Total identity() { return -std::numeric_limits<Total>::infinity(); }
  static Total combine(Total a, Total b) {
    if (a != a || b != b) return a + b;
    const Total high = a > b ? a : b, low = a > b ? b : a;
    // Equal infinities cannot be subtracted.
    return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
  }
};

/** Whether b, which comes after a, replaces it. */
template <bool kLargest, class T>
TERCEL_ALWAYS_INLINE bool takes_place(T a, T b) {
  return (kLargest ? b >= a : b <= a) | (b != b);
}

template <class T, bool kLargest>
struct ExtremeScan {
  using Element = T;
  struct Total {
    T value;
    int64_t index;
  };
  static constexpr bool kRuns = false, kLargestFirst = kLargest;
  static Total identity() {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_integral_v<T>)
      return {kLargest ? Limits::lowest() : Limits::max(), 0};
    else
      return {kLargest ? -Limits::infinity() : Limits::infinity(), 0};
  }
  static TERCEL_ALWAYS_INLINE Total lift(T x, int64_t index) { return {x, index}; }
  static TERCEL_ALWAYS_INLINE bool takes(T a, T b) { return takes_place<kLargest>(a, b); }
  static TERCEL_ALWAYS_INLINE Total combine(Total a, Total b) {
    const bool take = takes_place<kLargest>(a.value, b.value);
    return {take ? b.value : a.value, take ? b.index : a.index};
  }
  static TERCEL_ALWAYS_INLINE void store(const ScanLoop& loop, T* out, int64_t row_start, int64_t at, Total total) {
    out[at] = total.value;
    loop.indices[row_start + at] = total.index;
  }
};

template <class Op>
constexpr bool kIsExtreme = requires(typename Op::Total total) {
  total.index;
};

/** One row; elements are numbered in scan order. */
template <class Op, bool kReverse>
struct RowScan {
  using T = typename Op::Element;
  using Total = typename Op::Total;
  static constexpr int64_t kRunLength = 8, kNumRuns = 8, kTile = kRunLength * kNumRuns;

  const ScanLoop& loop;
  const T* x;
  T* out;
  int64_t start;  // of the row

  RowScan(const ScanLoop& of, int64_t row)
      : loop(of),
        x(static_cast<const T*>(of.x) + row * of.n),
        out(static_cast<T*>(of.out) + row * of.n),
        start(row * of.n) {}

  TERCEL_ALWAYS_INLINE int64_t place(int64_t i) const { return kReverse ? loop.n - 1 - i : i; }
  TERCEL_ALWAYS_INLINE Total read(int64_t i) const { return Op::lift(x[place(i)], place(i)); }
  TERCEL_ALWAYS_INLINE void write(int64_t i, Total total) const { Op::store(loop, out, start, place(i), total); }

  /** Elements [i, end) of a cumulative extremum: most vectors of a row do not change it. */
  template <bool kStore>
  Total extreme_block(int64_t i, int64_t end, Total best) const {
    using Count = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    constexpr int64_t kStep = 64 / static_cast<int64_t>(sizeof(T));
    while (i < end) {
      if (i + kStep <= end) {
        Count changes = 0;
        for (int64_t k = 0; k < kStep; ++k) changes |= Op::takes(best.value, x[i + k]) ? Count{1} : Count{0};
        if (changes == 0) {
          if constexpr (kStore)
            for (int64_t k = 0; k < kStep; ++k) write(i + k, best);
          i += kStep;
          continue;
        }
      }
      for (const int64_t stop = i + kStep < end ? i + kStep : end; i < stop; ++i) {
        best = Op::combine(best, read(i));
        if constexpr (kStore) write(i, best);
      }
    }
    return best;
  }

  /** Total of elements [i, end); with kStore, writes the scan, including the total before i. */
  template <bool kStore>
  Total block(int64_t i, int64_t end, Total before) const {
    if constexpr (kIsExtreme<Op>) return extreme_block<kStore>(i, end, before);
    Total sum = Op::identity();
    if constexpr (Op::kRuns) {
      for (; i + kTile <= end; i += kTile) {
        Total run[kNumRuns][kRunLength];
        for (int64_t r = 0; r < kNumRuns; ++r) run[r][0] = read(i + r * kRunLength);
        for (int64_t k = 1; k < kRunLength; ++k)
          for (int64_t r = 0; r < kNumRuns; ++r) run[r][k] = Op::combine(run[r][k - 1], read(i + r * kRunLength + k));
        Total base = Op::combine(before, sum);
        Total runs = run[0][kRunLength - 1];
        if constexpr (kStore)
          for (int64_t k = 0; k < kRunLength; ++k) write(i + k, Op::combine(base, run[0][k]));
        for (int64_t r = 1; r < kNumRuns; ++r) {
          if constexpr (kStore) {
            const Total offset = Op::combine(base, runs);
            for (int64_t k = 0; k < kRunLength; ++k) write(i + r * kRunLength + k, Op::combine(offset, run[r][k]));
          }
          runs = Op::combine(runs, run[r][kRunLength - 1]);
        }
        sum = Op::combine(sum, runs);
      }
    }
    if constexpr (Op::kRuns) {
      for (; i < end; ++i) {
        sum = Op::combine(sum, read(i));
        if constexpr (kStore) write(i, Op::combine(before, sum));
      }
    } else {
      sum = before;
      for (; i < end; ++i) {
        sum = Op::combine(sum, read(i));
        if constexpr (kStore) write(i, sum);
      }
    }
    return sum;
  }

  int64_t block_end(int64_t b) const { return (b + 1) * kScanBlock < loop.n ? (b + 1) * kScanBlock : loop.n; }

  void whole() const {
    Total before = Op::identity();
    if constexpr (!Op::kRuns && !kIsExtreme<Op>) {
      block<true>(0, loop.n, before);
    } else {
      for (int64_t b = 0; b * kScanBlock < loop.n; ++b)
        before = Op::combine(before, block<true>(b * kScanBlock, block_end(b), before));
    }
  }
  char* carry(int64_t row, int64_t b) const { return loop.carries + (row * loop.blocks + b) * kScanCarryBytes; }
  void total(int64_t row, int64_t b) const {
    const Total sum = block<false>(b * kScanBlock, block_end(b), Op::identity());
    std::memcpy(carry(row, b), &sum, sizeof(Total));
  }
  void carry_over(int64_t row) const {
    Total before = Op::identity();
    for (int64_t b = 0; b < loop.blocks; ++b) {
      Total here;
      std::memcpy(&here, carry(row, b), sizeof(Total));
      std::memcpy(carry(row, b), &before, sizeof(Total));
      before = Op::combine(before, here);
    }
  }
  void finish(int64_t row, int64_t b) const {
    Total before;
    std::memcpy(&before, carry(row, b), sizeof(Total));
    block<true>(b * kScanBlock, block_end(b), before);
  }
};

/** Four rows at once, so that their dependent additions overlap. */
template <class Op, bool kReverse>
void scan_short_rows(const ScanLoop& loop, int64_t row) {
  using T = typename Op::Element;
  const int64_t n = loop.n;
  const T* x = static_cast<const T*>(loop.x) + row * n;
  T* out = static_cast<T*>(loop.out) + row * n;
  typename Op::Total total[4] = {Op::identity(), Op::identity(), Op::identity(), Op::identity()};
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = kReverse ? n - 1 - i : i;
    for (int64_t r = 0; r < 4; ++r) {
      total[r] = Op::combine(total[r], Op::lift(x[r * n + at], at));
      Op::store(loop, out, row * n, r * n + at, total[r]);
    }
  }
}

template <class Op, bool kReverse>
void scan_rows(const ScanLoop& loop, int64_t begin, int64_t end) {
  static_assert(sizeof(typename Op::Total) <= kScanCarryBytes);
  // Gives the same sums, since elements of a partial tile are added one by one.
  if (loop.phase == ScanPhase::Whole && loop.n < RowScan<Op, kReverse>::kTile)
    for (; begin + 4 <= end; begin += 4) scan_short_rows<Op, kReverse>(loop, begin);
  for (int64_t task = begin; task < end; ++task) {
    const bool by_row = loop.phase == ScanPhase::Whole || loop.phase == ScanPhase::Carries;
    const int64_t row = by_row ? task : task / loop.blocks, b = by_row ? 0 : task % loop.blocks;
    const RowScan<Op, kReverse> scan(loop, row);
    switch (loop.phase) {
      case ScanPhase::Whole: scan.whole(); break;
      case ScanPhase::Totals: scan.total(row, b); break;
      case ScanPhase::Carries: scan.carry_over(row); break;
      case ScanPhase::Finish: scan.finish(row, b); break;
    }
  }
}

/** Scans the rows of a strip of columns, with one total per column. */
template <class Op>
void scan_strip(const ScanLoop& loop, int64_t offset, int64_t width) {
  using T = typename Op::Element;
  const T* x = static_cast<const T*>(loop.x) + offset;
  T* out = static_cast<T*>(loop.out) + offset;
  if constexpr (kIsExtreme<Op>) {
    alignas(64) T best[kMaxScanStrip];
    alignas(64) int64_t where[kMaxScanStrip];
    for (int64_t c = 0; c < width; ++c) {
      best[c] = Op::identity().value;
      where[c] = 0;
    }
    for (int64_t r = 0; r < loop.n; ++r) {
      const T* row = x + r * loop.inner;
      T* values = out + r * loop.inner;
      int64_t* indices = loop.indices + offset + r * loop.inner;
#pragma GCC ivdep
      for (int64_t c = 0; c < width; ++c) {
        const bool take = takes_place<Op::kLargestFirst>(best[c], row[c]);
        best[c] = take ? row[c] : best[c];
        where[c] = take ? r : where[c];
        values[c] = best[c];
        indices[c] = where[c];
      }
    }
  } else {
    alignas(64) typename Op::Total total[kMaxScanStrip];
    for (int64_t c = 0; c < width; ++c) total[c] = Op::identity();
    for (int64_t r = 0; r < loop.n; ++r) {
      const int64_t at = (loop.reverse ? loop.n - 1 - r : r) * loop.inner;
#pragma GCC ivdep
      for (int64_t c = 0; c < width; ++c) {
        total[c] = Op::combine(total[c], Op::lift(x[at + c], r));
        out[at + c] = static_cast<T>(total[c]);
      }
    }
  }
}

template <class Op>
void scan_of(const ScanLoop& loop, int64_t begin, int64_t end) {
  if (loop.inner > 1) {
    const int64_t strips = (loop.inner + loop.strip - 1) / loop.strip;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % strips * loop.strip;
      const int64_t width = loop.inner - first < loop.strip ? loop.inner - first : loop.strip;
      scan_strip<Op>(loop, task / strips * loop.n * loop.inner + first, width);
    }
    return;
  }
  if constexpr (!kIsExtreme<Op>)
    if (loop.reverse) return scan_rows<Op, true>(loop, begin, end);
  scan_rows<Op, false>(loop, begin, end);
}

template <class T>
void scan_elements(const ScanLoop& loop, int64_t begin, int64_t end) {
  switch (loop.op) {
    case ScanOp::Sum: return scan_of<SumScan<T>>(loop, begin, end);
    case ScanOp::Product: return scan_of<ProductScan<T>>(loop, begin, end);
    case ScanOp::Maximum: return scan_of<ExtremeScan<T, true>>(loop, begin, end);
    case ScanOp::Minimum: return scan_of<ExtremeScan<T, false>>(loop, begin, end);
    case ScanOp::LogSumExp:
      if constexpr (std::is_floating_point_v<T>) scan_of<LogSumExpScan<T>>(loop, begin, end);
  }
}

}  // namespace

void scan(const ScanLoop& loop, int64_t begin, int64_t end) {
  switch (loop.compute) {
    case Compute::F32: return scan_elements<float>(loop, begin, end);
    case Compute::F64: return scan_elements<double>(loop, begin, end);
    default: return scan_elements<int64_t>(loop, begin, end);
  }
}

}  // namespace tercel::TERCEL_ISA
