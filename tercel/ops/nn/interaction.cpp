#include "tercel/ops/nn/interaction.h"

#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/core/launch.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/nn/interaction_kernels.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<DotFn> dot_kernels = TERCEL_CPU_KERNELS(dot_interaction);
constinit const KernelTable<DotFn> dot_backward_kernels = TERCEL_CPU_KERNELS(dot_interaction_backward);
constinit const KernelTable<FmFn> fm_kernels = TERCEL_CPU_KERNELS(fm_order2);
constinit const KernelTable<FmFn> fm_backward_kernels = TERCEL_CPU_KERNELS(fm_order2_backward);

constexpr int64_t kGrainMultiplications = 65536;

ScalarType compute_dtype(const Tensor& x) { return native_dtype(compute_of(x.dtype())); }

// t converted to the dtype, with contiguous inner dimensions, as kernels read it.
Tensor readable_rows(const Tensor& t, ScalarType dtype) {
  const Tensor converted = to(t, dtype);
  const size_t inner = converted.sizes().size() - 1;
  const bool rows = is_contiguous_strides(converted.sizes().subspan(1, inner), converted.strides().subspan(1, inner));
  return rows ? converted : contiguous(converted);
}

// The vectors after the first one, in each sample of contiguous embeddings.
void* behind_first(const Tensor& emb) {
  auto* const first = static_cast<std::byte*>(emb.data_ptr());
  return first ? first + emb.size(2) * static_cast<int64_t>(emb.itemsize()) : nullptr;
}

// A loop with the operands' sizes; mlp may be undefined.
DotLoop make_loop(const Tensor& mlp, const Tensor& emb, const Tensor& out, bool pad) {
  // Tensors without elements may be at a null pointer.
  const auto row_stride = [](const Tensor& t) { return t.numel() == 0 ? 0 : t.stride(0); };
  DotLoop loop{};
  loop.compute = compute_of(emb.dtype());
  loop.dim = emb.size(2);
  loop.others_stride = emb.size(1) * loop.dim;
  if (mlp.defined()) {
    loop.slots = emb.size(1);
    loop.passed = loop.dim;
    loop.first = mlp.data_ptr();
    loop.first_stride = row_stride(mlp);
    loop.others = emb.data_ptr();
  } else {
    loop.slots = emb.size(1) - 1;
    loop.passed = loop.others_stride;
    loop.first = emb.data_ptr();
    loop.first_stride = loop.others_stride;
    loop.others = behind_first(emb);
  }
  loop.out_stride = row_stride(out);
  loop.pad = pad;
  return loop;
}

void run(const KernelTable<DotFn>& kernels, const DotLoop& loop, const Tensor& emb) {
  const int64_t batch = emb.size(0);
  const int64_t cost = std::max<int64_t>(1, (loop.slots + 1) * loop.slots / 2 * loop.dim);
  const int64_t grain = std::max<int64_t>(1, kGrainMultiplications / cost);
  const Partition partition = launch_partition(emb.device(), 0, batch, grain);
  const int64_t elements = dot_scratch(loop.slots, loop.dim);
  const Tensor scratch = empty({partition.chunks(), elements}, TensorOptions(emb.dtype(), emb.device()));
  const auto kernel = kernels[emb.device()];
  partition.run([&](int64_t chunk, int64_t begin, int64_t end) {
    kernel(loop, static_cast<std::byte*>(scratch.data_ptr()) + chunk * elements * static_cast<int64_t>(emb.itemsize()),
           begin, end);
  });
}

void run(const KernelTable<FmFn>& kernels, const FmLoop& loop, const Tensor& x) {
  const auto kernel = kernels[x.device()];
  const int64_t grain = std::max<int64_t>(1, kGrainMultiplications / std::max<int64_t>(1, loop.slots * loop.dim));
  launch(x.device(), 0, x.size(0), grain, [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
}

}  // namespace

Tensor dot_interaction(const Tensor& mlp, const Tensor& emb, bool pad) {
  const ProfileRange range("dot_interaction", RangeKind::Op);
  constexpr const char* kOp = "dot_interaction";
  check_strided(kOp, emb, "emb");
  if (mlp.defined()) {
    TERCEL_CHECK(mlp.is_floating_point() && mlp.dtype() == emb.dtype() && mlp.device() == emb.device(), RuntimeError,
                 kOp, ": expected floating mlp and emb of one dtype but got ", describe(mlp), " and ", describe(emb));
    TERCEL_CHECK(mlp.dim() == 2 && emb.dim() == 3 && mlp.size(0) == emb.size(0) && mlp.size(1) == emb.size(2),
                 RuntimeError, kOp, ": expected mlp [batch, d] and emb [batch, slots, d] but got ", describe(mlp),
                 " and ", describe(emb));
  } else {
    TERCEL_CHECK(emb.is_floating_point() && emb.dim() == 3 && emb.size(1) > 0, RuntimeError, kOp,
                 ": expected floating emb [batch, slots, d] with at least one slot if there is no mlp, but got ",
                 describe(emb));
  }
  const int64_t vectors = emb.size(1) + (mlp.defined() ? 1 : 0);
  numel_of({vectors, vectors});  // refuses more pairs than fit in 64 bits
  const int64_t pairs = vectors * (vectors - 1) / 2;
  const auto readable = [](const Tensor& rows, ScalarType dtype) {
    return rows.defined() ? readable_rows(rows, dtype) : rows;
  };
  Tensor out;
  {
    const NoRecordGuard no_record;
    const ScalarType dtype = compute_dtype(emb);
    const Tensor first = readable(mlp, dtype), z = contiguous(to(emb, dtype));
    const int64_t passed = emb.size(2) * (mlp.defined() ? 1 : vectors);
    out = empty({emb.size(0), passed + pairs + (pad ? 1 : 0)}, z.options());
    DotLoop loop = make_loop(first, z, out, pad);
    loop.out = out.data_ptr();
    run(dot_kernels, loop, z);
    out = to(out, emb.dtype());
  }
  if (should_record(mlp, emb))
    record("DotInteractionBackward0", out, {mlp, emb},
           once_differentiable([mlp = SavedTensor(mlp), emb = SavedTensor(emb), readable, pad](BackwardCall& call) {
             const ScalarType given = emb.get().dtype(), dtype = compute_dtype(emb.get());
             const Tensor first = readable(mlp.get(), dtype), z = contiguous(to(emb.get(), dtype));
             const Tensor grad = readable_rows(call.grad(), dtype);
             Tensor first_grad, emb_grad;
             DotLoop loop = make_loop(first, z, grad, pad);
             loop.out_grad = grad.data_ptr();
             if (call.needs(0)) {
               first_grad = empty(first.sizes(), first.options());
               loop.first_grad = first_grad.data_ptr();
               loop.first_grad_stride = loop.dim;
             }
             if (call.needs(1)) {
               emb_grad = empty(z.sizes(), z.options());
               loop.others_grad = first.defined() ? emb_grad.data_ptr() : behind_first(emb_grad);
               if (!first.defined()) {
                 loop.first_grad = emb_grad.data_ptr();
                 loop.first_grad_stride = loop.others_stride;
               }
             }
             run(dot_backward_kernels, loop, z);
             if (call.needs(0)) call.set(0, to(first_grad, given));
             if (call.needs(1)) call.set(1, to(emb_grad, given));
           }));
  return out;
}

Tensor fm_order2(const Tensor& x, int64_t dim) {
  const ProfileRange range("fm_order2", RangeKind::Op);
  constexpr const char* kOp = "fm_order2";
  check_strided(kOp, x, "x");
  TERCEL_CHECK(x.is_floating_point(), RuntimeError, kOp, ": expected floating x but got ", describe(x));
  TERCEL_CHECK(x.dim() == 2 && dim > 0 && x.size(1) % dim == 0, RuntimeError, kOp, ": expected x [batch, slots * ", dim,
               "] but got ", describe(x));
  const auto make = [dim](const Tensor& input) {
    FmLoop loop{};
    loop.compute = compute_of(input.dtype());
    loop.slots = input.size(1) / dim;
    loop.dim = dim;
    loop.x = input.data_ptr();
    return loop;
  };
  Tensor out;
  {
    const NoRecordGuard no_record;
    const Tensor input = contiguous(to(x, compute_dtype(x)));
    out = empty({x.size(0), dim}, input.options());
    FmLoop loop = make(input);
    loop.out = out.data_ptr();
    run(fm_kernels, loop, input);
    out = to(out, x.dtype());
  }
  if (should_record(x))
    record("FmOrder2Backward0", out, {x}, once_differentiable([x = SavedTensor(x), make](BackwardCall& call) {
             const ScalarType dtype = compute_dtype(x.get());
             const Tensor input = contiguous(to(x.get(), dtype)), grad = contiguous(to(call.grad(), dtype));
             const Tensor x_grad = empty(input.sizes(), input.options());
             FmLoop loop = make(input);
             loop.out_grad = grad.data_ptr();
             loop.out = x_grad.data_ptr();
             run(fm_backward_kernels, loop, input);
             call.set(0, to(x_grad, x.get().dtype()));
           }));
  return out;
}

}  // namespace tercel
