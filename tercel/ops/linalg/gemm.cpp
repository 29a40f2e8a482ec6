// Distribution of a matrix product over blocks and threads; the arithmetic is in cpu/gemm_kernels.cpp.
//
// Note [GEMM loops]
//   for each phase (up to kNc columns of B x kMaxSteps steps of k):      B's block is packed, shared by all threads
//     for each thread's share of the strips and panels:
//       for each block of strips (kStripBytes of packed A):  A is packed, by each thread for itself
//         for each panel, for each strip: a tile
// The tiles of one block also pack the thread's next block of A and its share of the next phase's B; see
// Note [Packing in the shadow].
#include "tercel/ops/linalg/gemm_impl.h"

#include <algorithm>

#include "tercel/core/allocator.h"
#include "tercel/core/dispatch.h"
#include "tercel/ops/linalg/cpu/gemm_kernels.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/error.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

// Steps of k per block: C is loaded and stored once per block. Above kMaxSteps, a block of B is limited to kBlockBytes,
// but not below kFewestSteps.
constexpr int64_t kMaxSteps = 512;
constexpr int64_t kFewestSteps = 256;
constexpr int64_t kBlockBytes = 1 << 20;
// Columns of a block of B.
constexpr int64_t kNc = 1024;
// Bytes of a block of packed A: less than half of a 512 KB L2 cache, which holds two of them.
constexpr int64_t kStripBytes = 192 << 10;
// A block of B up to this size stays in the L2 cache for all strips: then panels are the inner loop, and C is written
// row by row.
constexpr int64_t kSmallPanelBytes = 96 << 10;
// A that is contiguous along k is read in place if fewer columns or steps than these use it, or if it is at most this
// large: then most of it would be packed before there is any computation to overlap with.
constexpr int64_t kPackCols = 128;
constexpr int64_t kPackSteps = 32;
constexpr int64_t kPackBytes = 256 << 10;
// A that is contiguous across k is read in place if at most this many panels use it; B, if at most this many strips do.
constexpr int64_t kInPlacePanels = 2;
constexpr int64_t kInPlaceStrips = 3;
// A product with at most this many columns is computed transposed if B can then be read in place.
constexpr int64_t kNarrowCols = 16;
// A product with at most this many rows and at least this many steps is computed as dot products if both operands are
// contiguous along k: packing B pays off only with more rows, and summing lanes is too expensive with fewer steps.
constexpr int64_t kDotRows = 8, kDotSteps = 16;
constexpr int64_t kMaxDotRows = 24, kManyDotSteps = 256;
constexpr int64_t kDotCols = 64;
// Minimum number of multiplications per thread.
constexpr int64_t kWorkPerThread = 1 << 18;

constexpr KernelTable<GetGemmKernelsF32> kKernelsF32 = TERCEL_CPU_KERNELS(gemm_kernels_f32);
constexpr KernelTable<GetGemmKernelsF64> kKernelsF64 = TERCEL_CPU_KERNELS(gemm_kernels_f64);

template <class T>
const GemmKernels<T>& kernels() {
  const Device cpu(DeviceType::Cpu);
  if constexpr (sizeof(T) == 4)
    return kKernelsF32[cpu]();
  else
    return kKernelsF64[cpu]();
}

/** The start of part i if `count` items are divided into `parts` nearly equal parts. */
int64_t cut(int64_t count, int64_t parts, int64_t i) { return count * i / parts; }

/** Rows [begin, end) of A as strips of equal height; the last ones have one row less. */
struct Strips {
  int64_t begin, count, rows, high;

  Strips(int64_t first_row, int64_t end, int64_t max_rows)
      : begin(first_row),
        count(ceil_div(end - begin, max_rows)),
        rows(count == 0 ? 0 : ceil_div(end - begin, count)),
        high(end - begin - count * (rows - 1)) {}
  int64_t start(int64_t i) const { return begin + i * rows - std::max<int64_t>(0, i - high); }
  int64_t size(int64_t i) const { return i < high ? rows : rows - 1; }
};

/** The number of equal blocks of k, for a product with n columns. */
template <class T>
int64_t blocks_of_steps(int64_t k, int64_t n) {
  if (k <= kMaxSteps) return 1;
  const int64_t row_bytes = std::min(n, kNc) * static_cast<int64_t>(sizeof(T));
  return ceil_div(k, std::clamp(kBlockBytes / row_bytes, kFewestSteps, kMaxSteps));
}

/** Scratch memory for one call; each part begins at a cache line. */
class Workspace {
 public:
  /** Reserves memory; returns its offset. */
  template <class T>
  int64_t add(int64_t count) {
    const int64_t offset = bytes_;
    bytes_ += round_up(count * static_cast<int64_t>(sizeof(T)), 64);
    return offset;
  }
  void allocate() {
    // The allocator uses huge pages from 2 MiB on; hardware prefetching stops at the ends of small pages.
    if (bytes_ > int64_t{1} << 17) bytes_ = std::max(bytes_, int64_t{1} << 21);
    block_ = cpu_allocator().allocate(static_cast<size_t>(bytes_));
  }
  template <class T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(static_cast<char*>(block_.get()) + offset);
  }

 private:
  int64_t bytes_ = 0;
  DataPtr block_;
};

/** to = from + beta * to; with beta = 0 `to` is not read. */
template <class T>
void add_scaled(T* to, T beta, const T* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = beta == T(0) ? from[i] : from[i] + beta * to[i];
}

/** Sums over k, for operands that are not packed. */
template <class T>
void add_missing_sums(const Gemm<T>& g, bool a_sums, bool b_sums) {
  if (!a_sums && !b_sums) return;
  const DataPtr block = cpu_allocator().allocate(static_cast<size_t>(std::max(g.m, g.n)) * sizeof(T));
  T* sums = static_cast<T*>(block.get());
  const auto add = [&](T* to, const T* matrix, int64_t ld, int64_t count) {
    if (g.k > 0 && count > 0)
      kernels<T>().sum_rows(g.k, count, matrix, ld, nullptr, sums);
    else
      std::fill_n(sums, count, T(0));
    add_scaled(to, g.beta, sums, count);
  };
  if (a_sums) add(g.a_sums, g.a, g.lda, g.m);
  if (b_sums) add(g.b_sums, g.b, g.ldb, g.n);
}

/**
 * C = mask(relu(value + beta * C + bias)) for value(i, j) in columns [first, last), as tiles compute it, for products
 * that use no tiles.
 */
template <class T, class Value>
void store(const Gemm<T>& g, int64_t first, int64_t last, Value value) {
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = first; j < last; ++j) {
      T& c = g.c[i * g.ldc + j];
      T x = value(i, j);
      if (g.beta != T(0)) x += g.beta * c;
      if (g.bias) x += g.bias[j];
      if (g.relu && x < T(0)) x = 0;
      if (g.mask && !(g.mask[i * g.ldmask + j] > T(0))) x = 0;
      c = x;
    }
  }
}

/** Matrix-vector products: C has one row or column. */
template <class T>
void gemv(const Gemm<T>& g, int64_t threads) {
  const bool column = g.n == 1;
  const int64_t rows = column ? g.m : g.n;
  const T* matrix = column ? g.a : g.b;
  const int64_t ld = column ? g.lda : g.ldb;
  const bool along = column ? !g.trans_a : g.trans_b;  // k runs along the matrix's rows
  const T* vector = column ? g.b : g.a;
  const int64_t step = column ? (g.trans_b ? 1 : g.ldb) : (g.trans_a ? g.lda : 1);

  Workspace workspace;
  const int64_t x_at = workspace.add<T>(step == 1 ? 0 : g.k);
  const int64_t y_at = workspace.add<T>(rows);
  workspace.allocate();
  T* y = workspace.at<T>(y_at);
  if (step != 1) {
    T* x = workspace.at<T>(x_at);
    for (int64_t i = 0; i < g.k; ++i) x[i] = vector[i * step];
    vector = x;
  }
  const GemmKernels<T>& kernel = kernels<T>();
  parallel_for(0, rows, ceil_div(rows, threads), [&](int64_t first, int64_t last) {
    if (along)
      kernel.dot_rows(last - first, g.k, matrix + first * ld, ld, vector, y + first);
    else
      kernel.sum_rows(g.k, last - first, matrix + first, ld, vector, y + first);
  });
  store(g, 0, g.n, [&](int64_t i, int64_t j) { return g.alpha * y[column ? i : j]; });
  add_missing_sums(g, g.a_sums != nullptr, g.b_sums != nullptr);
}

/** A few rows times a matrix that is also contiguous along k, such as a linear layer with a small batch. */
template <class T>
void gemm_of_dots(const Gemm<T>& g, int64_t threads) {
  const GemmKernels<T>& kernel = kernels<T>();
  parallel_for(0, ceil_div(g.n, kDotCols), ceil_div(ceil_div(g.n, kDotCols), threads), [&](int64_t begin, int64_t end) {
    alignas(64) T sums[kMaxDotRows * kDotCols];
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kDotCols, last = std::min(first + kDotCols, g.n);
      kernel.dots(g.m, last - first, g.k, g.a, g.lda, g.b + first * g.ldb, g.ldb, sums, kDotCols);
      store(g, first, last, [&](int64_t i, int64_t j) { return g.alpha * sums[i * kDotCols + j - first]; });
    }
  });
}

template <class T>
class BlockedGemm {
 public:
  BlockedGemm(const Gemm<T>& g, int64_t threads)
      : g_(g),
        kernels_(kernels<T>()),
        k_blocks_(blocks_of_steps<T>(g.k, g.n)),
        kc_(round_up(std::max<int64_t>(1, ceil_div(g.k, k_blocks_)), 8)),
        panels_(ceil_div(g.n, kernels_.panel_cols)),
        n_blocks_(ceil_div(g.n, kNc)),
        block_panels_(ceil_div(panels_, n_blocks_)),
        phases_(k_blocks_ * n_blocks_) {
    small_panels_ = panel_step() * block_panels_ * static_cast<int64_t>(sizeof(T)) <= kSmallPanelBytes;
    pack_b_ = !given_in_panels() &&
              (g.trans_b || g.n % kernels_.vector != 0 || ceil_div(g.m, kernels_.strip_rows) > kInPlaceStrips);
    if (g.trans_a)
      source_ = panels_ <= kInPlacePanels || !pack_b_ ? GemmSource::Columns : GemmSource::Packed;
    else
      source_ = in_panels() && (g.n < kPackCols || g.k < kPackSteps ||
                                g.m * g.k * static_cast<int64_t>(sizeof(T)) <= kPackBytes)
                    ? GemmSource::Rows
                    : GemmSource::Packed;
    // The thread grid with the smallest maximal share. Each column of the grid packs the strips again; if nothing is
    // packed, what counts is that each row of the grid reads the panels again.
    int64_t best = INT64_MAX;
    for (int64_t cols = 1; cols <= threads; ++cols) {
      if (threads % cols != 0) continue;
      const int64_t strips = strips_in_row(threads / cols), panels = ceil_div(block_panels_, cols);
      const int64_t cost = given_in_panels() && !pack_a() ? (strips + 1) * panels : strips * (panels + 1);
      if (cost < best) best = cost, grid_cols_ = cols;
    }
    grid_rows_ = threads / grid_cols_;
    const int64_t max_strips =
        std::max<int64_t>(1, kStripBytes / (kc_ * kernels_.strip_rows * static_cast<int64_t>(sizeof(T))));
    const int64_t share = strips_in_row(grid_rows_);
    block_strips_ = ceil_div(share, ceil_div(share, max_strips));
  }

  /** Allocates the memory for run(), which may then be called several times for operands of the same shape. */
  void prepare() {
    const int64_t tasks = grid_rows_ * grid_cols_;
    a_sums_count_ = g_.a_sums && pack_a() ? grid_rows_ * a_sums_step() : 0;
    b_sums_count_ = g_.b_sums && pack_b_ ? n_blocks_ * block_panels_ * sums_step() : 0;
    const int64_t strips = workspace_.add<T>(pack_a() ? 2 * tasks * block_strips_ * strip_step() : 0);
    const int64_t panels =
        workspace_.add<T>(pack_b_ ? std::min<int64_t>(phases_, 2) * block_panels_ * panel_step() : 0);
    const int64_t a_sums = workspace_.add<T>(a_sums_count_);
    const int64_t b_sums = workspace_.add<T>(b_sums_count_);
    workspace_.allocate();
    strips_packed_ = workspace_.at<T>(strips);
    panels_packed_ = workspace_.at<T>(panels);
    a_sums_ = workspace_.at<T>(a_sums);
    b_sums_ = workspace_.at<T>(b_sums);
  }

  void set_operands(const T* a, const T* b, T* c) {
    g_.a = a;
    g_.b = b;
    g_.c = c;
  }

  void run() {
    const int64_t tasks = grid_rows_ * grid_cols_;
    std::fill_n(a_sums_, a_sums_count_, T(0));
    std::fill_n(b_sums_, b_sums_count_, T(0));
    const auto for_each_task = [&](auto run_task) {
      parallel_for(0, tasks, 1, [&](int64_t first, int64_t last) {
        for (int64_t task = first; task < last; ++task) run_task(task);
      });
    };
    if (pack_b_) {
      for_each_task([&](int64_t task) { pack_first(task); });
      for (int64_t phase = 0; phase < phases_; ++phase) for_each_task([&](int64_t task) { run_phase(phase, task); });
    } else {  // threads share nothing, so they need not wait for each other
      for_each_task([&](int64_t task) {
        pack_first(task);
        for (int64_t phase = 0; phase < phases_; ++phase) run_phase(phase, task);
      });
    }
    for (int64_t row = 0; a_sums_count_ > 0 && row < grid_rows_; ++row) {
      const Strips strips = strips_of(row * grid_cols_);
      for (int64_t i = 0; i < strips.count; ++i)
        add_scaled(g_.a_sums + strips.start(i), g_.beta, a_sums_ + row * a_sums_step() + i * sums_step(),
                   strips.size(i));
    }
    if (b_sums_count_ > 0) add_scaled(g_.b_sums, g_.beta, b_sums_, g_.n);
    add_missing_sums(g_, g_.a_sums && a_sums_count_ == 0, g_.b_sums && b_sums_count_ == 0);
  }

 private:
  bool pack_a() const { return source_ == GemmSource::Packed; }
  bool given_in_panels() const { return g_.b_panel_step > 0; }
  bool in_panels() const { return pack_b_ || given_in_panels(); }
  int64_t panel_cols() const { return kernels_.panel_cols; }

  // Elements between packed strips, between packed panels (up to kc_ steps deep), and between their sums.
  int64_t strip_step() const { return kc_ * kernels_.strip_rows + kPackGap; }
  int64_t panel_step() const { return kc_ * kernels_.panel_cols + kPackGap; }
  int64_t sums_step() const { return kernels_.panel_cols; }
  // Elements between the sums of strips of different grid rows.
  int64_t a_sums_step() const { return strips_in_row(grid_rows_) * sums_step(); }

  int64_t k0(int64_t phase) const { return phase % k_blocks_ * kc_; }
  int64_t depth(int64_t phase) const { return std::min(kc_, g_.k - k0(phase)); }
  int64_t first_panel(int64_t phase) const { return phase / k_blocks_ * block_panels_; }
  int64_t panels(int64_t phase) const { return std::min(block_panels_, panels_ - first_panel(phase)); }
  T* packed_panels(int64_t phase) const { return panels_packed_ + phase % 2 * block_panels_ * panel_step(); }

  /** Maximum number of strips in a grid row. */
  int64_t strips_in_row(int64_t grid_rows) const { return ceil_div(ceil_div(g_.m, grid_rows), kernels_.strip_rows); }
  Strips strips_of(int64_t task) const {
    const int64_t row = task / grid_cols_;
    return {cut(g_.m, grid_rows_, row), cut(g_.m, grid_rows_, row + 1), kernels_.strip_rows};
  }
  // `block` is the index of a block of strips, counted over all phases of the task.
  T* packed_strips(int64_t task, int64_t block) const {
    return strips_packed_ + (2 * task + block % 2) * block_strips_ * strip_step();
  }

  /** Packing tasks for a block of strips: one for high strips and one for the others. Empty after the last block. */
  void strip_tasks(PackTask<T>* result, int64_t task, int64_t block) const {
    result[0] = result[1] = {};
    if (!pack_a()) return;
    const Strips strips = strips_of(task);
    const int64_t blocks = ceil_div(strips.count, block_strips_);
    if (blocks == 0 || block >= phases_ * blocks) return;
    const int64_t phase = block / blocks;
    const int64_t first = block % blocks * block_strips_;
    const int64_t last = std::min(first + block_strips_, strips.count);
    const int64_t middle = std::clamp(strips.high, first, last);
    // A strip's sums are computed once: by the first column of the grid, for the first block of panels.
    const bool sums = g_.a_sums && phase < k_blocks_ && task % grid_cols_ == 0;
    for (const bool high : {true, false}) {
      PackTask<T>& part = result[high ? 0 : 1];
      const int64_t begin = high ? first : middle;
      const int64_t row = strips.start(begin);
      part.source = g_.a + (g_.trans_a ? k0(phase) * g_.lda + row : row * g_.lda + k0(phase));
      part.ld = g_.lda;
      part.transposed = !g_.trans_a;
      part.lines = strips.start(high ? middle : last) - row;
      part.readable = g_.m - row;
      part.k = depth(phase);
      part.part_lines = std::max<int64_t>(1, high ? strips.rows : strips.rows - 1);
      part.packed = packed_strips(task, block) + (begin - first) * strip_step();
      part.part_step = strip_step();
      part.sums = sums ? a_sums_ + task / grid_cols_ * a_sums_step() + begin * sums_step() : nullptr;
      part.sums_step = sums_step();
    }
  }

  /** The packing task for this task's share of the phase's panels; empty after the last phase. */
  PackTask<T> panels_task(int64_t task, int64_t phase) const {
    PackTask<T> part;
    if (!pack_b_ || phase >= phases_) return part;
    const int64_t tasks = grid_rows_ * grid_cols_;
    const int64_t first = cut(panels(phase), tasks, task);
    const int64_t col = (first_panel(phase) + first) * kernels_.panel_cols;
    part.source = g_.b + (g_.trans_b ? col * g_.ldb + k0(phase) : k0(phase) * g_.ldb + col);
    part.ld = g_.ldb;
    part.transposed = g_.trans_b;
    part.lines = std::min((cut(panels(phase), tasks, task + 1) - first) * kernels_.panel_cols, g_.n - col);
    part.readable = part.lines;
    part.k = depth(phase);
    part.part_lines = kernels_.panel_cols;
    part.packed = packed_panels(phase) + first * panel_step();
    part.part_step = panel_step();
    part.sums = g_.b_sums ? b_sums_ + col : nullptr;
    part.sums_step = sums_step();
    return part;
  }

  void pack_first(int64_t task) const {
    PackTask<T> a[2];
    strip_tasks(a, task, 0);
    PackTask<T> b = panels_task(task, 0);
    kernels_.pack(a[0]);
    kernels_.pack(a[1]);
    kernels_.pack(b);
  }

  void run_phase(int64_t phase, int64_t task) const {
    const int64_t begin = cut(panels(phase), grid_cols_, task % grid_cols_);
    const int64_t end = cut(panels(phase), grid_cols_, task % grid_cols_ + 1);
    const int64_t col = (first_panel(phase) + begin) * kernels_.panel_cols;
    const bool last_k = k0(phase) + depth(phase) >= g_.k;
    const Strips strips = strips_of(task);
    GemmBlock<T> block;
    block.n = std::min((end - begin) * kernels_.panel_cols, g_.n - col);
    block.k = depth(phase);
    block.strip_rows = strips.rows;
    block.source = source_;
    block.lda = g_.lda;
    block.strip_step = strip_step();
    block.b = pack_b_             ? packed_panels(phase) + begin * panel_step()
              : given_in_panels() ? g_.b + (first_panel(phase) + begin) * g_.b_panel_step + k0(phase) * panel_cols()
                                  : g_.b + k0(phase) * g_.ldb + col;
    block.ldb = in_panels() ? panel_cols() : g_.ldb;
    block.panel_step = pack_b_ ? panel_step() : given_in_panels() ? g_.b_panel_step : panel_cols();
    block.store.ldc = g_.ldc;
    block.store.alpha = g_.alpha;
    block.store.beta = k0(phase) == 0 ? g_.beta : T(1);
    block.store.bias = last_k && g_.bias ? g_.bias + col : nullptr;
    block.store.mask = nullptr;
    block.store.ldmask = g_.ldmask;
    block.store.relu = last_k && g_.relu;
    block.strips_outside = small_panels_;

    PackTask<T> next[3];
    next[2] = panels_task(task, phase + 1);
    const int64_t blocks = ceil_div(strips.count, block_strips_);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t first = i * block_strips_;
      const int64_t row = strips.start(first);
      strip_tasks(next, task, phase * blocks + i + 1);
      block.strips = std::min(block_strips_, strips.count - first);
      block.high_strips = std::clamp<int64_t>(strips.high - first, 0, block.strips);
      if (pack_a())
        block.a = packed_strips(task, phase * blocks + i);
      else
        block.a = g_.a + (g_.trans_a ? k0(phase) * g_.lda + row : row * g_.lda + k0(phase));
      block.store.c = g_.c + row * g_.ldc + col;
      if (last_k && g_.mask) block.store.mask = g_.mask + row * g_.ldmask + col;
      if (block.n > 0) kernels_.multiply(block, next, 3);
      kernels_.pack(next[0]);
      kernels_.pack(next[1]);
    }
    kernels_.pack(next[2]);
  }

  Gemm<T> g_;
  const GemmKernels<T>& kernels_;
  const int64_t k_blocks_, kc_;                     // blocks of k, and steps per block
  const int64_t panels_, n_blocks_, block_panels_;  // panels, blocks of panels, and panels per block
  const int64_t phases_;
  bool small_panels_, pack_b_;
  GemmSource source_;
  int64_t grid_rows_ = 1, grid_cols_ = 1;
  int64_t block_strips_ = 1;

  Workspace workspace_;
  T* strips_packed_ = nullptr;
  T* panels_packed_ = nullptr;
  T* a_sums_ = nullptr;
  T* b_sums_ = nullptr;
  int64_t a_sums_count_ = 0, b_sums_count_ = 0;
};

template <class T>
void blocked_gemm(const Gemm<T>& g, int64_t threads) {
  BlockedGemm<T> product(g, threads);
  product.prepare();
  product.run();
}

/** Computes the transpose of C and transposes it: for a C with few columns, so that B need not be packed. */
template <class T>
void gemm_transposed(const Gemm<T>& g, int64_t threads) {
  const DataPtr block = cpu_allocator().allocate(static_cast<size_t>(g.m * g.n) * sizeof(T));
  T* c = static_cast<T*>(block.get());
  Gemm<T> t;
  t.m = g.n;
  t.n = g.m;
  t.k = g.k;
  t.a = g.b;
  t.lda = g.ldb;
  t.trans_a = !g.trans_b;
  t.b = g.a;
  t.ldb = g.lda;
  t.trans_b = !g.trans_a;
  t.c = c;
  t.ldc = g.m;
  t.alpha = g.alpha;
  blocked_gemm(t, threads);
  store(g, 0, g.n, [&](int64_t i, int64_t j) { return c[j * g.m + i]; });
  add_missing_sums(g, g.a_sums != nullptr, g.b_sums != nullptr);
}

template <class T>
bool made_of_dots(const Gemm<T>& g) {
  if (g.trans_a || !g.trans_b || g.k < kDotSteps) return false;
  return g.m <= (g.k < kManyDotSteps ? kDotRows : kMaxDotRows);
}

template <class T>
bool better_transposed(const Gemm<T>& g) {
  return g.trans_a && !g.trans_b && g.n <= kNarrowCols && g.m > 2 * g.n && g.m % kernels<T>().vector == 0;
}

/** Products that take less time than preparing the blocked algorithm. */
constexpr int64_t kTinyWork = 512;

/** Also the product of matrices without elements (k = 0), which may be null pointers. */
template <class T>
void tiny_gemm(const Gemm<T>& g) {
  const int64_t a_row = g.trans_a ? 1 : g.lda, a_col = g.trans_a ? g.lda : 1;
  const int64_t b_row = g.trans_b ? 1 : g.ldb, b_col = g.trans_b ? g.ldb : 1;
  store(g, 0, g.n, [&](int64_t i, int64_t j) {
    T sum = 0;
    for (int64_t p = 0; p < g.k; ++p) sum += g.a[i * a_row + p * a_col] * g.b[p * b_row + j * b_col];
    return g.alpha * sum;
  });
}

template <class T>
void gemm_any(const Gemm<T>& g) {
  const ProfileRange range("gemm", RangeKind::Op);
  if (g.m <= 0 || g.n <= 0) return add_missing_sums(g, g.a_sums != nullptr, g.b_sums != nullptr);
  const int64_t work = g.m * g.n * g.k;
  const bool panels = g.b_panel_step > 0;
  if (work <= 0) {
    tiny_gemm(g);
    return add_missing_sums(g, g.a_sums != nullptr, g.b_sums != nullptr);
  }
  if (work <= kTinyWork && !g.a_sums && !g.b_sums && !panels) return tiny_gemm(g);
  const int64_t threads = in_parallel_region() ? 1 : std::clamp<int64_t>(work / kWorkPerThread, 1, num_threads());
  if (!panels && (g.n == 1 || g.m == 1))
    gemv(g, threads);
  else if (!panels && made_of_dots(g))
    gemm_of_dots(g, threads);
  else if (!panels && better_transposed(g))
    gemm_transposed(g, threads);
  else
    blocked_gemm(g, threads);
}

template <class T>
void gemm_batched_any(const Gemm<T>& g, int64_t batch, int64_t stride_a, int64_t stride_b, int64_t stride_c) {
  const ProfileRange range("gemm_batched", RangeKind::Op);
  TERCEL_ASSERT(!g.mask && !g.a_sums && !g.b_sums);
  if (g.m <= 0 || g.n <= 0) return;
  if (g.k <= 0) {
    for (int64_t i = 0; i < batch; ++i) {
      Gemm<T> one = g;
      one.c += i * stride_c;
      tiny_gemm(one);
    }
    return;
  }
  const int64_t work = g.m * g.n * g.k;
  const auto at = [&](int64_t i) {
    Gemm<T> one = g;
    one.a += i * stride_a;
    one.b += i * stride_b;
    one.c += i * stride_c;
    return one;
  };
  if (work > kWorkPerThread * num_threads()) {
    for (int64_t i = 0; i < batch; ++i) gemm_any(at(i));
    return;
  }
  parallel_for(0, batch, ceil_div(kWorkPerThread, work), [&](int64_t first, int64_t last) {
    if (g.n == 1 || g.m == 1) {
      for (int64_t i = first; i < last; ++i) gemv(at(i), 1);
      return;
    }
    BlockedGemm<T> product(g, 1);
    product.prepare();
    for (int64_t i = first; i < last; ++i) {
      product.set_operands(g.a + i * stride_a, g.b + i * stride_b, g.c + i * stride_c);
      product.run();
    }
  });
}

}  // namespace

template <>
GemmPanel gemm_panel<float>() {
  return {kernels<float>().panel_cols, kPackGap};
}
template <>
GemmPanel gemm_panel<double>() {
  return {kernels<double>().panel_cols, kPackGap};
}

void gemm(const Gemm<float>& g) { gemm_any(g); }
void gemm(const Gemm<double>& g) { gemm_any(g); }

void gemm_batched(const Gemm<float>& g, int64_t batch, int64_t stride_a, int64_t stride_b, int64_t stride_c) {
  gemm_batched_any(g, batch, stride_a, stride_b, stride_c);
}
void gemm_batched(const Gemm<double>& g, int64_t batch, int64_t stride_a, int64_t stride_b, int64_t stride_c) {
  gemm_batched_any(g, batch, stride_a, stride_b, stride_c);
}

std::string gemm_info() {
  const GemmKernels<float>& kernel = kernels<float>();
  return str_cat({to_string(cpu_isa()), " kernels, tiles of ", kernel.strip_rows, " x ", kernel.panel_cols});
}

}  // namespace tercel
