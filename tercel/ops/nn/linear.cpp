#include "tercel/ops/nn/linear.h"

#include <optional>
#include <vector>

#include "tercel/autograd/record.h"
#include "tercel/core/object_allocator.h"
#include "tercel/ops/common/elementwise_impl.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary_ops.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/linalg/matmul_impl.h"
#include "tercel/ops/linalg/packed_weight_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

constinit const KernelTable<ElementwiseFn> unary_backward_kernels = TERCEL_KERNELS(unary_backward);

/** g where y, the output of a ReLU, is positive, else 0. */
Tensor through_relu(const Tensor& g, const Tensor& y) {
  const OperandRef inputs[] = {g, y};
  return elementwise({.op = "relu_backward"}, unary_backward_kernels, index_of<op::Relu, UnaryOps>, inputs);
}

bool is_packed(const Tensor& weight) { return weight.layout() == Layout::Opaque; }

/** activation(x w + b); w is [in, out] with any strides, or a packed weight [out, in]. */
Tensor forward_layer(const char* op, const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation) {
  if (bias.defined()) check_strided(op, bias, "bias");
  Tensor out = empty({x.size(0), w.size(is_packed(w) ? 0 : 1)}, x.options());
  const Tensor row = bias.defined() ? contiguous(bias.detach()) : bias;
  const MatrixOperand left(x);
  std::optional<MatrixOperand> right;
  if (!is_packed(w)) right.emplace(w);
  visit_gemm_types(op, x.dtype(), [&]<class T> {
    Gemm<T> g = right ? gemm_of<T>(left, *right, out) : gemm_of<T>(left, out);
    if (!right) set_packed(op, w, g);
    g.bias = row.defined() ? row.data<T>() : nullptr;
    g.relu = activation == Activation::Relu;
    gemm(g);
  });
  return out;
}

/** Gradient of x: g w^T, and 0 where `relu_output`, if defined, is not positive. */
Tensor input_gradient(const Tensor& g, const Tensor& w, const Tensor& relu_output) {
  Tensor out = empty({g.size(0), w.size(0)}, g.options());
  const MatrixOperand left(g), right(t(w));
  visit_gemm_types("linear_backward", g.dtype(), [&]<class T> {
    Gemm<T> product = gemm_of<T>(left, right, out);
    if (relu_output.defined()) {
      product.mask = relu_output.data<T>();
      product.ldmask = relu_output.size(1);
    }
    gemm(product);
  });
  return out;
}

/** The sums over g's columns. */
Tensor bias_gradient_of(const Tensor& g) { return sum_to_size(g, IntSpan{g.size(1)}); }

/**
 * Gradients of the weight [in, out], x^T g, and of the bias, the sums over g's columns, in one pass if the product
 * packs g; a g with one row or column may be used as its transpose, which is not packed.
 */
void weight_gradients(const Tensor& x, const Tensor& g, Tensor* weight, Tensor* bias) {
  if (!weight) {
    *bias = bias_gradient_of(g);
    return;
  }
  *weight = empty({x.size(1), g.size(1)}, g.options());
  const MatrixOperand left(t(x)), right(g);
  visit_gemm_types("linear_backward", g.dtype(), [&]<class T> {
    Gemm<T> product = gemm_of<T>(left, right, *weight);
    if (bias) *bias = product.trans_b ? bias_gradient_of(g) : empty({g.size(1)}, g.options());
    if (bias && !product.trans_b) product.b_sums = bias->data<T>();
    gemm(product);
  });
}

/** The same for a weight stored as [out, in]: its gradient is g^T x. */
void transposed_weight_gradients(const Tensor& x, const Tensor& g, Tensor* weight, Tensor* bias) {
  if (!weight) return weight_gradients(x, g, weight, bias);
  *weight = empty({g.size(1), x.size(1)}, g.options());
  const MatrixOperand left(t(g)), right(x);
  visit_gemm_types("linear_backward", g.dtype(), [&]<class T> {
    Gemm<T> product = gemm_of<T>(left, right, *weight);
    if (bias) *bias = product.trans_a ? empty({g.size(1)}, g.options()) : bias_gradient_of(g);
    if (bias && product.trans_a) product.a_sums = bias->data<T>();
    gemm(product);
  });
}

void check_layer(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t in, int64_t out) {
  TERCEL_CHECK(x.dtype() == weight.dtype() && (!bias.defined() || bias.dtype() == x.dtype()), RuntimeError, op,
               ": expected one dtype but got input ", to_string(x.dtype()), ", weight ", to_string(weight.dtype()),
               bias.defined() ? ", bias " : "", bias.defined() ? to_string(bias.dtype()) : "");
  TERCEL_CHECK(x.size(-1) == in, RuntimeError, op, ": mat1 and mat2 shapes cannot be multiplied (",
               numel_of(x.sizes().subspan(0, x.sizes().size() - 1)), "x", x.size(-1), " and ", in, "x", out, ")");
  TERCEL_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == out), RuntimeError, op, ": expected bias [", out,
               "] but got ", bias.sizes());
  TERCEL_CHECK(x.device().is_cpu() && weight.device().is_cpu(), NotImplementedError, op,
               ": not implemented for device ", to_string(x.device().is_cpu() ? weight.device() : x.device()));
}

/** Tensors that a chain of layers saves for backward. Layer i maps inputs[i] to inputs[i + 1]; the last output is
 * separate. */
struct Chain {
  struct Layer {
    SavedTensor input, weight;
    bool has_bias = false, relu = false;
  };
  std::vector<Layer, ObjectAllocator<Layer>> layers;
  SavedMark mark;
  SavedTensor output;  // output of the last layer if it has a ReLU

  // Input 0 of the node is x; layer i has inputs 1 + 2 i (weight) and 2 + 2 i (bias).
  void operator()(BackwardCall& call) const {
    Tensor g = contiguous(call.take());
    if (layers.back().relu) g = through_relu(g, output.get());
    for (size_t i = layers.size(); i-- > 0;) {
      const Layer& layer = layers[i];
      Tensor weight, bias;
      const bool needs_weight = call.needs(1 + 2 * i), needs_bias = layer.has_bias && call.needs(2 + 2 * i);
      if (needs_weight || needs_bias)
        weight_gradients(layer.input.get(), g, needs_weight ? &weight : nullptr, needs_bias ? &bias : nullptr);
      if (needs_weight) call.set(1 + 2 * i, std::move(weight));
      if (needs_bias) call.set(2 + 2 * i, std::move(bias));
      if (i == 0 && !call.needs(0)) break;
      // A layer's input is the output of the layer before: where its ReLU gave 0, the gradient is 0.
      g = input_gradient(g, layer.weight.get(), i > 0 && layers[i - 1].relu ? layer.input.get() : Tensor());
    }
    if (call.needs(0)) call.set(0, std::move(g));
  }
};

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (has_sparse(x, weight)) [[unlikely]] {
    if (is_packed(weight)) refuse_layout("linear", x.layout());
    const Tensor out = matmul(x, t(weight));
    return bias.defined() ? add(out, bias) : out;
  }
  check_strided("linear", x, "input");
  if (bias.defined()) check_strided("linear", bias, "bias");
  check_defined("linear", weight, "weight");
  if (is_packed(weight))
    panels_of("linear", weight);
  else
    check_strided("linear", weight, "weight");
  TERCEL_CHECK((weight.dim() == 2 || weight.dim() == 1) && x.dim() >= 1, RuntimeError,
               "linear: expected input [..., in] and weight [out, in] or [in] but got ", x.sizes(), " and ",
               weight.sizes());
  if (weight.dim() == 1) {
    const Tensor out = matmul(x, weight);
    return bias.defined() ? add(out, bias) : out;
  }
  check_layer("linear", x, weight, bias, weight.size(1), weight.size(0));
  if (x.dim() != 2) {
    DimVector sizes(x.sizes());
    sizes.back() = weight.size(0);
    return view(linear(as_matrix(x), weight, bias), sizes);
  }
  // The fused layer supports the dtypes used in training.
  if (x.dtype() != kFloat32 && x.dtype() != kFloat64)
    return bias.defined() ? addmm(bias, x, t(weight)) : mm(x, t(weight));
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = forward_layer("linear", x, is_packed(weight) ? weight : t(weight), bias, Activation::None);
  }
  if (!should_record(x, weight, bias)) return out;
  record("LinearBackward0", out, {x, weight, bias},
         [x = SavedTensor::when(is_tracked(weight) || is_tracked(bias), x),
          weight = SavedTensor::when(is_tracked(x), weight)](BackwardCall& call) {
           const auto rows = [&] { return is_packed(weight.get()) ? unpack_weight(weight.get()) : weight.get(); };
           if (is_recording()) {
             if (call.needs(0)) call.set(0, mm(call.grad(), rows()));
             if (call.needs(1)) call.set(1, mm(t(call.grad()), x.get()));
             if (call.needs(2)) call.set(2, sum_to_size(call.grad(), IntSpan{call.grad().size(1)}));
             return;
           }
           const Tensor g = contiguous(call.grad());
           Tensor weight_gradient, bias_gradient;
           if (call.needs(1) || call.needs(2))
             transposed_weight_gradients(x.get(), g, call.needs(1) ? &weight_gradient : nullptr,
                                         call.needs(2) ? &bias_gradient : nullptr);
           if (call.needs(0)) call.set(0, plain_mm(g, rows()));
           if (call.needs(1)) call.set(1, std::move(weight_gradient));
           if (call.needs(2)) call.set(2, std::move(bias_gradient));
         });
  return out;
}

Tensor inner_product(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  return mlp(x, Span<Tensor>(&weight, 1), Span<Tensor>(&bias, 1), Span<Activation>(&activation, 1));
}

Tensor mlp(const Tensor& x, Span<Tensor> weights, Span<Tensor> biases, Span<Activation> activations) {
  const char* op = weights.size() == 1 ? "inner_product" : "mlp";
  check_strided(op, x, "input");
  TERCEL_CHECK(x.dim() == 2, RuntimeError, op, ": expected input [n, in] but got ", x.sizes());
  const size_t n = weights.size();
  TERCEL_CHECK(n > 0 && biases.size() == n && activations.size() == n, RuntimeError, op, ": ", n, " weights, ",
               biases.size(), " biases and ", activations.size(), " activations");
  bool records = should_record(x);
  for (size_t i = 0; i < n; ++i) {
    check_strided(op, weights[i], "weight");
    records |= should_record(weights[i], biases[i]);
  }
  Chain chain;
  if (records) chain.layers.resize(n);
  Tensor h = contiguous(x);
  {
    const NoRecordGuard no_record;
    for (size_t i = 0; i < n; ++i) {
      const Tensor& w = weights[i];
      TERCEL_CHECK(w.dim() == 2, RuntimeError, op, ": expected weight [in, out] but got ", w.sizes());
      check_layer(op, h, w, biases[i], w.size(0), w.size(1));
      Tensor y = forward_layer(op, h, w, biases[i], activations[i]);
      if (records) {
        const bool needs_input = is_tracked(w) || is_tracked(biases[i]) || i > 0;
        chain.layers[i] = {i == 0 ? SavedTensor::when(needs_input, h) : SavedTensor::output(h), SavedTensor(w),
                           biases[i].defined(), activations[i] == Activation::Relu};
      }
      h = std::move(y);
    }
  }
  if (!records) return h;
  if (activations.back() == Activation::Relu) chain.output = SavedTensor::output(h);
  std::vector<Tensor, ObjectAllocator<Tensor>> inputs;
  inputs.reserve(1 + 2 * n);
  inputs.push_back(x);
  for (size_t i = 0; i < n; ++i) {
    inputs.push_back(weights[i]);
    inputs.push_back(biases[i]);
  }
  record_list(n == 1 ? "InnerProductBackward0" : "MlpBackward0", h, inputs, once_differentiable(std::move(chain)));
  return h;
}

}  // namespace tercel
