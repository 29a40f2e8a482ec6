// im2col and its reverse, col2im.
#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/conv.h"
#include "tercel/ops/nn/conv_plan_impl.h"
#include "tercel/ops/nn/spatial_impl.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

ConvPlan patches_plan(const char* op, IntSpan sizes, IntSpan kernel, IntSpan dilation, IntSpan padding,
                      IntSpan stride) {
  const auto check = [&](const char* name, IntSpan list, int64_t least) {
    TERCEL_CHECK(list.size() == 1 || list.size() == 2, RuntimeError, op, ": It is expected ", name,
                 " equals to 2, but got size ", list.size());
    for (const int64_t v : list)
      TERCEL_CHECK(v >= least, RuntimeError, least == 0 ? "padding should be non-negative" : name,
                   least == 0 ? "" : " should be greater than zero", ", but got ", list);
  };
  check("kernel_size", kernel, 1);
  check("dilation", dilation, 1);
  check("padding", padding, 0);
  check("stride", stride, 1);
  ConvPlan plan;
  const Spatial in = spread(sizes, 2, 1), k = spread(kernel, 2, 1), s = spread(stride, 2, 1), p = spread(padding, 2, 0),
                d = spread(dilation, 2, 1);
  for (size_t i = 0; i < 3; ++i) {
    plan.in[i] = in[i];
    plan.kernel[i] = k[i];
    plan.stride[i] = s[i];
    plan.padding[i] = p[i];
    plan.dilation[i] = d[i];
    const int64_t reach = checked(op, d[i], k[i] - 1, 1);
    plan.out[i] = floor_div(checked(op, 2, p[i], checked(op, -1, reach, in[i])), s[i]) + 1;
  }
  TERCEL_CHECK(plan.out[1] > 0 && plan.out[2] > 0, RuntimeError, "Given input with spatial size (", in[1], ", ", in[2],
               "), kernel_size=(", k[1], ", ", k[2], "), dilation=(", d[1], ", ", d[2], "), padding=(", p[1], ", ",
               p[2], "), calculated shape of the array of sliding blocks as (", plan.out[1], ", ", plan.out[2],
               "), but its components must be at least one.");
  numel_of({k[1], k[2]});
  numel_of({plan.out[1], plan.out[2]});
  return plan;
}

/** Applies an op for float and double to other dtypes: by the parts of complex numbers, or converted to float32. */
template <class Fn>
Tensor through_floats(const char* op, const Tensor& x, Fn&& fn) {
  if (x.is_complex()) return complex(fn(real(x)), fn(imag(x)));
  if (!x.is_floating_point() && x.dtype() != kBool) refuse_dtype(op, x.dtype());
  return to(fn(to(x, kFloat32)), x.dtype());
}
bool is_float_or_double(const Tensor& x) { return x.dtype() == kFloat32 || x.dtype() == kFloat64; }

}  // namespace

Tensor im2col(const Tensor& x, IntSpan kernel_size, IntSpan dilation, IntSpan padding, IntSpan stride) {
  check_strided("im2col", x, "input");
  TERCEL_CHECK(x.dim() == 3 || x.dim() == 4, RuntimeError,
               "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
               "input, but got: ",
               x.sizes());
  if (x.dim() == 3) return squeeze(im2col(unsqueeze(x, 0), kernel_size, dilation, padding, stride), 0);
  if (!is_float_or_double(x))
    return through_floats("im2col", x,
                          [&](const Tensor& part) { return im2col(part, kernel_size, dilation, padding, stride); });
  ConvPlan plan = patches_plan("im2col", x.sizes().subspan(2, 2), kernel_size, dilation, padding, stride);
  plan.n = x.size(0);
  plan.channels = x.size(1);
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = empty({plan.n, checked("im2col", plan.channels, plan.window(), 0), plan.out_pixels()}, x.options());
    if (out.numel() > 0) run_im2col(plan, contiguous(x), out);
  }
  if (should_record(x))
    record("Im2ColBackward0", out, {x}, [plan](BackwardCall& call) {
      call.set(0, col2im(call.grad(), {plan.in[1], plan.in[2]}, {plan.kernel[1], plan.kernel[2]},
                         {plan.dilation[1], plan.dilation[2]}, {plan.padding[1], plan.padding[2]},
                         {plan.stride[1], plan.stride[2]}));
    });
  return out;
}

Tensor col2im(const Tensor& x, IntSpan output_size, IntSpan kernel_size, IntSpan dilation, IntSpan padding,
              IntSpan stride) {
  check_strided("col2im", x, "input");
  TERCEL_CHECK(x.dim() == 2 || x.dim() == 3, RuntimeError,
               "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
               "input, but got: ",
               x.sizes());
  if (x.dim() == 2) return squeeze(col2im(unsqueeze(x, 0), output_size, kernel_size, dilation, padding, stride), 0);
  if (!is_float_or_double(x))
    return through_floats("col2im", x, [&](const Tensor& part) {
      return col2im(part, output_size, kernel_size, dilation, padding, stride);
    });
  TERCEL_CHECK(output_size.size() == 1 || output_size.size() == 2, RuntimeError,
               "It is expected output_size equals to 2, but got size ", output_size.size());
  ConvPlan plan = patches_plan("col2im", output_size, kernel_size, dilation, padding, stride);
  TERCEL_CHECK(x.size(1) % plan.window() == 0, RuntimeError,
               "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got ",
               "input.size(1)=", x.size(1), " and kernel_size=(", plan.kernel[1], ", ", plan.kernel[2], ").");
  TERCEL_CHECK(x.size(2) == plan.out_pixels(), RuntimeError, "Given output_size=(", plan.in[1], ", ", plan.in[2],
               "), kernel_size=(", plan.kernel[1], ", ", plan.kernel[2], "), dilation=(", plan.dilation[1], ", ",
               plan.dilation[2], "), padding=(", plan.padding[1], ", ", plan.padding[2], "), stride=(", plan.stride[1],
               ", ", plan.stride[2], "), expected size of input's dimension 2 to match the calculated number of ",
               "sliding blocks ", plan.out[1], " * ", plan.out[2], " = ", plan.out_pixels(),
               ", but got input.size(2)=", x.size(2), ".");
  plan.n = x.size(0);
  plan.channels = x.size(1) / plan.window();
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = empty({plan.n, plan.channels, plan.in[1], plan.in[2]}, x.options());
    if (out.numel() > 0) run_col2im(plan, contiguous(x), out);
  }
  if (should_record(x))
    record("Col2ImBackward0", out, {x}, [plan](BackwardCall& call) {
      call.set(0, im2col(call.grad(), {plan.kernel[1], plan.kernel[2]}, {plan.dilation[1], plan.dilation[2]},
                         {plan.padding[1], plan.padding[2]}, {plan.stride[1], plan.stride[2]}));
    });
  return out;
}

}  // namespace tercel
