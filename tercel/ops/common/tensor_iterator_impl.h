// Planning of elementwise ops: from operands to the loops that a kernel runs.
//
// Note [Elementwise plan]
// The iterator promotes dtypes, broadcasts shapes, checks overlap, allocates the output in the inputs' dense order,
// sorts dimensions by stride, merges those that are contiguous in every operand, and passes two nested loops at a time
// to the kernel, on several threads from 32768 elements on. It is a stack object with uninitialised arrays and
// allocates only the output. The common case, contiguous operands of one dtype and shape, is tested first and costs a
// few nanoseconds.
//
// Note [Promotion tiers]
// Tensors with dimensions, 0-dimensional tensors and numbers take part in promotion with descending priority: a lower
// tier changes the result only if its category (bool < integer < floating < complex) is higher; a complex one makes the
// higher tier's floating dtype complex. A floating number counts as float32, a complex one as complex64, an integer as
// int64. Operands of lower tiers are single numbers and are converted once, here.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/tensor.h"
#include "tercel/ops/common/elementwise_loop_impl.h"
#include "tercel/ops/common/op_list_impl.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/span.h"

namespace tercel {

/** An input of an elementwise op: a tensor, by reference, or a number. */
class OperandRef {
 public:
  OperandRef(const Tensor& tensor) : tensor_(&tensor) {}
  OperandRef(Scalar number) : number_(number) {}

  const Tensor* tensor() const { return tensor_; }
  Scalar number() const { return number_; }

 private:
  const Tensor* tensor_ = nullptr;
  Scalar number_;
};

/** Dtype rules of an op. */
struct ElementwiseRule {
  const char* op;
  Domain domain = Domain::Any;
  /** Whether complex numbers are supported, and whether the result for them is real. */
  bool complex = false, real = false;
  /** The result is bool for all operands. */
  bool predicate = false;
  /** Leading inputs that are conditions and take no part in promotion. */
  uint8_t conditions = 0;
  /** Dtype of a new output; Undefined: the promoted dtype. */
  ScalarType result = ScalarType::Undefined;
  /** A given output may have any dtype, as in copy_(). */
  bool converts = false;
  /** A given output may have overlapping elements, since all get the same value. */
  bool repeats = false;
};

/** The compute dtype of the op; throws if the op does not support the operands' dtypes. */
ScalarType promote_operands(const ElementwiseRule& rule, Span<OperandRef> inputs);

/** Strides of a new result, derived from those of the operands; see Note [Dimensions of size 1]. */
void result_strides(const ElementwiseRule& rule, Span<OperandRef> inputs, IntSpan sizes, int64_t* strides);
/** Whether numbers are operands, as in x + 2, rather than parameters such as the bounds of clamp(). */
inline bool numbers_are_operands(const ElementwiseRule& rule, Span<OperandRef> inputs) {
  return inputs.size() == 2 || rule.conditions > 0;
}

class TensorIterator {
 public:
  static constexpr int kMaxDims = 64;
  /** Number of elements from which work is split over threads. */
  static constexpr int64_t kGrainElements = 32768;

  /**
   * Plans the loops. An undefined output is allocated. A given output must have the broadcast shape and a dtype that
   * the result can be cast to, and may overlap only inputs identical to it.
   */
  TensorIterator(const ElementwiseRule& rule, Span<OperandRef> inputs, Tensor& out);
  /** The same for a given output. */
  TensorIterator(const ElementwiseRule& rule, Span<OperandRef> inputs, const Tensor& out)
      : TensorIterator(rule, inputs, const_cast<Tensor&>(out)) {
    // A defined output is never replaced.
  }
  TensorIterator(const TensorIterator&) = delete;
  TensorIterator& operator=(const TensorIterator&) = delete;

  int64_t numel() const { return numel_; }
  Device device() const { return device_; }
  ScalarType common_dtype() const { return common_; }

  /** Runs op number `op` of a family over all elements. */
  void run(const KernelTable<ElementwiseFn>& kernels, int op) {
    if (numel_ == 0) return;
    ElementwiseFn* kernel = kernels[device_];
    if (ndim_ <= 2 && (numel_ < kGrainElements || !device_.is_cpu())) {
      kernel(op, loop_);
    } else {
      auto body = [kernel, op](const ElementwiseLoop& loop) { kernel(op, loop); };
      for_each(body);
    }
  }
  /** Calls the body for parts of the loops, which together cover all elements, on several threads. */
  void for_each(FunctionRef<void(const ElementwiseLoop&)> body);

 private:
  bool plan_flat(const ElementwiseRule& rule, Span<OperandRef> inputs, Tensor& out);
  void plan(const ElementwiseRule& rule, Span<OperandRef> inputs, Tensor& out);
  void check_operands(const char* op, Span<OperandRef> inputs, const Tensor& out);
  void broadcast(const char* op, Span<OperandRef> inputs, const Tensor& out);
  void add_strides(int operand, const Tensor& t);
  void set_number(int operand, Scalar value);
  bool comes_before(int dim, int other, int first_operand, int& order) const;
  void sort_dims(bool output_given);
  void allocate(const ElementwiseRule& rule, Span<OperandRef> inputs, Tensor& out, ScalarType dtype);
  void make_output_ascend();
  void coalesce();
  void pick_outer_dim();
  void finish(const Tensor& out, Span<OperandRef> inputs);
  void serial(FunctionRef<void(const ElementwiseLoop&)> body) const;

  ElementwiseLoop loop_;
  int64_t numel_;
  int ndim_;  // planned loops: the length of sizes_ and stride_, innermost first; loop_ holds the first two
  Device device_;
  ScalarType common_;
  int shape_ndim_;
  alignas(16) char number_[kMaxOperands][16];
  int64_t shape_[kMaxDims];  // broadcast shape, innermost first
  int64_t sizes_[kMaxDims];
  int8_t source_dim_[kMaxDims];  // index of the dimension in shape_
  int64_t stride_[kMaxOperands][kMaxDims];
};

}  // namespace tercel
