// Losses, with the arguments of torch.nn.functional, including deprecated ones (size_average, reduce).
#include "python/src/op.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/nn/cross_entropy.h"
#include "tercel/ops/nn/ctc_loss.h"
#include "tercel/ops/nn/loss.h"

namespace tercel::python {

namespace {

/** `what`: the loss's term for a valid reduction, for the error message. */
Reduction reduction_of(std::string_view name, const char* what = "a valid value for reduction") {
  for (const auto& [value, text] : enum_names(Reduction{}))
    if (text == name) return value;
  throw_error<ValueError>({name, " is not ", what});
}

/** The reduction given by the deprecated arguments size_average and reduce, if either is given. */
Reduction reduction_of(std::optional<bool> size_average, std::optional<bool> reduce, std::string_view name,
                       const char* what = "a valid value for reduction") {
  if (!size_average && !reduce) return reduction_of(name, what);
  if (!reduce.value_or(true)) return Reduction::None;
  return size_average.value_or(true) ? Reduction::Mean : Reduction::Sum;
}

using Flag = std::optional<bool>;

DimVector lengths_of(const char* name, const Tensor& lengths) {
  TERCEL_CHECK(is_integral(lengths.dtype(), false), RuntimeError, name, " must be integral");
  const Tensor row = contiguous(to(lengths, kInt64));
  return DimVector(IntSpan(row.data<int64_t>(), static_cast<size_t>(row.numel())));
}

#define TERCEL_REDUCTION "bool? size_average=None, bool? reduce=None, str reduction=\"mean\""
/** A loss of x and target only. */
#define TERCEL_PLAIN_LOSS(name)                                                                          \
  entry(                                                                                                 \
      #name "(Tensor input, Tensor target, " TERCEL_REDUCTION ")",                                       \
      [](const Tensor& x, const Tensor& target, Flag average, Flag reduce, std::string_view reduction) { \
        return name(x, target, reduction_of(average, reduce, reduction));                                \
      },                                                                                                 \
      kNn)

}  // namespace

Span<Entry> loss_ops() {
  static const Entry table[] = {
      TERCEL_PLAIN_LOSS(multilabel_margin_loss),
      entry(
          "multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, " TERCEL_REDUCTION ")",
          [](const Tensor& x, const Tensor& target, const Tensor& weight, Flag average, Flag reduce,
             std::string_view reduction) {
            return multilabel_soft_margin_loss(x, target, weight, reduction_of(average, reduce, reduction));
          },
          kNn),
      entry(
          "ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, str "
          "reduction=\"mean\", bool zero_infinity=False)",
          [](const Tensor& x, const Tensor& targets, const DimVector& times, const DimVector& lengths, int64_t blank,
             std::string_view reduction, bool zero_infinity) {
            return ctc_loss(x, targets, times, lengths, blank, reduction_of(reduction), zero_infinity);
          },
          kNn),
      entry(
          "ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, str "
          "reduction=\"mean\", bool zero_infinity=False)",
          [](const Tensor& x, const Tensor& targets, const Tensor& times, const Tensor& lengths, int64_t blank,
             std::string_view reduction, bool zero_infinity) {
            return ctc_loss(x, targets, lengths_of("input_lengths", times), lengths_of("target_lengths", lengths),
                            blank, reduction_of(reduction), zero_infinity);
          },
          kNn),
      TERCEL_PLAIN_LOSS(mse_loss),
      TERCEL_PLAIN_LOSS(l1_loss),
      TERCEL_PLAIN_LOSS(soft_margin_loss),
      entry(
          "binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, " TERCEL_REDUCTION ")",
          [](const Tensor& x, const Tensor& target, const Tensor& weight, Flag average, Flag reduce,
             std::string_view reduction) {
            return binary_cross_entropy(x, target, weight, reduction_of(average, reduce, reduction));
          },
          kNn),
      entry(
          "binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, " TERCEL_REDUCTION
          ", Tensor? pos_weight=None)",
          [](const Tensor& x, const Tensor& target, const Tensor& weight, Flag average, Flag reduce,
             std::string_view reduction, const Tensor& pos_weight) {
            const Reduction r = reduction_of(average, reduce, reduction);
            if (!pos_weight.defined()) return binary_cross_entropy_with_logits(x, target, weight, r);
            return binary_cross_entropy_with_logits(x, target, weight, r, pos_weight);
          },
          kNn),
      entry(
          "smooth_l1_loss(Tensor input, Tensor target, " TERCEL_REDUCTION ", float beta=1.0)",
          [](const Tensor& x, const Tensor& target, Flag average, Flag reduce, std::string_view reduction,
             double beta) { return smooth_l1_loss(x, target, reduction_of(average, reduce, reduction), beta); },
          kNn),
      entry(
          "huber_loss(Tensor input, Tensor target, str reduction=\"mean\", float delta=1.0)",
          [](const Tensor& x, const Tensor& target, std::string_view reduction, double delta) {
            return huber_loss(x, target, reduction_of(reduction), delta);
          },
          kNn),
      entry(
          "kl_div(Tensor input, Tensor target, " TERCEL_REDUCTION ", bool log_target=False)",
          [](const Tensor& x, const Tensor& target, Flag average, Flag reduce, std::string_view reduction,
             bool log_target) {
            if (reduction != "batchmean")
              return kl_div(x, target, reduction_of(average, reduce, reduction), log_target);
            const Tensor sum = kl_div(x, target, Reduction::Sum, log_target);
            return x.dim() == 0 ? sum : div(sum, Scalar(x.size(0)));
          },
          kNn),
      entry(
          "poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, bool? "
          "size_average=None, float eps=1e-8, bool? reduce=None, str reduction=\"mean\")",
          [](const Tensor& x, const Tensor& target, bool log_input, bool full, Flag average, double eps, Flag reduce,
             std::string_view reduction) {
            return poisson_nll_loss(x, target, log_input, full, eps, reduction_of(average, reduce, reduction));
          },
          kNn),
      entry(
          "gaussian_nll_loss(Tensor input, Tensor target, Tensor var, bool full=False, float eps=1e-6, str "
          "reduction=\"mean\")",
          [](const Tensor& x, const Tensor& target, const Tensor& var, bool full, double eps,
             std::string_view reduction) {
            return gaussian_nll_loss(x, target, var, full, eps, reduction_of(reduction, "valid"));
          },
          kNn),
      entry(
          "nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, "
          "bool? reduce=None, str reduction=\"mean\")",
          [](const Tensor& x, const Tensor& target, const Tensor& weight, Flag average, int64_t ignore, Flag reduce,
             std::string_view reduction) {
            return nll_loss(x, target, weight, reduction_of(average, reduce, reduction), ignore);
          },
          kNn),
      entry(
          "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int "
          "ignore_index=-100, bool? reduce=None, str reduction=\"mean\", float label_smoothing=0.0)",
          [](const Tensor& x, const Tensor& target, const Tensor& weight, Flag average, int64_t ignore, Flag reduce,
             std::string_view reduction, double smoothing) {
            return cross_entropy(x, target, weight, reduction_of(average, reduce, reduction), ignore, smoothing);
          },
          kNn),
      entry(
          "multi_margin_loss(Tensor input, Tensor target, int p=1, float margin=1.0, Tensor? "
          "weight=None, " TERCEL_REDUCTION ")",
          [](const Tensor& x, const Tensor& target, int64_t p, double margin, const Tensor& weight, Flag average,
             Flag reduce, std::string_view reduction) {
            return multi_margin_loss(x, target, p, margin, weight, reduction_of(average, reduce, reduction));
          },
          kNn),
      entry(
          "hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, " TERCEL_REDUCTION ")",
          [](const Tensor& x, const Tensor& target, double margin, Flag average, Flag reduce,
             std::string_view reduction) {
            return hinge_embedding_loss(x, target, margin, reduction_of(average, reduce, reduction));
          },
          kNn),
      entry(
          "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, " TERCEL_REDUCTION ")",
          [](const Tensor& a, const Tensor& b, const Tensor& target, double margin, Flag average, Flag reduce,
             std::string_view reduction) {
            return cosine_embedding_loss(a, b, target, margin, reduction_of(average, reduce, reduction));
          },
          kNn),
      entry(
          "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, " TERCEL_REDUCTION ")",
          [](const Tensor& a, const Tensor& b, const Tensor& target, double margin, Flag average, Flag reduce,
             std::string_view reduction) {
            return margin_ranking_loss(a, b, target, margin, reduction_of(average, reduce, reduction));
          },
          kNn),
      entry(
          "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, float "
          "eps=1e-6, bool swap=False, " TERCEL_REDUCTION ")",
          [](const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin, double p, double eps,
             bool swap, Flag average, Flag reduce, std::string_view reduction) {
            return triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap,
                                       reduction_of(average, reduce, reduction));
          },
          kNn),
  };
  return table;
}

}  // namespace tercel::python
