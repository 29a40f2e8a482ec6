// Matrix product kernels.
//
//   tile:  acc[rows][panel] = 0
//          for k:  b = panel[k]               (1 or 2 vectors)
//            for row:  acc[row] += broadcast(a[row][k]) * b
//          C = mask(relu(alpha * acc + beta * C + bias))

#include "tercel/ops/linalg/cpu/gemm_kernels.h"

#include <array>
#include <cstring>
#include <utility>

#include "tercel/ops/common/cpu/simd.h"
#include "tercel/ops/linalg/cpu/gemm_pack.h"
#include "tercel/util/macros.h"

#ifdef __clang__
#define TERCEL_NO_UNROLL _Pragma("nounroll")
#else
#define TERCEL_NO_UNROLL _Pragma("GCC unroll 1")
#endif

namespace tercel::TERCEL_ISA {
namespace {

// Rows of a strip. With 16 registers: 12 sums, 2 for B, one broadcast and one for packing; without FMA a product needs
// one more. AVX-512 has 32: 24 sums.
constexpr int kStripRows = TERCEL_ISA_LEVEL == 2 ? 12 : TERCEL_ISA_LEVEL == 1 ? 6 : 4;
constexpr int kPanelVectors = 2;
template <class T>
constexpr int kPanelCols = kPanelVectors* kLanes<T>;
// Steps of k per round of the inner loop. If a loop has more than about 60 rounds, its exit is mispredicted.
constexpr int kRound = 8;
// Tiles pack only if a strip's row fits a vector and a register is left for it.
template <class T>
constexpr bool kTilesPack = kStripRows <= kLanes<T> && sizeof(T) == 4;

// sum += x * y. Inline assembly, because GCC otherwise interleaves steps of k, and then copies and spills sums.
template <class T>
TERCEL_ALWAYS_INLINE Simd<T> add_product(Simd<T> sum, Simd<T> x, Simd<T> y) {
#if TERCEL_ISA_LEVEL == 0
  sum += x * y;
#else
  if constexpr (sizeof(T) == 4)
    asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
  else
    asm("vfmadd231pd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
#endif
  return sum;
}

// Loads or stores the first n elements.
template <class T>
TERCEL_ALWAYS_INLINE Simd<T> load_part(const T* p, int n) {
  Simd<T> v{};
  TERCEL_NO_UNROLL
  for (int i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
template <class T>
TERCEL_ALWAYS_INLINE void store_part(T* p, Simd<T> v, int n) {
  TERCEL_NO_UNROLL
  for (int i = 0; i < n; ++i) p[i] = v[i];
}
#if TERCEL_ISA_LEVEL == 2
template <>
TERCEL_ALWAYS_INLINE Simd<float> load_part(const float* p, int n) {
  return Simd<float>(_mm512_maskz_loadu_ps(__mmask16((1u << n) - 1), p));
}
template <>
TERCEL_ALWAYS_INLINE void store_part(float* p, Simd<float> v, int n) {
  _mm512_mask_storeu_ps(p, __mmask16((1u << n) - 1), __m512(v));
}
template <>
TERCEL_ALWAYS_INLINE Simd<double> load_part(const double* p, int n) {
  return Simd<double>(_mm512_maskz_loadu_pd(__mmask8((1u << n) - 1), p));
}
template <>
TERCEL_ALWAYS_INLINE void store_part(double* p, Simd<double> v, int n) {
  _mm512_mask_storeu_pd(p, __mmask8((1u << n) - 1), __m512d(v));
}
#elif TERCEL_ISA_LEVEL == 1
TERCEL_ALWAYS_INLINE __m256i first_32(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
TERCEL_ALWAYS_INLINE __m256i first_64(int n) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}
template <>
TERCEL_ALWAYS_INLINE Simd<float> load_part(const float* p, int n) {
  return Simd<float>(_mm256_maskload_ps(p, first_32(n)));
}
template <>
TERCEL_ALWAYS_INLINE void store_part(float* p, Simd<float> v, int n) {
  _mm256_maskstore_ps(p, first_32(n), __m256(v));
}
template <>
TERCEL_ALWAYS_INLINE Simd<double> load_part(const double* p, int n) {
  return Simd<double>(_mm256_maskload_pd(p, first_64(n)));
}
template <>
TERCEL_ALWAYS_INLINE void store_part(double* p, Simd<double> v, int n) {
  _mm256_maskstore_pd(p, first_64(n), __m256d(v));
}
#endif

enum class Packing { None, Copy, Transpose };

// fn(row, vector) for each vector of a tile, unrolled.
template <int kRows, int kVectors, class Fn>
TERCEL_ALWAYS_INLINE void for_each_vector(Fn fn) {
  TERCEL_UNROLL
  for (int i = 0; i < kRows; ++i) {
    TERCEL_UNROLL
    for (int j = 0; j < kVectors; ++j) fn(i, j);
  }
}

template <class T, int kRows, int kVectors, bool kPart>
TERCEL_ALWAYS_INLINE void store_tile(Simd<T> (&acc)[kRows][kVectors], const GemmStore<T>& s, int64_t row, int64_t col,
                                     int part) {
  constexpr int kLast = kVectors - 1;
  const auto get = [&](const T* p, int j) { return kPart && j == kLast ? load_part<T>(p, part) : load<T>(p); };
  T* c = s.c + row * s.ldc + col;
  const auto at = [&](int i, int j) { return c + i * s.ldc + j * kLanes<T>; };
  if (s.alpha != T(1)) for_each_vector<kRows, kVectors>([&](int i, int j) { acc[i][j] *= s.alpha; });
  if (s.beta == T(1))
    for_each_vector<kRows, kVectors>([&](int i, int j) { acc[i][j] += get(at(i, j), j); });
  else if (s.beta != T(0))
    for_each_vector<kRows, kVectors>([&](int i, int j) { acc[i][j] += s.beta * get(at(i, j), j); });
  if (s.bias) {
    TERCEL_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      const Simd<T> bias = get(s.bias + col + j * kLanes<T>, j);
      TERCEL_UNROLL
      for (int i = 0; i < kRows; ++i) acc[i][j] += bias;
    }
  }
  using Bits = Simd<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  if (s.relu) {  // by comparison, so that NaN is kept
    for_each_vector<kRows, kVectors>(
        [&](int i, int j) { acc[i][j] = Simd<T>(Bits(acc[i][j]) & ~Bits(acc[i][j] < Simd<T>{})); });
  }
  if (s.mask) {
    const T* mask = s.mask + row * s.ldmask + col;
    for_each_vector<kRows, kVectors>([&](int i, int j) {
      const Simd<T> m = get(mask + i * s.ldmask + j * kLanes<T>, j);
      acc[i][j] = Simd<T>(Bits(acc[i][j]) & Bits(m > Simd<T>{}));
    });
  }
  for_each_vector<kRows, kVectors>([&](int i, int j) {
    if (kPart && j == kLast)
      store_part<T>(at(i, j), acc[i][j], part);
    else
      store<T>(at(i, j), acc[i][j]);
  });
}

template <class T>
struct TileArgs {
  int64_t k;
  const T* a;
  int64_t a_step;  ///< between rows if k runs along them, else between steps of k; unused if packed
  const T* b;
  int64_t b_step;  ///< between steps of k
  const GemmStore<T>* store;
  int64_t row, col;  ///< of the tile in C
  int cols;
  const T* fetch;  ///< part of C to prefetch meanwhile: this tile's, or that of the tile below
  const T* fetch_mask;
  bool plain;  ///< C = A * B
  Work<T> work;
};

// kSource says how A is read. Packed: both A and B are packed, with constant steps; Columns: both with any step, so
// that it also supports packed strips of less than kStripRows rows.
template <class T, int kRows, int kVectors, GemmSource kSource, Packing kPacking>
void tile(const TileArgs<T>& args) {
  constexpr bool kPacked = kSource == GemmSource::Packed;
  constexpr bool kAlong = kSource == GemmSource::Rows;
  constexpr int kPointers = kAlong ? kRows : 1;  // NOLINT(bugprone-branch-clone): kRows may be 1
  const T* b = args.b;
  const T* a[kPointers];
  TERCEL_UNROLL
  for (int i = 0; i < kPointers; ++i) {
    a[i] = args.a + i * args.a_step;
    if (kAlong) asm("" : "+r"(a[i]));  // or GCC derives all 8 * kRows addresses from one, and spills them
  }
  {
    // The end of each row: if it is on another line than the beginning, the tile to the left has prefetched that.
    const T* fetch = args.fetch + kVectors * kLanes<T> - 1;
    TERCEL_UNROLL
    for (int i = 0; i < kRows; ++i, fetch += args.store->ldc) __builtin_prefetch(fetch, 1);
    if (args.fetch_mask) {
      fetch = args.fetch_mask + kVectors * kLanes<T> - 1;
      TERCEL_UNROLL
      for (int i = 0; i < kRows; ++i, fetch += args.store->ldmask) __builtin_prefetch(fetch);
    }
  }

  Simd<T> acc[kRows][kVectors];
  for_each_vector<kRows, kVectors>([&](int i, int j) { acc[i][j] = Simd<T>{}; });

  // Step u of a round; if steps are constant, the pointers advance once per round.
  const auto step = [&](int u) __attribute__((always_inline)) {
    Simd<T> bv[kVectors];
    TERCEL_UNROLL
    for (int j = 0; j < kVectors; ++j) bv[j] = load(b + (kPacked || kAlong ? u * kPanelCols<T> : 0) + j * kLanes<T>);
    TERCEL_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const Simd<T> x = broadcast<T>(kPacked ? a[0][u * kRows + i] : kAlong ? a[kAlong ? i : 0][u] : a[0][i]);
      TERCEL_UNROLL
      for (int j = 0; j < kVectors; ++j) acc[i][j] = add_product<T>(acc[i][j], x, bv[j]);
    }
    if (!kPacked && !kAlong) {
      __builtin_prefetch(b + 8 * args.b_step);
      b += args.b_step;
      a[0] += args.a_step;
    }
  };
  const auto advance = [&](int steps) __attribute__((always_inline)) {
    if (!kPacked && !kAlong) return;
    b += steps * kPanelCols<T>;
    TERCEL_UNROLL
    for (int i = 0; i < kPointers; ++i) a[i] += kPacked ? steps * kRows : steps;
  };
  const auto round = [&]() __attribute__((always_inline)) {
    TERCEL_UNROLL
    for (int u = 0; u < kRound; ++u) step(u);
    advance(kRound);
  };

  int64_t rounds = args.k / kRound;
  if constexpr (kPacking != Packing::None) {
    Work<T> work = args.work;
    rounds -= work.rounds;
    TERCEL_NO_UNROLL
    for (int64_t i = work.rounds; i > 0; --i) {
      if constexpr (kPacking == Packing::Copy)
        copy_round(work);
      else
        transpose_round(work);
      round();
    }
  }
  TERCEL_NO_UNROLL
  for (; rounds > 0; --rounds) round();
  TERCEL_NO_UNROLL
  for (int64_t rest = args.k % kRound; rest > 0; --rest) {
    step(0);
    advance(1);
  }

  const int part = args.cols - (kVectors - 1) * kLanes<T>;
  if (args.plain && part == kLanes<T>) {
    T* c = args.store->c + args.row * args.store->ldc + args.col;
    const int64_t ldc = args.store->ldc;
    for_each_vector<kRows, kVectors>([&](int i, int j) { store<T>(c + i * ldc + j * kLanes<T>, acc[i][j]); });
  } else if (part == kLanes<T>)
    store_tile<T, kRows, kVectors, false>(acc, *args.store, args.row, args.col, part);
  else
    store_tile<T, kRows, kVectors, true>(acc, *args.store, args.row, args.col, part);
}

template <class T>
using Tile = void (*)(const TileArgs<T>&);

template <class T, GemmSource kSource, int kVectors, int... kRow>
constexpr std::array<Tile<T>, kStripRows> tiles_of(std::integer_sequence<int, kRow...>) {
  return {&tile<T, kRow + 1, kVectors, kSource, Packing::None>...};
}

// The tiles for a strip of a given number of rows, with one and two vectors of B.
template <class T>
struct Tiles {
  using Rows = std::make_integer_sequence<int, kStripRows>;
  static constexpr std::array<Tile<T>, kStripRows> kAll[2][kPanelVectors] = {
      {tiles_of<T, GemmSource::Rows, 1>(Rows{}), tiles_of<T, GemmSource::Rows, 2>(Rows{})},
      {tiles_of<T, GemmSource::Columns, 1>(Rows{}), tiles_of<T, GemmSource::Columns, 2>(Rows{})}};
};

template <class T>
void multiply(const GemmBlock<T>& block, PackTask<T>* task, int64_t tasks) {
  PackTask<T>* const end = task + tasks;
  const bool packed = block.source == GemmSource::Packed;
  const int64_t panels = (block.n + kPanelCols<T> - 1) / kPanelCols<T>;
  const auto& tiles = Tiles<T>::kAll[block.source == GemmSource::Rows ? 0 : 1];
  TileArgs<T> args{};
  args.k = block.k;
  args.b_step = block.ldb;
  args.store = &block.store;
  args.plain = block.store.alpha == T(1) && block.store.beta == T(0) && !block.store.bias && !block.store.mask &&
               !block.store.relu;
  int64_t rows = 0;
  int64_t fetch_row = 0;

  const auto go_to_strip = [&](int64_t strip) {
    rows = strip < block.high_strips ? block.strip_rows : block.strip_rows - 1;
    args.row = strip * block.strip_rows - (strip > block.high_strips ? strip - block.high_strips : 0);
    args.a_step = packed ? rows : block.lda;
    args.a = block.a + (packed                             ? strip * block.strip_step
                        : block.source == GemmSource::Rows ? args.row * block.lda
                                                           : args.row);
    fetch_row = args.row + (block.strips_outside ? rows : 0);
  };
  const auto go_to_panel = [&](int64_t panel) {
    args.col = panel * kPanelCols<T>;
    const int64_t left = block.n - args.col;
    args.cols = static_cast<int>(left < kPanelCols<T> ? left : kPanelCols<T>);
    args.b = block.b + panel * block.panel_step;
  };
  const auto run = [&] {
    const int vectors = args.cols <= kLanes<T> ? 1 : 2;
    args.fetch = block.store.c + fetch_row * block.store.ldc + args.col;
    args.fetch_mask = block.store.mask ? block.store.mask + fetch_row * block.store.ldmask + args.col : nullptr;
    if (packed && block.ldb == kPanelCols<T> && vectors == kPanelVectors && rows == kStripRows) {
      if constexpr (kTilesPack<T>) {
        for (; task != end; ++task) {
          if (!take_work(*task, block.k / kRound, args.work)) continue;
          if (task->transposed) return tile<T, kStripRows, kPanelVectors, GemmSource::Packed, Packing::Transpose>(args);
          return tile<T, kStripRows, kPanelVectors, GemmSource::Packed, Packing::Copy>(args);
        }
      }
      return tile<T, kStripRows, kPanelVectors, GemmSource::Packed, Packing::None>(args);
    }
    tiles[vectors - 1][static_cast<size_t>(rows - 1)](args);
  };

  if (block.strips_outside) {
    for (int64_t strip = 0; strip < block.strips; ++strip) {
      go_to_strip(strip);
      for (int64_t panel = 0; panel < panels; ++panel) {
        go_to_panel(panel);
        run();
      }
    }
  } else {
    for (int64_t panel = 0; panel < panels; ++panel) {
      go_to_panel(panel);
      for (int64_t strip = 0; strip < block.strips; ++strip) {
        go_to_strip(strip);
        run();
      }
    }
  }
}

// ---- products with a vector

// Four rows at a time, so that each vector of x is read once for all of them.
template <class T, int kRows>
void dot_some_rows(int64_t cols, const T* a, int64_t lda, const T* x, T* y) {
  Simd<T> acc[kRows] = {};
  int64_t j = 0;
  for (; j + kLanes<T> <= cols; j += kLanes<T>) {
    const Simd<T> xv = load(x + j);
    TERCEL_UNROLL
    for (int i = 0; i < kRows; ++i) acc[i] = multiply_add(load(a + i * lda + j), xv, acc[i]);
  }
  if (j < cols) {
    const int part = static_cast<int>(cols - j);
    const Simd<T> xv = load_part(x + j, part);
    TERCEL_UNROLL
    for (int i = 0; i < kRows; ++i) acc[i] = multiply_add(load_part(a + i * lda + j, part), xv, acc[i]);
  }
  TERCEL_UNROLL
  for (int i = 0; i < kRows; ++i) {
    T sum = 0;
    TERCEL_UNROLL
    for (int l = 0; l < kLanes<T>; ++l) sum += acc[i][l];
    y[i] = sum;
  }
}

template <class T>
void dot_rows(int64_t rows, int64_t cols, const T* a, int64_t lda, const T* x, T* y) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) dot_some_rows<T, 4>(cols, a + i * lda, lda, x, y + i);
  for (; i < rows; ++i) dot_some_rows<T, 1>(cols, a + i * lda, lda, x, y + i);
}

template <class T, int kVectors, bool kPart>
void sum_some_cols(int64_t rows, const T* a, int64_t lda, const T* x, T* y, int part) {
  Simd<T> acc[kVectors] = {};
  TERCEL_NO_UNROLL
  for (int64_t i = 0; i < rows; ++i, a += lda) {
    const Simd<T> xv = x ? broadcast<T>(x[i]) : broadcast<T>(1);
    TERCEL_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      const Simd<T> av = kPart ? load_part(a, part) : load(a + j * kLanes<T>);
      acc[j] = multiply_add(av, xv, acc[j]);
    }
  }
  TERCEL_UNROLL
  for (int j = 0; j < kVectors; ++j) {
    if (kPart)
      store_part(y, acc[j], part);
    else
      store(y + j * kLanes<T>, acc[j]);
  }
}

template <class T>
void sum_rows(int64_t rows, int64_t cols, const T* a, int64_t lda, const T* x, T* y) {
  int64_t j = 0;
  for (; j + 8 * kLanes<T> <= cols; j += 8 * kLanes<T>) sum_some_cols<T, 8, false>(rows, a + j, lda, x, y + j, 0);
  for (; j + kLanes<T> <= cols; j += kLanes<T>) sum_some_cols<T, 1, false>(rows, a + j, lda, x, y + j, 0);
  if (j < cols) sum_some_cols<T, 1, true>(rows, a + j, lda, x, y + j, static_cast<int>(cols - j));
}

// ---- products of few rows, with both operands in place

// Rows of A and of B whose dot products are accumulated at the same time.
constexpr int kDotRowsA = TERCEL_ISA_LEVEL == 2 ? 4 : 2;
constexpr int kDotRowsB = 4;  // see sums_of_lanes

/** The vector of elements index(0), index(1), ... of the concatenation of a and b. */
template <class T, class Index, size_t... kLane>
TERCEL_ALWAYS_INLINE Simd<T> pick(Simd<T> a, Simd<T> b, Index, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(a, b, Index{}(static_cast<int>(kLane))...);
}
template <class T, class Index>
TERCEL_ALWAYS_INLINE Simd<T> pick(Simd<T> a, Simd<T> b, Index index) {
  return pick<T>(a, b, index, std::make_index_sequence<static_cast<size_t>(kLanes<T>)>{});
}

/** out[i] = sum of the lanes of v[i]. Halves of two vectors are added into one vector, and so on. */
template <class T>
TERCEL_ALWAYS_INLINE void sums_of_lanes(const Simd<T> (&v)[4], T* out) {
  constexpr int kAll = kLanes<T>, kHalf = kAll / 2, kQuarter = kAll / 4;
  if constexpr (kQuarter == 0) {
    TERCEL_UNROLL
    for (int i = 0; i < 4; ++i) out[i] = v[i][0] + v[i][1];
  } else {
    const auto halves = [](Simd<T> a, Simd<T> b) __attribute__((always_inline)) {
      return pick<T>(a, b, [](int i) { return i < kHalf ? i : i + kHalf; }) +
             pick<T>(a, b, [](int i) { return i < kHalf ? i + kHalf : i + kAll; });
    };
    const Simd<T> x = halves(v[0], v[1]), y = halves(v[2], v[3]);
    Simd<T> sums = pick<T>(x, y, [](int i) { return i / kQuarter * kHalf + i % kQuarter; }) +
                   pick<T>(x, y, [](int i) { return i / kQuarter * kHalf + i % kQuarter + kQuarter; });
    if constexpr (kQuarter > 2) sums += pick<T>(sums, sums, [](int i) { return i ^ 2; });
    if constexpr (kQuarter > 1) sums += pick<T>(sums, sums, [](int i) { return i ^ 1; });
    TERCEL_UNROLL
    for (int i = 0; i < 4; ++i) out[i] = sums[i * kQuarter];
  }
}

template <class T, int kRowsA, int kRowsB>
void dot_tile(int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc) {
  Simd<T> acc[kRowsA][kRowsB] = {};
  const auto step = [&](auto load_vector) __attribute__((always_inline)) {
    Simd<T> av[kRowsA];
    TERCEL_UNROLL
    for (int i = 0; i < kRowsA; ++i) av[i] = load_vector(a + i * lda);
    TERCEL_UNROLL
    for (int j = 0; j < kRowsB; ++j) {
      const Simd<T> bv = load_vector(b + j * ldb);
      TERCEL_UNROLL
      for (int i = 0; i < kRowsA; ++i) acc[i][j] = add_product<T>(acc[i][j], av[i], bv);
    }
  };
  TERCEL_NO_UNROLL
  for (; k >= kLanes<T>; k -= kLanes<T>, a += kLanes<T>, b += kLanes<T>) step([](const T* p) { return load(p); });
  if (k > 0) step([k](const T* p) { return load_part<T>(p, static_cast<int>(k)); });
  TERCEL_UNROLL
  for (int i = 0; i < kRowsA; ++i) {
    Simd<T> four[4] = {};
    T sums[4];
    TERCEL_UNROLL
    for (int j = 0; j < kRowsB; ++j) four[j] = acc[i][j];
    sums_of_lanes<T>(four, sums);
    std::memcpy(c + i * ldc, sums, kRowsB * sizeof(T));
  }
}

template <class T, int kRowsB, int kRowsA = kDotRowsA>
void dots_of(int64_t m, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc) {
  for (; m >= kRowsA; m -= kRowsA, a += kRowsA * lda, c += kRowsA * ldc)
    dot_tile<T, kRowsA, kRowsB>(k, a, lda, b, ldb, c, ldc);
  if constexpr (kRowsA > 1)
    if (m > 0) dots_of<T, kRowsB, kRowsA - 1>(m, k, a, lda, b, ldb, c, ldc);
}

template <class T>
void dots(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc) {
  int64_t j = 0;
  for (; j + kDotRowsB <= n; j += kDotRowsB) dots_of<T, kDotRowsB>(m, k, a, lda, b + j * ldb, ldb, c + j, ldc);
  for (; j < n; ++j) dots_of<T, 1>(m, k, a, lda, b + j * ldb, ldb, c + j, ldc);
}

template <class T>
const GemmKernels<T>& kernels() {
  static constexpr GemmKernels<T> kKernels{kStripRows, kPanelCols<T>, kLanes<T>, &multiply<T>,
                                           &pack<T>,   &dot_rows<T>,  &dots<T>,  &sum_rows<T>};
  return kKernels;
}

}  // namespace

const GemmKernels<float>& gemm_kernels_f32() { return kernels<float>(); }
const GemmKernels<double>& gemm_kernels_f64() { return kernels<double>(); }

}  // namespace tercel::TERCEL_ISA
