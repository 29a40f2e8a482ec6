// Fourier transforms of several lines in parallel lanes; see Note [Fourier transforms].
//
//   for groups of as many lines as a register has lanes:
//     re, im [point][lane] = lines;  passes from one pair of buffers into the other;  lines = scale * re, im
//
// A pass with radix r takes n s numbers (s: lanes times the radices before) as [r][m][s] to [m][r][s].
#include <utility>

#include "tercel/ops/common/cpu/simd.h"
#include "tercel/ops/fft/fft_kernels.h"

namespace tercel::TERCEL_ISA {

namespace {

/** A vector of complex numbers. */
template <class V>
struct Pair {
  V re, im;
  friend TERCEL_ALWAYS_INLINE Pair operator+(Pair a, Pair b) { return {a.re + b.re, a.im + b.im}; }
  friend TERCEL_ALWAYS_INLINE Pair operator-(Pair a, Pair b) { return {a.re - b.re, a.im - b.im}; }
  friend TERCEL_ALWAYS_INLINE Pair operator*(Pair a, Pair w) {
    return {multiply_add(a.re, w.re, -(a.im * w.im)), multiply_add(a.re, w.im, a.im * w.re)};
  }
  TERCEL_ALWAYS_INLINE Pair times_i() const { return {-im, re}; }
};

template <class T>
struct Parts {
  T *re, *im;

  TERCEL_ALWAYS_INLINE Pair<Simd<T>> get(int64_t i) const { return {load(re + i), load(im + i)}; }
  TERCEL_ALWAYS_INLINE void set(int64_t i, Pair<Simd<T>> x) const {
    store(re + i, x.re);
    store(im + i, x.im);
  }
};

template <class T>
TERCEL_ALWAYS_INLINE Pair<Simd<T>> broadcast_pair(const T* w) {
  return {broadcast(w[0]), broadcast(w[1])};
}

// y[k] = sum over j of x[j] exp(-2 pi i j k / R), at distances of `stride` numbers; R odd, or 0 for `radix` of them.
template <int R, class T>
struct OddRadix {
  static constexpr int kMost = R ? R : static_cast<int>(kFftMaxPrime);
  using P = Pair<Simd<T>>;
  int radix;
  const T* roots;

  TERCEL_ALWAYS_INLINE void operator()(P* x) const {
    const int r = R ? R : radix, half = (r - 1) / 2;
    P sum[kMost / 2 + 1], difference[kMost / 2 + 1];
    P total = x[0];
    for (int j = 1; j <= half; ++j) {
      sum[j] = x[j] + x[r - j];
      difference[j] = x[j] - x[r - j];
      total = total + sum[j];
    }
    for (int k = 1; k <= half; ++k) {
      P a = x[0], b{};
      for (int j = 1, at = k; j <= half; ++j, at = at + k < r ? at + k : at + k - r) {
        const Simd<T> c = broadcast(roots[2 * at]), s = broadcast(roots[2 * at + 1]);
        a = {multiply_add(sum[j].re, c, a.re), multiply_add(sum[j].im, c, a.im)};
        b = {multiply_add(difference[j].re, s, b.re), multiply_add(difference[j].im, s, b.im)};
      }
      x[k] = a - b.times_i();
      x[r - k] = a + b.times_i();
    }
    x[0] = total;
  }
};
template <class T>
struct Radix2 {
  static constexpr int kMost = 2;
  int radix;
  const T* roots;
  TERCEL_ALWAYS_INLINE void operator()(Pair<Simd<T>>* x) const {
    const Pair<Simd<T>> a = x[0], b = x[1];
    x[0] = a + b;
    x[1] = a - b;
  }
};
template <class T>
struct Radix4 {
  static constexpr int kMost = 4;
  int radix;
  const T* roots;
  TERCEL_ALWAYS_INLINE void operator()(Pair<Simd<T>>* x) const {
    const Pair<Simd<T>> a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = (x[1] - x[3]).times_i();
    x[0] = a + c;
    x[1] = b - d;
    x[2] = a - c;
    x[3] = b + d;
  }
};

template <class Butterfly, bool kAny, class T>
void run_pass(const FftPass& pass, int64_t s, Parts<T> from, Parts<T> to) {
  const Butterfly butterfly{static_cast<int>(pass.radix), static_cast<const T*>(pass.roots)};
  const int r = kAny ? butterfly.radix : Butterfly::kMost;
  const T* twiddles = static_cast<const T*>(pass.twiddles);
  for (int64_t p = 0; p < pass.m; ++p, twiddles += 2 * (r - 1)) {
    Pair<Simd<T>> w[Butterfly::kMost];
    for (int k = 1; k < r; ++k) w[k] = broadcast_pair(twiddles + 2 * (k - 1));
    for (int64_t q = 0; q < s; q += kLanes<T>) {
      Pair<Simd<T>> x[Butterfly::kMost];
      x[0] = from.get(q + s * p);
      for (int j = 1; j < r; ++j) x[j] = from.get(q + s * (p + pass.m * j));
      butterfly(x);
      to.set(q + s * r * p, x[0]);
      if (p == 0)
        for (int k = 1; k < r; ++k) to.set(q + s * k, x[k]);
      else
        for (int k = 1; k < r; ++k) to.set(q + s * (r * p + k), x[k] * w[k]);
    }
  }
}

/** Transforms the lines in `a`, with `b` as workspace; returns the one that contains the result. */
template <class T>
Parts<T> run_passes(const FftPlan& plan, Parts<T> a, Parts<T> b) {
  int64_t s = kLanes<T>;
  for (int i = 0; i < plan.count; ++i) {
    const FftPass& pass = plan.passes[i];
    switch (pass.radix) {
      case 2: run_pass<Radix2<T>, false>(pass, s, a, b); break;
      case 3: run_pass<OddRadix<3, T>, false>(pass, s, a, b); break;
      case 4: run_pass<Radix4<T>, false>(pass, s, a, b); break;
      case 5: run_pass<OddRadix<5, T>, false>(pass, s, a, b); break;
      default: run_pass<OddRadix<0, T>, true>(pass, s, a, b); break;
    }
    s *= pass.radix;
    const Parts<T> done = b;
    b = a;
    a = done;
  }
  return a;
}

// Converts point k and its mirror, h - k, between the transform of a real line's pairs and the line's half spectrum.
// The mirror of point 0 is itself on one side, and point h on the other.
template <class T, class V>
TERCEL_ALWAYS_INLINE void halve(Pair<V>& a, Pair<V>& b, Pair<V> w) {
  const Pair<V> even = {T(0.5) * (a.re + b.re), T(0.5) * (a.im - b.im)};
  const Pair<V> odd = Pair<V>{T(0.5) * (a.im + b.im), T(0.5) * (b.re - a.re)} * w;
  a = even + odd;
  b = {even.re - odd.re, odd.im - even.im};
}
template <class V>
TERCEL_ALWAYS_INLINE void unhalve(Pair<V>& a, Pair<V>& b, Pair<V> w) {
  const Pair<V> sum = {a.re + b.re, a.im - b.im};
  const Pair<V> u = Pair<V>{a.re - b.re, a.im + b.im} * Pair<V>{w.re, -w.im};
  a = {sum.re - u.im, sum.im + u.re};
  b = {sum.re + u.im, u.re - sum.im};
}

template <class T>
void halve_lanes(Parts<T> x, int64_t h, const T* w) {
  for (int64_t k = 0; 2 * k <= h; ++k) {
    const int64_t at = k * kLanes<T>, mirror = (h - k) * kLanes<T>;
    Pair<Simd<T>> a = x.get(at), b = k == 0 ? a : x.get(mirror);
    halve<T>(a, b, broadcast_pair(w + 2 * k));
    x.set(mirror, b);
    x.set(at, a);
  }
}
template <class T>
void unhalve_lanes(Parts<T> x, int64_t h, const T* w) {
  for (int64_t k = 0; 2 * k <= h; ++k) {
    const int64_t at = k * kLanes<T>, mirror = (h - k) * kLanes<T>;
    Pair<Simd<T>> a = x.get(at), b = x.get(mirror);
    if (k == 0) a.im = b.im = Simd<T>{};
    unhalve(a, b, broadcast_pair(w + 2 * k));
    x.set(mirror, b);
    x.set(at, a);
  }
}

// Shuffles of two registers, with index lists for the instruction set's width.
template <class T, int... I>
TERCEL_ALWAYS_INLINE Pair<Simd<T>> unzip(Simd<T> a, Simd<T> b, std::integer_sequence<int, I...>) {
  return {__builtin_shufflevector(a, b, (2 * I)...), __builtin_shufflevector(a, b, (2 * I + 1)...)};
}
template <class T, int... I>
TERCEL_ALWAYS_INLINE Pair<Simd<T>> zip(Simd<T> a, Simd<T> b, std::integer_sequence<int, I...>) {
  constexpr int kN = sizeof...(I);
  return {__builtin_shufflevector(a, b, (I / 2 + I % 2 * kN)...),
          __builtin_shufflevector(a, b, (kN / 2 + I / 2 + I % 2 * kN)...)};
}
template <int kBit, class T, int... I>
TERCEL_ALWAYS_INLINE void swap_blocks(Simd<T>& a, Simd<T>& b, std::integer_sequence<int, I...>) {
  constexpr int kN = sizeof...(I);
  const Simd<T> low = __builtin_shufflevector(a, b, (I & kBit ? I - kBit + kN : I)...);
  b = __builtin_shufflevector(a, b, (I & kBit ? I + kN : I + kBit)...);
  a = low;
}
template <class T>
using Lanes = std::make_integer_sequence<int, kLanes<T>>;

/** Transposes a square of numbers: blocks of half its size, then blocks within these. */
template <class T, int kBit = kLanes<T> / 2>
TERCEL_ALWAYS_INLINE void transpose(Simd<T>* rows) {
  if constexpr (kBit > 0) {
    TERCEL_UNROLL
    for (int i = 0; i < kLanes<T>; ++i)
      if (!(i & kBit)) swap_blocks<kBit, T>(rows[i], rows[i + kBit], Lanes<T>{});
    transpose<T, kBit / 2>(rows);
  }
}

/** Where the lines of a group are. */
template <class T>
struct Group {
  T* base;
  int64_t at[kLanes<T>];
  int64_t step;  // from point to point
  int64_t im;    // from real to imaginary part
  bool real;     // there is no imaginary part
  int lines;     // of the group; at[] repeats the first for the rest
  T scale, im_scale;

  /** Whether lines are `distance` numbers apart in memory. */
  bool adjacent(int64_t distance) const {
    if (lines < kLanes<T>) return false;
    for (int l = 1; l < lines; ++l)
      if (at[l] - at[0] != l * distance) return false;
    return true;
  }

  void gather(Parts<T> to, int64_t n) const {
    int64_t j = 0;
    if (im == 1 && !real && adjacent(2)) {
      for (; j < n; ++j) {
        const T* p = base + at[0] + j * step;
        put(to, j, unzip<T>(load(p), load(p + kLanes<T>), Lanes<T>{}));
      }
    } else if (adjacent(1)) {
      for (; j < n; ++j) {
        const T* p = base + at[0] + j * step;
        put(to, j, {load(p), real ? Simd<T>{} : load(p + im)});
      }
    } else if (im == 1 && !real && step == 2) {
      for (; j + kLanes<T> <= n; j += kLanes<T>) {
        Simd<T> re[kLanes<T>], imag[kLanes<T>];
        TERCEL_UNROLL
        for (int l = 0; l < kLanes<T>; ++l) {
          const T* p = base + at[l] + 2 * j;
          const Pair<Simd<T>> x = unzip<T>(load(p), load(p + kLanes<T>), Lanes<T>{});
          re[l] = x.re;
          imag[l] = x.im;
        }
        transpose<T>(re);
        transpose<T>(imag);
        for (int l = 0; l < kLanes<T>; ++l) put(to, j + l, {re[l], imag[l]});
      }
    }
    for (; j < n; ++j) {
      for (int l = 0; l < kLanes<T>; ++l) {
        const T* p = base + at[l] + j * step;
        to.re[j * kLanes<T> + l] = p[0];
        to.im[j * kLanes<T> + l] = real ? T(0) : im_scale * p[im];
      }
    }
  }

  void scatter(Parts<T> from, int64_t n) const {
    int64_t j = 0;
    if (im == 1 && !real && adjacent(2)) {
      for (; j < n; ++j) {
        T* p = base + at[0] + j * step;
        const Pair<Simd<T>> x = scaled(from, j), y = zip<T>(x.re, x.im, Lanes<T>{});
        store(p, y.re);
        store(p + kLanes<T>, y.im);
      }
    } else if (adjacent(1)) {
      for (; j < n; ++j) {
        T* p = base + at[0] + j * step;
        const Pair<Simd<T>> x = scaled(from, j);
        store(p, x.re);
        if (!real) store(p + im, x.im);
      }
    } else if (im == 1 && !real && step == 2) {
      for (; j + kLanes<T> <= n; j += kLanes<T>) {
        Simd<T> re[kLanes<T>], imag[kLanes<T>];
        TERCEL_UNROLL
        for (int l = 0; l < kLanes<T>; ++l) {
          const Pair<Simd<T>> x = scaled(from, j + l);
          re[l] = x.re;
          imag[l] = x.im;
        }
        transpose<T>(re);
        transpose<T>(imag);
        for (int l = 0; l < lines; ++l) {
          T* p = base + at[l] + 2 * j;
          const Pair<Simd<T>> y = zip<T>(re[l], imag[l], Lanes<T>{});
          store(p, y.re);
          store(p + kLanes<T>, y.im);
        }
      }
    }
    for (; j < n; ++j) {
      for (int l = 0; l < lines; ++l) {
        T* p = base + at[l] + j * step;
        p[0] = scale * from.re[j * kLanes<T> + l];
        if (!real) p[im] = im_scale * from.im[j * kLanes<T> + l];
      }
    }
  }

 private:
  TERCEL_ALWAYS_INLINE void put(Parts<T> to, int64_t j, Pair<Simd<T>> x) const {
    to.set(j * kLanes<T>, {x.re, x.im * broadcast(im_scale)});
  }
  TERCEL_ALWAYS_INLINE Pair<Simd<T>> scaled(Parts<T> from, int64_t j) const {
    const Pair<Simd<T>> x = from.get(j * kLanes<T>);
    return {x.re * broadcast(scale), x.im * broadcast(im_scale)};
  }
};

/** Iterates over the lines, group by group. */
template <class T>
struct Walk {
  const FftLines& loop;

  void find(int64_t line, int count, Group<T>& x, Group<T>& out) const {
    x.lines = out.lines = count;
    for (int l = 0; l < kLanes<T>; ++l) {
      int64_t rest = line + (l < count ? l : 0), x_at = 0, out_at = 0;
      for (int d = loop.rank - 1; d >= 0; --d) {
        const int64_t i = d == 0 ? rest : rest % loop.sizes[d];
        rest = d == 0 ? 0 : rest / loop.sizes[d];
        x_at += i * loop.x_strides[d];
        out_at += i * loop.out_strides[d];
      }
      x.at[l] = x_at;
      out.at[l] = out_at;
    }
  }
};

template <class T>
void turn(const FftLines& loop, int64_t line, Parts<T> x) {
  const int64_t i = line % kFftLanes, far_at = line / kFftLanes;
  const T *near = static_cast<const T*>(loop.near), *far = static_cast<const T*>(loop.far);
  for (int64_t k = 0; k < loop.plan->n; ++k) {
    const T* w = near + k * 2 * kFftLanes;
    const Pair<Simd<T>> close = {load(w + i), load(w + kFftLanes + i)};
    x.set(k * kLanes<T>, x.get(k * kLanes<T>) * (close * broadcast_pair(far + 2 * (k * loop.far_count + far_at))));
  }
}

template <class T>
void mirror_half(Parts<T> x, int64_t n) {
  for (int64_t j = n / 2 + 1; j < n; ++j) {
    const Pair<Simd<T>> v = x.get((n - j) * kLanes<T>);
    x.set(j * kLanes<T>, {v.re, -v.im});
  }
}

template <class T>
void lines_of(const FftLines& loop, void* work, int64_t begin, int64_t end) {
  const FftPlan& plan = *loop.plan;
  const int64_t n = plan.n, room = (n + 2) * kLanes<T>;
  T* memory = static_cast<T*>(work);
  const Parts<T> a{memory, memory + room}, b{memory + 2 * room, memory + 3 * room};
  const T* half = static_cast<const T*>(plan.half);
  const bool to_half = loop.kind == FftKind::RealToHalf, to_real = loop.kind == FftKind::HalfToReal;
  const bool inverse = loop.kind == FftKind::Complex ? loop.inverse : to_real;
  const T sign = loop.kind != FftKind::Complex && loop.inverse ? T(-1) : T(1), scale = static_cast<T>(loop.scale);

  Group<T> x{const_cast<T*>(static_cast<const T*>(loop.x)), {}, loop.x_step, 1, false, 0, T(1), to_real ? sign : T(1)};
  Group<T> out{static_cast<T*>(loop.out), {}, loop.out_step, 1, false, 0, scale, to_half ? sign * scale : scale};
  // The real side: pairs of numbers as complex ones, or single numbers.
  if (to_half || to_real) {
    Group<T>& side = to_half ? x : out;
    side.real = loop.odd;
    side.im = side.step;
    side.step *= loop.odd ? 1 : 2;
  }
  const int64_t half_points = loop.odd ? n / 2 + 1 : n + 1;

  const int64_t last = end * kFftLanes < loop.lines ? end * kFftLanes : loop.lines;
  for (int64_t line = begin * kFftLanes; line < last; line += kLanes<T>) {
    Walk<T>{loop}.find(line, static_cast<int>(last - line < kLanes<T> ? last - line : kLanes<T>), x, out);
    x.gather(a, to_real ? half_points : n);
    if (to_real && loop.odd) mirror_half(a, n);
    if (to_real && !loop.odd) unhalve_lanes(a, n, half);
    const Parts<T> from = inverse ? Parts<T>{a.im, a.re} : a, to = inverse ? Parts<T>{b.im, b.re} : b;
    const Parts<T> done = run_passes(plan, from, to);
    if (loop.near) turn(loop, line, done);
    const Parts<T> result = inverse ? Parts<T>{done.im, done.re} : done;
    if (to_half && !loop.odd) halve_lanes(result, n, half);
    out.scatter(result, to_half ? half_points : n);
  }
}

template <class T>
void halves_of(bool to_real, T sign, T* x, int64_t h, const T* w, int64_t begin, int64_t end) {
  for (int64_t line = begin; line < end; ++line) {
    T* p = x + line * 2 * (h + 1);
    for (int64_t k = 0; 2 * k <= h; ++k) {
      T *at = p + 2 * k, *mirror = p + 2 * (h - k);
      const T* other = k == 0 && !to_real ? at : mirror;
      const T in = to_real ? sign : T(1), out = to_real ? T(1) : sign;
      Pair<T> a{at[0], in * at[1]}, b{other[0], in * other[1]};
      if (to_real) {
        if (k == 0) a.im = b.im = T(0);
        unhalve(a, b, Pair<T>{w[2 * k], w[2 * k + 1]});
      } else {
        halve<T>(a, b, Pair<T>{w[2 * k], w[2 * k + 1]});
      }
      mirror[0] = b.re;
      mirror[1] = out * b.im;
      at[0] = a.re;
      at[1] = out * a.im;
    }
  }
}

}  // namespace

void fft_lines(const FftLines& loop, void* work, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F32)
    lines_of<float>(loop, work, begin, end);
  else
    lines_of<double>(loop, work, begin, end);
}

void fft_halves(Compute compute, bool to_real, bool conjugate, void* x, int64_t h, const void* half, int64_t begin,
                int64_t end) {
  const int sign = conjugate ? -1 : 1;
  if (compute == Compute::F32)
    halves_of<float>(to_real, static_cast<float>(sign), static_cast<float*>(x), h, static_cast<const float*>(half),
                     begin, end);
  else
    halves_of<double>(to_real, sign, static_cast<double*>(x), h, static_cast<const double*>(half), begin, end);
}

}  // namespace tercel::TERCEL_ISA
