#include "tercel/ops/common/tensor_iterator_impl.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tercel/core/convert.h"
#include "tercel/core/dtype_words.h"
#include "tercel/core/load_element.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/overlap_checks_impl.h"
#include "tercel/ops/common/promotion_impl.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constexpr int64_t kStreamBytes = int64_t{32} << 20;

int64_t item_bytes(ScalarType t) { return static_cast<int64_t>(item_size(t)); }

ScalarType result_dtype(const ElementwiseRule& rule, ScalarType common) {
  if (rule.predicate) return kBool;
  if (rule.result != ScalarType::Undefined) return rule.result;
  return rule.real ? real_dtype(common) : common;
}

bool integers_only(Span<OperandRef> inputs) {
  for (const OperandRef& input : inputs)
    if (input.tensor() && (!is_integral(input.tensor()->dtype(), true) || input.tensor()->dtype() == kUInt64))
      return false;
  return true;
}

Scalar read_number(const void* p, ScalarType dtype) {
  return visit_all_types("elementwise", dtype, [&]<class T>() { return Scalar(load_unaligned<T>(p)); });
}

}  // namespace

TensorIterator::TensorIterator(const ElementwiseRule& rule, Span<OperandRef> inputs, Tensor& out) {
  TERCEL_ASSERT(inputs.size() < static_cast<size_t>(kMaxOperands));
  loop_.nargs = static_cast<uint8_t>(inputs.size() + 1);
  loop_.host_scalars = 0;
  if (!plan_flat(rule, inputs, out)) plan(rule, inputs, out);
}

namespace {

/** Whether a contiguous tensor has a stride that a new one would not have, along a dimension of size 1. */
bool has_odd_units(const TensorImpl& x) {
  const IntSpan sizes = x.sizes(), strides = x.strides();
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0; step *= sizes[d])
    if (sizes[d] == 1 && strides[d] != step) return true;
  return false;
}

}  // namespace

bool TensorIterator::plan_flat(const ElementwiseRule& rule, Span<OperandRef> inputs, Tensor& out) {
  const TensorImpl* first = nullptr;
  bool numbers = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor* t = inputs[i].tensor();
    if (!t) {
      numbers = true;
      continue;
    }
    const TensorImpl& impl = t->impl();
    if (i < rule.conditions) return false;
    if (first) {
      if (impl.dtype() != first->dtype() || impl.sizes() != first->sizes()) return false;
    } else {
      first = &impl;
    }
    if (!impl.is_contiguous() || !impl.device().is_cpu() || impl.layout() != Layout::Strided || !impl.defined())
      return false;
  }
  if (!first) return false;
  const ScalarType dtype = first->dtype();
  switch (rule.domain) {
    case Domain::Any: break;
    case Domain::Number:
      if (dtype == kBool) return false;
      break;
    case Domain::Float:
      if (!is_differentiable(dtype)) return false;
      break;
    case Domain::Integral:
      if (!is_integral(dtype, true)) return false;
      break;
    case Domain::Complex:
      if (!is_complex(dtype)) return false;
      break;
  }
  if (is_complex(dtype) && !rule.complex) return false;
  common_ = dtype;
  loop_.compute = compute_of(dtype);
  if (numbers) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].tensor()) continue;
      const Scalar number = inputs[i].number();
      if (number.category() > category_of(dtype)) return false;
      if (rule.predicate && is_integral(dtype, false) && !holds_number(dtype, number)) return false;
      set_number(static_cast<int>(i) + 1, number);
    }
  }

  const ScalarType result = result_dtype(rule, dtype);
  // With a number operand, strides of dimensions of size 1 matter: Note [Dimensions of size 1].
  if (numbers && !out.defined() && numbers_are_operands(rule, inputs) && has_odd_units(*first)) return false;

  const int64_t numel = first->numel();
  if (out.defined()) {
    const TensorImpl& o = out.impl();
    if (o.dtype() != result || o.sizes() != first->sizes() || !o.is_contiguous() || !o.device().is_cpu()) return false;
    const auto out_begin = reinterpret_cast<uintptr_t>(o.data());
    const uintptr_t out_end = out_begin + static_cast<uintptr_t>(numel) * item_size(result);
    for (const OperandRef& input : inputs) {
      if (!input.tensor()) continue;
      const auto begin = reinterpret_cast<uintptr_t>(input.tensor()->data_ptr());
      const uintptr_t end = begin + static_cast<uintptr_t>(numel) * item_size(dtype);
      const bool same = begin == out_begin && result == dtype;
      if (!same && begin < out_end && out_begin < end) return false;
    }
  } else {
    out = empty(first->sizes(), TensorOptions(result));
  }

  numel_ = numel;
  device_ = kCpu;
  ndim_ = 1;
  sizes_[0] = numel;
  loop_.n[0] = numel;
  loop_.n[1] = 1;
  loop_.data[0] = static_cast<char*>(out.data_ptr());
  loop_.dtype[0] = result;
  loop_.stride[0][0] = stride_[0][0] = item_bytes(result);
  loop_.stride[0][1] = 0;
  loop_.stream = false;
  const int64_t item = item_bytes(dtype);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor* t = inputs[i].tensor();
    if (!t) continue;
    loop_.data[i + 1] = static_cast<char*>(t->data_ptr());
    loop_.dtype[i + 1] = dtype;
    loop_.stride[i + 1][0] = stride_[i + 1][0] = item;
    loop_.stride[i + 1][1] = 0;
  }
  if (numel * item_bytes(result) >= kStreamBytes) [[unlikely]] {
    loop_.stream = true;
    for (size_t i = 1; i < loop_.nargs; ++i) loop_.stream &= loop_.data[i] != loop_.data[0];
  }
  return true;
}

// The number in the compute type, after conversion to the common dtype.
void TensorIterator::set_number(int operand, Scalar value) {
  char* slot = number_[operand];
  const auto put = [slot](auto v) { std::memcpy(slot, &v, sizeof v); };
  switch (loop_.compute) {
    case Compute::F32: put(value.to<float>()); break;
    case Compute::F64: put(value.to_double()); break;
    case Compute::U64: put(value.to<uint64_t>()); break;
    case Compute::C64: put(value.to<Complex<float>>()); break;
    case Compute::C128: put(value.to_complex()); break;
    case Compute::I64: {
      const int64_t wide = value.to_int64();
      put(common_ == kUInt32 ? int64_t{static_cast<uint32_t>(wide)} : wide);
      break;
    }
    case Compute::I32: {
      const int64_t wide = value.to_int64();
      switch (common_) {
        case kBool: put(static_cast<int32_t>(value.to_bool())); break;
        case kUInt8: put(static_cast<int32_t>(static_cast<uint8_t>(wide))); break;
        case kInt8: put(static_cast<int32_t>(static_cast<int8_t>(wide))); break;
        case kInt16: put(static_cast<int32_t>(static_cast<int16_t>(wide))); break;
        case kUInt16: put(static_cast<int32_t>(static_cast<uint16_t>(wide))); break;
        default: put(static_cast<int32_t>(wide)); break;
      }
      break;
    }
  }
  loop_.data[operand] = slot;
  loop_.dtype[operand] = native_dtype(loop_.compute);
  loop_.stride[operand][0] = loop_.stride[operand][1] = 0;
  // ndim_ is not known yet; dimensions beyond the first are filled by broadcast().
  stride_[operand][0] = 0;
  loop_.host_scalars = static_cast<uint8_t>(loop_.host_scalars | (1u << operand));
}

void TensorIterator::check_operands(const char* op, Span<OperandRef> inputs, const Tensor& out) {
  // Numbers and 0-dimensional CPU tensors may accompany tensors of any device.
  const Tensor* leader = out.defined() ? &out : nullptr;
  for (const OperandRef& input : inputs) {
    const Tensor* t = input.tensor();
    if (!t) continue;
    TERCEL_CHECK(t->defined(), RuntimeError, op, ": expected a tensor but got an undefined one");
    if (t->layout() != Layout::Strided) refuse_layout(op, t->layout());
    if (!leader || (leader != &out && leader->dim() == 0 && leader->device().is_cpu())) leader = t;
  }
  device_ = leader ? leader->device() : kCpu;
  for (const OperandRef& input : inputs) {
    const Tensor* t = input.tensor();
    if (!t || (t->dim() == 0 && t->device().is_cpu())) continue;
    TERCEL_CHECK(t->device() == device_, RuntimeError, op,
                 ": expected all tensors to be on the same device, but found at least two devices, ",
                 to_string(device_), " and ", to_string(t->device()));
  }
}

void TensorIterator::broadcast(const char* op, Span<OperandRef> inputs, const Tensor& out) {
  const auto check_ndim = [op](int ndim) {
    TERCEL_CHECK(ndim <= kMaxDims, RuntimeError, op, ": only tensors with up to ", kMaxDims,
                 " dims are supported, not ", ndim);
  };
  shape_ndim_ = 0;
  for (const OperandRef& input : inputs) {
    if (!input.tensor()) continue;
    const IntSpan sizes = input.tensor()->sizes();
    const int ndim = static_cast<int>(sizes.size());
    check_ndim(ndim);
    for (int d = 0; d < ndim; ++d) {
      const int64_t size = sizes[static_cast<size_t>(ndim - 1 - d)];
      if (d >= shape_ndim_) {
        shape_[d] = size;
      } else if (shape_[d] != size) {
        TERCEL_CHECK(shape_[d] == 1 || size == 1, RuntimeError, op, ": The size of tensor a (", shape_[d],
                     ") must match the size of tensor b (", size, ") at non-singleton dimension ",
                     std::max(ndim, shape_ndim_) - 1 - d);
        if (shape_[d] == 1) shape_[d] = size;
      }
    }
    shape_ndim_ = std::max(shape_ndim_, ndim);
  }
  if (out.defined()) {
    // Inputs may be broadcast to the output, but not the output to inputs.
    const IntSpan sizes = out.sizes();
    const int ndim = static_cast<int>(sizes.size());
    check_ndim(ndim);
    bool fits = shape_ndim_ <= ndim;
    for (int d = 0; fits && d < shape_ndim_; ++d)
      fits = shape_[d] == 1 || shape_[d] == sizes[static_cast<size_t>(ndim - 1 - d)];
    if (!fits) {
      DimVector shape;
      for (int d = shape_ndim_; d-- > 0;) shape.push_back(shape_[d]);
      throw_error<RuntimeError>(
          {op, ": output with shape ", sizes, " doesn't match the broadcast shape ", IntSpan(shape)});
    }
    for (int d = 0; d < ndim; ++d) shape_[d] = sizes[static_cast<size_t>(ndim - 1 - d)];
    shape_ndim_ = ndim;
  }
  numel_ = 1;
  ndim_ = 0;
  bool overflow = false, none = false;
  for (int d = 0; d < shape_ndim_; ++d) {
    overflow |= __builtin_mul_overflow(numel_, shape_[d], &numel_);
    none |= shape_[d] == 0;
    if (shape_[d] == 1) continue;
    sizes_[ndim_] = shape_[d];
    source_dim_[ndim_] = static_cast<int8_t>(d);
    ++ndim_;
  }
  if (none) numel_ = 0;
  TERCEL_CHECK(none || !overflow, RuntimeError, op, ": the broadcast shape has more elements than 64 bits can count");
}

void TensorIterator::add_strides(int operand, const Tensor& t) {
  const IntSpan sizes = t.sizes(), strides = t.strides();
  const int ndim = static_cast<int>(sizes.size());
  const int64_t item = static_cast<int64_t>(t.itemsize());
  for (int d = 0; d < ndim_; ++d) {
    const int at = ndim - 1 - source_dim_[d];
    const bool repeats = at < 0 || sizes[static_cast<size_t>(at)] == 1;
    stride_[operand][d] = repeats ? 0 : strides[static_cast<size_t>(at)] * item;
  }
  loop_.data[operand] = static_cast<char*>(t.data_ptr());
  loop_.dtype[operand] = t.dtype();
}

// Whether dim lies inside other in memory, by the first operand that distinguishes them; order is 0 if none does.
bool TensorIterator::comes_before(int dim, int other, int first_operand, int& order) const {
  order = 0;
  for (int a = first_operand; a < loop_.nargs; ++a) {
    const int64_t s = std::abs(stride_[a][dim]), o = std::abs(stride_[a][other]);
    if (s == 0 || o == 0) continue;
    if (s != o) {
      order = s < o ? -1 : 1;
      break;
    }
    if (sizes_[dim] > sizes_[other]) {
      order = 1;
      break;
    }
  }
  return order < 0;
}

void TensorIterator::sort_dims(bool output_given) {
  const int first_operand = output_given ? 0 : 1;
  for (int d = 1; d < ndim_; ++d) {
    int at = d;
    for (int below = d - 1; below >= 0; --below) {
      int order;
      if (comes_before(below, at, first_operand, order)) break;
      if (order == 0) continue;
      std::swap(sizes_[below], sizes_[at]);
      std::swap(source_dim_[below], source_dim_[at]);
      for (int a = first_operand; a < loop_.nargs; ++a) std::swap(stride_[a][below], stride_[a][at]);
      at = below;
    }
  }
}

void TensorIterator::allocate(const ElementwiseRule& rule, Span<OperandRef> inputs, Tensor& out, ScalarType dtype) {
  int64_t sizes[kMaxDims], strides[kMaxDims];
  bool row_major = true;
  for (int d = 0; d < shape_ndim_; ++d) sizes[shape_ndim_ - 1 - d] = shape_[d];
  for (int d = 1; d < ndim_; ++d) row_major &= source_dim_[d] > source_dim_[d - 1];
  const IntSpan size_span(sizes, static_cast<size_t>(shape_ndim_));
  const int64_t item = item_bytes(dtype);
  const bool units = shape_ndim_ != ndim_;
  if ((row_major && !units) || numel_ == 0) {
    out = empty(size_span, TensorOptions(dtype, device_));
  } else {
    const IntSpan stride_span(strides, static_cast<size_t>(shape_ndim_));
    if (units) {
      result_strides(rule, inputs, size_span, strides);
    } else {
      int64_t step = 1;
      for (int d = 0; d < ndim_; ++d) {
        strides[shape_ndim_ - 1 - source_dim_[d]] = step;
        step *= sizes_[d];
      }
    }
    out = empty_strided(size_span, stride_span, TensorOptions(dtype, device_));
  }
  const IntSpan laid = out.strides();
  for (int d = 0; d < ndim_; ++d) stride_[0][d] = laid[static_cast<size_t>(shape_ndim_ - 1 - source_dim_[d])] * item;
  loop_.data[0] = static_cast<char*>(out.data_ptr());
  loop_.dtype[0] = dtype;
}

// Reverses dimensions in which the output has a negative stride: elementwise ops do not depend on the order.
void TensorIterator::make_output_ascend() {
  for (int d = 0; d < ndim_; ++d) {
    if (stride_[0][d] >= 0) continue;
    for (int a = 0; a < loop_.nargs; ++a) {
      loop_.data[a] += (sizes_[d] - 1) * stride_[a][d];
      stride_[a][d] = -stride_[a][d];
    }
  }
}

void TensorIterator::coalesce() {
  if (ndim_ == 0) {
    ndim_ = 1;
    sizes_[0] = 1;
    for (int a = 0; a < loop_.nargs; ++a) stride_[a][0] = item_bytes(loop_.dtype[a]);
    for (int a = 0; a < loop_.nargs; ++a)
      if ((loop_.host_scalars >> a & 1) != 0) stride_[a][0] = 0;
    return;
  }
  int last = 0;
  for (int d = 1; d < ndim_; ++d) {
    bool joins = true;
    for (int a = 0; a < loop_.nargs; ++a) joins &= stride_[a][d] == sizes_[last] * stride_[a][last];
    if (joins) {
      sizes_[last] *= sizes_[d];
      continue;
    }
    ++last;
    sizes_[last] = sizes_[d];
    for (int a = 0; a < loop_.nargs; ++a) stride_[a][last] = stride_[a][d];
  }
  ndim_ = last + 1;
}

// Kernels transpose in blocks if an operand is contiguous along the second loop; this makes that dimension the second.
void TensorIterator::pick_outer_dim() {
  for (int a = 1; a < loop_.nargs && ndim_ > 2; ++a) {
    const int64_t item = item_bytes(loop_.dtype[a]);
    if (stride_[a][0] == 0 || stride_[a][0] == item) continue;
    for (int d = 1; d < ndim_; ++d) {
      if (stride_[a][d] != item) continue;
      std::swap(sizes_[1], sizes_[d]);
      for (int b = 0; b < loop_.nargs; ++b) std::swap(stride_[b][1], stride_[b][d]);
      return;
    }
  }
}

void TensorIterator::finish(const Tensor& out, Span<OperandRef> inputs) {
  for (int a = 0; a < loop_.nargs; ++a) {
    loop_.stride[a][0] = stride_[a][0];
    loop_.stride[a][1] = ndim_ > 1 ? stride_[a][1] : 0;
  }
  loop_.n[0] = sizes_[0];
  loop_.n[1] = ndim_ > 1 ? sizes_[1] : 1;
  loop_.stream = numel_ * item_bytes(loop_.dtype[0]) >= kStreamBytes && stride_[0][0] == item_bytes(loop_.dtype[0]);
  for (const OperandRef& input : inputs)
    if (input.tensor()) loop_.stream &= input.tensor()->data_ptr() != out.data_ptr();
}

void TensorIterator::plan(const ElementwiseRule& rule, Span<OperandRef> inputs, Tensor& out) {
  check_operands(rule.op, inputs, out);
  common_ = promote_operands(rule, inputs);
  loop_.compute = compute_of(common_);
  loop_.host_scalars = 0;
  ScalarType result = result_dtype(rule, common_);
  const bool output_given = out.defined();
  if (output_given) {
    check_strided(rule.op, out, "out");
    TERCEL_CHECK(rule.converts || can_cast(result, out.dtype()), RuntimeError, rule.op, ": result type ",
                 scalar_type_word(result), " can't be cast to the desired output type ", scalar_type_word(out.dtype()));
    result = out.dtype();
  }
  broadcast(rule.op, inputs, out);
  if (output_given) {
    if (!rule.repeats) check_no_internal_overlap(rule.op, out);
    for (const OperandRef& input : inputs)
      if (input.tensor()) check_overlap(rule.op, out, *input.tensor());
    add_strides(0, out);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int operand = static_cast<int>(i) + 1;
    const Tensor* t = inputs[i].tensor();
    const bool lower_tier = t && t->numel() == 1 && t->dim() == 0 && t->device().is_cpu() && i >= rule.conditions &&
                            (t->dtype() != common_ || !device_.is_cpu());
    if (t && !lower_tier) {
      add_strides(operand, *t);
    } else {
      Scalar number = t ? read_number(t->data_ptr(), t->dtype()) : inputs[i].number();
      // A signed integer near the bound must not be rounded above it.
      if (rule.predicate && number.is_above_int64() && integers_only(inputs)) number = HUGE_VAL;
      set_number(operand, number);
      std::fill(stride_[operand], stride_[operand] + ndim_, int64_t{0});
    }
  }
  sort_dims(output_given);
  if (!output_given) allocate(rule, inputs, out, result);
  if (numel_ == 0) return;
  make_output_ascend();
  coalesce();
  pick_outer_dim();
  finish(out, inputs);
}

// Iterates over all dimensions after the first two.
void TensorIterator::serial(FunctionRef<void(const ElementwiseLoop&)> body) const {
  ElementwiseLoop part = loop_;
  if (ndim_ <= 2) {
    body(part);
    return;
  }
  int64_t index[kMaxDims];
  std::fill(index, index + ndim_, int64_t{0});
  for (;;) {
    body(part);
    int d = 2;
    for (; d < ndim_; ++d) {
      const bool wraps = ++index[d] == sizes_[d];
      for (int a = 0; a < part.nargs; ++a) part.data[a] += wraps ? -(sizes_[d] - 1) * stride_[a][d] : stride_[a][d];
      if (!wraps) break;
      index[d] = 0;
    }
    if (d == ndim_) return;
  }
}

void TensorIterator::for_each(FunctionRef<void(const ElementwiseLoop&)> body) {
  if (numel_ == 0) return;
  if (!device_.is_cpu() || numel_ < 2 * kGrainElements || num_threads() == 1 || in_parallel_region()) {
    serial(body);
    return;
  }
  // The loops are split into boxes: whole rows if there are enough of them, in groups of 64 so that transposed blocks
  // stay whole; else parts of rows. The boxes depend only on the problem, not on the number of threads.
  const int64_t n0 = loop_.n[0], n1 = loop_.n[1];
  int64_t rest = 1;
  for (int d = 2; d < ndim_; ++d) rest *= sizes_[d];
  const int64_t rows = n1 > 64 ? 64 : 1;
  const int64_t piece = n1 * rest >= 64 ? n0 : std::min<int64_t>(n0, kGrainElements / 4);
  const int64_t boxes0 = ceil_div(n0, piece), boxes1 = ceil_div(n1, rows);
  const int64_t grain = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, piece * rows));
  parallel_for(0, boxes0 * boxes1 * rest, grain, [&](int64_t first, int64_t last) {
    ElementwiseLoop part = loop_;
    for (int64_t box = first; box < last;) {
      const int64_t i = box % boxes0, j = box / boxes0 % boxes1;
      int64_t r = box / boxes0 / boxes1;
      // Boxes that are consecutive in memory are passed to the kernel together.
      int64_t along0 = 1, along1 = 1;
      if (boxes0 > 1)
        along0 = std::min(boxes0 - i, last - box);
      else
        along1 = std::min(boxes1 - j, last - box);
      part.n[0] = std::min(n0, (i + along0) * piece) - i * piece;
      part.n[1] = std::min(n1, (j + along1) * rows) - j * rows;
      for (int a = 0; a < part.nargs; ++a)
        part.data[a] = loop_.data[a] + i * piece * loop_.stride[a][0] + j * rows * loop_.stride[a][1];
      for (int d = 2; d < ndim_; ++d) {
        const int64_t at = r % sizes_[d];
        r /= sizes_[d];
        for (int a = 0; a < part.nargs; ++a) part.data[a] += at * stride_[a][d];
      }
      body(part);
      box += along0 * along1;
    }
  });
}

}  // namespace tercel
