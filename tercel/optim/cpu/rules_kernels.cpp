// Kernels of the update rules.
//
// dense:  for i in 0..n:             rule(weight[i], state[i], gradient[i])
// rows:   for r in 0..n, j in 0..dim: rule(weight[rows[r], j], state[rows[r], j], gradient[r, j])
//
// Both go through one function over consecutive elements, so an element's new value does not depend on which was used.
//
// What is stored is also multiplied by zero and added up: the sum is NaN if any of it is NaN or infinite, and 0 else.
// The kernels wait for memory, so that this costs nothing, while looking for such values later reads everything again.
#include "tercel/optim/rules.h"

#include <immintrin.h>

#include "tercel/ops/common/cpu/vec.h"
#include "tercel/optim/rules_kernels.h"

namespace tercel::TERCEL_ISA {

namespace {

using namespace tercel::optim;  // NOLINT(google-build-using-namespace): the rules are written for it

template <class T>
Step<Vec<T>> step_of(const RuleUpdate& u) {
  const auto value = [&u](int i) { return Vec<T>(static_cast<T>(u.step[i])); };
  return {value(0), value(1), value(2), value(3), value(4), value(5), value(6), value(7)};
}

/**
 * While it lives, numbers below the least normal one count as 0. The moments of a unit that gets no gradient decay to
 * such numbers and would stay there, which makes a step slower by a factor of 2 on some processors and of 20 on others.
 */
class FlushDenormals {
 public:
  FlushDenormals() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | kFlushResults | kFlushInputs);
    asm volatile("" ::: "memory");  // nothing is loaded before, and nothing stored after
  }
  ~FlushDenormals() {
    asm volatile("" ::: "memory");
    _mm_setcsr(before_);
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  static constexpr unsigned kFlushResults = 0x8000, kFlushInputs = 0x0040;
  unsigned before_;
};

/** Adds zeros to the sum, or NaN where a value is not finite. */
template <class Rule, class V>
inline void mark(V& sum, V weight, const V* state) {
  V zero = weight * V(0);
  for (int k = 0; k < Rule::kStates; ++k) zero = zero + state[k] * V(0);
  sum = sum + zero;  // the only addition that waits for the vector before
}

template <class V>
bool all_zero(V sum) {
  return !any(sum != V(0));
}

template <class Rule, class T>
inline void update_span(T* weight, T* const* state, const T* gradient, int64_t n, const Step<Vec<T>>& h, Vec<T>& sum) {
  using V = Vec<T>;
  V s[Rule::kStates > 0 ? Rule::kStates : 1];
  int64_t i = 0;
  for (; i + V::kSize <= n; i += V::kSize) {
    V w = V::load(weight + i);
    for (int k = 0; k < Rule::kStates; ++k) s[k] = V::load(state[k] + i);
    Rule::update(w, s, V::load(gradient + i), h);
    mark<Rule>(sum, w, s);
    w.store(weight + i);
    for (int k = 0; k < Rule::kStates; ++k) s[k].store(state[k] + i);
  }
  if (i < n) {
    V w = load_partial(weight + i, n - i);
    for (int k = 0; k < Rule::kStates; ++k) s[k] = load_partial(state[k] + i, n - i);
    Rule::update(w, s, load_partial(gradient + i, n - i), h);
    mark<Rule>(sum, w, s);  // further lanes hold zeros, of which no rule makes anything else
    store_partial(weight + i, w, n - i);
    for (int k = 0; k < Rule::kStates; ++k) store_partial(state[k] + i, s[k], n - i);
  }
}

template <class Rule, class T>
bool dense(const RuleUpdate& u) {
  T* state[2] = {static_cast<T*>(u.state[0]), static_cast<T*>(u.state[1])};
  Vec<T> sum(0);
  update_span<Rule>(static_cast<T*>(u.weight), state, static_cast<const T*>(u.gradient), u.n, step_of<T>(u), sum);
  return all_zero(sum);
}

/** How many rows ahead memory is asked for: rows lie anywhere in the table, and a miss costs as much as 16 of them. */
constexpr int64_t kAhead = 16;
/** Bytes of a row that are asked for; the processor itself goes on with a longer one. */
constexpr int64_t kAheadBytes = 512;

/** Asks for the lines of n elements, which are to be written. */
template <class T>
inline void prefetch_row(const T* p, int64_t n) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T)), kMost = kAheadBytes / static_cast<int64_t>(sizeof(T));
  const int64_t end = n < kMost ? n : kMost;
  for (int64_t j = 0; j < end; j += kLine) __builtin_prefetch(p + j, 1);
  __builtin_prefetch(p + end - 1, 1);  // a row that begins within a line ends in one more
}

template <class Rule, class T>
bool rows(const RuleUpdate& u) {
  const Step<Vec<T>> h = step_of<T>(u);
  Vec<T> sum(0);
  T* weight = static_cast<T*>(u.weight);
  T* base[2] = {static_cast<T*>(u.state[0]), static_cast<T*>(u.state[1])};
  const T* gradient = static_cast<const T*>(u.gradient);
  for (int64_t r = 0; r < u.n; ++r) {
    if (r + kAhead < u.n) {
      const int64_t next = u.rows[r + kAhead] * u.dim;
      prefetch_row(weight + next, u.dim);
      for (int k = 0; k < Rule::kStates; ++k) prefetch_row(base[k] + next, u.dim);
    }
    const int64_t at = u.rows[r] * u.dim;
    T* state[2] = {};
    for (int k = 0; k < Rule::kStates; ++k) state[k] = base[k] + at;
    update_span<Rule>(weight + at, state, gradient + r * u.dim, u.dim, h, sum);
  }
  return all_zero(sum);
}

template <class... Rule>
bool run_dense(RuleList<Rule...>, const RuleUpdate& u) {
  constexpr RuleUpdateFn* table[][2] = {{&dense<Rule, float>, &dense<Rule, double>}...};
  return table[u.rule][u.is_double](u);
}

template <class... Rule>
bool run_rows(RuleList<Rule...>, const RuleUpdate& u) {
  constexpr RuleUpdateFn* table[][2] = {{&rows<Rule, float>, &rows<Rule, double>}...};
  return table[u.rule][u.is_double](u);
}

}  // namespace

bool update_dense(const RuleUpdate& u) {
  const FlushDenormals scope;
  return run_dense(Rules{}, u);
}

bool update_rows(const RuleUpdate& u) {
  const FlushDenormals scope;
  return run_rows(Rules{}, u);
}

}  // namespace tercel::TERCEL_ISA
