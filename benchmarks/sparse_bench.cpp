// Functions of sparse matrices by rows: float32 values, `rows` x `rows`, `per_row` random entries in each row.
//
//   sparse_bench [threads=1] [rows=1000000] [per_row=10] [columns=64] [index=int64|int32]
//
// Each line has the name, the median and the minimum of the times; products also what a loop needs that only reads the
// same random rows. benchmarks/sparse_peers.py measures the same with PyTorch and SciPy.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "benchmarks/machine_limits.h"
#include "benchmarks/measure.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/sparse/csr_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace {

using namespace tercel;
using namespace tercel::sparse_ops;

int64_t argument(int argc, char** argv, const std::string& name, int64_t otherwise) {
  for (int i = 1; i < argc; ++i)
    if (std::strncmp(argv[i], (name + "=").c_str(), name.size() + 1) == 0) return std::atoll(argv[i] + name.size() + 1);
  return otherwise;
}

template <class F>
double show(const char* name, F&& call, double least_possible = 0) {
  const bench::Times times = bench::measure(call, 0.2, 7);
  std::printf("%-34s median %9.3f ms min %9.3f ms", name, times.median * 1e3, times.least * 1e3);
  if (least_possible > 0)
    std::printf("  limit %9.3f ms (%.0f %%)", least_possible * 1e3, 100 * least_possible / times.least);
  std::printf("\n");
  return times.least;
}

Tensor random_indices(int64_t n, int64_t below, uint64_t seed) {
  std::mt19937_64 generator(seed);
  const Tensor out = empty({n}, kInt64);
  for (int64_t i = 0; i < n; ++i)
    out.data<int64_t>()[i] = static_cast<int64_t>(generator() % static_cast<uint64_t>(below));
  return out;
}

/** Reads x[columns[e]] for every entry, the least that a product with a vector does besides reading the matrix. */
template <class I>
double read_vector(const Tensor& columns, const Tensor& x) {
  const auto* at = columns.data<I>();
  const auto* from = x.data<float>();
  const int64_t n = columns.numel();
  const bench::Times times = bench::measure(
      [&] {
        parallel_for(0, n, 1 << 16, [&](int64_t begin, int64_t end) {
          float sums[8] = {};
          for (int64_t i = begin; i + 8 <= end; i += 8)
            for (int64_t k = 0; k < 8; ++k) sums[k] += from[at[i + k]];
          bench::keep(sums);
        });
      },
      0.2, 7);
  return times.least;
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t threads = argument(argc, argv, "threads", 1), rows = argument(argc, argv, "rows", 1000000),
                per_row = argument(argc, argv, "per_row", 10), columns = argument(argc, argv, "columns", 64);
  bool narrow = false;
  for (int i = 1; i < argc; ++i) narrow |= std::strcmp(argv[i], "index=int32") == 0;
  const ScalarType index = narrow ? kInt32 : kInt64;
  set_num_threads(threads);
  const int64_t n = rows * per_row;
  std::printf("%lld x %lld, %lld entries, %lld threads, %s\n", static_cast<long long>(rows),
              static_cast<long long>(rows), static_cast<long long>(n), static_cast<long long>(threads),
              narrow ? "int32" : "int64");

  const Tensor row = random_indices(n, rows, 1), column = random_indices(n, rows, 2), values = rand({n});
  const CsrMatrix a = csr_of_entries("bench", row, column, values, rows, rows, index);
  const Tensor x = rand({rows, 1}), dense = rand({rows, columns});

  const double vector_limit = narrow ? read_vector<int32_t>(a.columns, x) : read_vector<int64_t>(a.columns, x);
  show(
      "csr @ vector", [&] { csr_times_dense("bench", a, x); }, vector_limit);
  const double row_limit = static_cast<double>(a.nnz()) / limits::gather_rate(threads, rows, columns);
  show(
      "csr @ dense", [&] { csr_times_dense("bench", a, dense); }, row_limit);
  show("csr.T @ vector", [&] { csr_transposed_times_dense("bench", a, x); });
  show("csr.T @ dense", [&] { csr_transposed_times_dense("bench", a, dense); });
  show(
      "sampled", [&] { csr_sampled_product("bench", a, dense, t(dense)); }, row_limit);
  show("uncoalesced coo to csr", [&] { csr_of_entries("bench", row, column, values, rows, rows, index); });
  show("csr to csc", [&] { csr_transpose("bench", a); });
  const CsrMatrix b = csr_transpose("bench", a);
  show("csr + csr", [&] { csr_add("bench", a, b, 1); });
  show("csr * csr", [&] { csr_mul("bench", a, b); });
  const int64_t small = rows / 10;
  const CsrMatrix s = csr_of_entries("bench", random_indices(n / 10, small, 3), random_indices(n / 10, small, 4),
                                     rand({n / 10}), small, small, index);
  show("csr @ csr (a tenth of the rows)", [&] { csr_times_csr("bench", s, s); });
  return 0;
}
