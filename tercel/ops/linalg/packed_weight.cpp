#include "tercel/ops/linalg/packed_weight.h"

#include <memory>

#include "tercel/autograd/record.h"
#include "tercel/core/dispatch.h"
#include "tercel/core/sparse_data.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/linalg/matmul_impl.h"
#include "tercel/ops/linalg/packed_weight_impl.h"
#include "tercel/ops/views/permute.h"
#include "tercel/ops/views/slicing.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/ceil_div.h"

namespace tercel {

namespace {

/** Calls copy(part of the weight, part of the panels), views of the same sizes, until all of the weight is covered. */
template <class Copy>
void for_each_part(const Tensor& weight, const Tensor& panels, Copy copy) {
  const int64_t out = weight.size(0), columns = panels.size(2);
  const int64_t whole = out / columns, covered = whole * columns;
  if (whole > 0)
    copy(unflatten(narrow(weight, 0, 0, covered), 0, {whole, columns}), transpose(narrow(panels, 0, 0, whole), 1, 2));
  if (covered < out)
    copy(narrow(weight, 0, covered, out - covered), t(narrow(select(panels, 0, whole), 1, 0, out - covered)));
}

}  // namespace

const Tensor& panels_of(const char* op, const Tensor& weight) {
  check_defined(op, weight, "weight");
  const SparseData* parts = weight.impl().sparse();
  if (weight.layout() != Layout::Opaque || !parts) refuse_layout(op, weight.layout());
  return parts->values;
}

void check_columns(const char* op, const Tensor& panels, int64_t columns) {
  TERCEL_CHECK(panels.size(2) == columns, RuntimeError, op,
               ": the weight was packed for another instruction set, in panels of ", panels.size(2), " columns, but ",
               to_string(cpu_isa()), " kernels read panels of ", columns,
               "; pack it again with to_dense() and to_mkldnn()");
}

Tensor to_mkldnn(const Tensor& x, std::optional<ScalarType> dtype) {
  check_strided("to_mkldnn", x);
  TERCEL_CHECK(x.dim() == 2, RuntimeError, "to_mkldnn: expected a weight [out, in] but got ", x.sizes());
  const ScalarType type = dtype.value_or(x.dtype());
  TERCEL_CHECK(type == kFloat32 || type == kFloat64, RuntimeError,
               "to_mkldnn: expected a float32 or float64 weight but got ", to_string(type));
  TERCEL_CHECK(x.device().is_cpu(), NotImplementedError, "to_mkldnn: not implemented for device ",
               to_string(x.device()));
  TERCEL_CHECK(!should_record(x), RuntimeError,
               "to_mkldnn: the weight requires a gradient, but a packed weight has none; use detach() or no_grad()");
  const NoRecordGuard no_record;
  const Tensor weight = to(x, type);
  const GemmPanel panel = type == kFloat32 ? gemm_panel<float>() : gemm_panel<double>();
  const int64_t out = x.size(0), in = x.size(1);
  auto parts = std::make_unique<SparseData>();
  parts->values = empty_strided({ceil_div(out, panel.columns), in, panel.columns},
                                {in * panel.columns + panel.gap, panel.columns, 1}, weight.options());
  const int64_t rest = out % panel.columns;
  if (rest > 0) zero_(narrow(select(parts->values, 0, out / panel.columns), 1, rest, panel.columns - rest));
  for_each_part(weight, parts->values,
                [](const Tensor& of_weight, const Tensor& of_panels) { copy_(of_panels, of_weight); });
  auto impl = make_intrusive<TensorImpl>(type, x.device(), x.sizes(), Layout::Opaque);
  impl->set_sparse(std::move(parts));
  return Tensor(std::move(impl));
}

Tensor unpack_weight(const Tensor& x) {
  const Tensor& panels = panels_of("to_dense", x);
  const NoRecordGuard no_record;
  Tensor weight = empty(x.sizes(), panels.options());
  for_each_part(weight, panels, [](const Tensor& of_weight, const Tensor& of_panels) { copy_(of_weight, of_panels); });
  return weight;
}

}  // namespace tercel
