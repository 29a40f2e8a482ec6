// Helpers shared by the functions of linear algebra.
#pragma once

#include <algorithm>
#include <string>

#include "tercel/core/tensor.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel::linalg {

/** RuntimeError unless a is a batch of matrices on the CPU, of float32, float64 or their complex types. */
void check_matrices(const char* op, const Tensor& a, const char* name = "A");
/** The same for square matrices. */
void check_square(const char* op, const Tensor& a, const char* name = "A");
/** LinAlgError for the first batch element whose info is not 0, with the message that describe(info) returns. */
template <class Describe>
void check_info(const char* op, const Tensor& info, Describe describe);

/** visit_types over the dtypes that LAPACK supports. */
template <class Fn>
void visit_lapack_types(const char* op, ScalarType t, Fn fn) {
  visit_types<float, double, Complex<float>, Complex<double>>(op, t, fn);
}

/** Options of a real-valued tensor that belongs to a: singular values, residuals. */
inline TensorOptions real_options(const Tensor& a) { return {real_dtype(a.dtype()), a.device()}; }

/** d_j - d_i off the diagonal, ones on the diagonal. */
Tensor differences(const Tensor& d);
/**
 * RuntimeError unless the imaginary parts are zero: vectors are unique only up to a factor of magnitude 1, on which a
 * loss must not depend. The message names the backward function and the vectors, and ends with `verdict`.
 */
void check_phase(const char* backward, const char* vectors, const Tensor& phases,
                 const char* verdict = "quantity, so it is ill-defined.");

/** The batch sizes of a, followed by `rest`. */
inline DimVector batch_sizes(const Tensor& a, IntSpan rest = {}, size_t matrix_dims = 2) {
  DimVector sizes(a.sizes().subspan(0, a.sizes().size() - matrix_dims));
  for (const int64_t s : rest) sizes.push_back(s);
  return sizes;
}

/** x [...] reshaped to scale matrices [..., n, m]. */
inline Tensor per_matrix(const Tensor& x) { return unsqueeze(unsqueeze(x, -1), -1); }

/** A batch of uninitialised column-major matrices [..., m, n]. */
Tensor empty_columns(IntSpan sizes, TensorOptions options);
/** A column-major copy of a; not recorded. */
Tensor copy_columns(const Tensor& a);

/** The matrices of a batch in LAPACK's form: `at<T>(i)` is the first element of matrix i. */
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

/** Calls fn(i) for i in [0, count), on several threads if `work` multiplications per call make that worthwhile. */
template <class Fn>
void for_each_matrix(int64_t count, double work, Fn fn) {
  constexpr double kWorkPerThread = 1 << 16;
  const auto grain = static_cast<int64_t>(std::clamp(kWorkPerThread / std::max(work, 1.0), 1.0, 1e9));
  parallel_for(0, count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) fn(i);
  });
}
/** The cube of a size, as an estimate of a factorization's work. */
inline double cubed(int64_t n) {
  const auto x = static_cast<double>(n);
  return x * x * x;
}

/** "(Batch element 3): ", or empty for a single matrix. */
std::string batch_element(const Tensor& info, int64_t i);
[[noreturn]] void refuse_matrix(const char* op, const Tensor& info, int64_t i, const std::string& sentence);

template <class Describe>
void check_info(const char* op, const Tensor& info, Describe describe) {
  const auto* values = static_cast<const int32_t*>(info.data_ptr());
  for (int64_t i = 0; i < info.numel(); ++i)
    if (values[i] != 0) refuse_matrix(op, info, i, describe(values[i]));
}

/** LinAlgError if a contains an infinity or NaN, for which LAPACK might not return. */
void check_finite(const char* op, const Tensor& a, const char* sentence);
inline constexpr const char* kNotFinite =
    "The algorithm failed to converge because the input matrix contained non-finite values.";

/** Whether b is a vector (or a batch of them) for a in solve(). */
bool is_vector_case(const Tensor& a, const Tensor& b);

/** The default tolerance: the fraction of the largest magnitude that counts as zero. */
double default_rtol(const Tensor& a);
/** Gradient of a, given the gradient g of its pseudo-inverse p. */
Tensor pinv_gradient(const Tensor& g, const Tensor& p, const Tensor& a);

/** RuntimeError unless b has a's dtype and, for a X = b (X a = b if not left), a matching number of rows (columns). */
void check_right_side(const char* op, const Tensor& a, const Tensor& b, bool left);
/** Expands a and b to their common broadcast batch. */
void broadcast_batches(Tensor& a, Tensor& b);

/** LU factors, not recorded; without `pivot` rows are not exchanged. */
LuFactorExResult plain_lu(const char* op, const Tensor& a, bool pivot);
/** a^-1 b for a triangle of a, both with the same batch; `unit`: its diagonal is taken as ones. */
Tensor triangular(const Tensor& a, const Tensor& b, bool upper, bool unit);
/** X with A X = b from LU factors, b [..., n, k] with the same batch; `adjoint`: for A^H. */
Tensor solve_factored(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool adjoint);

}  // namespace tercel::linalg
