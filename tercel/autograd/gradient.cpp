#include "tercel/autograd/gradient.h"

#include <algorithm>
#include <cstring>

#include "tercel/autograd/record.h"
#include "tercel/core/sparse_data.h"
#include "tercel/util/parallel.h"

namespace tercel {

using detail::make_coo;

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
  return t.layout() == Layout::Strided && t.use_count() == 1 && t.storage().use_count() == 1 &&
         t.impl().is_non_overlapping_and_dense();
}

/** Elements [first, first + count) of dimension d of a strided tensor. */
Tensor part_of(const Tensor& whole, size_t d, int64_t first, int64_t count) {
  DimVector sizes(whole.sizes());
  sizes[d] = count;
  return Tensor(make_intrusive<TensorImpl>(whole.storage(), whole.dtype(), sizes, whole.strides(),
                                           whole.storage_offset() + first * whole.strides()[d]));
}

/** a, then b, along dimension d. */
Tensor joined(const Tensor& a, const Tensor& b, size_t d) {
  DimVector sizes(a.sizes());
  sizes[d] += b.sizes()[d];
  Tensor out = empty(sizes, a.options());
  copy_elements(part_of(out, d, 0, a.sizes()[d]), a);
  copy_elements(part_of(out, d, a.sizes()[d], b.sizes()[d]), b);
  return out;
}

bool same_indices(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  if (a.is_set_to(b)) return true;
  const Tensor x = a.is_contiguous() ? a : dense_copy(a), y = b.is_contiguous() ? b : dense_copy(b);
  return x.numel() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

/** A tensor of a compressed layout with other values. */
Tensor with_values(const Tensor& like, const Tensor& values) {
  const SparseData& parts = *like.impl().sparse();
  return detail::make_compressed(like.layout(), parts.indices, parts.plain_indices, values, like.sizes());
}

/** The entries of a tensor of a compressed layout; others are returned as they are. */
Tensor coo_of_compressed(const Tensor& g) {
  if (!is_compressed(g.layout())) return g;
  const SparseData& parts = *g.impl().sparse();
  const bool rows = g.layout() == Layout::SparseCsr || g.layout() == Layout::SparseBsr;
  const bool blocked = g.layout() == Layout::SparseBsr || g.layout() == Layout::SparseBsc;
  const auto batch = static_cast<size_t>(parts.indices.dim() - 1);
  const Tensor offsets = dense_copy(parts.indices), plain = dense_copy(parts.plain_indices),
               values = dense_copy(parts.values);
  const auto at = [](const Tensor& t, int64_t i) {
    return t.dtype() == kInt64 ? t.data<int64_t>()[i] : int64_t{t.data<int32_t>()[i]};
  };
  const IntSpan value_sizes = values.sizes();
  const int64_t height = blocked ? value_sizes[batch + 1] : 1, width = blocked ? value_sizes[batch + 2] : 1;
  const int64_t lines = offsets.sizes()[batch], nnz = plain.sizes()[batch], count = plain.numel() * height * width;
  const Tensor indices = empty({static_cast<int64_t>(batch) + 2, count}, kInt64);
  auto* to = indices.data<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t entry = i / (height * width), b = nnz == 0 ? 0 : entry / nnz, e = entry % std::max<int64_t>(nnz, 1);
    int64_t low = 0, high = lines - 1;  // the last line that begins at e or before
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (at(offsets, b * lines + middle) <= e ? low : high) = middle;
    }
    int64_t rest = b;
    for (size_t d = batch; d-- > 0; rest /= g.sizes()[d]) to[static_cast<int64_t>(d) * count + i] = rest % g.sizes()[d];
    const int64_t other = at(plain, entry), k = i % (height * width);
    to[static_cast<int64_t>(batch) * count + i] = (rows ? low : other) * height + k / width;
    to[static_cast<int64_t>(batch + 1) * count + i] = (rows ? other : low) * width + k % width;
  }
  DimVector sizes{count}, strides;
  for (size_t d = batch + (blocked ? 3 : 1); d < value_sizes.size(); ++d) sizes.push_back(value_sizes[d]);
  const Tensor flat(make_intrusive<TensorImpl>(values.storage(), values.dtype(), sizes, contiguous_strides(sizes),
                                               values.storage_offset()));
  return make_coo(indices, flat, g.sizes(), false);
}

/** The sum of two sparse gradients of one pattern; undefined if their patterns differ. */
Tensor sum_of_pattern(const Tensor& a, const Tensor& b) {
  check_same(a, b);
  const SparseData &left = *a.impl().sparse(), &right = *b.impl().sparse();
  if (a.layout() != b.layout() || left.indices.dtype() != right.indices.dtype() ||
      left.values.sizes() != right.values.sizes() || !same_indices(left.indices, right.indices) ||
      !same_indices(left.plain_indices, right.plain_indices))
    return {};
  const Tensor values = dense_copy(left.values);
  accumulate_dense(values, right.values);
  return with_values(a, values);
}

/** The entries of both. */
Tensor concatenate_coo(const Tensor& first, const Tensor& second) {
  check_same(first, second);
  if (is_compressed(first.layout()) && is_compressed(second.layout()))
    if (Tensor sum = sum_of_pattern(first, second); sum.defined()) return sum;
  const Tensor a = coo_of_compressed(first), b = coo_of_compressed(second);
  const SparseData &left = *a.impl().sparse(), &right = *b.impl().sparse();
  TERCEL_CHECK(left.sparse_dim == right.sparse_dim, RuntimeError, "gradient of ", describe(b), " with ",
               right.sparse_dim, " sparse dimensions cannot be added to one with ", left.sparse_dim);
  // Gradients of one pattern, as those of two uses of a tensor mostly are, keep it.
  if (left.coalesced && right.coalesced && same_indices(left.indices, right.indices)) {
    const Tensor values = dense_copy(left.values);
    accumulate_dense(values, right.values);
    return make_coo(left.indices, values, a.sizes(), true);
  }
  return make_coo(joined(left.indices, right.indices, 1), joined(left.values, right.values, 0), a.sizes(), false);
}

/** Adds the entries of a COO tensor to a strided one of its sizes. */
void add_entries(const Tensor& into, const Tensor& g) {
  check_same(into, g);
  const SparseData& parts = *g.impl().sparse();
  const auto n = static_cast<size_t>(parts.sparse_dim);
  const auto* index = static_cast<const int64_t*>(parts.indices.data_ptr());
  for (int64_t i = 0; i < parts.values.size(0); ++i) {
    int64_t offset = into.storage_offset();
    for (size_t d = 0; d < n; ++d) {
      const int64_t at = index[static_cast<int64_t>(d) * parts.indices.stride(0) + i * parts.indices.stride(1)];
      TERCEL_CHECK(at >= 0 && at < into.sizes()[d], IndexError, "gradient index ", at, " of dimension ", d,
                   " is out of range for ", describe(into));
      offset += at * into.strides()[d];
    }
    const auto rest = [n](IntSpan all) { return all.subspan(n, all.size() - n); };
    const Tensor to(
        make_intrusive<TensorImpl>(into.storage(), into.dtype(), rest(into.sizes()), rest(into.strides()), offset));
    const IntSpan sizes = parts.values.sizes(), strides = parts.values.strides();
    const Tensor from(make_intrusive<TensorImpl>(
        parts.values.storage(), parts.values.dtype(), sizes.subspan(1, sizes.size() - 1),
        strides.subspan(1, sizes.size() - 1), parts.values.storage_offset() + i * strides[0]));
    accumulate_dense(to, from);
  }
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

namespace {

/** A sparse tensor with the same entries and the parts that own(part) returns; compressed layouts keep their indices.
 */
template <class Own>
Tensor with_own_parts(const Tensor& g, Own&& own) {
  const SparseData& parts = *g.impl().sparse();
  if (is_compressed(g.layout())) return with_values(g, own(parts.values));
  return make_coo(own(parts.indices), own(parts.values), g.sizes(), parts.coalesced);
}

}  // namespace

Tensor own_sparse(const Tensor& g) {
  // The parts of a tensor that somebody else holds are theirs too.
  const bool alone = g.use_count() == 1;
  return with_own_parts(g, [alone](const Tensor& t) {
    return alone && t.use_count() == 1 && t.storage().use_count() == 1 ? t : dense_copy(t);
  });
}

Gradient to_coo(Gradient g, IntSpan sizes) {
  if (!g.is_rows()) return g;
  Tensor values = g.values;
  const int64_t n = g.rows.numel();
  if (g.sources.defined()) {
    DimVector value_sizes(values.sizes());
    value_sizes[0] = n;
    values = empty(value_sizes, g.values.options());
    const auto* source = static_cast<const int64_t*>(g.sources.data_ptr());
    for (int64_t i = 0; i < n; ++i) copy_elements(part_of(values, 0, i, 1), part_of(g.values, 0, source[i], 1));
  }
  const Tensor indices(make_intrusive<TensorImpl>(g.rows.storage(), kInt64, IntSpan{1, n},
                                                  IntSpan{n, g.rows.strides()[0]}, g.rows.storage_offset()));
  return {make_coo(indices, values, sizes, false), {}};
}

Gradient to_rows(Gradient g) {
  if (!g.is_coo()) return g;
  const SparseData& parts = *g.values.impl().sparse();
  if (parts.sparse_dim != 1) return g;
  const Tensor& indices = parts.indices;
  const Tensor rows(make_intrusive<TensorImpl>(indices.storage(), kInt64, IntSpan{indices.size(1)},
                                               IntSpan{indices.stride(1)}, indices.storage_offset()));
  return {parts.values, rows};
}

void add_rows(const Tensor& into, const Gradient& g) {
  if (g.is_compressed()) return add_entries(into, coo_of_compressed(g.values));
  if (g.is_coo()) return add_entries(into, g.values);
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
  Tensor out;
  if (a.layout() != Layout::Strided && b.layout() != Layout::Strided) {
    out = concatenate_coo(a, b);
  } else {
    const bool swapped = a.layout() != Layout::Strided;
    const Tensor &first = swapped ? b : a, &second = swapped ? a : b;
    out = dense_copy(first);
    if (second.layout() == Layout::Strided)
      accumulate_dense(out, second);
    else
      add_entries(out, coo_of_compressed(second));
  }
  record_sum(out, a, b);
  return out;
}

/** Row gradients are not differentiable. */
bool records(const Gradient& a, const Gradient& b) {
  return !a.is_rows() && !b.is_rows() && should_record(a.values, b.values);
}

}  // namespace

bool has_layout_of(const Tensor& g, const Tensor& variable) {
  if (variable.layout() != Layout::Strided) return g.is_contiguous();
  return variable.impl().is_non_overlapping_and_dense() ? g.strides() == variable.strides() : g.is_contiguous();
}

namespace {

Tensor strided_copy(const Tensor& g, const Tensor& variable) {
  const bool dense = variable.layout() == Layout::Strided && variable.impl().is_non_overlapping_and_dense() &&
                     extent_of(variable.sizes(), variable.strides()).lowest == 0;
  Tensor out = dense ? empty_strided(g.sizes(), variable.strides(), g.options()) : empty(g.sizes(), g.options());
  copy_elements(out, g);
  return out;
}

}  // namespace

Tensor copy_with_layout_of(const Tensor& g, const Tensor& variable) {
  Tensor out = g.layout() == Layout::Strided ? strided_copy(g, variable) : with_own_parts(g, dense_copy);
  // Recorded as a copy into new memory, whose first input is the old content.
  if (should_record(g))
    record("CopyBackwards", out, {Tensor(), g}, [](BackwardCall& call) { call.set(1, call.take()); });
  return out;
}

Gradient add_gradients(Gradient a, Gradient b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  if (records(a, b)) return {add_recorded(a.values, b.values), {}};
  if ((a.is_compressed() && !b.is_strided()) || (b.is_compressed() && !a.is_strided())) {
    const IntSpan sizes = a.is_compressed() ? a.values.sizes() : b.values.sizes();
    return {concatenate_coo(to_coo(a, sizes).values, to_coo(b, sizes).values), {}};
  }
  if (a.is_rows() && b.is_coo()) a = to_coo(std::move(a), b.values.sizes());
  if (a.is_coo() && b.is_rows()) b = to_coo(std::move(b), a.values.sizes());
  if (a.is_rows() && b.is_rows()) return concatenate_rows(a, b);
  if (a.is_coo() && b.is_coo()) return {concatenate_coo(a.values, b.values), {}};
  if (!a.is_strided() || (b.is_strided() && !exclusively_owned(a.values) && exclusively_owned(b.values)))
    std::swap(a, b);
  if (!exclusively_owned(a.values)) a.values = dense_copy(a.values);
  if (!b.is_strided())
    add_rows(a.values, b);
  else
    accumulate_dense(a.values, b.values);
  return a;
}

}  // namespace tercel
