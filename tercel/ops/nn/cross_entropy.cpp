#include "tercel/ops/nn/cross_entropy.h"

#include "tercel/autograd/not_implemented.h"
#include "tercel/autograd/record.h"
#include "tercel/core/default_dtype.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/elementwise_loop_impl.h"
#include "tercel/ops/elementwise/activation.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/nn/similarity.h"
#include "tercel/ops/nn/softmax.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

// The dimension of classes: 1, or 0 for a vector.
int64_t class_dim(const Tensor& x) { return x.dim() == 1 ? 0 : 1; }

void check_classes(const Tensor& x, const Tensor& target, const Tensor& weight) {
  check_strided("nll_loss", x, "input");
  check_strided("nll_loss", target, "target");
  TERCEL_CHECK(x.dim() >= 1, ValueError, "Expected 1 or more dimensions (got 0)");
  TERCEL_CHECK(target.dtype() == kInt64, RuntimeError, "expected scalar type Long but found ",
               scalar_type_word(target.dtype()));
  if (x.dim() > 1)
    TERCEL_CHECK(target.dim() >= 1 && x.size(0) == target.size(0), ValueError, "Expected input batch_size (", x.size(0),
                 ") to match target batch_size (", target.dim() == 0 ? 0 : target.size(0), ").");
  DimVector want(x.sizes());
  want.erase(want.begin() + class_dim(x));
  TERCEL_CHECK(target.sizes() == IntSpan(want), RuntimeError, "Expected target size ", IntSpan(want), ", got ",
               target.sizes());
  const int64_t classes = x.size(class_dim(x));
  TERCEL_CHECK(!weight.defined() || (weight.dim() <= 1 && weight.numel() == classes), RuntimeError,
               "weight tensor should be defined either for all ", classes,
               " classes or no classes but got weight tensor of shape: ", weight.sizes());
}

// Elements selected by a target, and their weights.
struct ClassTargets {
  Tensor ignored;  // bool
  Tensor index;    // the target, 0 where ignored
  Tensor weight;   // of each sample
};

/** The op's name in PyTorch's error messages. */
const char* nll_name(const Tensor& x) { return x.dim() <= 2 ? "nll_loss_forward" : "nll_loss2d_forward"; }

ClassTargets pick(const char* op, const Tensor& x, const Tensor& target, const Tensor& weight, int64_t ignore_index) {
  check_without_gradient(op, weight, "weight");
  const NoRecordGuard no_record;
  ClassTargets p;
  p.ignored = eq(target, ignore_index);
  p.index = masked_fill(target, p.ignored, 0);
  const Tensor flat = contiguous(p.index);
  const int64_t classes = x.size(class_dim(x));
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const int64_t c = flat.data<int64_t>()[i];
    TERCEL_CHECK(c >= 0 && c < classes, IndexError, "Target ", c, " is out of bounds.");
  }
  if (weight.defined())
    p.weight = view(index_select(to(weight.detach(), x.dtype()), 0, view(flat, {-1})), target.sizes());
  else
    p.weight = ones(target.sizes(), TensorOptions(x.dtype(), x.device()));
  p.weight = masked_fill(p.weight, p.ignored, 0);
  return p;
}

Tensor weighted(const Tensor& losses, const ClassTargets& p, Reduction reduction) {
  if (reduction == Reduction::None) return losses;
  const Tensor total = sum(losses);
  return reduction == Reduction::Sum ? total : div(total, sum(p.weight));
}

Tensor losses_at_targets(const Tensor& x, const ClassTargets& p) {
  const int64_t dim = class_dim(x);
  // An ignored row may contain anything, including infinity, and must not affect the result.
  const Tensor values = squeeze(gather(x, dim, unsqueeze(p.index, dim)), dim);
  return masked_fill(mul(neg(values), p.weight), p.ignored, 0);
}

Tensor of_classes(const Tensor& weight, const Tensor& x) {
  DimVector sizes(static_cast<size_t>(x.dim()), 1);
  sizes[static_cast<size_t>(class_dim(x))] = -1;
  return view(to(weight, x.dtype()), sizes);
}

Tensor probability_loss(const Tensor& x, const Tensor& target, const Tensor& weight, Reduction reduction,
                        double label_smoothing) {
  TERCEL_CHECK(target.is_floating_point(), RuntimeError,
               "Expected floating point type for target with class probabilities, got ", to_string(target.dtype()));
  const int64_t dim = class_dim(x), classes = x.size(dim);
  Tensor t = target;
  if (label_smoothing > 0) t = add(mul(target, 1 - label_smoothing), label_smoothing / static_cast<double>(classes));
  Tensor terms = mul(log_softmax(x, dim), t);
  if (weight.defined()) terms = mul(terms, of_classes(weight, x));
  const Tensor losses = neg(sum(terms, {dim}));
  if (reduction != Reduction::Mean) return reduce_loss(losses, reduction);
  return div(sum(losses), static_cast<double>(x.numel()) / static_cast<double>(classes));
}

void check_three(const char* op, const Tensor& a, const Tensor& b, const Tensor& target) {
  check_strided(op, a, "input1");
  check_strided(op, b, "input2");
  check_strided(op, target, "target");
}

}  // namespace

Tensor nll_loss(const Tensor& x, const Tensor& target, const Tensor& weight, Reduction reduction,
                int64_t ignore_index) {
  check_classes(x, target, weight);
  const ClassTargets p = pick(nll_name(x), x, target, weight, ignore_index);
  return weighted(losses_at_targets(x, p), p, reduction);
}

Tensor cross_entropy(const Tensor& x, const Tensor& target, const Tensor& weight, Reduction reduction,
                     int64_t ignore_index, double label_smoothing) {
  check_strided("cross_entropy", x, "input");
  check_strided("cross_entropy", target, "target");
  TERCEL_CHECK(label_smoothing >= 0 && label_smoothing <= 1, RuntimeError,
               "label_smoothing must be between 0.0 and 1.0. Got: ", label_smoothing);
  TERCEL_CHECK(x.dim() >= 1, ValueError, "Expected 1 or more dimensions (got 0)");
  if (target.sizes() == x.sizes()) {
    TERCEL_CHECK(ignore_index < 0, RuntimeError, "ignore_index is not supported for floating point target");
    return probability_loss(x, target, weight, reduction, label_smoothing);
  }
  check_classes(x, target, weight);
  const int64_t dim = class_dim(x);
  const Tensor logs = log_softmax(x, dim);
  const ClassTargets p = pick(nll_name(x), x, target, weight, ignore_index);
  const Tensor hard = weighted(losses_at_targets(logs, p), p, reduction);
  if (label_smoothing == 0) return hard;
  const Tensor all = weight.defined() ? mul(logs, of_classes(weight, x)) : logs;
  const Tensor soft = weighted(masked_fill(neg(sum(all, {dim})), p.ignored, 0), p, reduction);
  return add(mul(hard, 1 - label_smoothing), mul(soft, label_smoothing / static_cast<double>(x.size(dim))));
}

Tensor multi_margin_loss(const Tensor& x, const Tensor& target, int64_t p, double margin, const Tensor& weight,
                         Reduction reduction) {
  TERCEL_CHECK(p == 1 || p == 2, ValueError, "only p == 1 and p == 2 supported");
  TERCEL_CHECK(!weight.defined() || weight.dim() == 1, ValueError, "weight must be one-dimensional");
  check_strided("multi_margin_loss", x, "input");
  check_strided("multi_margin_loss", target, "target");
  if (x.dim() == 0) return multi_margin_loss(unsqueeze(x, 0), target, p, margin, weight, reduction);
  TERCEL_CHECK(x.dim() <= 2 && x.size(-1) > 0, RuntimeError,
               "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", x.sizes());
  check_classes(x, x.dim() == 1 ? reshape(target, {}) : target, weight);
  const Tensor rows = x.dim() == 1 ? unsqueeze(x, 0) : x, index = reshape(target, {rows.size(0)});
  const ClassTargets targets = pick("multi_margin_loss", rows, index, weight, INT64_MIN);
  const Tensor column = unsqueeze(targets.index, 1);
  Tensor terms = relu(add(sub(rows, gather(rows, 1, column)), margin));
  if (p == 2) terms = square(terms);
  if (weight.defined()) terms = mul(terms, unsqueeze(targets.weight, 1));
  const Tensor own = eq(arange(rows.size(1)), column);
  const Tensor losses = div(sum(masked_fill(terms, own, 0), {1}), static_cast<double>(rows.size(1)));
  return reduce_loss(x.dim() == 1 ? squeeze(losses, 0) : losses, reduction);
}

Tensor multilabel_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_strided("multilabel_margin_loss", x, "input");
  check_strided("multilabel_margin_loss", target, "target");
  TERCEL_CHECK(x.dim() <= 2 && (x.dim() == 0 || x.size(-1) > 0), RuntimeError,
               "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", x.sizes());
  const bool one_number = x.dim() == 0 && target.dim() == 1 && target.numel() == 1;
  TERCEL_CHECK(target.sizes() == x.sizes() || one_number, RuntimeError, "inconsistent target size: ", target.sizes(),
               " for input of size: ", x.sizes());
  TERCEL_CHECK(target.dtype() == kInt64, RuntimeError, "expected scalar type Long but found ",
               scalar_type_word(target.dtype()));
  const int64_t classes = x.dim() == 0 ? 1 : x.size(-1), n = x.dim() == 2 ? x.size(0) : 1;
  const Tensor rows = reshape(x, {n, classes}), index = clone(reshape(target, {n, classes}), MemoryFormat::Contiguous);
  const Tensor ended = zeros({n, classes, 1}, kBool), own = zeros({n, 1, classes}, kBool);
  for (int64_t i = 0; i < n; ++i) {
    int64_t* labels = index.data<int64_t>() + i * classes;
    bool past = false;
    for (int64_t k = 0; k < classes; ++k) {
      TERCEL_CHECK(labels[k] >= -1 && labels[k] < classes, RuntimeError, "argument #2 'target' is out of range");
      past = past || labels[k] == -1;
      ended.data<bool>()[i * classes + k] = past;
      if (past)
        labels[k] = 0;
      else
        own.data<bool>()[i * classes + labels[k]] = true;
    }
  }
  const Tensor terms = relu(add(sub(unsqueeze(rows, 1), unsqueeze(gather(rows, 1, index), 2)), 1));
  const Tensor counted = masked_fill(masked_fill(terms, ended, 0), own, 0);
  const Tensor losses = div(sum(counted, {1, 2}), static_cast<double>(classes));
  return reduce_loss(x.dim() == 2 ? losses : squeeze(losses, 0), reduction);
}

Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& target, const Tensor& weight, Reduction reduction) {
  check_strided("multilabel_soft_margin_loss", x, "input");
  check_strided("multilabel_soft_margin_loss", target, "target");
  Tensor losses = neg(add(mul(target, logsigmoid(x)), mul(sub(1, target), logsigmoid(neg(x)))));
  if (weight.defined()) losses = mul(losses, weight);
  return reduce_loss(mean(losses, {-1}), reduction);
}

Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin, Reduction reduction) {
  check_strided("hinge_embedding_loss", x, "input");
  check_strided("hinge_embedding_loss", target, "target");
  const Tensor far = where(ne(target, 1), relu(sub(margin, x)), 0), near = where(ne(target, -1), x, 0);
  return reduce_loss(add(far, near), reduction);
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin,
                             Reduction reduction) {
  check_three("cosine_embedding_loss", a, b, target);
  TERCEL_CHECK(target.dim() <= 1, RuntimeError, "0D or 1D target tensor expected, multi-target not supported");
  TERCEL_CHECK(a.dim() == target.dim() + 1 && b.dim() == a.dim(), RuntimeError, target.dim(),
               "D target tensor expects ", target.dim() + 1, "D input tensors, but found inputs with sizes ", a.sizes(),
               " and ", b.sizes(), ".");
  const auto floating = [](const Tensor& x) { return x.is_differentiable() ? x : to(x, default_dtype()); };
  const Tensor left = floating(a), right = floating(b);
  const ScalarType common = promote_types(left.dtype(), right.dtype()), wide = native_dtype(compute_of(common));
  // Not cosine_similarity(), which clamps the norms: this loss adds eps to their squares.
  const auto product = [&](const Tensor& x, const Tensor& y) {
    return sum(mul(to(x, wide), to(y, wide)), {target.dim()});
  };
  const Tensor norms = sqrt(mul(add(product(left, left), 1e-12), add(product(right, right), 1e-12)));
  const Tensor cosine = to(div(product(left, right), norms), common);
  const Tensor near = where(eq(target, 1), sub(1, cosine), 0);
  return reduce_loss(add(near, where(eq(target, -1), relu(sub(cosine, margin)), 0)), reduction);
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin, Reduction reduction) {
  check_three("margin_ranking_loss", a, b, target);
  TERCEL_CHECK(a.dim() == b.dim() && a.dim() == target.dim(), RuntimeError,
               "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: ", a.sizes(),
               ", input2: ", b.sizes(), ", target: ", target.sizes());
  return reduce_loss(relu(add(mul(neg(target), sub(a, b)), margin)), reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                           double p, double eps, bool swap, Reduction reduction) {
  check_three("triplet_margin_loss", anchor, positive, negative);
  TERCEL_CHECK(anchor.dim() == positive.dim() && positive.dim() == negative.dim(), RuntimeError,
               "The anchor, positive, and negative tensors are expected to have the same number of dimensions, ",
               "but got: anchor ", anchor.dim(), "D, positive ", positive.dim(), "D, and negative ", negative.dim(),
               "D inputs");
  TERCEL_CHECK(margin > 0, ValueError, "margin must be greater than 0, got ", margin);
  const Tensor near = pairwise_distance(anchor, positive, p, eps);
  Tensor far = pairwise_distance(anchor, negative, p, eps);
  if (swap) far = minimum(far, pairwise_distance(positive, negative, p, eps));
  return reduce_loss(relu(add(sub(near, far), margin)), reduction);
}

Tensor soft_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_strided("soft_margin_loss", x, "input");
  check_strided("soft_margin_loss", target, "target");
  const Tensor wrongness = mul(neg(x), target);
  if (wrongness.is_complex()) return reduce_loss(log1p(exp(wrongness)), reduction);
  return reduce_loss(softplus(wrongness), reduction);
}

}  // namespace tercel
