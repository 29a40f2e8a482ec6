// Losses as modules, which hold the arguments besides the operands. Names, arguments and defaults are torch.nn's.
#pragma once

#include "tercel/nn/module.h"
#include "tercel/ops/nn/cross_entropy.h"
#include "tercel/ops/nn/ctc_loss.h"
#include "tercel/ops/nn/loss.h"

namespace tercel::nn {

#define TERCEL_LOSS_BODY(Name, call)                                        \
  using Module::forward;                                                    \
  Tensor forward(const Tensor& x, const Tensor& target) { return call; }    \
  Tensor operator()(const Tensor& x, const Tensor& target) { return call; } \
  const char* name() const override { return #Name; }
#define TERCEL_LOSS0(Name, call)                                                    \
  class TERCEL_API Name final : public Module {                                     \
   public:                                                                          \
    explicit Name(Reduction reduction = Reduction::Mean) : reduction_(reduction) {} \
    TERCEL_LOSS_BODY(Name, call)                                                    \
                                                                                    \
   private:                                                                         \
    Reduction reduction_;                                                           \
  };
#define TERCEL_LOSS1(Name, Type, a, fallback, call)                                                             \
  class TERCEL_API Name final : public Module {                                                                 \
   public:                                                                                                      \
    explicit Name(Type a = fallback, Reduction reduction = Reduction::Mean) : a##_(a), reduction_(reduction) {} \
    TERCEL_LOSS_BODY(Name, call)                                                                                \
                                                                                                                \
   private:                                                                                                     \
    Type a##_;                                                                                                  \
    Reduction reduction_;                                                                                       \
  };
// The weight is a buffer: it follows to() and is part of the state.
#define TERCEL_WEIGHTED_LOSS(Name, call)                                            \
  class TERCEL_API Name final : public Module {                                     \
   public:                                                                          \
    explicit Name(Tensor loss_weight = {}, Reduction reduction = Reduction::Mean)   \
        : weight(register_weight(std::move(loss_weight))), reduction_(reduction) {} \
    TERCEL_LOSS_BODY(Name, call)                                                    \
    Tensor weight;                                                                  \
                                                                                    \
   private:                                                                         \
    Tensor register_weight(Tensor given) {                                          \
      return given.defined() ? register_buffer("weight", std::move(given)) : given; \
    }                                                                               \
    Reduction reduction_;                                                           \
  };

/** Losses of two tensors from loss.h and cross_entropy.h: loss(x, target). */
TERCEL_LOSS0(L1Loss, l1_loss(x, target, reduction_))
TERCEL_LOSS0(MSELoss, mse_loss(x, target, reduction_))
TERCEL_LOSS0(MultiLabelMarginLoss, multilabel_margin_loss(x, target, reduction_))
TERCEL_LOSS0(SoftMarginLoss, soft_margin_loss(x, target, reduction_))
TERCEL_LOSS1(SmoothL1Loss, double, beta, 1, smooth_l1_loss(x, target, reduction_, beta_))
TERCEL_LOSS1(HuberLoss, double, delta, 1, huber_loss(x, target, reduction_, delta_))
TERCEL_LOSS1(HingeEmbeddingLoss, double, margin, 1, hinge_embedding_loss(x, target, margin_, reduction_))
TERCEL_LOSS1(KLDivLoss, bool, log_target, false, kl_div(x, target, reduction_, log_target_))
TERCEL_LOSS1(PoissonNLLLoss, bool, log_input, true,
             poisson_nll_loss(x, target, log_input_, /*full=*/false, /*eps=*/1e-8, reduction_))
TERCEL_WEIGHTED_LOSS(BCELoss, binary_cross_entropy(x, target, weight, reduction_))
TERCEL_WEIGHTED_LOSS(BCEWithLogitsLoss, binary_cross_entropy_with_logits(x, target, weight, reduction_))
TERCEL_WEIGHTED_LOSS(CrossEntropyLoss, cross_entropy(x, target, weight, reduction_))
TERCEL_WEIGHTED_LOSS(NLLLoss, nll_loss(x, target, weight, reduction_))
TERCEL_WEIGHTED_LOSS(MultiLabelSoftMarginLoss, multilabel_soft_margin_loss(x, target, weight, reduction_))
TERCEL_WEIGHTED_LOSS(MultiMarginLoss, multi_margin_loss(x, target, 1, 1, weight, reduction_))

/** Losses of three tensors. */
#define TERCEL_LOSS_OF_THREE(Name, call)                                                \
  using Module::forward;                                                                \
  Tensor forward(const Tensor& a, const Tensor& b, const Tensor& c) { return call; }    \
  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& c) { return call; } \
  const char* name() const override { return #Name; }
#define TERCEL_MARGIN_LOSS(Name, function)                                  \
  class TERCEL_API Name final : public Module {                             \
   public:                                                                  \
    explicit Name(double margin = 0, Reduction reduction = Reduction::Mean) \
        : margin_(margin), reduction_(reduction) {}                         \
    TERCEL_LOSS_OF_THREE(Name, function(a, b, c, margin_, reduction_))      \
                                                                            \
   private:                                                                 \
    double margin_;                                                         \
    Reduction reduction_;                                                   \
  };
TERCEL_MARGIN_LOSS(CosineEmbeddingLoss, cosine_embedding_loss)
TERCEL_MARGIN_LOSS(MarginRankingLoss, margin_ranking_loss)
class TERCEL_API TripletMarginLoss final : public Module {
 public:
  explicit TripletMarginLoss(double margin = 1, double p = 2, double eps = 1e-6, bool swap = false,
                             Reduction reduction = Reduction::Mean)
      : margin_(margin), p_(p), eps_(eps), swap_(swap), reduction_(reduction) {}
  TERCEL_LOSS_OF_THREE(TripletMarginLoss, triplet_margin_loss(a, b, c, margin_, p_, eps_, swap_, reduction_))

 private:
  double margin_, p_, eps_;
  bool swap_;
  Reduction reduction_;
};
class TERCEL_API GaussianNLLLoss final : public Module {
 public:
  explicit GaussianNLLLoss(bool full = false, double eps = 1e-6, Reduction reduction = Reduction::Mean)
      : full_(full), eps_(eps), reduction_(reduction) {}
  TERCEL_LOSS_OF_THREE(GaussianNLLLoss, gaussian_nll_loss(a, b, c, full_, eps_, reduction_))

 private:
  bool full_;
  double eps_;
  Reduction reduction_;
};
/** ctc_loss(). */
class TERCEL_API CTCLoss final : public Module {
 public:
  explicit CTCLoss(int64_t blank = 0, Reduction reduction = Reduction::Mean, bool zero_infinity = false)
      : blank_(blank), reduction_(reduction), zero_infinity_(zero_infinity) {}
  using Module::forward;
  Tensor forward(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths, IntSpan target_lengths) {
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, blank_, reduction_, zero_infinity_);
  }
  Tensor operator()(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths, IntSpan target_lengths) {
    return forward(log_probs, targets, input_lengths, target_lengths);
  }
  const char* name() const override { return "CTCLoss"; }

 private:
  int64_t blank_;
  Reduction reduction_;
  bool zero_infinity_;
};

#undef TERCEL_LOSS_OF_THREE
#undef TERCEL_MARGIN_LOSS
#undef TERCEL_LOSS_BODY
#undef TERCEL_LOSS0
#undef TERCEL_LOSS1
#undef TERCEL_WEIGHTED_LOSS

}  // namespace tercel::nn
