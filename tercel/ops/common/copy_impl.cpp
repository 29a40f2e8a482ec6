#include "tercel/ops/common/copy_impl.h"

#include "tercel/ops/common/elementwise_kernels.h"
#include "tercel/ops/common/tensor_iterator_impl.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<ElementwiseFn> copy_kernels = TERCEL_KERNELS(copy);
constexpr ElementwiseRule kCopyRule{.op = "copy_", .complex = true, .converts = true};
constexpr ElementwiseRule kFillRule{.op = "fill_", .complex = true, .converts = true, .repeats = true};

}  // namespace

void copy_elements_out(const Tensor& dst, const Tensor& src) {
  const ProfileRange range("copy", RangeKind::Op);
  check_strided("copy_", dst);
  const OperandRef inputs[] = {src};
  TensorIterator(kCopyRule, inputs, dst).run(copy_kernels, 0);
}

void fill_elements_out(const Tensor& dst, const Tensor& value) {
  const ProfileRange range("fill", RangeKind::Op);
  check_strided("fill_", dst);
  const OperandRef inputs[] = {value};
  TensorIterator(kFillRule, inputs, dst).run(copy_kernels, 0);
}

}  // namespace tercel
