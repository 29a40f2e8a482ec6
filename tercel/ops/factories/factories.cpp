#include "tercel/ops/factories/factories.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "tercel/core/convert.h"
#include "tercel/core/dtype_words.h"
#include "tercel/core/sparse_data.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/copy_impl.h"
#include "tercel/ops/common/new_tensor_impl.h"
#include "tercel/ops/common/out.h"
#include "tercel/ops/common/promotion_impl.h"
#include "tercel/ops/factories/tensor_of.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

Tensor zeros(IntSpan sizes, TensorOptions options) {
  return detail::made(sizes, options, [](Tensor& out) { zero_elements(out); });
}
Tensor ones(IntSpan sizes, TensorOptions options) { return full(sizes, 1, options); }
Tensor full(IntSpan sizes, Scalar value) { return full(sizes, value, value.dtype()); }
Tensor full(IntSpan sizes, Scalar value, TensorOptions options) {
  return detail::made(sizes, options, [&](Tensor& out) { fill_elements(out, value); });
}

namespace {

/** Whether strides are those of a new tensor; a contiguous one may differ in dimensions of size 1. */
bool is_row_major(const Tensor& x) {
  if (!x.is_contiguous()) return false;
  int64_t step = 1;
  for (size_t d = x.sizes().size(); d-- > 0; step *= std::max<int64_t>(x.sizes()[d], 1))
    if (x.strides()[d] != step) return false;
  return true;
}

/** A new sparse tensor after its values are set. */
Tensor finished(const Tensor& out, const TensorOptions& options) {
  return options.requires_grad ? Tensor(out).requires_grad_() : out;
}

}  // namespace

Tensor empty_like(const Tensor& x, TensorOptions options, MemoryFormat format) {
  if (has_sparse(x)) [[unlikely]]
    return finished(sparse_empty_like("empty_like", x, options, format), options);
  check_strided("empty_like", x);
  if (format != MemoryFormat::Preserve) return empty(x.sizes(), options, format);
  if (is_row_major(x)) return empty(x.sizes(), options);
  return empty_strided(x.sizes(), preserved_strides(x.sizes(), x.strides()), options);
}
Tensor empty_like(const Tensor& x, MemoryFormat format) { return empty_like(x, x.options(), format); }
Tensor zeros_like(const Tensor& x, TensorOptions options, MemoryFormat format) {
  if (has_sparse(x)) [[unlikely]]
    return finished(zero_(sparse_empty_like("zeros_like", x, options, format)), options);
  return detail::made_like(x, options, format, [](Tensor& out) { zero_elements(out); });
}
Tensor zeros_like(const Tensor& x, MemoryFormat format) { return zeros_like(x, x.options(), format); }
Tensor full_like(const Tensor& x, Scalar value, TensorOptions options, MemoryFormat format) {
  if (is_compressed(x.layout()) && options.layout == x.layout()) [[unlikely]] {
    // As in PyTorch: the value at the entries.
    const Tensor out = sparse_empty_like("full_like", x, options, format);
    fill_(out.impl().sparse()->values, value);
    return finished(out, options);
  }
  if (is_sparse(x.layout()) && options.layout == Layout::Strided) return full(x.sizes(), value, options);
  check_strided("full_like", x);
  return detail::made_like(x, options, format, [value](Tensor& out) { fill_elements(out, value); });
}
Tensor full_like(const Tensor& x, Scalar value, MemoryFormat format) {
  return full_like(x, value, x.options(), format);
}
Tensor ones_like(const Tensor& x, TensorOptions options, MemoryFormat format) {
  if (!is_compressed(x.layout()) && !(has_sparse(x) && options.layout == Layout::Strided))
    check_strided("ones_like", x);
  return full_like(x, 1, options, format);
}
Tensor ones_like(const Tensor& x, MemoryFormat format) { return ones_like(x, x.options(), format); }

Tensor arange(Scalar end) { return arange(0, end); }
Tensor arange(Scalar start, Scalar end, Scalar step) {
  const bool floating = start.is_floating() || end.is_floating() || step.is_floating();
  return arange(start, end, step, floating ? kFloat32 : kInt64);
}

namespace {

void check_range(const char* op, Scalar start, Scalar end, Scalar step) {
  for (const Scalar& n : {start, end, step}) check_number_fits(kFloat64, n);
  const double a = start.to_double(), b = end.to_double(), s = step.to_double();
  TERCEL_CHECK(s != 0, RuntimeError, op, ": step must be nonzero");
  TERCEL_CHECK(std::isfinite(a) && std::isfinite(b), RuntimeError, op, ": unsupported range: ", a, " -> ", b);
  TERCEL_CHECK((s > 0) == (b >= a) || a == b, RuntimeError, op,
               ": upper bound and lower bound inconsistent with step sign");
}

int64_t checked_count(const char* op, double n) {
  TERCEL_CHECK(n < 0x1p62, RuntimeError, op, ": overflow, ", n, " elements do not fit 64 bits");
  return static_cast<int64_t>(n);
}

/** start + i * step for `count` indices i; for an integral dtype, of start and step as integers. */
Tensor steps_from(const char* op, Scalar start, Scalar step, int64_t count, TensorOptions options) {
  TERCEL_CHECK(options.dtype != kBool, NotImplementedError, op, ": not implemented for dtype bool");
  return detail::made({count}, options, [&](Tensor& out) {
    visit_real_types(op, out.dtype(), [&]<class T> {
      T* values = out.data<T>();
      parallel_for(0, count, 1 << 15, [&](int64_t first, int64_t last) {
        if constexpr (std::is_integral_v<T>) {
          const auto from = static_cast<uint64_t>(start.to<int64_t>()), by = static_cast<uint64_t>(step.to<int64_t>());
          for (int64_t i = first; i < last; ++i) values[i] = static_cast<T>(from + static_cast<uint64_t>(i) * by);
        } else {
          const double from = start.to_double(), by = step.to_double();
          for (int64_t i = first; i < last; ++i) values[i] = convert<T>(from + static_cast<double>(i) * by);
        }
      });
    });
  });
}

/** The number converted to the dtype, which must hold it (unsigned dtypes also accept wrapped values), and back. */
Scalar as_element(Scalar value, ScalarType dtype) {
  check_number_fits(dtype, value);
  Scalar out;
  visit_all_types("linspace", dtype, [&]<class T> {
    using Wide = std::conditional_t<is_complex_number<T>, Complex<double>, double>;
    out = convert<Wide>(value.to<T>());
  });
  return out;
}

/** Calls set(i, number) for `steps` numbers from start to end, computed from both ends so that both are exact. */
template <class Wide, class Set>
void spread(Scalar start, Scalar end, int64_t steps, Set set) {
  const Wide a = start.to<Wide>(), b = end.to<Wide>();
  const Wide step = steps > 1 ? (b - a) / Wide(static_cast<double>(steps - 1)) : Wide(0);
  parallel_for(0, steps, 1 << 13, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      set(i, 2 * i < steps ? a + Wide(static_cast<double>(i)) * step
                           : b - Wide(static_cast<double>(steps - 1 - i)) * step);
  });
}

double power(double base, double exponent) { return std::pow(base, exponent); }
Complex<double> power(double base, Complex<double> exponent) {
  const std::complex<double> z = std::pow(std::complex<double>(base), std::complex<double>(exponent.re, exponent.im));
  return {z.real(), z.imag()};
}

void check_steps(const char* op, int64_t steps, ScalarType type) {
  TERCEL_CHECK(steps >= 0, RuntimeError, op, ": number of steps must be non-negative, got ", steps);
  TERCEL_CHECK(type != kBool, NotImplementedError, op, ": not implemented for dtype bool");
}

}  // namespace

Tensor arange(Scalar start, Scalar end, Scalar step, TensorOptions options) {
  check_range("arange", start, end, step);
  int64_t count = 0;
  if (start.is_integral() && end.is_integral() && step.is_integral()) {
    // Unsigned, as the distance may not fit int64; the check above has determined the direction.
    const auto from = static_cast<uint64_t>(start.to_int64()), to = static_cast<uint64_t>(end.to_int64());
    const bool up = step.to_double() > 0;
    const uint64_t distance = up ? to - from : from - to;
    const auto forward = static_cast<uint64_t>(step.to_int64());
    const uint64_t by = up ? forward : 0 - forward;
    count = static_cast<int64_t>(distance / by + (distance % by != 0));
  } else {
    count = checked_count("arange", std::ceil((end.to_double() - start.to_double()) / step.to_double()));
  }
  return steps_from("arange", start, step, count, options);
}

Tensor range(Scalar start, Scalar end, Scalar step, TensorOptions options) {
  check_range("range", start, end, step);
  const double n = std::floor((end.to_double() - start.to_double()) / step.to_double());
  return steps_from("range", start, step, checked_count("range", n) + 1, options);
}

Tensor linspace(Scalar start, Scalar end, int64_t steps, TensorOptions options) {
  check_steps("linspace", steps, options.dtype);
  return detail::made({steps}, options, [&](Tensor& out) {
    const Scalar low = as_element(start, out.dtype()), high = as_element(end, out.dtype());
    visit_all_types("linspace", out.dtype(), [&]<class T> {
      using Wide = std::conditional_t<is_complex_number<T>, Complex<double>, double>;
      T* values = out.data<T>();
      spread<Wide>(low, high, steps, [values](int64_t i, Wide number) { values[i] = convert<T>(number); });
    });
  });
}

Tensor logspace(Scalar start, Scalar end, int64_t steps, double base, TensorOptions options) {
  check_steps("logspace", steps, options.dtype);
  return detail::made({steps}, options, [&](Tensor& out) {
    const Scalar low = as_element(start, out.dtype()), high = as_element(end, out.dtype());
    const Tensor wide = empty({steps}, is_complex(out.dtype()) ? kComplex128 : kFloat64);
    const auto calculate = [&]<class Wide>() {
      Wide* values = wide.data<Wide>();
      spread<Wide>(low, high, steps, [values, base](int64_t i, Wide number) { values[i] = power(base, number); });
    };
    if (is_complex(out.dtype()))
      calculate.template operator()<Complex<double>>();
    else
      calculate.template operator()<double>();
    copy_elements_out(out, wide);
  });
}

Tensor eye(int64_t n, int64_t m, TensorOptions options) {
  if (m == -1) m = n;
  TERCEL_CHECK(n >= 0, RuntimeError, "eye: n must be greater or equal to 0, got ", n);
  TERCEL_CHECK(m >= 0, RuntimeError, "eye: m must be greater or equal to 0, got ", m);
  return detail::made({n, m}, options, [&](Tensor& out) {
    zero_elements(out);
    if (out.numel() > 0) fill_elements(as_strided(out, {std::min(n, m)}, {m + 1}), 1);
  });
}

Tensor scalar_tensor(Scalar value) { return full({}, value); }
Tensor scalar_tensor(Scalar s, TensorOptions options) { return full({}, s, options); }

namespace {

using Literals = Span<detail::TensorLiteral>;

/** The sizes, from the first element at each level of nesting. */
DimVector sizes_of(Literals list) {
  DimVector sizes{static_cast<int64_t>(list.size())};
  while (!list.empty() && list[0].is_list()) {
    list = list[0].list();
    sizes.push_back(static_cast<int64_t>(list.size()));
  }
  return sizes;
}

TypeCategory widest(Literals list) {
  TypeCategory out = TypeCategory::Bool;
  for (const auto& item : list) out = std::max(out, item.is_list() ? widest(item.list()) : item.value().category());
  return out;
}

bool has_numbers(Literals list) {
  for (const auto& item : list)
    if (!item.is_list() || has_numbers(item.list())) return true;
  return false;
}

template <class T>
T* write(T* to, Literals list, IntSpan sizes) {
  TERCEL_CHECK(static_cast<int64_t>(list.size()) == sizes[0], RuntimeError, "tensor: expected sequence of length ",
               sizes[0], " but got length ", list.size());
  for (const auto& item : list) {
    TERCEL_CHECK(item.is_list() == (sizes.size() > 1), RuntimeError,
                 "tensor: numbers and lists are mixed at the same depth");
    if (item.is_list())
      to = write(to, item.list(), sizes.subspan(1, sizes.size() - 1));
    else
      *to++ = item.value().to<T>();
  }
  return to;
}

}  // namespace

namespace {

ScalarType dtype_of(TypeCategory category) {
  switch (category) {
    case TypeCategory::Bool: return kBool;
    case TypeCategory::Integral: return kInt64;
    case TypeCategory::Complex: return kComplex64;
    default: return kFloat32;
  }
}

}  // namespace

ScalarType detail::literal_dtype(ScalarType type) { return dtype_of(category_of(type)); }

Tensor detail::tensor_of(const void* data, ScalarType type, size_t count, TensorOptions options) {
  const auto size = static_cast<int64_t>(count);
  const IntSpan sizes(&size, 1);
  return detail::made(sizes, options, [&](Tensor& out) {
    // The data is only read.
    const Tensor given = count == 0 ? empty({0}, type) : from_blob(const_cast<void*>(data), sizes, type);
    copy_elements_out(out, given);
  });
}

Tensor tensor(std::initializer_list<detail::TensorLiteral> list) {
  const Literals literals(list);
  if (!has_numbers(literals)) return tensor(list, kFloat32);
  return tensor(list, dtype_of(widest(literals)));
}

Tensor tensor(std::initializer_list<detail::TensorLiteral> list, TensorOptions options) {
  const Literals literals(list);
  const DimVector sizes = sizes_of(literals);
  return detail::made(sizes, options, [&](Tensor& out) {
    visit_all_types("tensor", out.dtype(), [&]<class T> {
      T* end = write(out.data<T>(), literals, sizes);
      TERCEL_CHECK(end == out.data<T>() + out.numel(), RuntimeError, "tensor: the lists have different depths");
    });
  });
}

const Tensor& arange_out(const Tensor& out, Scalar end) { return arange_out(out, 0, end); }
const Tensor& arange_out(const Tensor& out, Scalar start, Scalar end, Scalar step) {
  return put_out("arange", out, arange(start, end, step, out.dtype()));
}
const Tensor& empty_out(const Tensor& out, IntSpan sizes) {
  prepare_out("empty", out, sizes);
  return out;
}

}  // namespace tercel
