#include <dlfcn.h>

#include <algorithm>
#include <climits>
#include <mutex>
#include <string>
#include <vector>

#include "tercel/ops/lapack_impl.h"
#include "tercel/util/error.h"

namespace tercel::lapack {

namespace {

/** The library; opened once, never closed. See Note [LAPACK at run time]. */
void* library() {
  static std::mutex mutex;
  static void* handle = nullptr;
  const std::lock_guard lock(mutex);
  if (handle) return handle;
  for (const char* name : {"libopenblas.so.0", "liblapack.so.3"}) {
    void* const opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!opened) continue;
    using SetThreads = void(int);
    if (auto* set_threads = reinterpret_cast<SetThreads*>(dlsym(opened, "openblas_set_num_threads"))) set_threads(1);
    handle = opened;
    break;
  }
  return handle;
}

/** Fortran's name of a routine for T: "dpotrf_". */
template <class T>
std::string symbol_of(const char* name) {
  return std::string(1, sizeof(T) == sizeof(float) ? 's' : 'd') + name + "_";
}

template <class F, class T>
F* find(const char* name) {
  require(name);
  const std::string symbol = symbol_of<T>(name);
  void* const function = dlsym(library(), symbol.c_str());
  TERCEL_CHECK(function, RuntimeError, "the LAPACK library has no ", symbol);
  return reinterpret_cast<F*>(function);
}

/** Fortran passes the lengths of its strings behind all other arguments. */
constexpr size_t kOne = 1;
constexpr char uplo(bool upper) { return upper ? 'U' : 'L'; }
int at_least_1(int n) { return std::max(n, 1); }

/** Calls run(work, lwork, info) once to ask for the size of the work space, then with it. */
template <class T, class Run>
int with_work(Run run) {
  T wanted = 0;
  int lwork = -1, info = 0;
  run(&wanted, &lwork, &info);
  if (info != 0) return info;
  lwork = at_least_1(static_cast<int>(wanted));
  std::vector<T> work(static_cast<size_t>(lwork));
  run(work.data(), &lwork, &info);
  return info;
}

}  // namespace

int to_int(const char* op, int64_t size) {
  TERCEL_CHECK(size <= INT_MAX, RuntimeError, op, ": a size of ", size, " is more than LAPACK takes");
  return static_cast<int>(size);
}

void require(const char* op) {
  TERCEL_CHECK(library(), RuntimeError, op,
               ": LAPACK was not found: neither libopenblas.so.0 nor liblapack.so.3 can be loaded; on Debian, "
               "apt-get install libopenblas0");
}

template <class T>
int potrf(bool upper, int n, T* a) {
  static auto* const f = find<void(const char*, const int*, T*, const int*, int*, size_t), T>("potrf");
  const char triangle = uplo(upper);
  const int lda = at_least_1(n);
  int info = 0;
  f(&triangle, &n, a, &lda, &info, kOne);
  return info;
}

template <class T>
int getrf(int m, int n, T* a, int* pivots) {
  static auto* const f = find<void(const int*, const int*, T*, const int*, int*, int*), T>("getrf");
  const int lda = at_least_1(m);
  int info = 0;
  f(&m, &n, a, &lda, pivots, &info);
  return info;
}

template <class T>
int geqrf(int m, int n, T* a, T* tau) {
  static auto* const f = find<void(const int*, const int*, T*, const int*, T*, T*, const int*, int*), T>("geqrf");
  const int lda = at_least_1(m);
  return with_work<T>([&](T* work, const int* lwork, int* info) { f(&m, &n, a, &lda, tau, work, lwork, info); });
}

template <class T>
int orgqr(int m, int n, int k, T* a, const T* tau) {
  static auto* const f =
      find<void(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*), T>("orgqr");
  const int lda = at_least_1(m);
  return with_work<T>([&](T* work, const int* lwork, int* info) { f(&m, &n, &k, a, &lda, tau, work, lwork, info); });
}

template <class T>
void trsm(bool upper, bool transposed, bool unit, int n, int columns, const T* a, T* b) {
  static auto* const f = find<void(const char*, const char*, const char*, const char*, const int*, const int*, const T*,
                                   const T*, const int*, T*, const int*, size_t, size_t, size_t, size_t),
                              T>("trsm");
  const char side = 'L', triangle = uplo(upper), op = transposed ? 'T' : 'N', diagonal = unit ? 'U' : 'N';
  const int ld = at_least_1(n);
  const T one = 1;
  f(&side, &triangle, &op, &diagonal, &n, &columns, &one, a, &ld, b, &ld, kOne, kOne, kOne, kOne);
}

template <class T>
int gesdd(bool full, int m, int n, T* a, T* s, T* u, T* vt) {
  static auto* const f = find<void(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*,
                                   const int*, T*, const int*, int*, int*, size_t),
                              T>("gesdd");
  const int k = std::min(m, n), lda = at_least_1(m), ldu = at_least_1(m), ldvt = at_least_1(full ? n : k);
  const char job = !u ? 'N' : full ? 'A' : 'S';
  std::vector<int> iwork(static_cast<size_t>(at_least_1(k)) * 8);
  return with_work<T>([&](T* work, const int* lwork, int* info) {
    f(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, lwork, iwork.data(), info, kOne);
  });
}

template <class T>
int syevd(bool vectors, bool upper, int n, T* a, T* w) {
  static auto* const f = find<void(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*,
                                   const int*, int*, size_t, size_t),
                              T>("syevd");
  const char job = vectors ? 'V' : 'N', triangle = uplo(upper);
  const int lda = at_least_1(n);
  std::vector<int> iwork(static_cast<size_t>(3 + 5 * static_cast<int64_t>(n)));
  return with_work<T>([&](T* work, const int* lwork, int* info) {
    const int liwork = *lwork < 0 ? -1 : static_cast<int>(iwork.size());
    f(&job, &triangle, &n, a, &lda, w, work, lwork, iwork.data(), &liwork, info, kOne, kOne);
  });
}

template <class T>
int sytrf(bool upper, int n, T* a, int* pivots) {
  static auto* const f =
      find<void(const char*, const int*, T*, const int*, int*, T*, const int*, int*, size_t), T>("sytrf");
  const char triangle = uplo(upper);
  const int lda = at_least_1(n);
  return with_work<T>(
      [&](T* work, const int* lwork, int* info) { f(&triangle, &n, a, &lda, pivots, work, lwork, info, kOne); });
}

template <class T>
int sytrs(bool upper, int n, int columns, const T* a, const int* pivots, T* b) {
  static auto* const f =
      find<void(const char*, const int*, const int*, const T*, const int*, const int*, T*, const int*, int*, size_t),
           T>("sytrs");
  const char triangle = uplo(upper);
  const int ld = at_least_1(n);
  int info = 0;
  f(&triangle, &n, &columns, a, &ld, pivots, b, &ld, &info, kOne);
  return info;
}

template <class T>
int least_squares(LeastSquares driver, int m, int n, int columns, T* a, T* b, T rcond, T* s, int* rank) {
  const int lda = at_least_1(m), ldb = at_least_1(std::max(m, n));
  switch (driver) {
    case LeastSquares::Gels: {
      static auto* const f = find<void(const char*, const int*, const int*, const int*, T*, const int*, T*, const int*,
                                       T*, const int*, int*, size_t),
                                  T>("gels");
      const char op = 'N';
      return with_work<T>([&](T* work, const int* lwork, int* info) {
        f(&op, &m, &n, &columns, a, &lda, b, &ldb, work, lwork, info, kOne);
      });
    }
    case LeastSquares::Gelsy: {
      static auto* const f = find<void(const int*, const int*, const int*, T*, const int*, T*, const int*, int*,
                                       const T*, int*, T*, const int*, int*),
                                  T>("gelsy");
      std::vector<int> columns_order(static_cast<size_t>(at_least_1(n)));
      return with_work<T>([&](T* work, const int* lwork, int* info) {
        f(&m, &n, &columns, a, &lda, b, &ldb, columns_order.data(), &rcond, rank, work, lwork, info);
      });
    }
    case LeastSquares::Gelsd: {
      static auto* const f = find<void(const int*, const int*, const int*, T*, const int*, T*, const int*, T*, const T*,
                                       int*, T*, const int*, int*, int*),
                                  T>("gelsd");
      int iwork_size = 0;
      T work_size = 0;
      int info = 0, ask = -1;
      f(&m, &n, &columns, a, &lda, b, &ldb, s, &rcond, rank, &work_size, &ask, &iwork_size, &info);
      if (info != 0) return info;
      std::vector<int> iwork(static_cast<size_t>(at_least_1(iwork_size)));
      int lwork = at_least_1(static_cast<int>(work_size));
      std::vector<T> work(static_cast<size_t>(lwork));
      f(&m, &n, &columns, a, &lda, b, &ldb, s, &rcond, rank, work.data(), &lwork, iwork.data(), &info);
      return info;
    }
    case LeastSquares::Gelss: {
      static auto* const f = find<void(const int*, const int*, const int*, T*, const int*, T*, const int*, T*, const T*,
                                       int*, T*, const int*, int*),
                                  T>("gelss");
      return with_work<T>([&](T* work, const int* lwork, int* info) {
        f(&m, &n, &columns, a, &lda, b, &ldb, s, &rcond, rank, work, lwork, info);
      });
    }
  }
  TERCEL_ASSERT(false);
  return 0;
}

#define TERCEL_LAPACK_FOR(T)                                    \
  template int potrf(bool, int, T*);                            \
  template int getrf(int, int, T*, int*);                       \
  template int geqrf(int, int, T*, T*);                         \
  template int orgqr(int, int, int, T*, const T*);              \
  template void trsm(bool, bool, bool, int, int, const T*, T*); \
  template int gesdd(bool, int, int, T*, T*, T*, T*);           \
  template int syevd(bool, bool, int, T*, T*);                  \
  template int sytrf(bool, int, T*, int*);                      \
  template int sytrs(bool, int, int, const T*, const int*, T*); \
  template int least_squares(LeastSquares, int, int, int, T*, T*, T, T*, int*);
TERCEL_LAPACK_FOR(float)
TERCEL_LAPACK_FOR(double)
#undef TERCEL_LAPACK_FOR

}  // namespace tercel::lapack
