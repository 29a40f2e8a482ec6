// Matrices by rows from strided ones and from blocks, and back.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sparse/csr_impl.h"
#include "tercel/util/parallel.h"

namespace tercel::sparse_ops {

namespace {

constexpr int64_t kGrain = 16384;

}  // namespace

void check_index_range(const char* op, int64_t largest, ScalarType index_dtype) {
  TERCEL_CHECK(index_dtype == kInt64 || largest <= INT32_MAX, RuntimeError, op,
               ": expected sizes and numbers of entries that fit in int32 indices but got ", largest);
}

void check_columns(const char* op, const CsrMatrix& a) {
  std::atomic<bool> inside{true};
  with_index(a.index_dtype(), [&]<class I> {
    const I* columns = static_cast<const I*>(a.columns.data_ptr());
    parallel_for(0, a.nnz(), kGrain, [&](int64_t begin, int64_t end) {
      bool outside = false;
      for (int64_t e = begin; e < end; ++e)
        outside |= static_cast<uint64_t>(columns[e]) >= static_cast<uint64_t>(a.num_columns);
      if (outside) inside.store(false, std::memory_order_relaxed);
    });
  });
  TERCEL_CHECK(inside.load(), IndexError, op, ": a sparse operand has an index outside of size ", a.num_columns);
}

namespace {

/** Whether an element of this many bytes differs from zero: words without the bits of signs. */
template <class Word, int Words>
struct Element {
  Word words[Words];
  bool nonzero(Word mask) const {
    Word any = 0;
    for (const Word w : words) any = static_cast<Word>(any | (w & mask));
    return any != 0;
  }
};

/** Calls f.template operator()<Element>(mask). */
template <class F>
decltype(auto) with_element(ScalarType dtype, F&& f) {
  const bool signs = is_floating(dtype) || is_complex(dtype);
  switch (item_size(dtype)) {
    case 1: return f.template operator()<Element<uint8_t, 1>>(uint8_t{0xff});
    case 2: return f.template operator()<Element<uint16_t, 1>>(static_cast<uint16_t>(signs ? 0x7fff : 0xffff));
    case 4: return f.template operator()<Element<uint32_t, 1>>(signs ? uint32_t{0x7fffffff} : ~uint32_t{0});
    case 8: {
      if (dtype == kComplex64) return f.template operator()<Element<uint32_t, 2>>(uint32_t{0x7fffffff});
      return f.template operator()<Element<uint64_t, 1>>(signs ? ~uint64_t{0} >> 1 : ~uint64_t{0});
    }
    default: return f.template operator()<Element<uint64_t, 2>>(~uint64_t{0} >> 1);
  }
}

}  // namespace

CsrMatrix csr_of_dense(const Tensor& given, ScalarType index_dtype) {
  const Tensor dense = contiguous(given);
  const int64_t rows = dense.size(0), columns = dense.size(1);
  CsrMatrix out{empty({rows + 1}, index_dtype), Tensor(), Tensor(), columns};
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(columns, 1));
  with_index(index_dtype, [&]<class I> {
    with_element(dense.dtype(), [&]<class E>(auto mask) {
      const E* from = static_cast<const E*>(dense.data_ptr());
      I* offsets = out.offsets.data<I>();
      const Tensor counts = empty({rows}, kInt64);
      auto* count = counts.data<int64_t>();
      parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          int64_t nonzero = 0;
          for (int64_t c = 0; c < columns; ++c) nonzero += from[r * columns + c].nonzero(mask) ? 1 : 0;
          count[r] = nonzero;
        }
      });
      int64_t nnz = 0;
      for (int64_t r = 0; r < rows; ++r) nnz += std::exchange(count[r], nnz);
      check_index_range("to_sparse_csr", std::max(nnz, columns), index_dtype);
      for (int64_t r = 0; r < rows; ++r) offsets[r] = static_cast<I>(count[r]);
      offsets[rows] = static_cast<I>(nnz);
      out.columns = empty({nnz}, index_dtype);
      out.values = empty({nnz}, dense.options());
      I* to = out.columns.data<I>();
      E* values = static_cast<E*>(out.values.data_ptr());
      parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          int64_t at = count[r];
          for (int64_t c = 0; c < columns; ++c) {
            const E element = from[r * columns + c];
            if (!element.nonzero(mask)) continue;
            to[at] = static_cast<I>(c);
            values[at++] = element;
          }
        }
      });
    });
  });
  return out;
}

Tensor dense_of_csr(const char* op, const CsrMatrix& given) {
  const CsrMatrix a = checked_csr(op, given);
  check_columns(op, a);
  DimVector sizes(a.values.sizes());
  sizes[0] = a.num_columns;
  sizes.insert(sizes.begin(), a.num_rows());
  Tensor out = zeros(sizes, a.values.options());
  if (a.nnz() == 0 || out.numel() == 0) return out;
  const size_t bytes = a.values.nbytes() / static_cast<size_t>(a.nnz());
  const auto* from = static_cast<const std::byte*>(a.values.data_ptr());
  auto* to = static_cast<std::byte*>(out.data_ptr());
  with_index(a.index_dtype(), [&]<class I> {
    const I *offsets = static_cast<const I*>(a.offsets.data_ptr()),
            *columns = static_cast<const I*>(a.columns.data_ptr());
    const auto copy = [&](auto copy_element) {
      parallel_for(0, a.num_rows(), kGrain / 8, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          for (auto e = static_cast<int64_t>(offsets[r]); e < static_cast<int64_t>(offsets[r + 1]); ++e)
            copy_element(to + static_cast<size_t>(r * a.num_columns + static_cast<int64_t>(columns[e])) * bytes,
                         from + static_cast<size_t>(e) * bytes);
      });
    };
    switch (bytes) {
      case 4: return copy([](std::byte* x, const std::byte* y) { std::memcpy(x, y, 4); });
      case 8: return copy([](std::byte* x, const std::byte* y) { std::memcpy(x, y, 8); });
      default: return copy([bytes](std::byte* x, const std::byte* y) { std::memcpy(x, y, bytes); });
    }
  });
  return out;
}

namespace {

/** Distinct ascending columns of blocks of each row of blocks: offsets and columns. */
template <class I>
void find_blocks(const CsrMatrix& a, int64_t height, int64_t width, CsrMatrix& out) {
  const I *offsets = static_cast<const I*>(a.offsets.data_ptr()),
          *columns = static_cast<const I*>(a.columns.data_ptr());
  const int64_t block_rows = a.num_rows() / height, block_columns = a.num_columns / width;
  I* block_offsets = out.offsets.data<I>();
  std::vector<std::vector<I>> found;
  const int64_t work = std::max<int64_t>(1, a.nnz() / std::max<int64_t>(block_rows, 1));
  const Partition partition(0, block_rows, std::max<int64_t>(1, kGrain / work));
  found.resize(static_cast<size_t>(partition.chunks()));
  partition.run([&](int64_t chunk, int64_t begin, int64_t end) {
    std::vector<I>& blocks = found[static_cast<size_t>(chunk)];
    // Of a matrix much wider than its entries are many, blocks that occur again are left to std::unique: a mark for
    // each column of blocks would take memory that has nothing to do with the entries.
    const bool marks = block_columns / 4 <= kGrain + a.nnz();
    std::vector<int64_t> seen_in(marks ? static_cast<size_t>(block_columns) : 0, -1);
    for (int64_t r = begin; r < end; ++r) {
      const auto first = static_cast<std::ptrdiff_t>(blocks.size());
      for (auto e = static_cast<int64_t>(offsets[r * height]); e < static_cast<int64_t>(offsets[(r + 1) * height]);
           ++e) {
        const int64_t block = static_cast<int64_t>(columns[e]) / width;
        if (!marks || std::exchange(seen_in[static_cast<size_t>(block)], r) != r)
          blocks.push_back(static_cast<I>(block));
      }
      std::sort(blocks.begin() + first, blocks.end());
      if (!marks) blocks.erase(std::unique(blocks.begin() + first, blocks.end()), blocks.end());
      block_offsets[r] = static_cast<I>(static_cast<std::ptrdiff_t>(blocks.size()) - first);
    }
  });
  I nnz = 0;
  for (int64_t r = 0; r < block_rows; ++r) nnz = static_cast<I>(nnz + std::exchange(block_offsets[r], nnz));
  block_offsets[block_rows] = nnz;
  out.columns = empty({static_cast<int64_t>(nnz)}, a.index_dtype());
  I* to = out.columns.data<I>();
  for (const std::vector<I>& blocks : found) to = std::copy(blocks.begin(), blocks.end(), to);
}

}  // namespace

CsrMatrix blocks_of_csr(const char* op, const CsrMatrix& given, int64_t height, int64_t width) {
  const CsrMatrix a = checked_csr(op, given);
  check_columns(op, a);
  TERCEL_ASSERT(height > 0 && width > 0 && a.num_rows() % height == 0 && a.num_columns % width == 0);
  const int64_t block_rows = a.num_rows() / height;
  CsrMatrix out{empty({block_rows + 1}, a.index_dtype()), Tensor(), Tensor(), a.num_columns / width};
  with_index(a.index_dtype(), [&]<class I> { find_blocks<I>(a, height, width, out); });
  DimVector sizes{out.nnz(), height, width};
  for (size_t d = 1; d < a.values.sizes().size(); ++d) sizes.push_back(a.values.sizes()[d]);
  out.values = zeros(sizes, a.values.options());
  if (out.values.numel() == 0) return out;
  const size_t bytes = a.values.nbytes() / static_cast<size_t>(a.nnz());
  const auto* from = static_cast<const std::byte*>(a.values.data_ptr());
  auto* to = static_cast<std::byte*>(out.values.data_ptr());
  with_index(a.index_dtype(), [&]<class I> {
    const I *offsets = static_cast<const I*>(a.offsets.data_ptr()),
            *columns = static_cast<const I*>(a.columns.data_ptr());
    const I *block_offsets = static_cast<const I*>(out.offsets.data_ptr()),
            *blocks = static_cast<const I*>(out.columns.data_ptr());
    parallel_for(
        0, block_rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, a.nnz() / block_rows)),
        [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const I *first = blocks + block_offsets[r], *last = blocks + block_offsets[r + 1];
            for (int64_t row = r * height; row < (r + 1) * height; ++row)
              for (auto e = static_cast<int64_t>(offsets[row]); e < static_cast<int64_t>(offsets[row + 1]); ++e) {
                const int64_t column = static_cast<int64_t>(columns[e]);
                const int64_t block = std::lower_bound(first, last, static_cast<I>(column / width)) - blocks;
                const int64_t element = (block * height + row - r * height) * width + column % width;
                std::memcpy(to + static_cast<size_t>(element) * bytes, from + static_cast<size_t>(e) * bytes, bytes);
              }
          }
        });
  });
  return out;
}

CsrMatrix csr_of_blocks(const char* op, const CsrMatrix& given) {
  const CsrMatrix a = checked_csr(op, given);
  const int64_t height = a.values.size(1), width = a.values.size(2), block_rows = a.num_rows();
  const int64_t nnz = a.nnz() * height * width, columns = a.num_columns * width;
  check_index_range(op, std::max(nnz, columns), a.index_dtype());
  DimVector sizes{nnz};
  for (size_t d = 3; d < a.values.sizes().size(); ++d) sizes.push_back(a.values.sizes()[d]);
  CsrMatrix out{empty({block_rows * height + 1}, a.index_dtype()), empty({nnz}, a.index_dtype()),
                empty(sizes, a.values.options()), columns};
  const size_t bytes = nnz == 0 ? 0 : out.values.nbytes() / static_cast<size_t>(nnz) * static_cast<size_t>(width);
  const auto* from = static_cast<const std::byte*>(a.values.data_ptr());
  auto* to = static_cast<std::byte*>(out.values.data_ptr());
  with_index(a.index_dtype(), [&]<class I> {
    const I *offsets = static_cast<const I*>(a.offsets.data_ptr()),
            *blocks = static_cast<const I*>(a.columns.data_ptr());
    I *new_offsets = out.offsets.data<I>(), *new_columns = out.columns.data<I>();
    for (int64_t r = 0; r < block_rows; ++r) {
      const auto first = static_cast<int64_t>(offsets[r]), last = static_cast<int64_t>(offsets[r + 1]);
      for (int64_t i = 0; i < height; ++i) {
        int64_t at = first * height * width + i * (last - first) * width;
        new_offsets[r * height + i] = static_cast<I>(at);
        for (int64_t b = first; b < last; ++b) {
          if (bytes != 0)
            std::memcpy(to + static_cast<size_t>(at) * (bytes / static_cast<size_t>(width)),
                        from + static_cast<size_t>(b * height + i) * bytes, bytes);
          for (int64_t j = 0; j < width; ++j)
            new_columns[at++] = static_cast<I>(static_cast<int64_t>(blocks[b]) * width + j);
        }
      }
    }
    new_offsets[block_rows * height] = static_cast<I>(nnz);
  });
  return out;
}

}  // namespace tercel::sparse_ops
