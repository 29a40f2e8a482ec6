"""L-BFGS: quasi-Newton steps with a short history of gradients and an optional line search.

Note [Line search]
strong_wolfe searches for a step with a lower value and a much flatter slope. It increases the step until such a step is
between two tried ones (the bracket), and then narrows the bracket; each next step is the minimum of the cubic that
interpolates values and slopes of two steps, kept away from the bracket's ends if progress is too slow.
"""

from collections import namedtuple
from math import sqrt

from tercel import _C
from tercel._C import Tensor
from tercel.autograd import enable_grad, no_grad
from tercel.optim.optimizer import Optimizer, check_at_least_zero

__all__ = ["LBFGS"]

_Tried = namedtuple("_Tried", ["step", "value", "gradient", "slope"])

_DECREASE, _FLATNESS = 1e-4, 0.9  # required decrease of value and slope, as fractions of the initial slope
_MOST_TRIED = 25


def _least_of_cubic(a, b, low=None, high=None):
    """The minimum of the cubic with the values and slopes of two tried steps, within bounds (default: the two steps)."""
    if low is None:
        low, high = sorted((a.step, b.step))
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step)
    square = d1 ** 2 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2
    d2 = sqrt(square)
    left, right = (a, b) if a.step <= b.step else (b, a)
    at = right.step - (right.step - left.step) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2))
    return min(max(at, low), high)


def _bracket(evaluate, start, step):
    """An acceptable step, or a bracket of two steps around one; and the number of tried steps."""
    before, now = start, evaluate(step)
    for tried in range(_MOST_TRIED):
        if now.value > start.value + _DECREASE * now.step * start.slope or (tried > 1 and now.value >= before.value):
            return [before, now], tried + 1
        if abs(now.slope) <= -_FLATNESS * start.slope:
            return [now], tried + 1
        if now.slope >= 0:
            return [before, now], tried + 1
        least = now.step + 0.01 * (now.step - before.step)
        before, now = now, evaluate(_least_of_cubic(before, now, least, now.step * 10))
    return [start, now], _MOST_TRIED + 1


def _strong_wolfe(evaluate, start, step, longest, tolerance):
    """See Note [Line search]. Returns the chosen step and the number of tried ones."""
    ends, tried = _bracket(evaluate, start, step)
    low, high = (0, len(ends) - 1) if ends[0].value <= ends[-1].value else (1, 0)
    done, slow = len(ends) == 1, False
    while not done and tried <= _MOST_TRIED:
        first, last = sorted((ends[0].step, ends[1].step))
        if (last - first) * longest < tolerance:
            break
        step = _least_of_cubic(*ends)
        margin = 0.1 * (last - first)
        close = min(last - step, step - first) < margin
        if close and (slow or not first < step < last):
            step = last - margin if abs(step - last) < abs(step - first) else first + margin
            close = False
        slow = close
        now = evaluate(step)
        tried += 1
        if now.value > start.value + _DECREASE * step * start.slope or now.value >= ends[low].value:
            ends[high] = now
            low, high = (0, 1) if ends[0].value <= ends[1].value else (1, 0)
        else:
            done = abs(now.slope) <= -_FLATNESS * start.slope
            if not done and now.slope * (ends[high].step - ends[low].step) >= 0:
                ends[high] = ends[low]
            ends[low] = now
    return ends[low], tried


class LBFGS(Optimizer):
    """Limited-memory BFGS: step(closure) evaluates the loss and its gradients several times.

    Supports one parameter group. A step ends after max_iter directions or max_eval calls (default 1.25 * max_iter), or when
    gradients (tolerance_grad) or changes (tolerance_change) are small. line_search_fn: None (steps of lr) or "strong_wolfe".
    """

    def __init__(self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9,
                 history_size=100, line_search_fn=None):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check_at_least_zero(lr=lr)
        super().__init__(params, dict(lr=lr, max_iter=max_iter,
                                      max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
                                      tolerance_grad=tolerance_grad, tolerance_change=tolerance_change,
                                      history_size=history_size, line_search_fn=line_search_fn))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def _params(self):
        return self.param_groups[0]["params"]

    def _gradient(self):
        """All gradients as one vector of real numbers."""
        rows = []
        for p in self._params():
            g = _C.zeros_like(p) if p.grad is None else p.grad.to_dense() if p.grad.is_sparse else p.grad
            rows.append((_C.view_as_real(g) if g.is_complex() else g).reshape(-1))
        return _C.cat(rows)

    def _move(self, step, direction):
        begin = 0
        for p in self._params():
            p = _C.view_as_real(p) if p.is_complex() else p
            p.add_(direction[begin:begin + p.numel()].view_as(p), alpha=step)
            begin += p.numel()

    def _search(self, closure, state, step, start, tolerance):
        direction, before = state["d"], [p.clone() for p in self._params()]

        def evaluate(at):
            self._move(at, direction)
            value, gradient = float(closure()), self._gradient()
            for p, kept in zip(self._params(), before):
                p.copy_(kept)
            return _Tried(at, value, gradient, gradient.dot(direction).item())

        found, tried = _strong_wolfe(evaluate, start, step, direction.abs().max().item(), tolerance)
        self._move(found.step, direction)
        return found, tried

    @no_grad()
    def step(self, closure):
        """Performs several updates; returns the loss of the closure's first call."""
        group = self.param_groups[0]
        lr, max_iter, search = float(group["lr"]), group["max_iter"], group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        closure = enable_grad()(closure)
        state = self.state[self._params()[0]]
        for name in ("func_evals", "n_iter"):
            state.setdefault(name, 0)

        loss = closure()
        value, gradient, calls = float(loss), self._gradient(), 1
        state["func_evals"] += 1
        iterations, flat = 0, gradient.abs().max().item() <= group["tolerance_grad"]
        while iterations < max_iter and not flat:
            iterations += 1
            state["n_iter"] += 1
            _turn(state, gradient, group["history_size"])
            state["prev_flat_grad"], state["prev_loss"] = gradient.clone(), value
            total = gradient.abs().sum().item()
            state["t"] = (1.0 / total if state["n_iter"] == 1 and total > 1 else 1.0) * lr
            slope = gradient.dot(state["d"]).item()
            if slope > -group["tolerance_change"]:
                break
            tried = 0
            if search:
                found, tried = self._search(closure, state, state["t"], _Tried(0.0, value, gradient, slope),
                                            1e-9)
                state["t"], value, gradient = found.step, found.value, found.gradient
            else:
                self._move(state["t"], state["d"])
                if iterations != max_iter:  # not evaluated after the last update
                    value, gradient, tried = float(closure()), self._gradient(), 1
            calls += tried
            state["func_evals"] += tried
            flat = gradient.abs().max().item() <= group["tolerance_grad"]
            if (calls >= group["max_eval"] or abs(value - state["prev_loss"]) < group["tolerance_change"]
                    or (state["d"] * state["t"]).abs().max().item() <= group["tolerance_change"]):
                break
        return loss


def _turn(state, gradient, history_size):
    """The next direction, state["d"], from the gradient and the curvature history of the last steps."""
    if state["n_iter"] == 1:
        state.update(d=-gradient, old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return
    change, step = gradient - state["prev_flat_grad"], state["d"] * state["t"]
    curvature = change.dot(step).item()
    changes, steps, inverse = state["old_dirs"], state["old_stps"], state["ro"]
    if curvature > 1e-10:
        if len(changes) == history_size:
            for kept in (changes, steps, inverse):
                kept.pop(0)
        changes.append(change)
        steps.append(step)
        inverse.append(1.0 / curvature)
        state["H_diag"] = curvature / change.dot(change).item()
    direction, shares = -gradient, []
    for y, s, rho in reversed(list(zip(changes, steps, inverse))):
        shares.append(s.dot(direction).item() * rho)
        direction.add_(y, alpha=-shares[-1])
    direction.mul_(state["H_diag"])
    for (y, s, rho), share in zip(zip(changes, steps, inverse), reversed(shares)):
        direction.add_(s, alpha=share - y.dot(direction).item() * rho)
    state["d"] = direction
