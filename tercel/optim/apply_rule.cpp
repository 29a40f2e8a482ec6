#include "tercel/optim/apply_rule.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "tercel/autograd/grad_mode.h"
#include "tercel/autograd/record.h"
#include "tercel/core/launch.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/overlap_checks_impl.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/optim/rules_kernels.h"
#include "tercel/util/ceil_div.h"

namespace tercel::optim {

namespace {

constinit const KernelTable<RuleUpdateFn> update_by_rule_kernels = TERCEL_CPU_KERNELS(update_by_rule);

template <class... Rule>
int num_states_of(RuleList<Rule...>, RuleId id) {
  constexpr int kStates[] = {Rule::kStates...};
  static_assert(RuleList<Rule...>::kSize == static_cast<int>(RuleId::Ftrl) + 1);
  return kStates[static_cast<size_t>(id)];
}

/** Weight, states and gradient, and the temporary tensors that replace some of them. */
struct Operands {
  std::array<const Tensor*, kMostStates + 2> tensors;
  std::array<Tensor, kMostStates + 2> made;
  size_t n = 0;

  Operands() = default;
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
  const Tensor& operator[](size_t i) const { return *tensors[i]; }
  const Tensor& weight() const { return *tensors[0]; }
  /** Replaces operand i by a tensor that this object keeps alive. */
  void take(size_t i, Tensor t) {
    made[i] = std::move(t);
    tensors[i] = &made[i];
  }
  void add(const Tensor& t) {
    tensors[n++] = &t;
    if (t.is_complex()) take(n - 1, view_as_real(t.detach()));
  }
  template <class Holds>
  bool all(Holds&& holds) const {
    for (size_t i = 0; i < n; ++i)
      if (!holds(*tensors[i])) return false;
    return true;
  }
};

/** Runs the kernel on chunks of rows or elements; the caller has set all of `u` but data, strides and n. */
bool run(const RuleUpdate& u, const Operands& operands, int64_t count, int64_t grain, bool by_rows) {
  const Device device = operands.weight().device();
  const auto kernel = update_by_rule_kernels[device];
  const size_t states = operands.n - 2;
  // data_ptr() accesses the storage, so it is called once, before any thread writes.
  std::array<RuleOperand, kMostStates + 2> whole;
  for (size_t i = 0; i < operands.n; ++i) {
    const Tensor& t = operands[i];
    whole[i] = {t.data_ptr(), by_rows ? row_stride(t) : 1, t.dtype()};
  }
  std::atomic<bool> finite = true;
  launch(device, 0, count, grain, [&](int64_t begin, int64_t end) {
    RuleUpdate part = u;
    const auto from = [&](RuleOperand o, int64_t row) {
      o.data = o.row(row);
      return o;
    };
    const int64_t first = u.rows ? 0 : begin;  // row indices refer to the beginning of weight and states
    part.weight = from(whole[0], first);
    for (size_t k = 0; k < states; ++k) part.state[k] = from(whole[k + 1], first);
    part.gradient = from(whole[operands.n - 1], begin);
    if (u.rows) part.rows = u.rows + begin;
    if (by_rows) {
      part.n = end - begin;
    } else {
      part.n = 1;
      part.dim = end - begin;
    }
    if (!kernel(part)) finite = false;
  });
  return finite;
}

constexpr int64_t kGrainElements = 1 << 15;

bool same_strides(const Tensor& a, const Tensor& b) {
  for (int64_t d = 0; d < a.dim(); ++d)
    if (a.size(d) != 1 && a.stride(d) != b.stride(d)) return false;
  return true;
}

/** Runs on operands with contiguous rows; others are replaced by copies, which are then copied back. */
template <class Run>
bool with_plain_operands(const Operands& given, Run&& run) {
  Operands plain;
  plain.n = given.n;
  for (size_t i = 0; i < given.n; ++i)
    if (row_stride(given[i]) < 0)
      plain.take(i, contiguous(given[i]));
    else
      plain.tensors[i] = given.tensors[i];
  const bool finite = run(plain);
  for (size_t i = 0; i + 1 < given.n; ++i)
    if (plain.tensors[i] != given.tensors[i]) copy_(given[i], plain[i]);
  return finite;
}

bool apply_dense(RuleUpdate& u, const Operands& operands) {
  const auto elements = [&u](const Operands& all) { return run(u, all, all.weight().numel(), kGrainElements, false); };
  const auto contiguous = [](const Tensor& t) { return t.is_contiguous(); };
  const Tensor& weight = operands.weight();
  if (operands.all(contiguous) || (weight.impl().is_non_overlapping_and_dense() &&
                                   operands.all([&](const Tensor& t) { return same_strides(t, weight); })))
    return elements(operands);
  return with_plain_operands(operands, [&](const Operands& plain) {
    if (plain.all(contiguous)) return elements(plain);
    u.dim = plain.weight().size(1);
    return run(u, plain, plain.weight().size(0), kGrainElements / u.dim + 1, true);
  });
}

bool apply_rows(RuleUpdate& u, const Operands& operands, const Tensor& rows) {
  u.rows = rows.data<int64_t>();
  return with_plain_operands(operands, [&](const Operands& plain) {
    u.dim = plain.weight().numel() / plain.weight().size(0);
    return run(u, plain, rows.numel(), 1024, true);
  });
}

}  // namespace

int64_t row_stride(const Tensor& t) {
  if (t.numel() == 0 || t.dim() == 0) return 0;
  if (t.is_contiguous()) return t.numel() / t.size(0);
  const bool rows = t.dim() == 2 && (t.stride(1) == 1 || t.size(1) == 1) && (t.stride(0) >= t.size(1));
  return rows ? t.stride(0) : -1;
}

// Rows ascend, so checking the first and the last is enough.
void check_ascending_rows(const char* name, const Tensor& rows, const Tensor& weight) {
  if (rows.numel() == 0) return;
  const int64_t first = rows.data<int64_t>()[0], last = rows.data<int64_t>()[rows.numel() - 1];
  TERCEL_CHECK(first >= 0 && last < weight.size(0), IndexError, name, ": row ", first < 0 ? first : last,
               " is out of range for ", describe(weight));
}

void check_row_range(const char* name, const Tensor& rows, const Tensor& weight) {
  TERCEL_CHECK(rows.dtype() == kInt64, RuntimeError, name, ": expected rows [n] of int64 but got ", describe(rows));
  const Tensor flat = rows.contiguous();
  const auto* const first = static_cast<const int64_t*>(flat.data_ptr());
  const int64_t count = weight.size(0);
  const auto* const bad = std::find_if(first, first + flat.numel(), [count](int64_t r) { return r < 0 || r >= count; });
  TERCEL_CHECK(bad == first + flat.numel(), IndexError, name, ": row ", *bad, " is out of range for ",
               describe(weight));
}

int num_states(RuleId rule) { return num_states_of(Rules{}, rule); }

void check_rule_operands(const char* name, RuleId rule, const Tensor& weight, Span<Tensor> states,
                         const Gradient& gradient) {
  const auto row_sizes = [](const Tensor& t) { return t.sizes().subspan(1, t.sizes().size() - 1); };
  const auto fits = [&](const Tensor& t) {
    return t.defined() && t.is_complex() == weight.is_complex() && t.device() == weight.device();
  };
  check_defined(name, weight, "parameter");
  TERCEL_CHECK(weight.is_differentiable(), NotImplementedError, name,
               ": expected a floating or complex parameter, got ", describe(weight));
  const int wanted = num_states(rule);
  TERCEL_CHECK(static_cast<int64_t>(states.size()) == wanted, RuntimeError, name, ": expected ", wanted,
               " states of a parameter, got ", states.size());
  for (const Tensor& state : states)
    TERCEL_CHECK(fits(state) && state.is_differentiable() && state.sizes() == weight.sizes(), RuntimeError, name,
                 ": state ", describe(state), " does not fit parameter ", describe(weight));
  const Tensor& values = gradient.values;
  if (gradient.is_rows()) {
    TERCEL_CHECK(fits(values) && weight.dim() >= 1 && values.dim() >= 1 && row_sizes(values) == row_sizes(weight) &&
                     values.is_differentiable(),
                 RuntimeError, name, ": gradient rows ", describe(values), " do not fit parameter ", describe(weight));
  } else {
    TERCEL_CHECK(fits(values) && values.sizes() == weight.sizes() && values.is_differentiable(), RuntimeError, name,
                 ": gradient ", describe(values), " does not fit parameter ", describe(weight));
  }
  const NoGradGuard no_grad;
  const auto check_written = [&](const Tensor& t) {
    check_inplace(t, false);
    check_no_internal_overlap(name, t);
    check_overlap(name, t, values);
  };
  check_written(weight);
  for (const Tensor& state : states) {
    check_written(state);
    check_apart(name, state, weight);
  }
}

bool apply_rule_between(const char* name, RuleId rule, const Step<double>& step, const Step<double>& rest,
                        const Tensor& weight, Span<Tensor> states, const Gradient& gradient, const Tensor& zero_row,
                        int64_t begin, int64_t end) {
  const int64_t count = gradient.rows.defined() ? gradient.rows.numel() : 0;
  const auto* const rows = count == 0 ? nullptr : gradient.rows.data<int64_t>();
  TERCEL_CHECK(0 <= begin && end <= weight.size(0) && (count == 0 || (begin <= rows[0] && rows[count - 1] < end)),
               IndexError, name, ": rows [", begin, ", ", end, ") of ", describe(weight), " and of the gradient");
  if (begin >= end || weight.numel() == 0) return true;
  RuleUpdate u{};
  u.rule = rule;
  u.dim = weight.numel() / weight.size(0);
  const auto whole = [](const Tensor& t) { return RuleOperand{t.data_ptr(), row_stride(t), t.dtype()}; };
  u.weight = whole(weight);
  for (size_t k = 0; k < states.size(); ++k) u.state[k] = whole(states[k]);
  const RuleOperand values = count == 0 ? RuleOperand{} : whole(gradient.values);
  const RuleOperand zeros{zero_row.data_ptr(), 0, zero_row.dtype()};
  const auto kernel = update_by_rule_kernels[weight.device()];
  const auto consecutive = [&u, states](int64_t row) {  // rows from this one on
    RuleUpdate part = u;
    part.weight.data = u.weight.row(row);
    for (size_t k = 0; k < states.size(); ++k) part.state[k].data = u.state[k].row(row);
    return part;
  };
  std::atomic<bool> finite = true;
  // Parts whose rows stay in the cache from their step with a gradient to that of the rows between them.
  const int64_t grain = std::max<int64_t>(1, (1 << 13) / u.dim);
  const int64_t parts = ceil_div(end - begin, grain);
  launch(weight.device(), 0, parts, 4, [&](int64_t first_part, int64_t last_part) {
    for (int64_t p = first_part; p < last_part; ++p) {
      const int64_t from = begin + p * grain, to = std::min(from + grain, end);
      const auto* const first = std::lower_bound(rows, rows + count, from);
      const auto* const last = std::lower_bound(first, rows + count, to);
      bool good = true;
      const auto run_rest = [&](int64_t row, int64_t next) {
        if (row == next) return;
        RuleUpdate part = consecutive(row);
        part.gradient = zeros;
        part.n = next - row;
        part.step = rest;
        good &= kernel(part);
      };
      if (first != last) {
        RuleUpdate part = u;
        part.rows = first;
        part.n = last - first;
        part.gradient = values;
        part.gradient.data = values.row(first - rows);
        part.step = step;
        good &= kernel(part);
      }
      int64_t next = from;
      for (const auto* row = first; row != last; next = *row++ + 1) run_rest(next, *row);
      run_rest(next, to);
      if (!good) finite = false;
    }
  });
  weight.impl().bump_version();
  for (const Tensor& state : states) state.impl().bump_version();
  return finite;
}

bool apply_rule(const char* name, RuleId rule, const Step<double>& step, const Tensor& weight, Span<Tensor> states,
                const Gradient& gradient) {
  TERCEL_CHECK(!gradient.sources.defined(), RuntimeError, name,
               ": expected a row gradient with a value for each row, as UniqueRows makes it, got one with sources");
  if (gradient.is_rows()) check_ascending_rows(name, gradient.rows, weight);
  bool finite = true;
  if (weight.numel() != 0 && gradient.values.numel() != 0) {
    const NoGradGuard no_grad;
    Operands operands;
    operands.add(weight);
    for (const Tensor& state : states) operands.add(state);
    operands.add(gradient.values);
    RuleUpdate u{};
    u.rule = rule;
    u.step = step;
    finite = gradient.is_rows() ? apply_rows(u, operands, gradient.rows) : apply_dense(u, operands);
  }
  weight.impl().bump_version();
  for (const Tensor& state : states) state.impl().bump_version();
  return finite;
}

}  // namespace tercel::optim
