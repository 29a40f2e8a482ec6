// LAPACK on plain memory: the one place that knows of it.
//
// Note [LAPACK at run time]
// The library is loaded at the first call (libopenblas.so.0, else liblapack.so.3), not linked: OpenBLAS starts its
// threads when it is loaded, and a process of several threads pays for every reference count (see overview.md), also
// one that never factorises. It is told to run each call on the caller's thread; batches run on ours. A machine without
// the library gets a RuntimeError that says what to install.
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
/** Of a complex number the type of its parts. */
template <class T>
using Real = typename detail::RealOf<T>::Type;

/** Sizes as LAPACK takes them; RuntimeError, which names `op`, for a number that it cannot. */
int to_int(const char* op, int64_t size);

/** Checks that there is a LAPACK: RuntimeError, which names `op`. */
void require(const char* op);

/** Cholesky's factor over a triangle of a [n, n]; the other triangle stays. */
template <class T>
int potrf(bool upper, int n, T* a);
/** L and U over a [m, n], pivots [min(m, n)] from 1. */
template <class T>
int getrf(int m, int n, T* a, int* pivots);
/** Reflectors below and R above the diagonal of a [m, n]; tau [min(m, n)]. */
template <class T>
int geqrf(int m, int n, T* a, T* tau);
/** The first n columns of the product of k reflectors, over a [m, n]. */
template <class T>
int orgqr(int m, int n, int k, T* a, const T* tau);
/** b [n, columns] = op(a)^-1 b for a triangle of a [n, n]. */
template <class T>
void trsm(bool upper, bool transposed, bool unit, int n, int columns, const T* a, T* b);
/** Singular values s [min(m, n)], u [m, k], vt [k, n] with k = min(m, n), or m and n if full; u = null: s alone. */
template <class T>
int gesdd(bool full, int m, int n, T* a, Real<T>* s, T* u, T* vt);
/** Eigenvalues w [n] of a symmetric (Hermitian) matrix, from a triangle; its vectors over a, if asked for. */
template <class T>
int syevd(bool vectors, bool upper, int n, T* a, Real<T>* w);
/** Eigenvalues w [n] of a [n, n], which is overwritten, and its vectors [n, n] unless that is null. */
template <class T>
int geev(int n, T* a, Complex<Real<T>>* w, Complex<Real<T>>* vectors);
/** Factors of a symmetric or Hermitian matrix by Bunch and Kaufman, over a triangle. */
template <class T>
int sytrf(bool hermitian, bool upper, int n, T* a, int* pivots);
/** b [n, columns] = a^-1 b, given sytrf's factors. */
template <class T>
int sytrs(bool hermitian, bool upper, int n, int columns, const T* a, const int* pivots, T* b);

/** Least squares: gels (full rank, QR), gelsy (pivoted QR), gelsd and gelss (singular values). */
enum class LeastSquares : uint8_t { Gels, Gelsy, Gelsd, Gelss };
/**
 * The x [n, columns] of least |a x - b| at the top of b [max(m, n), columns]; a is overwritten. s [min(m, n)] gets the
 * singular values of gelsd and gelss, rank the rank that all but gels find.
 */
template <class T>
int least_squares(LeastSquares driver, int m, int n, int columns, T* a, T* b, Real<T> rcond, Real<T>* s, int* rank);

}  // namespace tercel::lapack
