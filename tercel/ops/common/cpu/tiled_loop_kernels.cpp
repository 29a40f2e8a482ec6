#include "tercel/ops/common/cpu/tiled_loop.h"

#include <algorithm>

#include "tercel/core/allocator.h"
#include "tercel/ops/common/cpu/tile_io.h"

namespace tercel::TERCEL_ISA {
namespace {

// Maximum elements and bytes of a tile. Five tiles take 40 KiB at most; with elements of 4 bytes they fit into an L1
// cache.
constexpr int64_t kTile = 1024, kTileBytes = kTile * 8;
// Rows shorter than this are processed several at a time.
constexpr int64_t kShortRow = 128;
// Edge of the blocks in which operands are transposed: 512 bytes of a row saturate memory bandwidth, and a block of 64
// KiB fits into the L2 cache. If an edge of a loop is shorter than kLeastBlocked, elements are gathered.
constexpr int64_t kBlock = 128, kLeastBlocked = 16;

// Bytes of the row that holds a repeated number beside long rows; one such row per operand fits into an L1 cache.
constexpr int64_t kNumberBytes = 16 << 10;

struct alignas(64) Tile {
  char bytes[kTileBytes];
};

/** An operand of a TiledLoop. */
struct Operand {
  char* data;
  int64_t stride[2];
  int64_t item;
  ConvertFn convert;  // null: the dtype is the compute type
  bool direct;        // rows can be passed to the loop directly
  bool transposed;    // contiguous along the outer loop
};

struct TiledLoop {
  const ElementwiseLoop& loop;
  ContiguousLoop loop_over_tile;
  int64_t compute_item;
  int64_t largest_item;
  int64_t tile_size;  // in elements
  Operand operand[kMaxOperands];

  TiledLoop(const ElementwiseLoop& l, ContiguousLoop over_tile) : loop(l), loop_over_tile(over_tile) {
    // A copy without conversion only moves bytes.
    const bool raw = !loop_over_tile && loop.dtype[0] == loop.dtype[1];
    const ScalarType native = raw ? loop.dtype[0] : native_dtype(loop.compute);
    compute_item = largest_item = static_cast<int64_t>(item_size(native));
    for (int a = 0; a < loop.nargs; ++a) {
      Operand& o = operand[a];
      o.data = loop.data[a];
      o.stride[0] = loop.stride[a][0];
      o.stride[1] = loop.stride[a][1];
      o.item = static_cast<int64_t>(item_size(loop.dtype[a]));
      largest_item = std::max(largest_item, o.item);
      o.convert = nullptr;
      if (loop.dtype[a] != native)
        o.convert =
            a == 0 ? store_conversion(loop.compute, loop.dtype[a]) : load_conversion(loop.dtype[a], loop.compute);
      o.direct = !o.convert && o.stride[0] == o.item;
      o.transposed = a > 0 && o.stride[0] != 0 && o.stride[0] != o.item && o.stride[1] == o.item &&
                     loop.n[0] >= kLeastBlocked && loop.n[1] >= kLeastBlocked;
    }
    tile_size = std::min(kTile, kTileBytes / largest_item);
  }

  void run() const {
#if TERCEL_ISA_LEVEL == 2
    if (copies_lines()) return copy_lines();
#endif
    for (int a = 1; a < loop.nargs; ++a)
      if (operand[a].transposed) return run_blocks();
    if (loop.n[0] < kShortRow && loop.n[1] > 1) return run_short_rows();
    if (is_beside_number()) return run_rows_beside_number();
    run_rows();
  }

  void call(void* out, const void* const* in, int64_t n) const {
    if (loop_over_tile)
      loop_over_tile(out, in, n);
    else if (out != in[0])
      std::memcpy(out, in[0], static_cast<size_t>(n * compute_item));
  }

  /** Loads n elements, stride bytes apart, into a row of the compute type. */
  void load(void* tile, const Operand& o, const char* from, int64_t stride, int64_t n) const {
    if (!o.convert) return gather(tile, from, stride, n, static_cast<size_t>(o.item));
    if (stride == o.item) return o.convert(tile, from, n);
    Tile raw;
    gather(raw.bytes, from, stride, n, static_cast<size_t>(o.item));
    o.convert(tile, raw.bytes, n);
  }

  /** Stores a row of results to the output. */
  void store(char* to, const void* row, int64_t n) const {
    const Operand& o = operand[0];
    Tile raw;
    if (o.convert) {
      void* converted = o.stride[0] == o.item && !loop.stream ? static_cast<void*>(to) : raw.bytes;
      o.convert(converted, row, n);
      if (converted == to) return;
      row = converted;
    }
    if (loop.stream)
      stream_copy(to, static_cast<const char*>(row), n * o.item);
    else
      scatter(to, o.stride[0], row, n, static_cast<size_t>(o.item));
  }

  /** Computes n results for the output at `to`; operands that need no tile are passed directly. */
  void compute_row(char* to, const void* const* in, Tile& out_tile, int64_t n) const {
    if (operand[0].direct && !loop.stream) return call(to, in, n);
    const void* row = in[0];
    if (loop_over_tile) {
      loop_over_tile(out_tile.bytes, in, n);
      row = out_tile.bytes;
    }
    store(to, row, n);
  }

  void run_rows() const {
    Tile tile[kMaxOperands];
    const void* in[kMaxOperands];
    bool tiled = !operand[0].direct || loop.stream;
    for (int a = 1; a < loop.nargs; ++a) tiled |= !operand[a].direct;
    const int64_t n0 = loop.n[0], chunk = tiled ? std::min(n0, tile_size) : n0;
    for (int64_t j = 0; j < loop.n[1]; ++j) {
      for (int64_t i = 0; i < n0; i += chunk) {
        const int64_t n = std::min(chunk, n0 - i);
        for (int a = 1; a < loop.nargs; ++a) {
          const Operand& o = operand[a];
          const char* from = o.data + j * o.stride[1] + i * o.stride[0];
          in[a - 1] = tile[a].bytes;
          if (o.direct)
            in[a - 1] = from;
          else if (o.stride[0] != 0)
            load(tile[a].bytes, o, from, o.stride[0], n);
          else if (i == 0 && (j == 0 || o.stride[1] != 0))
            load(tile[a].bytes, o, from, 0, chunk);
        }
        compute_row(operand[0].data + j * operand[0].stride[1] + i * operand[0].stride[0], in, tile[0], n);
      }
    }
  }

  /** Whether rows are long, one operand is a number and all others can be passed to the loop directly. */
  bool is_beside_number() const {
    int numbers = 0;
    for (int a = 0; a < loop.nargs; ++a) {
      const bool number = a > 0 && operand[a].stride[0] == 0 && !operand[a].convert;
      if (!number && !operand[a].direct) return false;
      numbers += number;
    }
    return loop_over_tile && numbers == 1 && !loop.stream && loop.n[0] > tile_size;
  }
  /** Uses rows longer than a tile, because the body waits for pending memory reads at the end of each row. */
  void run_rows_beside_number() const {
    alignas(64) char row[kNumberBytes];
    const void* in[kMaxOperands];
    const int64_t chunk = std::min(loop.n[0], kNumberBytes / compute_item);
    for (int64_t j = 0; j < loop.n[1]; ++j) {
      for (int64_t i = 0; i < loop.n[0]; i += chunk) {
        for (int a = 1; a < loop.nargs; ++a) {
          const Operand& o = operand[a];
          const char* from = o.data + j * o.stride[1] + i * o.stride[0];
          in[a - 1] = o.stride[0] == 0 ? row : from;
          if (o.stride[0] == 0 && i == 0 && (j == 0 || o.stride[1] != 0)) load(row, o, from, 0, chunk);
        }
        loop_over_tile(operand[0].data + j * operand[0].stride[1] + i * operand[0].stride[0], in,
                       std::min(chunk, loop.n[0] - i));
      }
    }
  }

  // Several rows at a time, concatenated in the tiles.
  void run_short_rows() const {
    Tile tile[kMaxOperands];
    const void* in[kMaxOperands];
    const int64_t n0 = loop.n[0], at_once = std::min(loop.n[1], tile_size / n0);
    const auto back_to_back = [n0](const Operand& o) { return o.direct && o.stride[1] == n0 * o.item; };
    for (int64_t j = 0; j < loop.n[1]; j += at_once) {
      const int64_t rows = std::min(at_once, loop.n[1] - j);
      for (int a = 1; a < loop.nargs; ++a) {
        const Operand& o = operand[a];
        const char* from = o.data + j * o.stride[1];
        in[a - 1] = tile[a].bytes;
        if (back_to_back(o)) {
          in[a - 1] = from;
        } else if (o.stride[1] != 0 || j == 0) {
          if (o.stride[0] == 0 && o.stride[1] == 0) {
            load(tile[a].bytes, o, from, 0, rows * n0);
          } else {
            for (int64_t r = 0; r < rows; ++r)
              load(tile[a].bytes + r * n0 * compute_item, o, from + r * o.stride[1], o.stride[0], n0);
          }
        }
      }
      char* to = operand[0].data + j * operand[0].stride[1];
      if (back_to_back(operand[0]) && !loop.stream) {
        call(to, in, rows * n0);
        continue;
      }
      const void* row = in[0];
      if (loop_over_tile) {
        loop_over_tile(tile[0].bytes, in, rows * n0);
        row = tile[0].bytes;
      }
      for (int64_t r = 0; r < rows; ++r)
        store(to + r * operand[0].stride[1], static_cast<const char*>(row) + r * n0 * compute_item, n0);
    }
  }

#if TERCEL_ISA_LEVEL == 2
  static constexpr int64_t kLine = 16;

  // Whether a large matrix of 4-byte elements is transposed into whole cache lines.
  bool copies_lines() const {
    const auto whole = [](int64_t address) { return address % 64 == 0; };
    return !loop_over_tile && loop.stream && operand[1].transposed && !operand[0].convert && !operand[1].convert &&
           compute_item == 4 && whole(static_cast<int64_t>(reinterpret_cast<uintptr_t>(operand[0].data))) &&
           whole(operand[0].stride[1]);
  }
  // Lines are copied without a tile. A block of input rows is prefetched row by row, the fastest order for memory,
  // while the previous block is written; the squares of a block read one line from each of many rows.
  void copy_lines() const {
    constexpr int64_t kRows = 256, kColumns = 128;  // of an input block
    const Operand &to = operand[0], &from = operand[1];
    for (int64_t i0 = 0; i0 < loop.n[0]; i0 += kRows) {
      const int64_t rows = std::min(kRows, loop.n[0] - i0);
      for (int64_t j0 = 0; j0 < loop.n[1]; j0 += kColumns) {
        const int64_t columns = std::min(kColumns, loop.n[1] - j0);
        const char* in = from.data + i0 * from.stride[0] + j0 * 4;
        char* out = to.data + j0 * to.stride[1] + i0 * 4;
        const int64_t whole_rows = rows / kLine * kLine, whole_columns = columns / kLine * kLine;
        int64_t fetched = 0;
        for (int64_t j = 0; j < whole_columns; j += kLine) {
          for (int64_t i = 0; i < whole_rows; i += kLine) {
            for (int64_t k = 0; k < kLine; ++k, ++fetched) {
              const int64_t row = fetched / (kColumns / kLine), line = fetched % (kColumns / kLine);
              _mm_prefetch(in + row * from.stride[0] + (kColumns + line * kLine) * 4, _MM_HINT_T0);
            }
            stream_transposed(out + j * to.stride[1] + i * 4, to.stride[1], in + i * from.stride[0] + j * 4,
                              from.stride[0]);
          }
        }
        transpose(out + whole_columns * to.stride[1], to.stride[1], in + whole_columns * 4, from.stride[0], rows,
                  columns - whole_columns, 4);
        transpose(out + whole_rows * 4, to.stride[1], in + whole_rows * from.stride[0], from.stride[0],
                  rows - whole_rows, whole_columns, 4);
      }
    }
  }
#endif

  // Transposed operands are transposed block by block; the rows of a block are then computed like others.
  void run_blocks() const {
    // Not on the stack: user threads may have small ones.
    DataPtr turned[kMaxOperands];
    for (int a = 1; a < loop.nargs; ++a)
      if (operand[a].transposed) turned[a] = cpu_allocator().allocate(kBlock * kBlock * 4);
    Tile tile[kMaxOperands];
    const void* in[kMaxOperands];
    int64_t block1 = kBlock;
    for (int a = 1; a < loop.nargs; ++a)
      if (operand[a].transposed) block1 = std::min(block1, 4 * kBlock / operand[a].item);
    for (int64_t j0 = 0; j0 < loop.n[1]; j0 += block1) {
      const int64_t n1 = std::min(block1, loop.n[1] - j0);
      for (int64_t i = 0; i < loop.n[0]; i += kBlock) {
        const int64_t n = std::min(kBlock, loop.n[0] - i);
        for (int a = 1; a < loop.nargs; ++a) {
          const Operand& o = operand[a];
          if (o.transposed)
            transpose(static_cast<char*>(turned[a].get()), kBlock * o.item, o.data + j0 * o.stride[1] + i * o.stride[0],
                      o.stride[0], n, n1, static_cast<size_t>(o.item));
        }
        for (int64_t j = j0; j < j0 + n1; ++j) {
          for (int a = 1; a < loop.nargs; ++a) {
            const Operand& o = operand[a];
            const char* from = o.transposed ? static_cast<const char*>(turned[a].get()) + (j - j0) * kBlock * o.item
                                            : o.data + j * o.stride[1] + i * o.stride[0];
            if (o.direct || (o.transposed && !o.convert)) {
              in[a - 1] = from;
            } else {
              load(tile[a].bytes, o, from, o.transposed ? o.item : o.stride[0], n);
              in[a - 1] = tile[a].bytes;
            }
          }
          compute_row(operand[0].data + j * operand[0].stride[1] + i * operand[0].stride[0], in, tile[0], n);
        }
      }
    }
  }
};

}  // namespace

void run_beside_numbers(const ElementwiseLoop& loop, ContiguousLoop loop_over_tile) {
  alignas(64) char row[kMaxOperands][kMaxBesideNumbers * 16];
  const size_t item = item_size(native_dtype(loop.compute));
  const void* in[kMaxOperands];
  for (int a = 1; a < loop.nargs; ++a) {
    in[a - 1] = loop.data[a];
    if (loop.stride[a][0] != 0) continue;
    in[a - 1] = row[a];
    if (item == 4)
      fill_items(reinterpret_cast<Item4*>(row[a]), read_as<Item4>(loop.data[a]), loop.n[0]);
    else if (item == 8)
      fill_items(reinterpret_cast<Item8*>(row[a]), read_as<Item8>(loop.data[a]), loop.n[0]);
    else
      fill_items(reinterpret_cast<Item16*>(row[a]), read_as<Item16>(loop.data[a]), loop.n[0]);
  }
  loop_over_tile(loop.data[0], in, loop.n[0]);
}

void run_on_tiles(const ElementwiseLoop& loop, ContiguousLoop loop_over_tile) {
  TiledLoop(loop, loop_over_tile).run();
  // Streamed results must be in memory before other threads are notified.
  if (loop.stream) _mm_sfence();
}

}  // namespace tercel::TERCEL_ISA
