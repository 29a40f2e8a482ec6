// Helpers shared by ops that are built on matrix products.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/linalg/gemm_impl.h"

namespace tercel {

/** A matrix in the form that gemm reads: rows of unit stride, or the transpose of such. Copies any other. */
struct MatrixOperand {
  Tensor tensor;
  int64_t leading = 0;
  bool transposed = false;

  explicit MatrixOperand(const Tensor& t) : tensor(t) {
    if (!fits()) {
      tensor = clone(t, MemoryFormat::Contiguous);
      fits();
    }
  }

  int64_t columns() const { return tensor.sizes().back(); }

 private:
  bool fits();
};

/** Views of batches of matrices (the last two dimensions), expanded to a common batch. */
struct CommonBatch {
  DimVector sizes;
  Tensor a, b;

  CommonBatch(const Tensor& left, const Tensor& right);
  /** The sizes of a batch of n by m matrices. */
  DimVector of_matrices(int64_t n, int64_t m) const;
};

/** C = op(A) op(B), the fields of Gemm that do not depend on B; c is contiguous. Holds pointers into the operands'
 * memory. */
template <class T>
Gemm<T> gemm_of(const MatrixOperand& a, const Tensor& c) {
  Gemm<T> g;
  g.m = c.sizes()[c.sizes().size() - 2];
  g.n = c.sizes().back();
  g.k = a.columns();
  g.a = a.tensor.template data<T>();
  g.lda = a.leading;
  g.trans_a = a.transposed;
  g.c = c.data<T>();
  g.ldc = g.n;
  return g;
}

/** The same with B: the fields that all products set. */
template <class T>
Gemm<T> gemm_of(const MatrixOperand& a, const MatrixOperand& b, const Tensor& c) {
  Gemm<T> g = gemm_of<T>(a, c);
  g.b = b.tensor.template data<T>();
  g.ldb = b.leading;
  g.trans_b = b.transposed;
  return g;
}

template <class T>
Gemm<T> gemm_of(MatrixOperand&& a, const Tensor& c) = delete;
template <class T>
Gemm<T> gemm_of(MatrixOperand&& a, const MatrixOperand& b, const Tensor& c) = delete;
template <class T>
Gemm<T> gemm_of(const MatrixOperand& a, MatrixOperand&& b, const Tensor& c) = delete;

/** Calls fn with the C++ type of a dtype that matrix products support. */
template <class Fn>
void visit_gemm_types(const char* op, ScalarType dtype, Fn&& fn) {
  visit_types<float, double>(op, dtype, fn);
}

/** RuntimeError with PyTorch's messages unless a [n, k] and b [k, m] are matrices of one dtype on the CPU. */
void check_mm(const char* op, const Tensor& a, const Tensor& b, const char* a_name);
/** The same for a [batch, n, k] and b [batch, k, m]. */
void check_bmm(const char* op, const Tensor& a, const Tensor& b);

/** x [..., k] reshaped to [n, k]. */
Tensor as_matrix(const Tensor& x);

/** The matrix product a b, not recorded. */
Tensor plain_mm(const Tensor& a, const Tensor& b);

}  // namespace tercel
