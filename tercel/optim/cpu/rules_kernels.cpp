// Kernels of the update rules.
//
//   for i in 0..n, j in 0..dim: rule(weight[rows[i], j], state[rows[i], j], gradient[i, j])
//
// All elements go through one function over consecutive elements, so a new value depends neither on its position nor on
// other rows. Operands of other dtypes than the computation's pass through buffers of kBlock elements.
//
// Stored values are also multiplied by zero and added up: the sum is NaN if any of them is NaN or infinite, else 0. The
// kernels are bound by memory, so this costs nothing, while a later check would read everything again.
#include "tercel/optim/rules.h"

#include <algorithm>

#include "tercel/ops/common/cpu/tile_io.h"
#include "tercel/optim/cpu/step_support.h"
#include "tercel/optim/rules_kernels.h"

namespace tercel::TERCEL_ISA {

namespace {

using namespace tercel::optim;  // NOLINT(google-build-using-namespace): the rules are written for it

/** Adds zero to the sum, or NaN if a value is not finite. */
template <class Rule, class V>
inline void mark(V& sum, V weight, const V* state) {
  V zero = weight * V(0);
  for (int k = 0; k < Rule::kHidden; ++k) zero = zero + state[k] * V(0);
  sum = sum + zero;  // the only addition that depends on the previous vector
}

/** Applies the rule to one vector; kPrepared: after prepare(). */
template <class Rule, bool kPrepared, class V>
inline void update_vector(V& w, V* s, V g, const Step<V>& h, V& sum) {
  if constexpr (kPrepared) prepare(w, g, h);
  Rule::update(w, s, g, h);
  mark<Rule>(sum, w, s);
}

template <class Rule, bool kPrepared, class T>
inline void update_span(T* weight, T* const* state, const T* gradient, int64_t n, const Step<Vec<T>>& h, Vec<T>& sum) {
  using V = Vec<T>;
  V s[Rule::kStates > 0 ? Rule::kStates : 1];
  int64_t i = 0;
  for (; i + V::kSize <= n; i += V::kSize) {
    V w = V::load(weight + i);
    for (int k = 0; k < Rule::kStates; ++k) s[k] = V::load(state[k] + i);
    update_vector<Rule, kPrepared>(w, s, V::load(gradient + i), h, sum);
    w.store(weight + i);
    for (int k = 0; k < Rule::kStates; ++k) s[k].store(state[k] + i);
  }
  if (i < n) {
    V w = load_partial(weight + i, n - i);
    for (int k = 0; k < Rule::kStates; ++k) s[k] = load_partial(state[k] + i, n - i);
    // The other lanes are zero, and every rule keeps them zero unless epsilon is 0.
    update_vector<Rule, kPrepared>(w, s, load_partial(gradient + i, n - i), h, sum);
    store_partial(weight + i, w, n - i);
    for (int k = 0; k < Rule::kStates; ++k) store_partial(state[k] + i, s[k], n - i);
  }
}

/** The kernel if all operands have type T. */
template <class Rule, bool kPrepared, class T>
bool native(const RuleUpdate& u) {
  const Step<Vec<T>> h = step_of<T>(u.step);
  Vec<T> sum(0);
  // Local variables: as far as the compiler knows, stores could change `u`.
  const int64_t n = u.n, dim = u.dim, weight_stride = u.weight.stride, gradient_stride = u.gradient.stride;
  const int64_t* const rows = u.rows;
  T* const weight = static_cast<T*>(u.weight.data);
  const T* gradient = static_cast<const T*>(u.gradient.data);
  T* base[kMostStates] = {};
  int64_t stride[kMostStates] = {};
  for (int k = 0; k < Rule::kStates; ++k) {
    base[k] = static_cast<T*>(u.state[k].data);
    stride[k] = u.state[k].stride;
  }
  for (int64_t i = 0; i < n; ++i, gradient += gradient_stride) {
    if (rows && i + kAhead < n) {
      const int64_t next = rows[i + kAhead];
      prefetch_row(weight + next * weight_stride, dim);
      for (int k = 0; k < Rule::kStates; ++k) prefetch_row(base[k] + next * stride[k], dim);
    }
    const int64_t r = rows ? rows[i] : i;
    T* state[kMostStates] = {};
    for (int k = 0; k < Rule::kStates; ++k) state[k] = base[k] + r * stride[k];
    update_span<Rule, kPrepared>(weight + r * weight_stride, state, gradient, dim, h, sum);
  }
  return all_zero(sum);
}

constexpr int64_t kBlock = 256;

/** Buffers one operand's elements, converted to the computation's type. */
template <class T>
struct Staged {
  alignas(64) T buffer[kBlock];

  static constexpr Compute kCompute = sizeof(T) == 8 ? Compute::F64 : Compute::F32;

  static void* at(const RuleOperand& o, int64_t row, int64_t j) {
    return static_cast<std::byte*>(o.row(row)) + j * static_cast<int64_t>(item_size(o.dtype));
  }
  void load(const RuleOperand& o, int64_t row, int64_t j, int64_t n) {
    load_conversion(o.dtype, kCompute)(buffer, at(o, row, j), n);
  }
  /** Returns whether the stored values are finite: conversion to a narrower dtype may overflow. */
  bool store(const RuleOperand& o, int64_t row, int64_t j, int64_t n) {
    void* const out = at(o, row, j);
    store_conversion(kCompute, o.dtype)(out, buffer, n);
    load_conversion(o.dtype, kCompute)(buffer, out, n);
    T zero = 0;
    for (int64_t i = 0; i < n; ++i) zero += buffer[i] * T(0);
    return zero == T(0);
  }
};

/** The kernel for mixed dtypes: processes blocks in buffers, on which `run` works. */
template <class T>
bool through_buffers(const RuleUpdate& u, int states, RuleUpdateFn* run) {
  Staged<T> weight, gradient, state[kMostStates];
  const auto whole = [](Staged<T>& s) { return RuleOperand{s.buffer, kBlock, native_dtype(Staged<T>::kCompute)}; };
  RuleUpdate block = u;
  block.weight = whole(weight);
  block.gradient = whole(gradient);
  for (int k = 0; k < states; ++k) block.state[k] = whole(state[k]);
  block.rows = nullptr;
  block.n = 1;
  bool finite = true;
  for (int64_t i = 0; i < u.n; ++i)
    for (int64_t j = 0; j < u.dim; j += kBlock) {
      const int64_t r = u.rows ? u.rows[i] : i, n = block.dim = std::min(kBlock, u.dim - j);
      weight.load(u.weight, r, j, n);
      gradient.load(u.gradient, i, j, n);
      for (int k = 0; k < states; ++k) state[k].load(u.state[k], r, j, n);
      finite &= run(block);
      finite &= weight.store(u.weight, r, j, n);
      for (int k = 0; k < states; ++k) finite &= state[k].store(u.state[k], r, j, n);
    }
  return finite;
}

struct RuleKernels {
  int states;
  RuleUpdateFn* run[2][2];  ///< [float64][prepared]
};

template <class... Rule>
const RuleKernels& kernels_of(RuleList<Rule...>, RuleId id) {
  static constexpr RuleKernels kTable[] = {{Rule::kStates,
                                            {{&native<Rule, false, float>, &native<Rule, true, float>},
                                             {&native<Rule, false, double>, &native<Rule, true, double>}}}...};
  return kTable[static_cast<size_t>(id)];
}

}  // namespace

bool update_by_rule(const RuleUpdate& u) {
  const FlushDenormals scope;
  const RuleKernels& kernels = kernels_of(Rules{}, u.rule);
  const bool is_double = u.weight.dtype == ScalarType::Float64;
  RuleUpdateFn* const run = kernels.run[is_double][is_prepared(u.step)];
  const ScalarType type = is_double ? ScalarType::Float64 : ScalarType::Float32;
  bool same = u.weight.dtype == type && u.gradient.dtype == type;
  for (int k = 0; k < kernels.states; ++k) same &= u.state[k].dtype == type;
  if (same) return run(u);
  return is_double ? through_buffers<double>(u, kernels.states, run) : through_buffers<float>(u, kernels.states, run);
}

}  // namespace tercel::TERCEL_ISA
