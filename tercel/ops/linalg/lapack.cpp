#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tercel/ops/linalg/lapack_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/process_mutex.h"

namespace tercel::lapack {

namespace {

/** The library; opened once, never closed. See Note [LAPACK at run time]. */
void* library() {
  static void* handle = nullptr;
  const std::lock_guard lock(process_mutex(ProcessMutex::Lapack));
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

/** Fortran name of a routine for T: "dpotrf_". */
template <class T>
std::string symbol_of(const char* name) {
  const bool single = sizeof(Real<T>) == sizeof(float);
  return std::string(1, is_complex_number<T> ? (single ? 'c' : 'z') : (single ? 's' : 'd')) + name + "_";
}

template <class F, class T>
F* find(const char* name) {
  require(name);
  const std::string symbol = symbol_of<T>(name);
  void* const function = dlsym(library(), symbol.c_str());
  TERCEL_CHECK(function, RuntimeError, "the LAPACK library has no ", symbol);
  return reinterpret_cast<F*>(function);
}

/**
 * A LAPACK routine, looked up at its first call. It is not a static local pointer: a child process that is forked while
 * another thread opens the library would wait forever for that thread's initialisation.
 */
template <class F, class T>
class Routine;
template <class R, class... Args, class T>
class Routine<R(Args...), T> {
 public:
  constexpr explicit Routine(const char* name) : name_(name) {}
  R operator()(Args... args) {
    auto* function = function_.load(std::memory_order_relaxed);
    if (!function) function_.store(function = find<R(Args...), T>(name_), std::memory_order_relaxed);
    return function(args...);
  }

 private:
  const char* name_;
  std::atomic<R (*)(Args...)> function_{nullptr};
};

/** Fortran passes the lengths of strings after all other arguments. */
constexpr size_t kOne = 1;
constexpr char uplo(bool upper) { return upper ? 'U' : 'L'; }
int at_least_1(int n) { return std::max(n, 1); }

/** The name of a routine whose name differs for complex numbers. */
template <class T>
constexpr const char* name_for(const char* real, const char* complex) {
  return is_complex_number<T> ? complex : real;
}

/** Converts the workspace size, which LAPACK returns as a number of type T. */
template <class T>
int size_from(T wanted) {
  Real<T> size;
  if constexpr (is_complex_number<T>)
    size = wanted.re;
  else
    size = wanted;
  // Above 2^24 the size may have been rounded down to float32.
  const double enough = std::nextafter(size, std::numeric_limits<Real<T>>::infinity());
  TERCEL_CHECK(enough >= 0 && enough < INT_MAX, RuntimeError, "LAPACK: workspace exceeds ", INT_MAX, " elements");
  return at_least_1(static_cast<int>(enough));
}

/** Calls run(work, lwork, info), first to query the size of the workspace, then with the workspace. */
template <class T, class Run>
int with_work(Run run) {
  T wanted(0);
  int lwork = -1, info = 0;
  run(&wanted, &lwork, &info);
  if (info != 0) return info;
  lwork = size_from(wanted);
  std::vector<T> work(static_cast<size_t>(lwork));
  run(work.data(), &lwork, &info);
  return info;
}

}  // namespace

int to_int(const char* op, int64_t size) {
  TERCEL_CHECK(size <= INT_MAX, RuntimeError, op, ": a size of ", size, " exceeds LAPACK's limit of 2^31 - 1");
  return static_cast<int>(size);
}

void require(const char* op) {
  TERCEL_CHECK(library(), RuntimeError, op,
               ": LAPACK was not found: neither libopenblas.so.0 nor liblapack.so.3 can be loaded; on Debian, "
               "apt-get install libopenblas0");
}

template <class T>
int potrf(bool upper, int n, T* a) {
  constinit static Routine<void(const char*, const int*, T*, const int*, int*, size_t), T> f("potrf");
  const char triangle = uplo(upper);
  const int lda = at_least_1(n);
  int info = 0;
  f(&triangle, &n, a, &lda, &info, kOne);
  return info;
}

template <class T>
int getrf(int m, int n, T* a, int* pivots) {
  constinit static Routine<void(const int*, const int*, T*, const int*, int*, int*), T> f("getrf");
  const int lda = at_least_1(m);
  int info = 0;
  f(&m, &n, a, &lda, pivots, &info);
  return info;
}

template <class T>
int geqrf(int m, int n, T* a, T* tau) {
  constinit static Routine<void(const int*, const int*, T*, const int*, T*, T*, const int*, int*), T> f("geqrf");
  const int lda = at_least_1(m);
  return with_work<T>([&](T* work, const int* lwork, int* info) { f(&m, &n, a, &lda, tau, work, lwork, info); });
}

template <class T>
int orgqr(int m, int n, int k, T* a, const T* tau) {
  constinit static Routine<void(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*), T>
      f(name_for<T>("orgqr", "ungqr"));
  const int lda = at_least_1(m);
  return with_work<T>([&](T* work, const int* lwork, int* info) { f(&m, &n, &k, a, &lda, tau, work, lwork, info); });
}

template <class T>
void trsm(bool upper, bool transposed, bool unit, int n, int columns, const T* a, T* b) {
  constinit static Routine<void(const char*, const char*, const char*, const char*, const int*, const int*, const T*,
                                const T*, const int*, T*, const int*, size_t, size_t, size_t, size_t),
                           T>
      f("trsm");
  const char side = 'L', triangle = uplo(upper), op = transposed ? 'T' : 'N', diagonal = unit ? 'U' : 'N';
  const int ld = at_least_1(n);
  const T one(1);
  f(&side, &triangle, &op, &diagonal, &n, &columns, &one, a, &ld, b, &ld, kOne, kOne, kOne, kOne);
}

template <class T>
int gesdd(bool full, int m, int n, T* a, Real<T>* s, T* u, T* vt) {
  using R = Real<T>;
  const int k = std::min(m, n), lda = at_least_1(m), ldu = at_least_1(m), ldvt = at_least_1(full ? n : k);
  const char job = !u ? 'N' : full ? 'A' : 'S';
  std::vector<int> iwork(static_cast<size_t>(at_least_1(k)) * 8);
  if constexpr (is_complex_number<T>) {
    constinit static Routine<void(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*,
                                  const int*, T*, const int*, R*, int*, int*, size_t),
                             T>
        f("gesdd");
    const auto small = static_cast<size_t>(k), large = static_cast<size_t>(std::max(m, n));
    std::vector<R> rwork(u ? std::max(5 * small + 5, 2 * large + 2 * small + 1) * small : 7 * small);
    return with_work<T>([&](T* work, const int* lwork, int* info) {
      f(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, lwork, rwork.data(), iwork.data(), info, kOne);
    });
  } else {
    constinit static Routine<void(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*,
                                  const int*, T*, const int*, int*, int*, size_t),
                             T>
        f("gesdd");
    return with_work<T>([&](T* work, const int* lwork, int* info) {
      f(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, lwork, iwork.data(), info, kOne);
    });
  }
}

template <class T>
int syevd(bool vectors, bool upper, int n, T* a, Real<T>* w) {
  using R = Real<T>;
  const char job = vectors ? 'V' : 'N', triangle = uplo(upper);
  const int lda = at_least_1(n);
  const auto size = static_cast<size_t>(n);
  std::vector<int> iwork(3 + 5 * size);
  const int ask = -1, iwork_size = static_cast<int>(iwork.size());
  if constexpr (is_complex_number<T>) {
    constinit static Routine<void(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, R*,
                                  const int*, int*, const int*, int*, size_t, size_t),
                             T>
        f("heevd");
    std::vector<R> rwork(vectors ? 1 + 5 * size + 2 * size * size : at_least_1(n));
    const int rwork_size = static_cast<int>(rwork.size());
    return with_work<T>([&](T* work, const int* lwork, int* info) {
      const bool asks = *lwork < 0;
      f(&job, &triangle, &n, a, &lda, w, work, lwork, rwork.data(), asks ? &ask : &rwork_size, iwork.data(),
        asks ? &ask : &iwork_size, info, kOne, kOne);
    });
  } else {
    constinit static Routine<void(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, int*,
                                  const int*, int*, size_t, size_t),
                             T>
        f("syevd");
    return with_work<T>([&](T* work, const int* lwork, int* info) {
      f(&job, &triangle, &n, a, &lda, w, work, lwork, iwork.data(), *lwork < 0 ? &ask : &iwork_size, info, kOne, kOne);
    });
  }
}

template <class T>
int geev(int n, T* a, Complex<Real<T>>* w, Complex<Real<T>>* vectors) {
  using R = Real<T>;
  const char left = 'N', right = vectors ? 'V' : 'N';
  const int ld = at_least_1(n);
  const auto size = static_cast<size_t>(n);
  if constexpr (is_complex_number<T>) {
    constinit static Routine<void(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, T*,
                                  const int*, T*, const int*, R*, int*, size_t, size_t),
                             T>
        f("geev");
    std::vector<R> rwork(2 * size);
    return with_work<T>([&](T* work, const int* lwork, int* info) {
      f(&left, &right, &n, a, &ld, w, nullptr, &ld, vectors, &ld, work, lwork, rwork.data(), info, kOne, kOne);
    });
  } else {
    constinit static Routine<void(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*, T*,
                                  const int*, T*, const int*, int*, size_t, size_t),
                             T>
        f("geev");
    std::vector<T> real(size), imaginary(size), columns(vectors ? size * size : 0);
    const int code = with_work<T>([&](T* work, const int* lwork, int* info) {
      f(&left, &right, &n, a, &ld, real.data(), imaginary.data(), nullptr, &ld, columns.data(), &ld, work, lwork, info,
        kOne, kOne);
    });
    for (size_t j = 0; j < size; ++j) w[j] = {real[j], imaginary[j]};
    if (!vectors) return code;
    for (size_t j = 0; j < size; ++j) {
      const T* column = columns.data() + j * size;
      if (imaginary[j] == 0 || j + 1 == size) {
        for (size_t i = 0; i < size; ++i) vectors[j * size + i] = {column[i], 0};
        continue;
      }
      // A complex conjugate pair: two columns hold the real and imaginary parts of the first eigenvector.
      for (size_t i = 0; i < size; ++i) {
        vectors[j * size + i] = {column[i], column[size + i]};
        vectors[(j + 1) * size + i] = {column[i], -column[size + i]};
      }
      ++j;
    }
    return code;
  }
}

template <class T>
int sytrf(bool hermitian, bool upper, int n, T* a, int* pivots) {
  using F = void(const char*, const int*, T*, const int*, int*, T*, const int*, int*, size_t);
  constinit static Routine<F, T> symmetric("sytrf");
  constinit static Routine<F, T> complex(name_for<T>("sytrf", "hetrf"));
  auto& f = hermitian ? complex : symmetric;
  const char triangle = uplo(upper);
  const int lda = at_least_1(n);
  return with_work<T>(
      [&](T* work, const int* lwork, int* info) { f(&triangle, &n, a, &lda, pivots, work, lwork, info, kOne); });
}

template <class T>
int sytrs(bool hermitian, bool upper, int n, int columns, const T* a, const int* pivots, T* b) {
  using F = void(const char*, const int*, const int*, const T*, const int*, const int*, T*, const int*, int*, size_t);
  constinit static Routine<F, T> symmetric("sytrs");
  constinit static Routine<F, T> complex(name_for<T>("sytrs", "hetrs"));
  auto& f = hermitian ? complex : symmetric;
  const char triangle = uplo(upper);
  const int ld = at_least_1(n);
  int info = 0;
  f(&triangle, &n, &columns, a, &ld, pivots, b, &ld, &info, kOne);
  return info;
}

template <class T>
int least_squares(LeastSquares driver, int m, int n, int columns, T* a, T* b, Real<T> rcond, Real<T>* s, int* rank) {
  using R = Real<T>;
  const int lda = at_least_1(m), ldb = at_least_1(std::max(m, n));
  switch (driver) {
    case LeastSquares::Gels: {
      constinit static Routine<void(const char*, const int*, const int*, const int*, T*, const int*, T*, const int*, T*,
                                    const int*, int*, size_t),
                               T>
          f("gels");
      const char op = 'N';
      return with_work<T>([&](T* work, const int* lwork, int* info) {
        f(&op, &m, &n, &columns, a, &lda, b, &ldb, work, lwork, info, kOne);
      });
    }
    case LeastSquares::Gelsy: {
      std::vector<int> order(static_cast<size_t>(at_least_1(n)));
      if constexpr (is_complex_number<T>) {
        constinit static Routine<void(const int*, const int*, const int*, T*, const int*, T*, const int*, int*,
                                      const R*, int*, T*, const int*, R*, int*),
                                 T>
            f("gelsy");
        std::vector<R> rwork(2 * order.size());
        return with_work<T>([&](T* work, const int* lwork, int* info) {
          f(&m, &n, &columns, a, &lda, b, &ldb, order.data(), &rcond, rank, work, lwork, rwork.data(), info);
        });
      } else {
        constinit static Routine<void(const int*, const int*, const int*, T*, const int*, T*, const int*, int*,
                                      const R*, int*, T*, const int*, int*),
                                 T>
            f("gelsy");
        return with_work<T>([&](T* work, const int* lwork, int* info) {
          f(&m, &n, &columns, a, &lda, b, &ldb, order.data(), &rcond, rank, work, lwork, info);
        });
      }
    }
    case LeastSquares::Gelsd: {
      int iwork_size = 0;
      std::vector<int> iwork;
      R rwork_size = 0;
      std::vector<R> rwork;
      // The first call is the query; each workspace then has one element.
      const auto run = [&](T* work, const int* lwork, int* info) {
        const bool asks = *lwork < 0;
        if (!asks) iwork.resize(static_cast<size_t>(at_least_1(iwork_size)));
        int* const integers = asks ? &iwork_size : iwork.data();
        if constexpr (is_complex_number<T>) {
          constinit static Routine<void(const int*, const int*, const int*, T*, const int*, T*, const int*, R*,
                                        const R*, int*, T*, const int*, R*, int*, int*),
                                   T>
              f("gelsd");
          if (!asks) rwork.resize(static_cast<size_t>(size_from(rwork_size)));
          f(&m, &n, &columns, a, &lda, b, &ldb, s, &rcond, rank, work, lwork, asks ? &rwork_size : rwork.data(),
            integers, info);
        } else {
          constinit static Routine<void(const int*, const int*, const int*, T*, const int*, T*, const int*, R*,
                                        const R*, int*, T*, const int*, int*, int*),
                                   T>
              f("gelsd");
          f(&m, &n, &columns, a, &lda, b, &ldb, s, &rcond, rank, work, lwork, integers, info);
        }
      };
      return with_work<T>(run);
    }
    case LeastSquares::Gelss: {
      if constexpr (is_complex_number<T>) {
        constinit static Routine<void(const int*, const int*, const int*, T*, const int*, T*, const int*, R*, const R*,
                                      int*, T*, const int*, R*, int*),
                                 T>
            f("gelss");
        std::vector<R> rwork(static_cast<size_t>(at_least_1(std::min(m, n))) * 5);
        return with_work<T>([&](T* work, const int* lwork, int* info) {
          f(&m, &n, &columns, a, &lda, b, &ldb, s, &rcond, rank, work, lwork, rwork.data(), info);
        });
      } else {
        constinit static Routine<void(const int*, const int*, const int*, T*, const int*, T*, const int*, R*, const R*,
                                      int*, T*, const int*, int*),
                                 T>
            f("gelss");
        return with_work<T>([&](T* work, const int* lwork, int* info) {
          f(&m, &n, &columns, a, &lda, b, &ldb, s, &rcond, rank, work, lwork, info);
        });
      }
    }
  }
  TERCEL_ASSERT(false);
  return 0;
}

#define TERCEL_LAPACK_FOR(T)                                          \
  template int potrf(bool, int, T*);                                  \
  template int getrf(int, int, T*, int*);                             \
  template int geqrf(int, int, T*, T*);                               \
  template int orgqr(int, int, int, T*, const T*);                    \
  template void trsm(bool, bool, bool, int, int, const T*, T*);       \
  template int gesdd(bool, int, int, T*, Real<T>*, T*, T*);           \
  template int syevd(bool, bool, int, T*, Real<T>*);                  \
  template int geev(int, T*, Complex<Real<T>>*, Complex<Real<T>>*);   \
  template int sytrf(bool, bool, int, T*, int*);                      \
  template int sytrs(bool, bool, int, int, const T*, const int*, T*); \
  template int least_squares(LeastSquares, int, int, int, T*, T*, Real<T>, Real<T>*, int*);
TERCEL_LAPACK_FOR(float)
TERCEL_LAPACK_FOR(double)
TERCEL_LAPACK_FOR(Complex<float>)
TERCEL_LAPACK_FOR(Complex<double>)
#undef TERCEL_LAPACK_FOR

}  // namespace tercel::lapack
