#include "tercel/autograd/record.h"
#include "tercel/ops/common/value_selecting_reduction_backward_impl.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/scatter.h"
#include "tercel/ops/views/views.h"

namespace tercel {

void record_value_selecting_reduction(const char* name, const Tensor& values, const Tensor& x, const Tensor& indices,
                                      int64_t dim, bool keepdim) {
  if (!should_record(x)) return;
  record(name, values, {x},
         [indices = SavedTensor(indices), sizes = DimVector(x.sizes()), dim, keepdim](BackwardCall& call) {
           const Tensor& grad = call.grad();
           if (sizes.empty()) return call.set(0, reshape(grad, sizes));
           const Tensor& index = indices.get();
           call.set(0, scatter_add(zeros(sizes, grad.options()), dim, keepdim ? index : unsqueeze(index, dim),
                                   keepdim ? grad : unsqueeze(grad, dim)));
         });
}

}  // namespace tercel
