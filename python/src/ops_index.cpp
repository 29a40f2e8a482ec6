// Selecting and setting elements by index tensors and masks.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/index/nonzero.h"
#include "tercel/ops/index/scatter.h"
#include "tercel/ops/index/subscript.h"
#include "tercel/ops/views/views.h"

namespace tercel::python {

namespace {

Tensor nonzero_into(const Tensor& out, const Tensor& x) {
  TERCEL_CHECK(!out.defined() || out.dtype() == kInt64, RuntimeError,
               "nonzero: Expected out tensor to have scalar type Long but got scalar type ", legacy_name(out.dtype()));
  return into("nonzero", out, nonzero(x));
}

using Reduce = std::optional<std::string_view>;

/** scatter()'s names of the reductions, which are older than those of scatter_reduce(). */
ScatterReduction older_reduction(std::string_view name) {
  TERCEL_CHECK(name == "add" || name == "multiply", RuntimeError, "reduce argument must be either add or multiply.");
  return name == "add" ? ScatterReduction::Sum : ScatterReduction::Product;
}

/** The number for each index. */
Tensor everywhere(Scalar value, const Tensor& index, const Tensor& x) {
  return expand(full({}, value, x.dtype()), index.sizes());
}

/** RuntimeError unless `out` has the dtype of the result. */
void check_out_dtype(const char* op, const Tensor& out, const Tensor& x) {
  TERCEL_CHECK(!out.defined() || out.dtype() == x.dtype(), RuntimeError, op, "(): Expected out tensor to have dtype ",
               cpp_type_name(x.dtype()), ", but got ", cpp_type_name(out.dtype()), " instead");
}

/** Converts a uint8 mask, used by older programs, to bool, with a warning. */
Tensor mask_of(const char* op, const Tensor& mask) {
  if (mask.dtype() != kUInt8) return mask;
  warn(str_cat({op,
                " received a mask with dtype tercel.uint8, this behavior is now deprecated,please use a mask with "
                "dtype tercel.bool instead."}));
  return to(mask, kBool);
}

std::vector<TensorIndex> indices_of(const std::vector<Tensor>& indices) {
  for (const Tensor& index : indices)
    if (index.dtype() == kUInt8 && index.dim() > 0) warn_of_bytes();
  return {indices.begin(), indices.end()};
}

/** The function and its in-place variant; `source_name`: the signature's name of the source. */
#define TERCEL_REDUCING_ENTRIES(name, source_name)                                                             \
  entry(#name "(Tensor input, int dim, Tensor index, Tensor " source_name                                      \
              ", str reduce, *, bool include_self=True, Tensor out=None)",                                     \
        [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,   \
           bool include_self, const Tensor& out) {                                                             \
          return into(#name, out, name(x, dim, index, source, parse_scatter_reduction(reduce), include_self)); \
        }),                                                                                                    \
      entry(                                                                                                   \
          #name "_(Tensor input, int dim, Tensor index, Tensor " source_name                                   \
                ", str reduce, *, bool include_self=True)",                                                    \
          [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce, \
             bool include_self) -> Tensor {                                                                    \
            return name##_(x, dim, index, source, parse_scatter_reduction(reduce), include_self);              \
          },                                                                                                   \
          kMethod),

}  // namespace

Span<Entry> index_ops() {
  static const Entry table[] = {
      entry("index_select(Tensor input, int dim, Tensor index, *, Tensor out=None)",
            [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& out) {
              TERCEL_CHECK(!out.defined() || out.dtype() == x.dtype(), RuntimeError,
                           "index_select(): self and result must have the same scalar type");
              return into("index_select", out, index_select(x, dim, index));
            }),
      entry("gather(Tensor input, int dim, Tensor index, *, bool sparse_grad=False, Tensor out=None)",
            [](const Tensor& x, int64_t dim, const Tensor& index, bool, const Tensor& out) {
              check_out_dtype("gather", out, x);
              return into("gather", out, gather(x, dim, index));
            }),
      entry("scatter(Tensor input, int dim, Tensor index, Tensor src, *, str? reduce=None, Tensor out=None)",
            [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Reduce reduce,
               const Tensor& out) {
              return into("scatter", out,
                          reduce ? scatter_reduce(x, dim, index, source, older_reduction(*reduce))
                                 : scatter(x, dim, index, source));
            }),
      entry(
          "scatter_(Tensor input, int dim, Tensor index, Tensor src, *, str? reduce=None)",
          [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Reduce reduce) -> Tensor {
            if (reduce) return scatter_reduce_(x, dim, index, source, older_reduction(*reduce));
            return scatter_(x, dim, index, source);
          },
          kMethod),
      entry("scatter(Tensor input, int dim, Tensor index, Scalar value, *, str? reduce=None, Tensor out=None)",
            [](const Tensor& x, int64_t dim, const Tensor& index, Scalar value, Reduce reduce, const Tensor& out) {
              return into("scatter", out,
                          reduce ? scatter_reduce(x, dim, index, everywhere(value, index, x), older_reduction(*reduce))
                                 : scatter(x, dim, index, value));
            }),
      entry(
          "scatter_(Tensor input, int dim, Tensor index, Scalar value, *, str? reduce=None)",
          [](const Tensor& x, int64_t dim, const Tensor& index, Scalar value, Reduce reduce) -> Tensor {
            if (reduce) return scatter_reduce_(x, dim, index, everywhere(value, index, x), older_reduction(*reduce));
            return scatter_(x, dim, index, value);
          },
          kMethod),
      TERCEL_REDUCING_ENTRIES(scatter_reduce, "src") TERCEL_REDUCING_ENTRIES(index_reduce, "source")
          entry("index_put(Tensor input, Tensor[] indices, Tensor values, bool accumulate=False)",
                [](const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values, bool accumulate) {
                  return index_put(x, indices_of(indices), values, accumulate);
                }),
      entry("index_put_(Tensor input, Tensor[] indices, Tensor values, bool accumulate=False)",
            [](const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values, bool accumulate) -> Tensor {
              return index_put_(x, indices_of(indices), values, accumulate);
            }),
      entry("take(Tensor input, Tensor index, *, Tensor out=None)",
            [](const Tensor& x, const Tensor& index, const Tensor& out) {
              TERCEL_CHECK(!out.defined() || out.dtype() == x.dtype(), RuntimeError,
                           "take(): self and out expected to have the same dtype, but got self.dtype = ",
                           legacy_name(x.dtype()), " and out.dtype = ", legacy_name(out.dtype()));
              return into("take", out, take(x, index));
            }),
      entry("take_along_dim(Tensor input, Tensor indices, int? dim=None, *, Tensor out=None)",
            [](const Tensor& x, const Tensor& indices, std::optional<int64_t> dim, const Tensor& out) {
              return into("take_along_dim", out, dim ? take_along_dim(x, indices, *dim) : take_along_dim(x, indices));
            }),
      entry("masked_fill(Tensor input, Tensor mask, Tensor|Scalar value)",
            [](const Tensor& x, const Tensor& given, Operand value) {
              const Tensor mask = mask_of("masked_fill", given);
              return value.is_tensor() ? masked_fill(x, mask, *value.tensor) : masked_fill(x, mask, value.scalar);
            }),
      entry(
          "masked_fill_(Tensor input, Tensor mask, Tensor|Scalar value)",
          [](const Tensor& x, const Tensor& given, Operand value) -> Tensor {
            const Tensor mask = mask_of("masked_fill_", given);
            return value.is_tensor() ? masked_fill_(x, mask, *value.tensor) : masked_fill_(x, mask, value.scalar);
          },
          kMethod),
      entry("masked_select(Tensor input, Tensor mask, *, Tensor out=None)",
            [](const Tensor& x, const Tensor& given, const Tensor& out) {
              return into("masked_select", out, masked_select(x, mask_of("masked_select", given)));
            }),
      entry("masked_scatter(Tensor input, Tensor mask, Tensor source)",
            [](const Tensor& x, const Tensor& mask, const Tensor& source) {
              return masked_scatter(x, mask_of("masked_scatter_", mask), source);
            }),
      entry(
          "masked_scatter_(Tensor input, Tensor mask, Tensor source)",
          [](const Tensor& x, const Tensor& mask, const Tensor& source) -> Tensor {
            return masked_scatter_(x, mask_of("masked_scatter_", mask), source);
          },
          kMethod),
      entry("nonzero(Tensor input, *, bool as_tuple, Tensor out=None)",
            [](const Tensor& x, bool as_tuple, const Tensor& out) -> PyObject* {
              TERCEL_CHECK(!as_tuple || !out.defined(), RuntimeError,
                           "nonzero does not support the out kwarg when as_tuple is True");
              std::vector<Tensor> places;
              {
                const WithoutGil scope(x.numel() >= kGilGrain);
                places = as_tuple ? nonzero_tuple(x) : std::vector<Tensor>{nonzero_into(out, x)};
              }
              return as_tuple ? wrap_tuple(places) : wrap(places[0]);
            }),
      entry("nonzero(Tensor input, *, Tensor out=None)",
            [](const Tensor& x, const Tensor& out) { return nonzero_into(out, x); }),
      entry(
          "where(Tensor condition)", [](const Tensor& x) { return nonzero_tuple(x); }, kFunction),
  };
  return table;
}

}  // namespace tercel::python
