#include "tercel/ops/nn/similarity.h"

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/vector_norms.h"
#include "tercel/ops/views/views.h"

namespace tercel {

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  check_strided("cosine_similarity", x1, "x1");
  check_strided("cosine_similarity", x2, "x2");
  const ScalarType common = promote_types(x1.dtype(), x2.dtype());
  TERCEL_CHECK(is_floating(common), RuntimeError, "expected common dtype to be floating point, yet common dtype is ",
               to_string(common));
  const DimVector sizes = broadcast_sizes(x1.sizes(), x2.sizes());
  const Tensor x = expand(to(x1, common), sizes), y = expand(to(x2, common), sizes);
  const Tensor squares = mul(clamp_min(norm(x, 2, {dim}, true), eps), clamp_min(norm(y, 2, {dim}, true), eps));
  return div(sum(mul(x, y), {dim}), squeeze(squares, dim));
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  check_strided("pairwise_distance", x1, "x1");
  check_strided("pairwise_distance", x2, "x2");
  return norm(add(sub(x1, x2), eps), p, {-1}, keepdim);
}

Tensor normalize(const Tensor& x, double p, int64_t dim, double eps) {
  check_strided("normalize", x, "input");
  return div(x, clamp_min(norm(x, p, {dim}, true), eps));
}

Tensor glu(const Tensor& x, int64_t dim) {
  check_strided("glu", x, "input");
  TERCEL_CHECK(x.dim() > 0, RuntimeError, "glu does not support 0-dimensional tensors");
  const int64_t d = wrap_dim(dim, x.dim()), size = x.size(d);
  TERCEL_CHECK(size % 2 == 0, RuntimeError, "Halving dimension must be even, but dimension ", d, " is size ", size);
  return mul(narrow(x, d, 0, size / 2), sigmoid(narrow(x, d, size / 2, size / 2)));
}

Tensor one_hot(const Tensor& tensor, int64_t num_classes) {
  check_strided("one_hot", tensor, "input");
  TERCEL_CHECK(tensor.dtype() == kInt64, RuntimeError,
               "one_hot is only applicable to index tensor of type LongTensor.");
  DimVector sizes(tensor.sizes());
  if (tensor.numel() == 0) {
    TERCEL_CHECK(num_classes > 0, RuntimeError, "Can not infer total number of classes from empty tensor.");
    sizes.push_back(num_classes);
    return empty(sizes, kInt64);
  }
  const int64_t least = min(tensor).item<int64_t>(), largest = max(tensor).item<int64_t>();
  TERCEL_CHECK(least >= 0, RuntimeError, "Class values must be non-negative.");
  TERCEL_CHECK(num_classes == -1 || num_classes > largest, RuntimeError,
               num_classes == 0 ? "num_classes should be positive" : "Class values must be smaller than num_classes.");
  sizes.push_back(num_classes == -1 ? largest + 1 : num_classes);
  const Tensor out = zeros(sizes, kInt64);
  const Tensor indices = contiguous(tensor);
  const auto* index = indices.data<int64_t>();
  for (int64_t i = 0; i < tensor.numel(); ++i) out.data<int64_t>()[i * sizes.back() + index[i]] = 1;
  return out;
}

}  // namespace tercel
