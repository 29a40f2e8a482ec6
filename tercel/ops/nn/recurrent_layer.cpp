// See Note [Recurrent layers].
#include "tercel/ops/nn/recurrent_layer_impl.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/gemm_impl.h"
#include "tercel/ops/nn/linear.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<CellFn> forward_kernels = TERCEL_CPU_KERNELS(cell_forward);
constinit const KernelTable<CellBackwardFn> backward_kernels = TERCEL_CPU_KERNELS(cell_backward);

constexpr int64_t kGrainElements = 2048;

// Operands in the order of the node's inputs.
enum Operand : size_t { kX, kH, kC, kWeightIh, kWeightHh, kBiasIh, kBiasHh, kNumOperands };

std::array<Tensor, kNumOperands> operands_of(const LayerCall& call) {
  return {call.x,
          call.state.h,
          call.state.c,
          call.weights.weight_ih,
          call.weights.weight_hh,
          call.weights.bias_ih,
          call.weights.bias_hh};
}

/** Saved for backward, over all steps. */
struct Kept {
  Tensor gates, h, c;  ///< states before each step
  Tensor kept;         ///< CellLoop's `kept`
};

/** Rows of one step. */
struct Step {
  int64_t first, count;
};
std::vector<Step> steps_of(IntSpan batch_sizes, bool backward) {
  std::vector<Step> steps;
  int64_t first = 0;
  for (const int64_t count : batch_sizes) {
    steps.push_back({first, count});
    first += count;
  }
  if (backward) std::reverse(steps.begin(), steps.end());
  return steps;
}

Tensor fresh_copy(const Tensor& x) {
  Tensor out = empty(x.sizes(), x.options());
  copy_(out, x);
  return out;
}

Tensor sum_of_biases(const CellWeights& w) {
  if (!w.bias_hh.defined()) return w.bias_ih;
  return w.bias_ih.defined() ? add(w.bias_ih, w.bias_hh) : w.bias_hh;
}

template <class Loop, class Kernel>
void run_rows(const Loop& loop, Kernel* kernel, int64_t rows) {
  parallel_for(0, rows, std::max<int64_t>(1, kGrainElements / loop.hidden),
               [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
}

template <class T>
class Layer {
 public:
  Layer(CellKind kind, IntSpan batch_sizes, bool backward, int64_t hidden)
      : kind_(kind), hidden_(hidden), gates_(gates_of(kind) * hidden), steps_(steps_of(batch_sizes, backward)) {}

  LayerResult forward(const LayerCall& call, Kept* kept) const {
    const bool is_gru = kind_ == CellKind::Gru, is_lstm = kind_ == CellKind::Lstm;
    const int64_t rows = call.x.size(0), n = call.state.h.size(0);
    const CellWeights& w = call.weights;
    // The biases are added to the input's part, which is one product over all steps.
    Tensor gates = linear(contiguous(call.x), w.weight_ih, is_gru ? w.bias_ih : sum_of_biases(w));
    const Tensor weight_hh = contiguous(w.weight_hh),
                 bias = is_gru && w.bias_hh.defined() ? contiguous(w.bias_hh) : Tensor();
    const TensorOptions options = call.x.options();
    LayerResult result{empty({rows, hidden_}, options), {fresh_copy(call.state.h), {}}};
    if (is_lstm) result.state.c = fresh_copy(call.state.c);
    const Tensor share = is_gru ? empty({n, gates_}, options) : Tensor();
    if (kept) {
      if (is_lstm || is_gru) kept->gates = gates;
      kept->h = empty({rows, hidden_}, options);
      if (is_lstm) kept->c = empty({rows, hidden_}, options);
      if (is_lstm || is_gru) kept->kept = empty({rows, hidden_}, options);
    }
    for (const Step& step : steps_) {
      if (kept) {
        copy_rows(kept->h, step, result.state.h);
        if (is_lstm) copy_rows(kept->c, step, result.state.c);
      }
      add_product(result.state.h, step.count, weight_hh, bias, is_gru ? share.data<T>() : at(gates, step, gates_),
                  !is_gru);
      CellLoop loop{kind_,
                    sizeof(T) == 8,
                    hidden_,
                    at(gates, step, gates_),
                    is_gru ? share.data<T>() : nullptr,
                    result.state.h.data<T>(),
                    is_lstm ? result.state.c.data<T>() : nullptr,
                    at(result.output, step, hidden_),
                    kept && kept->kept.defined() ? at(kept->kept, step, hidden_) : nullptr};
      run_rows(loop, forward_kernels[kCpu], step.count);
    }
    return result;
  }

  /** Gradients of the gates' sums over all steps, the input's and the state's; `state` becomes the gradient of the
   * initial state. */
  std::array<Tensor, 2> backward(const Kept& kept, const Tensor& grad, const Tensor& weight,
                                 HiddenAndCell& state) const {
    const bool is_gru = kind_ == CellKind::Gru;
    const Tensor of_input = empty({kept.h.size(0), gates_}, kept.h.options());
    const Tensor of_state = is_gru ? empty(of_input.sizes(), of_input.options()) : of_input;
    const Tensor weight_hh = contiguous(weight), grads = grad.defined() ? contiguous(grad) : grad;
    for (size_t i = steps_.size(); i-- > 0;) {
      const Step& step = steps_[i];
      const auto of_step = [&](const Tensor& t) { return t.defined() ? at(t, step, hidden_) : nullptr; };
      CellBackwardLoop loop{kind_,
                            sizeof(T) == 8,
                            hidden_,
                            kept.gates.defined() ? at(kept.gates, step, gates_) : nullptr,
                            of_step(kept.kept),
                            is_gru ? of_step(kept.h) : of_step(kept.c),
                            of_step(grads),
                            state.h.data<T>(),
                            state.c.defined() ? state.c.data<T>() : nullptr,
                            at(of_input, step, gates_),
                            at(of_state, step, gates_)};
      run_rows(loop, backward_kernels[kCpu], step.count);
      Gemm<T> g;
      g.m = step.count;
      g.n = hidden_;
      g.k = gates_;
      g.a = at(of_state, step, gates_);
      g.lda = gates_;
      g.b = weight_hh.data<T>();
      g.ldb = hidden_;
      g.c = state.h.data<T>();
      g.ldc = hidden_;
      g.beta = is_gru ? T(1) : T(0);
      gemm(g);
    }
    return {of_input, of_state};
  }

 private:
  static T* at(const Tensor& matrix, const Step& step, int64_t width) { return matrix.data<T>() + step.first * width; }
  void copy_rows(const Tensor& to, const Step& step, const Tensor& state) const {
    std::memcpy(at(to, step, hidden_), state.data<T>(), static_cast<size_t>(step.count * hidden_) * sizeof(T));
  }
  void add_product(const Tensor& h, int64_t rows, const Tensor& weight, const Tensor& bias, T* to, bool adds) const {
    Gemm<T> g;
    g.m = rows;
    g.n = gates_;
    g.k = hidden_;
    g.a = h.data<T>();
    g.lda = hidden_;
    g.b = weight.data<T>();
    g.ldb = hidden_;
    g.trans_b = true;
    g.c = to;
    g.ldc = gates_;
    g.beta = adds ? T(1) : T(0);
    g.bias = bias.defined() ? bias.data<T>() : nullptr;
    gemm(g);
  }

  CellKind kind_;
  int64_t hidden_, gates_;
  std::vector<Step> steps_;
};

/** Calls fn with a Layer of the dtype. */
template <class Fn>
decltype(auto) with_layer(const LayerCall& call, Fn fn) {
  const int64_t hidden = call.weights.weight_hh.size(1);
  if (call.x.dtype() == kFloat64) return fn(Layer<double>(call.kind, call.batch_sizes, call.backward, hidden));
  return fn(Layer<float>(call.kind, call.batch_sizes, call.backward, hidden));
}

/** a^T b, and the sums of a's columns. */
template <class T>
void product_over_rows(const Tensor& a, const Tensor& b, Tensor* product, Tensor* sums) {
  const Tensor other = contiguous(b);
  *product = empty({a.size(1), b.size(1)}, a.options());
  Gemm<T> g;
  g.m = a.size(1);
  g.n = b.size(1);
  g.k = a.size(0);
  g.a = a.data<T>();
  g.lda = g.m;
  g.trans_a = true;
  g.b = other.data<T>();
  g.ldb = g.n;
  g.c = product->data<T>();
  g.ldc = g.n;
  if (sums) {
    *sums = empty({g.m}, a.options());
    g.a_sums = sums->data<T>();
  }
  gemm(g);
}

class LayerBackward {
 public:
  LayerBackward(const LayerCall& call, const Kept& kept, const LayerResult& result)
      : kind_(call.kind), backward_(call.backward), batch_sizes_(call.batch_sizes) {
    const std::array<Tensor, kNumOperands> operands = operands_of(call);
    for (size_t i = 0; i < kNumOperands; ++i)
      if (operands[i].defined()) operands_[i] = SavedTensor(operands[i]);
    if (kept.gates.defined()) gates_ = SavedTensor(kept.gates);
    h_ = SavedTensor(kept.h);
    if (kept.c.defined()) c_ = SavedTensor(kept.c);
    kept_ = kept.kept.defined() ? SavedTensor(kept.kept) : SavedTensor::output(result.output);
  }

  void operator()(BackwardCall& call) {
    LayerCall layer{kind_,
                    get(kX),
                    batch_sizes_,
                    {get(kH), get(kC)},
                    {get(kWeightIh), get(kWeightHh), get(kBiasIh), get(kBiasHh)},
                    backward_};
    if (is_recording()) return by_ops(call, layer);
    HiddenAndCell state{gradient(call, 1, layer.state.h), {}};
    if (layer.state.c.defined()) state.c = gradient(call, 2, layer.state.c);
    const Kept kept{gates_.defined() ? gates_.get() : Tensor(), h_.get(), c_.defined() ? c_.get() : Tensor(),
                    kept_.get(call)};
    with_layer(layer, [&]<class T>(const Layer<T>& of) {
      const auto [of_input, of_state] = of.backward(kept, call.grad(0), layer.weights.weight_hh, state);
      if (call.needs(kX)) call.set(kX, matmul_of(of_input, layer.weights.weight_ih));
      set_weight<T>(call, kWeightIh, kBiasIh, of_input, layer.x);
      set_weight<T>(call, kWeightHh, kBiasHh, of_state, kept.h);
    });
    if (call.needs(kH)) call.set(kH, state.h);
    if (call.needs(kC)) call.set(kC, state.c);
  }

 private:
  Tensor get(Operand i) const { return operands_[i].defined() ? operands_[i].get() : Tensor(); }

  static Tensor gradient(const BackwardCall& call, size_t output, const Tensor& like) {
    return call.grad(output).defined() ? fresh_copy(call.grad(output)) : zeros(like.sizes(), like.options());
  }
  static Tensor matmul_of(const Tensor& gates, const Tensor& weight) { return linear(gates, transpose(weight, 0, 1)); }

  template <class T>
  static void set_weight(BackwardCall& call, size_t weight, size_t bias, const Tensor& gates, const Tensor& operand) {
    Tensor product, sums;
    if (call.needs(weight))
      product_over_rows<T>(gates, operand, &product, call.needs(bias) ? &sums : nullptr);
    else if (call.needs(bias))
      sums = sum(gates, {0});
    if (product.defined()) call.set(weight, product);
    if (sums.defined()) call.set(bias, sums);
  }

  /** Differentiable gradients. Views distinguish operands that are the same tensor. */
  static void by_ops(BackwardCall& call, LayerCall& layer) {
    const bool create_graph = grad_enabled();
    const EnableGradGuard enable;
    std::array<Tensor*, kNumOperands> operands{&layer.x,
                                               &layer.state.h,
                                               &layer.state.c,
                                               &layer.weights.weight_ih,
                                               &layer.weights.weight_hh,
                                               &layer.weights.bias_ih,
                                               &layer.weights.bias_hh};
    std::vector<Tensor> wanted, outputs, gradients;
    std::vector<size_t> places;
    for (size_t i = 0; i < kNumOperands; ++i) {
      Tensor& t = *operands[i];
      if (!t.defined() || !(call.needs(i) || t.requires_grad())) continue;
      t = t.requires_grad() ? t.view_as(t) : t.detach().requires_grad_();
      if (!call.needs(i)) continue;
      wanted.push_back(t);
      places.push_back(i);
    }
    const LayerResult result = layer_of_ops(layer);
    const Tensor* results[] = {&result.output, &result.state.h, &result.state.c};
    for (size_t i = 0; i < 3; ++i) {
      if (!results[i]->defined() || !call.grad(i).defined()) continue;
      outputs.push_back(*results[i]);
      gradients.push_back(call.grad(i));
    }
    const std::vector<Gradient> found = grad(outputs, wanted, gradients, true, create_graph, true);
    for (size_t i = 0; i < found.size(); ++i) call.set(places[i], found[i]);
  }

  CellKind kind_;
  bool backward_;
  DimVector batch_sizes_;
  SavedTensor operands_[kNumOperands], gates_, h_, c_, kept_;
};

}  // namespace

bool can_fuse(const LayerCall& call) {
  const ScalarType dtype = call.x.dtype();
  if ((dtype != kFloat32 && dtype != kFloat64) || call.weights.weight_hr.defined()) return false;
  if (call.x.size(0) == 0 || call.state.h.size(-1) == 0) return false;
  const std::array<Tensor, kNumOperands> operands = operands_of(call);
  return std::all_of(operands.begin(), operands.end(),
                     [&](const Tensor& t) { return !t.defined() || (t.dtype() == dtype && t.device().is_cpu()); });
}

LayerResult fused_layer(const LayerCall& call) {
  const std::array<Tensor, kNumOperands> in = operands_of(call);
  const bool records =
      std::any_of(in.begin(), in.end(), [](const Tensor& t) { return t.defined() && should_record(t); });
  Kept kept;
  LayerResult result;
  {
    const NoRecordGuard no_record;
    result = with_layer(call, [&](const auto& layer) { return layer.forward(call, records ? &kept : nullptr); });
  }
  if (!records) return result;
  const bool is_lstm = call.kind == CellKind::Lstm;
  const Tensor outs[] = {result.output, result.state.h, result.state.c};
  const char* const name = is_lstm ? "LstmBackward0" : call.kind == CellKind::Gru ? "GruBackward0" : "RnnBackward0";
  record_outputs(name, Span<Tensor>(outs, is_lstm ? 3 : 2), {in[0], in[1], in[2], in[3], in[4], in[5], in[6]},
                 LayerBackward(call, kept, result));
  return result;
}

}  // namespace tercel
