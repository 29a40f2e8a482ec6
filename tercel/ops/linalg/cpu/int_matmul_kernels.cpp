// Products of integer matrices.
//
//   for each block of columns, small enough that its rows of B stay in the L2 cache:
//     for each row i:  for each p:  c[i, block] += a[i, p] * b[p, block]
#include "tercel/ops/linalg/int_matmul_kernels.h"

#include <cstring>
#include <type_traits>

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kColumns = 256, kDepth = 64;

// Unsigned, so that sums wrap.
template <class T>
void multiply(const IntMatmul& product, int64_t begin, int64_t end) {
  const auto* a = static_cast<const T*>(product.a);
  const auto* b = static_cast<const T*>(product.b);
  auto* c = static_cast<T*>(product.c);
  const int64_t n = product.n, k = product.k;
  std::memset(c + begin * n, 0, static_cast<size_t>((end - begin) * n) * sizeof(T));
  for (int64_t j = 0; j < n; j += kColumns) {
    const int64_t columns = n - j < kColumns ? n - j : kColumns;
    for (int64_t p0 = 0; p0 < k; p0 += kDepth) {
      const int64_t p1 = k - p0 < kDepth ? k : p0 + kDepth;
      for (int64_t i = begin; i < end; ++i) {
        T* out = c + i * n + j;
        for (int64_t p = p0; p < p1; ++p) {
          const T factor = a[i * k + p];
          const T* row = b + p * n + j;
#pragma GCC ivdep
          for (int64_t q = 0; q < columns; ++q) out[q] += factor * row[q];
        }
      }
    }
  }
}

}  // namespace

void int_matmul(const IntMatmul& product, int64_t begin, int64_t end) {
  if (product.wide)
    multiply<uint64_t>(product, begin, end);
  else
    multiply<uint32_t>(product, begin, end);
}

}  // namespace tercel::TERCEL_ISA
