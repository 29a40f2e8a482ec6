#include "tercel/recsys/layers/matrix_multiply.h"

#include <algorithm>

#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

namespace {

constexpr std::string_view kExpected =
    "matrices of each sample, [batch, m, n] and [batch, n, k], [batch, h, m, n] and [batch, h, n, k], [batch * m, n] "
    "and [batch * n, ...], or [batch * m, n] and [batch, n, k], whose product does not mix rows of different samples,";

/** Whether both are [..., m, n] and [..., n, k] with equal sizes before. */
bool are_factors(const TensorShape& a, const TensorShape& b) {
  const size_t dims = a.sizes.size();
  return dims >= 2 && dims <= 3 && b.sizes.size() == dims && a.rows_per_sample == b.rows_per_sample &&
         a.sizes[dims - 1] == b.sizes[dims - 2] &&
         std::equal(a.sizes.begin(), a.sizes.begin() + static_cast<int64_t>(dims - 2), b.sizes.begin());
}

}  // namespace

MatrixMultiply::MatrixMultiply(const Options&, BuildContext& context) : Layer(context, AnyRows{}) {
  if (context.bottoms.size() != 2) refuse_inputs(context, kExpected);
  const TensorShape &a = context.bottoms[0], &b = context.bottoms[1];
  if (are_factors(a, b)) {
    DimVector top = a.sizes;
    top.back() = b.sizes.back();
    add_top(std::move(top));
    return;
  }
  const size_t dims = b.sizes.size();
  if (a.sizes.size() != 1 || dims < 1 || dims > 2) refuse_inputs(context, kExpected);
  by_sample_ = true;
  m_ = a.rows_per_sample;
  n_ = a.sizes[0];
  if (b.rows_per_sample == n_)
    add_top(TensorShape::with_rows(b.sizes, m_));
  else if (dims == 2 && b.rows_per_sample == 1 && b.sizes[0] == n_)
    add_top(TensorShape({m_, b.sizes[1]}));
  else
    refuse_inputs(context, kExpected);
}

void MatrixMultiply::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const Tensor &a = bottoms[0], &b = bottoms[1];
  if (!by_sample_) {
    tops[0] = matmul(a, b);
    return;
  }
  const TensorShape& shape = Layer::tops()[0];
  const int64_t batch = a.size(0) / m_, columns = numel_of(shape.sizes) * shape.rows_per_sample / m_;
  const Tensor product = bmm(reshape(a, {batch, m_, n_}), reshape(b, {batch, n_, columns}));
  DimVector sizes{batch * shape.rows_per_sample};
  for (const int64_t size : shape.sizes) sizes.push_back(size);
  tops[0] = reshape(product, sizes);
}

}  // namespace tercel::recsys
