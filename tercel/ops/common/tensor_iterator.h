// From the operands of an elementwise op to the loops that its kernel runs.
//
// Note [Elementwise plan]
// The iterator promotes dtypes, broadcasts shapes, refuses overlap, allocates the output in the inputs' dense order,
// sorts dimensions so that memory is walked in order, joins those that are contiguous in every operand, and gives the
// kernel two nested loops at a time, on several threads from 32768 elements on. It lives on the stack, in arrays that
// are not initialised, and allocates nothing but the output. The plain case, contiguous operands of one dtype and
// shape, is recognised first and costs a few nanoseconds.
//
// Note [Promotion tiers]
// Tensors with dimensions, 0-dimensional tensors and bare numbers take part in promotion with falling priority: a lower
// tier changes the result only if its category (bool < integer < floating < complex) is higher; a complex one makes the
// higher tier's floating dtype complex. A bare floating number counts as float32, a complex one as complex64, an
// integer as int64. An operand of a lower tier is one number, and is converted here, once.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/tensor.h"
#include "tercel/ops/common/elementwise_loop.h"
#include "tercel/ops/common/op_list.h"
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

/** How an op treats dtypes. */
struct ElementwiseRule {
  const char* op;
  Domain domain = Domain::Any;
  /** Whether it takes complex numbers; and whether its result is then real all the same. */
  bool complex = false, real = false;
  /** The result is bool, whatever the operands are. */
  bool predicate = false;
  /** Leading inputs that are conditions and take no part in promotion. */
  uint8_t conditions = 0;
  /** Dtype of a fresh output; Undefined: what the operands promote to. */
  ScalarType result = ScalarType::Undefined;
  /** A given output may have any dtype, as in a copy. */
  bool converts = false;
  /** A given output may hold an element several times: all get the same value. */
  bool repeats = false;
};

/** The dtype that the op calculates in; RuntimeError when its domain excludes the operands. */
ScalarType promote_operands(const ElementwiseRule& rule, Span<OperandRef> inputs);

/** Strides of a fresh result, by those of the operands; see Note [Dimensions of size 1]. */
void result_strides(const ElementwiseRule& rule, Span<OperandRef> inputs, IntSpan sizes, int64_t* strides);
/** Whether numbers stand beside tensors as x + 2 has them, and are no settings of the op, as bounds of clamp() are. */
inline bool numbers_are_operands(const ElementwiseRule& rule, Span<OperandRef> inputs) {
  return inputs.size() == 2 || rule.conditions > 0;
}

class TensorIterator {
 public:
  static constexpr int kMaxDims = 64;
  /** From this many elements on, work is split over threads. */
  static constexpr int64_t kGrainElements = 32768;

  /**
   * Plans the loops. An undefined output is allocated. A given one must have the broadcast shape, a dtype that the
   * result may be cast to, and no overlap but that of an input which is the very same elements.
   */
  TensorIterator(const ElementwiseRule& rule, Span<OperandRef> inputs, Tensor& out);
  /** The same for an output that is given. */
  TensorIterator(const ElementwiseRule& rule, Span<OperandRef> inputs, const Tensor& out)
      : TensorIterator(rule, inputs, const_cast<Tensor&>(out)) {
    // A defined output is not replaced.
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
  /** Calls the body for parts of the loops that together cover all elements, on several threads. */
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
  int ndim_;  // of the planned loops: sizes_ and stride_ hold that many, innermost first; loop_ holds the first two
  Device device_;
  ScalarType common_;
  int shape_ndim_;
  alignas(16) char number_[kMaxOperands][16];
  int64_t shape_[kMaxDims];  // broadcast shape, innermost first
  int64_t sizes_[kMaxDims];
  int8_t source_dim_[kMaxDims];  // which dimension of shape_ it was
  int64_t stride_[kMaxOperands][kMaxDims];
};

/** Throws RuntimeError, starting with `op`, unless elements can be written to `out` while `in` is read. */
void check_overlap(const char* op, const Tensor& out, const Tensor& in);
/** Refuses elements in common; being the very same elements is no excuse either. */
void check_apart(const char* op, const Tensor& out, const Tensor& in);
/** Throws RuntimeError, starting with `op`, if two elements of `out` are the same memory. */
void check_no_internal_overlap(const char* op, const Tensor& out);

}  // namespace tercel
