// Sparse tensors: parts, conversions, and tercel.sparse.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/ops/sparse/compressed.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/sparse.h"
#include "tercel/ops/sparse/tensorflow.h"

namespace tercel::python {

namespace {

/** to_dense() of either layout. */
Tensor dense(const Tensor& x, std::optional<ScalarType> dtype, std::optional<bool> masked_grad) {
  return to_dense(x, dtype, masked_grad.value_or(true));
}

Tensor in_layout(const Tensor& x, PyObject* layout, const std::optional<DimVector>& blocksize,
                 std::optional<int64_t> dense_dim) {
  TERCEL_CHECK(layout == Py_None || is_layout(layout), TypeError, "to_sparse(): argument 'layout' must be a layout");
  const Layout wanted = layout == Py_None ? Layout::SparseCoo : to_layout(layout);
  TERCEL_CHECK(!blocksize || blocksize->size() == 2, RuntimeError,
               "dense_to_sparse: blocksize needs to be a tuple of size 2, but got ", blocksize ? blocksize->size() : 0);
  if (wanted == x.layout() && !blocksize) return x;
  return to_sparse(x, wanted, span_of(blocksize), dense_dim);
}

std::vector<Tensor> parts_of(const tensorflow::SparseTensor& x) { return {x.indices(), x.values(), x.dense_shape()}; }

}  // namespace

Span<Entry> sparse_ops() {
  constexpr unsigned kAsk = kMethod | kCheap | kAnyLayout;
  static const Entry table[] = {
      entry(
          "_sparse_coo_tensor(Tensor indices, Tensor values, int[]? size=None, bool? check_invariants=None, bool? "
          "is_coalesced=None)",
          [](const Tensor& indices, const Tensor& values, const std::optional<DimVector>& size,
             std::optional<bool> check, std::optional<bool> coalesced) {
            return sparse_coo_tensor(indices, values, size ? *size : infer_coo_size(indices, values), check, coalesced);
          },
          kFunction | kAnyLayout, "sparse_coo_tensor() of tensors."),
      entry(
          "is_coalesced(Tensor input)", [](const Tensor& x) { return is_coalesced(x); }, kAsk,
          "Whether the entries are known to be unique and in row-major order."),
      entry(
          "_nnz(Tensor input)", [](const Tensor& x) { return _nnz(x); }, kAsk, "The number of entries."),
      entry(
          "sparse_dim(Tensor input)", [](const Tensor& x) { return sparse_dim(x); }, kAsk,
          "The number of sparse dimensions."),
      entry(
          "_dimI(Tensor input)", [](const Tensor& x) { return sparse_dim(x); }, kAsk, "sparse_dim()."),
      entry(
          "dense_dim(Tensor input)", [](const Tensor& x) { return dense_dim(x); }, kAsk,
          "The number of dense dimensions."),
      entry(
          "_dimV(Tensor input)", [](const Tensor& x) { return dense_dim(x); }, kAsk, "dense_dim()."),
      entry(
          "_coalesced_(Tensor input, bool coalesced)",
          [](const Tensor& x, bool coalesced) -> Tensor { return _coalesced_(x, coalesced); }, kAsk,
          "Declares the tensor coalesced or not, unchecked."),
      entry(
          "to_dense(Tensor input, dtype dtype=None, *, bool? masked_grad=None)",
          [](const Tensor& x, std::optional<ScalarType> dtype, std::optional<bool> masked) {
            return dense(x, dtype, masked);
          },
          kMethod | kAnyLayout),
      entry(
          "to_sparse(Tensor input, int sparse_dim)",
          [](const Tensor& x, int64_t sparse_dim) { return to_sparse(x, sparse_dim); }, kMethod | kAnyLayout,
          "A COO tensor whose first sparse_dim dimensions are sparse."),
      entry(
          "to_sparse(Tensor input, *, layout layout=None, int[]? blocksize=None, int? dense_dim=None)",
          [](const Tensor& x, PyObject* layout, const std::optional<DimVector>& blocksize,
             std::optional<int64_t> dense_dim) { return in_layout(x, layout, blocksize, dense_dim); },
          kMethod | kAnyLayout, "The elements other than zero, in a sparse layout, by default COO."),
      entry(
          "to_sparse(Tensor input, *, int blocksize, layout layout=None, int? dense_dim=None)",
          [](const Tensor& x, int64_t side, PyObject* layout, std::optional<int64_t> dense_dim) {
            return in_layout(x, layout, DimVector{side, side}, dense_dim);
          },
          kMethod | kAnyLayout),
      entry(
          "_sparse_compressed_tensor(Tensor compressed_indices, Tensor plain_indices, Tensor values, int[]? size, "
          "layout "
          "layout, bool? check_invariants=None)",
          [](const Tensor& compressed, const Tensor& plain, const Tensor& values, const std::optional<DimVector>& size,
             PyObject* layout, std::optional<bool> check) {
            const Layout wanted = to_layout(layout);
            return size ? sparse_compressed_tensor(compressed, plain, values, *size, wanted, check)
                        : sparse_compressed_tensor(compressed, plain, values, wanted, check);
          },
          kFunction | kAnyLayout, "sparse_compressed_tensor() of tensors."),
      entry(
          "crow_indices(Tensor input)", [](const Tensor& x) { return crow_indices(x); }, kAsk,
          "Offsets of rows [*batch, rows + 1] of a CSR or BSR tensor; RuntimeError for another one."),
      entry(
          "col_indices(Tensor input)", [](const Tensor& x) { return col_indices(x); }, kAsk,
          "Columns [*batch, nnz] of a CSR or BSR tensor; RuntimeError for another one."),
      entry(
          "ccol_indices(Tensor input)", [](const Tensor& x) { return ccol_indices(x); }, kAsk,
          "Offsets of columns [*batch, columns + 1] of a CSC or BSC tensor; RuntimeError for another one."),
      entry(
          "row_indices(Tensor input)", [](const Tensor& x) { return row_indices(x); }, kAsk,
          "Rows [*batch, nnz] of a CSC or BSC tensor; RuntimeError for another one."),
      entry(
          "to_sparse_coo(Tensor input)", [](const Tensor& x) { return to_sparse(x); }, kMethod | kAnyLayout,
          "The elements other than zero as a COO tensor."),
      entry(
          "to_sparse_csr(Tensor input, int? dense_dim=None)",
          [](const Tensor& x, std::optional<int64_t> dense_dim) { return to_sparse_csr(x, dense_dim); },
          kMethod | kAnyLayout, "A CSR tensor, whose last dense_dim dimensions are dense."),
      entry(
          "to_sparse_csc(Tensor input, int? dense_dim=None)",
          [](const Tensor& x, std::optional<int64_t> dense_dim) { return to_sparse_csc(x, dense_dim); },
          kMethod | kAnyLayout, "A CSC tensor, whose last dense_dim dimensions are dense."),
      entry(
          "to_sparse_bsr(Tensor input, int[] blocksize, int? dense_dim=None)",
          [](const Tensor& x, const DimVector& blocksize, std::optional<int64_t> dense_dim) {
            return to_sparse_bsr(x, blocksize, dense_dim);
          },
          kMethod | kAnyLayout, "A BSR tensor of blocks of the size, whose last dense_dim dimensions are dense."),
      entry(
          "to_sparse_bsr(Tensor input, int blocksize, int? dense_dim=None)",
          [](const Tensor& x, int64_t side, std::optional<int64_t> dense_dim) {
            return to_sparse_bsr(x, {side, side}, dense_dim);
          },
          kMethod | kAnyLayout),
      entry(
          "to_sparse_bsc(Tensor input, int[] blocksize, int? dense_dim=None)",
          [](const Tensor& x, const DimVector& blocksize, std::optional<int64_t> dense_dim) {
            return to_sparse_bsc(x, blocksize, dense_dim);
          },
          kMethod | kAnyLayout, "A BSC tensor of blocks of the size, whose last dense_dim dimensions are dense."),
      entry(
          "to_sparse_bsc(Tensor input, int blocksize, int? dense_dim=None)",
          [](const Tensor& x, int64_t side, std::optional<int64_t> dense_dim) {
            return to_sparse_bsc(x, {side, side}, dense_dim);
          },
          kMethod | kAnyLayout),
      entry(
          "sparse_sampled_addmm(Tensor input, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, Tensor "
          "out=None)",
          [](const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha, const Tensor& out) {
            return into("sampled_addmm", out, sparse::sampled_addmm(x, a, b, beta, alpha));
          },
          kSparse, "beta * input + alpha * (mat1 @ mat2) at the entries of a CSR tensor."),
      entry(
          "sparse_resize_(Tensor input, int[] size, int sparse_dim, int dense_dim)",
          [](const Tensor& x, const DimVector& size, int64_t sparse, int64_t dense) -> Tensor {
            return sparse_resize_(x, size, sparse, dense);
          },
          kMethod | kCoo),
      entry(
          "sparse_resize_and_clear_(Tensor input, int[] size, int sparse_dim, int dense_dim)",
          [](const Tensor& x, const DimVector& size, int64_t sparse, int64_t dense) -> Tensor {
            return sparse_resize_and_clear_(x, size, sparse, dense);
          },
          kMethod | kCoo),
      entry(
          "resize_as_sparse_(Tensor input, Tensor the_template)",
          [](const Tensor& x, const Tensor& other) -> Tensor { return resize_as_sparse_(x, other); }, kBoth | kCoo,
          "The sizes and numbers of dimensions of another tensor; of a compressed one its indices too."),
      entry(
          "_sparse_broadcast_to(Tensor input, int[] size)",
          [](const Tensor& x, const DimVector& size) { return _sparse_broadcast_to(x, size); }, kFunction | kCoo,
          "A COO tensor with its entries repeated along dimensions of size 1 and new ones in front."),
      entry(
          "_tensorflow_sparse(Tensor indices, Tensor values, Tensor dense_shape)",
          [](const Tensor& indices, const Tensor& values, const Tensor& shape) {
            return parts_of(tensorflow::SparseTensor(indices, values, shape));
          },
          kFunction, "The checked parts of a SparseTensor: indices, values, dense_shape."),
      entry(
          "_tensorflow_sparse_of(Tensor coo)",
          [](const Tensor& coo) { return parts_of(tensorflow::SparseTensor(coo)); }, kFunction | kCoo,
          "The parts of a SparseTensor with the entries of a COO tensor."),
      entry(
          "_tensorflow_reorder(Tensor indices, Tensor values, Tensor dense_shape)",
          [](const Tensor& indices, const Tensor& values, const Tensor& shape) {
            return parts_of(tensorflow::SparseTensor(indices, values, shape).reorder());
          },
          kFunction, "SparseTensor::reorder()."),
      entry(
          "_tensorflow_to_dense(Tensor indices, Tensor values, Tensor dense_shape, Scalar default_value, bool "
          "validate_indices)",
          [](const Tensor& indices, const Tensor& values, const Tensor& shape, Scalar fill, bool validate) {
            return tensorflow::SparseTensor(indices, values, shape).to_dense(fill, validate);
          },
          kFunction, "SparseTensor::to_dense()."),
      entry(
          "_tensorflow_to_coo(Tensor indices, Tensor values, Tensor dense_shape)",
          [](const Tensor& indices, const Tensor& values, const Tensor& shape) {
            return tensorflow::SparseTensor(indices, values, shape).to_coo();
          },
          kFunction, "SparseTensor::to_coo()."),
      entry(
          "sparse_mm(Tensor mat1, Tensor mat2)", [](const Tensor& a, const Tensor& b) { return sparse::mm(a, b); },
          kSparse,
          "The product of matrices of which at least one is COO; the gradient of a COO operand has its pattern. With a "
          "third "
          "argument, reduce, of a CSR and a strided matrix: the sum, mean, amax or amin of the products of a row's "
          "entries."),
      entry(
          "sparse_mm(Tensor mat1, Tensor mat2, str reduce)",
          [](const Tensor& a, const Tensor& b, std::string_view reduce) { return sparse::mm(a, b, reduce); }, kSparse),
      entry(
          "sparse_addmm(Tensor mat, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)",
          [](const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
            return sparse::addmm(x, a, b, beta, alpha);
          },
          kSparse, "beta * mat + alpha * sparse.mm(mat1, mat2)."),
      entry(
          "sparse_sum(Tensor input, int[1]? dim=None, dtype dtype=None)",
          [](const Tensor& x, const std::optional<DimVector>& dim, std::optional<ScalarType> dtype) {
            return sparse::sum(x, span_of(dim), dtype.value_or(ScalarType::Undefined));
          },
          kSparse, "Sums over dimensions, or all: COO if a sparse dimension remains, else strided."),
      entry(
          "sparse_softmax(Tensor input, int dim, *, dtype dtype=None)",
          [](const Tensor& x, int64_t dim, std::optional<ScalarType> dtype) {
            return sparse::softmax(x, dim, dtype.value_or(ScalarType::Undefined));
          },
          kSparse, "softmax over the entries; what has no entry counts as minus infinity."),
      entry(
          "sparse_log_softmax(Tensor input, int dim, *, dtype dtype=None)",
          [](const Tensor& x, int64_t dim, std::optional<ScalarType> dtype) {
            return sparse::log_softmax(x, dim, dtype.value_or(ScalarType::Undefined));
          },
          kSparse, "The logarithm of softmax()."),
  };
  return table;
}

}  // namespace tercel::python
