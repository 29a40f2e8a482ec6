#include "tercel/autograd/record.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/picked_impl.h"
#include "tercel/ops/scatter.h"
#include "tercel/ops/views.h"

namespace tercel {

void record_picked(const char* name, const Tensor& values, const Tensor& x, const Tensor& indices, int64_t dim,
                   bool keepdim) {
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
