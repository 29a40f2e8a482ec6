// Concatenation.
//
//   for each block of rows:  for each part:  for each row of the block:  copy the part's run to its place in the row
//
// A block is small enough that its output stays in the L1 cache while the parts fill it.
#include "tercel/ops/views/cat_kernels.h"

#include <cstring>

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kBlockBytes = 16 * 1024;

template <int64_t Run>
void copy_runs(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) std::memcpy(out + r * out_stride, in + r * in_stride, Run);
}

void copy_part(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t run, int64_t rows) {
  switch (run) {
    case 4: return copy_runs<4>(out, out_stride, in, in_stride, rows);
    case 8: return copy_runs<8>(out, out_stride, in, in_stride, rows);
    case 16: return copy_runs<16>(out, out_stride, in, in_stride, rows);
    case 32: return copy_runs<32>(out, out_stride, in, in_stride, rows);
    case 64: return copy_runs<64>(out, out_stride, in, in_stride, rows);
    case 128: return copy_runs<128>(out, out_stride, in, in_stride, rows);
    case 256: return copy_runs<256>(out, out_stride, in, in_stride, rows);
    default:
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(out + r * out_stride, in + r * in_stride, static_cast<size_t>(run));
  }
}

}  // namespace

void cat(const CatLoop& loop, int64_t begin, int64_t end) {
  const int64_t block = loop.row < kBlockBytes ? kBlockBytes / loop.row : 1;
  for (int64_t first = begin; first < end; first += block) {
    const int64_t rows = end - first < block ? end - first : block;
    char* out = loop.out + first * loop.row;
    for (int64_t p = 0; p < loop.num_parts; ++p) {
      const CatPart& part = loop.parts[p];
      copy_part(out, loop.row, part.data + first * part.stride, part.stride, part.run, rows);
      out += part.run;
    }
  }
}

}  // namespace tercel::TERCEL_ISA
