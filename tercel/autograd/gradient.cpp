#include "tercel/autograd/gradient.h"

#include <cstring>

#include "tercel/autograd/record.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

/** Calls run(target pointer, source pointer, count) for each innermost row of two tensors of the same sizes. */
template <class T, class Run>
void for_each_row(const Tensor& target, const Tensor& source, Run&& run) {
  T* to = target.data<T>();
  const T* from = source.data<T>();
  const int64_t numel = target.numel();
  if (numel == 0) return;
  const bool same_order = target.impl().is_non_overlapping_and_dense() && target.strides() == source.strides() &&
                          extent_of(target.sizes(), target.strides()).lowest == 0;
  if (same_order || (target.is_contiguous() && source.is_contiguous())) {
    parallel_for(0, numel, 32768,
                 [&](int64_t begin, int64_t end) { run(to + begin, 1, from + begin, 1, end - begin); });
    return;
  }
  const IntSpan sizes = target.sizes();
  const size_t last = sizes.size() - 1;  // a tensor without dimensions is contiguous
  const int64_t inner = sizes[last];
  DimVector index(sizes.size(), 0);
  for (int64_t done = 0; done < numel; done += inner) {
    int64_t at_to = 0, at_from = 0;
    for (size_t d = 0; d < last; ++d) {
      at_to += index[d] * target.strides()[d];
      at_from += index[d] * source.strides()[d];
    }
    run(to + at_to, target.strides()[last], from + at_from, source.strides()[last], inner);
    for (size_t d = last; d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
}

template <class T>
void add_row(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t n) {
  if (to_stride == 1 && from_stride == 1) {
    // `to` and `from` are whole gradients: they coincide or are disjoint.
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(to[i] + from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_stride] = static_cast<T>(to[i * to_stride] + from[i * from_stride]);
  }
}

void check_same(const Tensor& a, const Tensor& b) {
  TERCEL_CHECK(a.sizes() == b.sizes() && a.dtype() == b.dtype(), RuntimeError, "gradient of ", describe(b),
               " cannot be added to one of ", describe(a));
}

/** Whether nothing else refers to the tensor's memory. */
bool exclusively_owned(const Tensor& t) {
  return t.use_count() == 1 && t.storage().use_count() == 1 && t.impl().is_non_overlapping_and_dense();
}

Gradient concatenate_rows(const Gradient& a, const Gradient& b) {
  const int64_t entries_a = a.rows.numel(), entries_b = b.rows.numel();
  const int64_t values_a = a.values.size(0), values_b = b.values.size(0);
  DimVector sizes(a.values.sizes());
  TERCEL_CHECK(a.values.sizes().subspan(1, sizes.size() - 1) == b.values.sizes().subspan(1, sizes.size() - 1) &&
                   a.values.dtype() == b.values.dtype(),
               RuntimeError, "gradient rows of ", describe(b.values), " cannot be added to ", describe(a.values));
  sizes[0] = values_a + values_b;
  Gradient out{empty(sizes, a.values.options()), empty({entries_a + entries_b}, kInt64)};
  const auto part = [](const Tensor& whole, int64_t first, int64_t count) {
    DimVector part_sizes(whole.sizes());
    part_sizes[0] = count;
    return Tensor(make_intrusive<TensorImpl>(whole.storage(), whole.dtype(), part_sizes, whole.strides(),
                                             whole.storage_offset() + first * whole.strides()[0]));
  };
  copy_elements(part(out.values, 0, values_a), a.values);
  copy_elements(part(out.values, values_a, values_b), b.values);
  copy_elements(part(out.rows, 0, entries_a), a.rows);
  copy_elements(part(out.rows, entries_a, entries_b), b.rows);
  if (a.sources.defined() || b.sources.defined()) {
    out.sources = empty({entries_a + entries_b}, kInt64);
    auto* sources = out.sources.data<int64_t>();
    const auto add = [&sources](const Gradient& g, int64_t entries, int64_t first) {
      const int64_t* from = g.sources.defined() ? g.sources.data<int64_t>() : nullptr;
      for (int64_t i = 0; i < entries; ++i) *sources++ = first + (from ? from[i] : i);
    };
    add(a, entries_a, 0);
    add(b, entries_b, values_a);
  }
  return out;
}

}  // namespace

void accumulate_dense(const Tensor& into, const Tensor& g) {
  check_same(into, g);
  visit_differentiable_types("gradient", into.dtype(), [&]<class T> { for_each_row<T>(into, g, &add_row<T>); });
}

void add_rows(const Tensor& into, const Gradient& g) {
  const int64_t* rows = g.rows.data<int64_t>();
  const int64_t* sources = g.sources.defined() ? g.sources.data<int64_t>() : nullptr;
  for (int64_t i = 0; i < g.rows.numel(); ++i) {
    const int64_t row = rows[i];
    TERCEL_CHECK(row >= 0 && row < into.size(0), IndexError, "gradient row ", row, " is out of range for ",
                 describe(into));
    const auto at = [](const Tensor& t, int64_t index) {
      return Tensor(make_intrusive<TensorImpl>(t.storage(), t.dtype(), t.sizes().subspan(1, t.sizes().size() - 1),
                                               t.strides().subspan(1, t.sizes().size() - 1),
                                               t.storage_offset() + index * t.strides()[0]));
    };
    accumulate_dense(at(into, row), at(g.values, sources ? sources[i] : i));
  }
}

void copy_elements(const Tensor& target, const Tensor& source) {
  check_same(target, source);
  visit_all_types("copy", target.dtype(), [&]<class T> {
    for_each_row<T>(target, source, [](T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t n) {
      if (to_stride == 1 && from_stride == 1)
        std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
      else
        for (int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
    });
  });
}

Tensor dense_copy(const Tensor& t) {
  Tensor out = empty(t.sizes(), t.options());
  copy_elements(out, t);
  return out;
}

void record_sum(const Tensor& sum, const Tensor& a, const Tensor& b) {
  if (!should_record(a, b)) return;
  record("AddBackward0", sum, {a, b}, [](BackwardCall& call) {
    for (size_t i = 0; i < 2; ++i)
      if (call.needs(i)) call.set(i, call.grad());
  });
}

namespace {

/** a + b as an op of the graph: neither is changed. */
Tensor add_recorded(const Tensor& a, const Tensor& b) {
  Tensor out = dense_copy(a);
  accumulate_dense(out, b);
  record_sum(out, a, b);
  return out;
}

/** Row gradients are not differentiable. */
bool records(const Gradient& a, const Gradient& b) {
  return !a.is_rows() && !b.is_rows() && should_record(a.values, b.values);
}

}  // namespace

bool has_layout_of(const Tensor& g, const Tensor& variable) {
  return variable.impl().is_non_overlapping_and_dense() ? g.strides() == variable.strides() : g.is_contiguous();
}

Tensor copy_with_layout_of(const Tensor& g, const Tensor& variable) {
  const bool dense =
      variable.impl().is_non_overlapping_and_dense() && extent_of(variable.sizes(), variable.strides()).lowest == 0;
  Tensor out = dense ? empty_strided(g.sizes(), variable.strides(), g.options()) : empty(g.sizes(), g.options());
  copy_elements(out, g);
  // Recorded as a copy into new memory, whose first input is the old content.
  if (should_record(g))
    record("CopyBackwards", out, {Tensor(), g}, [](BackwardCall& call) { call.set(1, call.take()); });
  return out;
}

Gradient add_gradients(Gradient a, Gradient b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  if (records(a, b)) return {add_recorded(a.values, b.values), {}};
  if (a.is_rows() && b.is_rows()) return concatenate_rows(a, b);
  if (a.is_rows() || (!b.is_rows() && !exclusively_owned(a.values) && exclusively_owned(b.values))) std::swap(a, b);
  if (!exclusively_owned(a.values)) a.values = dense_copy(a.values);
  if (b.is_rows())
    add_rows(a.values, b);
  else
    accumulate_dense(a.values, b.values);
  return a;
}

}  // namespace tercel
