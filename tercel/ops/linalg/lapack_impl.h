// LAPACK on plain memory: the only interface to the library.
//
// Note [LAPACK at run time]
// The library is loaded at the first call (libopenblas.so.0, else liblapack.so.3), not linked: OpenBLAS starts its
// threads when it is loaded, and a process with several threads pays more for every reference count (see overview.md),
// even if it never factorises a matrix. It is configured to run each call on the caller's thread; batches run on
// Tercel's threads. Without the library, functions raise RuntimeError that says what to install.
//
// T is float, double, or Complex of them. Matrices are column-major. Functions return LAPACK's info: 0, or a positive
// number that says where the matrix is singular, not positive definite or did not converge.
#pragma once

#include <cstdint>

#include "tercel/util/complex.h"

namespace tercel::lapack {

namespace detail {
template <class T>
struct RealOf {
  using Type = T;
};
template <class T>
struct RealOf<Complex<T>> {
  using Type = T;
};
}  // namespace detail
/** For complex types the type of the parts, else the type itself. */
template <class T>
using Real = typename detail::RealOf<T>::Type;

/** Converts a size to LAPACK's integer type; RuntimeError, which names `op`, if it does not fit. */
int to_int(const char* op, int64_t size);

/** RuntimeError, which names `op`, if no LAPACK library can be loaded. */
void require(const char* op);

/** Cholesky factor, written over a triangle of a [n, n]; the other triangle is unchanged. */
template <class T>
int potrf(bool upper, int n, T* a);
/** L and U, written over a [m, n]; pivots [min(m, n)], counted from 1. */
template <class T>
int getrf(int m, int n, T* a, int* pivots);
/** Reflectors below and R above the diagonal, written over a [m, n]; tau [min(m, n)]. */
template <class T>
int geqrf(int m, int n, T* a, T* tau);
/** The first n columns of the product of k reflectors, written over a [m, n]. */
template <class T>
int orgqr(int m, int n, int k, T* a, const T* tau);
/** b [n, columns] = op(a)^-1 b for a triangle of a [n, n]. */
template <class T>
void trsm(bool upper, bool transposed, bool unit, int n, int columns, const T* a, T* b);
/** Singular values s [min(m, n)], u [m, k], vt [k, n] with k = min(m, n), or m and n if full; u = null: only s. */
template <class T>
int gesdd(bool full, int m, int n, T* a, Real<T>* s, T* u, T* vt);
/** Eigenvalues w [n] of a symmetric (Hermitian) matrix, from a triangle; eigenvectors overwrite a if requested. */
template <class T>
int syevd(bool vectors, bool upper, int n, T* a, Real<T>* w);
/** Eigenvalues w [n] and eigenvectors [n, n] (unless null) of a [n, n], which is overwritten. */
template <class T>
int geev(int n, T* a, Complex<Real<T>>* w, Complex<Real<T>>* vectors);
/** Bunch-Kaufman factors of a symmetric or Hermitian matrix, written over a triangle. */
template <class T>
int sytrf(bool hermitian, bool upper, int n, T* a, int* pivots);
/** b [n, columns] = a^-1 b, given the factors from sytrf. */
template <class T>
int sytrs(bool hermitian, bool upper, int n, int columns, const T* a, const int* pivots, T* b);

/** Least squares: gels (full rank, QR), gelsy (pivoted QR), gelsd and gelss (singular values). */
enum class LeastSquares : uint8_t { Gels, Gelsy, Gelsd, Gelss };
/**
 * The x [n, columns] that minimises |a x - b|, at the top of b [max(m, n), columns]; a is overwritten. s [min(m, n)]
 * receives the singular values for gelsd and gelss, rank the rank for all but gels.
 */
template <class T>
int least_squares(LeastSquares driver, int m, int n, int columns, T* a, T* b, Real<T> rcond, Real<T>* s, int* rank);

}  // namespace tercel::lapack
