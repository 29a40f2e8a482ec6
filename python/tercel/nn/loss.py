"""Losses as modules."""

from tercel.nn import functional as F
from tercel.nn.module import Module

__all__ = ["L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "NLLLoss",
           "CrossEntropyLoss", "KLDivLoss", "PoissonNLLLoss", "GaussianNLLLoss", "HingeEmbeddingLoss",
           "CosineEmbeddingLoss", "MarginRankingLoss", "MultiMarginLoss", "MultiLabelMarginLoss",
           "MultiLabelSoftMarginLoss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
           "CTCLoss"]


class _Loss(Module):
    """Calls the function of the same name with the module's options."""

    _function = None
    _options = ()  # names of attributes that are passed to the function

    def __init__(self, size_average=None, reduce=None, reduction="mean", **options):
        super().__init__()
        if size_average is not None or reduce is not None:  # deprecated arguments that `reduction` replaced
            kept = "mean" if size_average is None or size_average else "sum"
            reduction = kept if reduce is None or reduce else "none"
        self.reduction = reduction
        for name, value in options.items():
            setattr(self, name, value)

    def forward(self, *args):
        options = {name: getattr(self, name) for name in self._options}
        return self._function(*args, reduction=self.reduction, **options)


class L1Loss(_Loss):
    """|x - target|"""

    _function = staticmethod(F.l1_loss)


class MSELoss(_Loss):
    """(x - target)^2"""

    _function = staticmethod(F.mse_loss)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target x))"""

    _function = staticmethod(F.soft_margin_loss)


class SmoothL1Loss(_Loss):
    """Quadratic below beta, linear above."""

    _function, _options = staticmethod(F.smooth_l1_loss), ("beta",)

    def __init__(self, size_average=None, reduce=None, reduction="mean", beta=1.0):
        super().__init__(size_average, reduce, reduction, beta=beta)


class HuberLoss(_Loss):
    """Quadratic below delta, linear above."""

    _function, _options = staticmethod(F.huber_loss), ("delta",)

    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction=reduction, delta=delta)


class _WeightedLoss(_Loss):
    """Base of losses with a weight, which is a buffer."""

    _options = ("weight",)

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean", **options):
        super().__init__(size_average, reduce, reduction, **options)
        self.register_buffer("weight", weight)


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities."""

    _function = staticmethod(F.binary_cross_entropy)


class BCEWithLogitsLoss(_WeightedLoss):
    """Binary cross entropy of sigmoid(x)."""

    _function, _options = staticmethod(F.binary_cross_entropy_with_logits), ("weight", "pos_weight")

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)


class NLLLoss(_WeightedLoss):
    """-x[target] for log-probabilities x."""

    _function, _options = staticmethod(F.nll_loss), ("weight", "ignore_index")

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction, ignore_index=ignore_index)


class CrossEntropyLoss(_WeightedLoss):
    """NLLLoss of log_softmax(x), or -target log_softmax(x) if the target has probabilities."""

    _function, _options = staticmethod(F.cross_entropy), ("weight", "ignore_index", "label_smoothing")

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                 label_smoothing=0.0):
        super().__init__(weight, size_average, reduce, reduction, ignore_index=ignore_index,
                         label_smoothing=label_smoothing)


class MultiMarginLoss(_WeightedLoss):
    """max(0, margin - x[target] + x[class])^p over the other classes."""

    _function, _options = staticmethod(F.multi_margin_loss), ("weight", "p", "margin")

    def __init__(self, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction, p=p, margin=margin)


class KLDivLoss(_Loss):
    """target (log(target) - x) for log-probabilities x; "batchmean" gives the mathematical KL divergence."""

    _function, _options = staticmethod(F.kl_div), ("log_target",)

    def __init__(self, size_average=None, reduce=None, reduction="mean", log_target=False):
        super().__init__(size_average, reduce, reduction, log_target=log_target)


class PoissonNLLLoss(_Loss):
    """exp(x) - target x, or x - target log(x)."""

    _function, _options = staticmethod(F.poisson_nll_loss), ("log_input", "full", "eps")

    def __init__(self, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction, log_input=log_input, full=full, eps=eps)


class GaussianNLLLoss(_Loss):
    """(log var + (x - target)^2 / var) / 2"""

    _function, _options = staticmethod(F.gaussian_nll_loss), ("full", "eps")

    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__(reduction=reduction, full=full, eps=eps)


class _MarginLoss(_Loss):
    """Base of losses with a margin."""

    _options = ("margin",)
    _margin = 0.0

    def __init__(self, margin=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction, margin=self._margin if margin is None else margin)


class HingeEmbeddingLoss(_MarginLoss):
    """x where target is 1, max(0, margin - x) where it is -1."""

    _function, _margin = staticmethod(F.hinge_embedding_loss), 1.0


class CosineEmbeddingLoss(_MarginLoss):
    """1 - cos(a, b) where target is 1, max(0, cos(a, b) - margin) where it is -1."""

    _function = staticmethod(F.cosine_embedding_loss)


class MarginRankingLoss(_MarginLoss):
    """max(0, -target (a - b) + margin)"""

    _function = staticmethod(F.margin_ranking_loss)


class TripletMarginLoss(_Loss):
    """max(0, |anchor - positive| - |anchor - negative| + margin)"""

    _function, _options = staticmethod(F.triplet_margin_loss), ("margin", "p", "eps", "swap")

    def __init__(self, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction, margin=margin, p=p, eps=eps, swap=swap)


class TripletMarginWithDistanceLoss(_Loss):
    """max(0, distance(anchor, positive) - distance(anchor, negative) + margin)"""

    _function, _options = staticmethod(F.triplet_margin_with_distance_loss), ("distance_function", "margin", "swap")

    def __init__(self, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead")
        super().__init__(reduction=reduction, distance_function=distance_function, margin=margin, swap=swap)


class MultiLabelMarginLoss(_Loss):
    """max(0, 1 - x[target] + x[class]) over all targets and all other classes."""

    _function = staticmethod(F.multilabel_margin_loss)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross entropy of sigmoid(x), averaged over classes."""

    _function = staticmethod(F.multilabel_soft_margin_loss)


class CTCLoss(_Loss):
    """-log of the probability of the target sequence under log_probs, summed over all alignments."""

    _function, _options = staticmethod(F.ctc_loss), ("blank", "zero_infinity")

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__(reduction=reduction, blank=blank, zero_infinity=zero_infinity)
