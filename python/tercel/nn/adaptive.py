"""Softmax for very many classes, sorted by frequency (Grave et al., Efficient softmax approximation for GPUs)."""

from collections import namedtuple

from tercel import _C
from tercel.nn import functional as F
from tercel.nn.containers import ModuleList, Sequential
from tercel.nn.linear import Linear
from tercel.nn.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-probability of each row's target class, and the loss, without computing those of all classes.

    The head has an output for each class below cutoffs[0] and one for each cluster of rarer classes: cutoffs[i] to
    cutoffs[i + 1]. A cluster projects its input to in_features / div_value^(i + 1) features.
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1
                or any(int(c) != c for c in cutoffs)):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                             "where each value is between 1 and n_classes-1")
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, head_bias, **options)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            width = int(in_features // div_value ** (i + 1))
            self.tail.append(Sequential(Linear(in_features, width, bias=False, **options),
                                        Linear(width, high - low, bias=False, **options)))

    def reset_parameters(self):
        """Initializes the parameters again, with the global generator."""
        self.head.reset_parameters()
        for project, out in self.tail:
            project.reset_parameters()
            out.reset_parameters()

    def forward(self, input_, target_):
        alone = target_.dim() == 0
        self._check(input_, target_)
        x, target = (input_.unsqueeze(0), target_.unsqueeze(0)) if alone else (input_, target_)
        if target.numel() and not (0 <= target.min().item() and target.max().item() < self.n_classes):
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                               f"[{target.min().item()}, {target.max().item()}] were found. ")
        # The head's target for each row: the class itself, or its cluster.
        in_head = target.clone()
        output = x.new_zeros(target.size(0))
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            in_head[rows] = self.shortlist_size + i
            logs = F.log_softmax(self.tail[i](x.index_select(0, rows)), dim=1)
            own = logs.gather(1, (target.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
            output = output.index_copy(0, rows, own)
        logs = F.log_softmax(self.head(x), dim=1)
        output = output + logs.gather(1, in_head.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if alone else output, loss)

    @staticmethod
    def _check(x, target):
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.dim() == 1 and x.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if x.dim() != target.dim() + 1:
            raise RuntimeError(f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found "
                               f"inputs with size {x.size()}")

    def log_prob(self, input):  # noqa: A002
        """Log-probabilities [n, n_classes] of all classes, for input [n, in_features]."""
        head = self.head(input)
        logs = F.log_softmax(head, dim=1)
        parts = [logs[:, :self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            entry = logs[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(cluster(input), dim=1) + entry)
        return _C.cat(parts, 1)

    def predict(self, input):  # noqa: A002
        """The most probable class [n] of each row; clusters that no row needs are not computed."""
        head = self.head(input)
        best = head.argmax(1)
        rare = best >= self.shortlist_size
        if not rare.any():
            return best
        rows = rare.nonzero().squeeze(1)
        best[rows] = self.log_prob(input.index_select(0, rows)).argmax(1)
        return best
