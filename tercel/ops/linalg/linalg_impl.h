// What the functions of linear algebra share.
#pragma once

#include <algorithm>
#include <string>

#include "tercel/core/tensor.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel::linalg {

/** RuntimeError unless a is a batch of floating or complex matrices of 32 or 64 bit numbers on the CPU. */
void check_matrices(const char* op, const Tensor& a, const char* name = "A");
/** The same, of square ones. */
void check_square(const char* op, const Tensor& a, const char* name = "A");
/** LinAlgError, with the sentence that describe(info) gives, for the first element of the batch whose info is not 0. */
template <class Describe>
void check_info(const char* op, const Tensor& info, Describe describe);

/** visit_types over what LAPACK calculates in. */
template <class Fn>
void visit_lapack_types(const char* op, ScalarType t, Fn fn) {
  visit_types<float, double, Complex<float>, Complex<double>>(op, t, fn);
}

/** Options of a tensor of real numbers beside a: singular values, residuals. */
inline TensorOptions real_options(const Tensor& a) { return {real_dtype(a.dtype()), a.device()}; }

/** d_j - d_i off the diagonal, ones on it. */
Tensor differences(const Tensor& d);
/**
 * RuntimeError unless the imaginary parts are zero: vectors are fixed but for a factor of magnitude 1, on which a loss
 * must not depend. It names the backward function and the vectors; `verdict` ends the sentence.
 */
void check_phase(const char* backward, const char* vectors, const Tensor& phases,
                 const char* verdict = "quantity, so it is ill-defined.");

/** Sizes of a's batch, followed by `rest`. */
inline DimVector batch_sizes(const Tensor& a, IntSpan rest = {}, size_t matrix_dims = 2) {
  DimVector sizes(a.sizes().subspan(0, a.sizes().size() - matrix_dims));
  for (const int64_t s : rest) sizes.push_back(s);
  return sizes;
}

/** x [...] as factors of matrices [..., n, m]. */
inline Tensor per_matrix(const Tensor& x) { return unsqueeze(unsqueeze(x, -1), -1); }

/** A batch of uninitialised column-major matrices [..., m, n]. */
Tensor empty_columns(IntSpan sizes, TensorOptions options);
/** A copy of a that is column-major; not recorded. */
Tensor copy_columns(const Tensor& a);

/** The matrices of a batch as LAPACK takes them: `at<T>(i)` is the first element of the i-th. */
struct Columns {
  int64_t count, rows, columns;
  void* data;

  explicit Columns(const Tensor& a)
      : count(numel_of(a.sizes().subspan(0, a.sizes().size() - 2))),
        rows(a.size(-2)),
        columns(a.size(-1)),
        data(a.data_ptr()) {}
  template <class T>
  T* at(int64_t i) const {
    return static_cast<T*>(data) + i * rows * columns;
  }
};

/** Calls fn(i) for i in [0, count), on several threads if `work` multiplications each are worth it. */
template <class Fn>
void for_each_matrix(int64_t count, double work, Fn fn) {
  constexpr double kWorkPerThread = 1 << 16;
  const auto grain = static_cast<int64_t>(std::clamp(kWorkPerThread / std::max(work, 1.0), 1.0, 1e9));
  parallel_for(0, count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) fn(i);
  });
}
/** The cube of a size, for the work of a factorization. */
inline double cubed(int64_t n) {
  const auto x = static_cast<double>(n);
  return x * x * x;
}

/** "(Batch element 3): ", or nothing for a single matrix. */
std::string batch_element(const Tensor& info, int64_t i);
[[noreturn]] void refuse_matrix(const char* op, const Tensor& info, int64_t i, const std::string& sentence);

template <class Describe>
void check_info(const char* op, const Tensor& info, Describe describe) {
  const auto* values = static_cast<const int32_t*>(info.data_ptr());
  for (int64_t i = 0; i < info.numel(); ++i)
    if (values[i] != 0) refuse_matrix(op, info, i, describe(values[i]));
}

/** LinAlgError if a matrix holds an infinity or NaN, which LAPACK might not come back from. */
void check_finite(const char* op, const Tensor& a, const char* sentence);
inline constexpr const char* kNotFinite =
    "The algorithm failed to converge because the input matrix contained non-finite values.";

/** Whether b is a vector (or a batch of them) for a in solve(). */
bool is_vector_case(const Tensor& a, const Tensor& b);

/** The part of the largest magnitude that counts as zero where no tolerance is given. */
double default_rtol(const Tensor& a);
/** Gradient of a for that of its pseudo-inverse p. */
Tensor pinv_gradient(const Tensor& g, const Tensor& p, const Tensor& a);

/** RuntimeError unless b has a's dtype and, for a X = b (X a = b if not left), its rows (columns). */
void check_right_side(const char* op, const Tensor& a, const Tensor& b, bool left);
/** Expands a and b to the batch that both broadcast to. */
void broadcast_batches(Tensor& a, Tensor& b);

/** LU factors, not recorded; without pivots where a's rows are not to be exchanged. */
LuFactorExResult plain_lu(const char* op, const Tensor& a, bool pivot);
/** a^-1 b for a triangle, both of the same batch; `unit`: its diagonal counts as ones. */
Tensor triangular(const Tensor& a, const Tensor& b, bool upper, bool unit);
/** X with A X = b from LU factors, b [..., n, k] of the batch's sizes; `adjoint`: of A^H. */
Tensor solve_factored(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool adjoint);

}  // namespace tercel::linalg
