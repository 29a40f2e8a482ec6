"""The optimizers: names, defaults and formulas are PyTorch's; Ftrl is the trainer's.

One call of the extension updates a parameter group, by the same rules as in the C++ optimizers and the trainer
(_update_group); differentiable steps, and the optimizers that exist only in Python, use tensor operations (_update).
Arguments that select between implementations of one formula in PyTorch (foreach, fused, capturable) are accepted and
have no effect.
"""

from tercel import _C
from tercel.autograd import no_grad
from tercel.optim.optimizer import ElementwiseOptimizer, check_at_least_zero, check_betas, check_one_rate, count, kept, required

__all__ = ["SGD", "Adam", "AdamW", "SparseAdam", "Adagrad", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop",
           "Ftrl"]


def _decayed(p, grad, group):
    return grad if group["weight_decay"] == 0 else grad.add(p, alpha=group["weight_decay"])


def _after_decay(p, grad, group, shrinks):
    """The gradient with weight decay added; unchanged if decay is decoupled and shrinks the parameter itself."""
    if not shrinks:
        return _decayed(p, grad, group)
    p.mul_(1 - group["lr"] * group["weight_decay"])
    return grad


def _guarded_root(square, group, divisor=1.0):
    """sqrt(square) / divisor + eps, in place unless the step is recorded."""
    root = square.sqrt()
    if group["differentiable"]:
        return root / divisor + group["eps"]
    return (root if divisor == 1 else root.div_(divisor)).add_(group["eps"])


def _moments(p, grad, state, betas):
    """Updates the moving averages of the gradient and of its square in a state."""
    beta1, beta2 = betas
    mean = kept(state, "exp_avg", p).lerp_(grad, 1 - beta1)
    return mean, kept(state, "exp_avg_sq", p).mul_(beta2).addcmul_(grad, grad, value=1 - beta2)


def _largest(state, name, values, group):
    """The elementwise maximum of a state and the values, which becomes the state."""
    before = state[name]
    if group["differentiable"]:
        state[name] = _C.maximum(before, values)
    else:
        _C.maximum(before, values, out=before)
    return state[name]


class SGD(ElementwiseOptimizer):
    """buf = momentum buf + (1 - dampening) g; p -= lr buf, or, with nesterov, lr (g + momentum buf)."""

    _takes_sparse = True
    _takes_compressed = True

    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False,
                 foreach=None, differentiable=False, fused=None):
        if lr is not required:
            check_at_least_zero(lr=lr)
        check_at_least_zero(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
                                      nesterov=nesterov, maximize=maximize, differentiable=differentiable))

    def _update_group(self, group):
        momentum = float(group["momentum"])
        options = (float(group["lr"]), momentum, float(group["dampening"]), float(group["weight_decay"]),
                   bool(group["nesterov"]), bool(group["maximize"]))
        new, known = ([], [], []), ([], [], [])  # parameters, gradients, buffers
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            # The buffer of a sparse gradient is sparse too.
            if p.layout is not _C.strided or (grad.is_sparse and (momentum != 0 or group["weight_decay"] != 0)):
                with no_grad():
                    self._update(p, -grad if group["maximize"] else grad, self.state[p], group)
                continue
            lists = known
            if momentum != 0:
                state = self.state[p]
                if state.get("momentum_buffer") is None:
                    lists = new
                lists[2].append(kept(state, "momentum_buffer", p))
            lists[0].append(p)
            lists[1].append(grad)
        if new[0]:
            try:
                _C._sgd_step(*new, *options, True)
            except BaseException:
                for p in new[0]:  # a buffer starts as the first gradient
                    self.state[p].pop("momentum_buffer", None)
                raise
        if known[0]:
            _C._sgd_step(*known, *options, False)

    def _update(self, p, grad, state, group):
        grad = _decayed(p, grad, group)
        momentum = group["momentum"]
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        p.add_(grad, alpha=-group["lr"])


class Adam(ElementwiseOptimizer):
    """
    Bias-corrected moving averages of g and g^2; weight decay is added to g, or shrinks the parameter itself if
    decoupled_weight_decay is set.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None,
                 maximize=False, capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False):
        check_at_least_zero(lr=lr, eps=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad,
                                      maximize=maximize, differentiable=differentiable,
                                      decoupled_weight_decay=decoupled_weight_decay))

    def _check_sparse(self, group):
        if any(p.grad is not None and p.grad.is_sparse for p in group["params"]):
            raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")

    def _update_group(self, group):
        amsgrad, (beta1, beta2) = group["amsgrad"], group["betas"]
        names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if amsgrad else ("exp_avg", "exp_avg_sq")
        params, grads, *states, steps = self._with_gradients(group, names)
        if params:
            _C._adam_step(params, grads, *states, *([] if amsgrad else [[]]), steps, float(group["lr"]), float(beta1),
                          float(beta2), float(group["weight_decay"]), float(group["eps"]),
                          bool(group["decoupled_weight_decay"]), bool(group["maximize"]))

    def _update(self, p, grad, state, group):
        (beta1, beta2), lr = group["betas"], group["lr"]
        step = count(state)
        grad = _after_decay(p, grad, group, group["decoupled_weight_decay"])
        mean, square = _moments(p, grad, state, group["betas"])
        if group["amsgrad"]:
            kept(state, "max_exp_avg_sq", p)
            square = _largest(state, "max_exp_avg_sq", square, group)
        root = _guarded_root(square, group, (1 - beta2**step) ** 0.5)
        p.addcdiv_(mean, root, value=-lr / (1 - beta1**step))


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter itself."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *,
                 maximize=False, foreach=None, capturable=False, differentiable=False, fused=None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize,
                         differentiable=differentiable, decoupled_weight_decay=True)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


class SparseAdam(ElementwiseOptimizer):
    """
    Adam for COO gradients: only the moments and elements at a gradient's entries change, so those of others do not decay.
    RuntimeError for a strided gradient, ValueError for a sparse or a complex parameter.
    """

    _takes_sparse = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        check_one_rate(lr)
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        places = [([i, k], p) for i, group in enumerate(self.param_groups) for k, p in enumerate(group["params"])]
        if sparse := [place for place, p in places if p.is_sparse]:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        if complex_ones := [place for place, p in places if p.is_complex()]:
            raise ValueError(f"Complex params at indices {complex_ones}: SparseAdam does not support complex parameters")

    def _update(self, p, grad, state, group):
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state.setdefault("step", 0)  # an int, as in PyTorch
        (beta1, beta2), step = group["betas"], count(state)
        mean, square = kept(state, "exp_avg", p), kept(state, "exp_avg_sq", p)
        grad = grad.coalesce()
        indices, values = grad.indices(), grad.values()

        def at_entries(moment, target, rate):
            """The moment at the entries, moved towards the target."""
            change = (target - moment.sparse_mask(grad)._values()) * rate
            moment.add_(_C._sparse_coo_tensor(indices, change, tuple(p.shape), is_coalesced=True))
            return moment.sparse_mask(grad)._values()

        numerator = at_entries(mean, values, 1 - beta1)
        root = at_entries(square, values * values, 1 - beta2).sqrt_().add_(group["eps"])
        rate = float(group["lr"]) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        p.add_(_C._sparse_coo_tensor(indices, numerator / root, tuple(p.shape), is_coalesced=True), alpha=-rate)


class Adagrad(ElementwiseOptimizer):
    """sum += g^2; p -= lr / (1 + (step - 1) lr_decay) g / (sqrt(sum) + eps)"""

    _takes_sparse = True

    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10,
                 foreach=None, *, maximize=False, differentiable=False, fused=None):
        check_at_least_zero(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay,
                            initial_accumulator_value=initial_accumulator_value, eps=eps)
        super().__init__(params, dict(lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
                                      initial_accumulator_value=initial_accumulator_value, maximize=maximize,
                                      differentiable=differentiable))

    def _check_sparse(self, group):
        if group["weight_decay"] != 0 and any(p.grad is not None and p.grad.is_sparse for p in group["params"]):
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")

    def _update_group(self, group):
        lists = self._with_gradients(group, ("sum",), float(group["initial_accumulator_value"]))
        if lists[0]:
            _C._adagrad_step(*lists, float(group["lr"]), float(group["lr_decay"]), float(group["weight_decay"]),
                             float(group["eps"]), bool(group["maximize"]))

    def _update(self, p, grad, state, group):
        step = count(state)
        grad = _decayed(p, grad, group)
        total = kept(state, "sum", p, group["initial_accumulator_value"]).addcmul_(grad, grad)
        p.addcdiv_(grad, _guarded_root(total, group), value=-group["lr"] / (1 + (step - 1) * group["lr_decay"]))


class RMSprop(ElementwiseOptimizer):
    """p -= lr g / (sqrt(moving average of g^2) + eps), optionally centred and with momentum."""

    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False,
                 capturable=False, foreach=None, maximize=False, differentiable=False):
        check_at_least_zero(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, dict(lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered,
                                      weight_decay=weight_decay, maximize=maximize,
                                      differentiable=differentiable))

    def _update_group(self, group):
        centered, momentum = bool(group["centered"]), float(group["momentum"])
        names = ["square_avg"] + ["grad_avg"] * centered + ["momentum_buffer"] * (momentum != 0)
        params, grads, squares, *others, steps = self._with_gradients(group, names)
        if params:
            means = others.pop(0) if centered else []
            _C._rmsprop_step(params, grads, squares, means, others[0] if others else [], steps, float(group["lr"]),
                             float(group["alpha"]), float(group["eps"]), float(group["weight_decay"]), momentum, centered,
                             bool(group["maximize"]))

    def _update(self, p, grad, state, group):
        count(state)
        grad = _decayed(p, grad, group)
        alpha, momentum = group["alpha"], group["momentum"]
        root = kept(state, "square_avg", p).mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = kept(state, "grad_avg", p).lerp_(grad, 1 - alpha)
            root = root.addcmul(mean, mean, value=-1)
        root = _guarded_root(root, group)
        if momentum == 0:
            p.addcdiv_(grad, root, value=-group["lr"])
        else:
            buffer = kept(state, "momentum_buffer", p).mul_(momentum).addcdiv_(grad, root)
            p.add_(buffer, alpha=-group["lr"])


class Adadelta(ElementwiseOptimizer):
    """p -= lr d, with d = g sqrt(moving average of d^2 + eps) / sqrt(moving average of g^2 + eps)."""

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False,
                 maximize=False, differentiable=False):
        check_at_least_zero(lr=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_at_least_zero(eps=eps, weight_decay=weight_decay)
        super().__init__(params, dict(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize,
                                      differentiable=differentiable))

    def _update(self, p, grad, state, group):
        count(state)
        grad = _decayed(p, grad, group)
        rho, eps = group["rho"], group["eps"]
        square, moved = kept(state, "square_avg", p), kept(state, "acc_delta", p)
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        if group["differentiable"]:
            delta = (moved + eps).sqrt() / (square + eps).sqrt() * grad
        else:
            delta = moved.add(eps).sqrt_().div_(square.add(eps).sqrt_()).mul_(grad)
        moved.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.add_(delta, alpha=-group["lr"])


class Adamax(ElementwiseOptimizer):
    """Adam with a decaying maximum of |g| in place of the root mean square."""

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False,
                 differentiable=False, capturable=False):
        check_at_least_zero(lr=lr, eps=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize,
                                      differentiable=differentiable))

    def _update(self, p, grad, state, group):
        beta1, beta2 = group["betas"]
        step = count(state)
        grad = _decayed(p, grad, group)
        mean = kept(state, "exp_avg", p).lerp_(grad, 1 - beta1)
        kept(state, "exp_inf", p).mul_(beta2)
        largest = _largest(state, "exp_inf", grad.abs().add_(group["eps"]), group)
        p.addcdiv_(mean, largest, value=-group["lr"] / (1 - beta1**step))


class NAdam(ElementwiseOptimizer):
    """Adam with Nesterov momentum."""

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,
                 decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False,
                 differentiable=False):
        check_at_least_zero(lr=lr, eps=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                                      momentum_decay=momentum_decay, maximize=maximize,
                                      decoupled_weight_decay=decoupled_weight_decay,
                                      differentiable=differentiable))

    def _update(self, p, grad, state, group):
        (beta1, beta2), lr = group["betas"], group["lr"]
        step = count(state)
        grad = _after_decay(p, grad, group, group["decoupled_weight_decay"])
        now, after = (beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        product = kept(state, "mu_product", _C.empty((), dtype=_C.float32), 1.0).mul_(now).item()
        mean, square = _moments(p, grad, state, group["betas"])
        root = _guarded_root(square / (1 - beta2**step), group)
        p.addcdiv_(grad, root, value=-lr * (1 - now) / (1 - product))
        p.addcdiv_(mean, root, value=-lr * after / (1 - product * after))


class RAdam(ElementwiseOptimizer):
    """Adam that skips the division by the root mean square in the first steps, and rectifies its variance afterwards."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *,
                 foreach=None, maximize=False, capturable=False, differentiable=False):
        check_at_least_zero(lr=lr, eps=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize,
                                      decoupled_weight_decay=decoupled_weight_decay,
                                      differentiable=differentiable))

    def _update(self, p, grad, state, group):
        (beta1, beta2), lr = group["betas"], group["lr"]
        step = count(state)
        grad = _after_decay(p, grad, group, group["decoupled_weight_decay"])
        mean, square = _moments(p, grad, state, group["betas"])
        rate = lr / (1 - beta1**step)
        correction = 1 - beta2**step
        most = 2 / (1 - beta2) - 1  # length of the moving average in the limit, and after this many steps
        length = most - 2 * step * beta2**step / correction
        if length <= 5:
            p.add_(mean, alpha=-rate)
            return
        share = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
        p.addcdiv_(mean, _guarded_root(square, group), value=-rate * (share * correction) ** 0.5)


class ASGD(ElementwiseOptimizer):
    """p -= eta (g + lambd p), with a decreasing eta; the state "ax" is the mean of p from step t0 on."""

    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False,
                 differentiable=False, capturable=False):
        check_at_least_zero(lr=lr, weight_decay=weight_decay)
        super().__init__(params, dict(lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay,
                                      maximize=maximize, differentiable=differentiable))

    def _update(self, p, grad, state, group):
        step = count(state)
        eta, share = state.get("eta", group["lr"]), state.get("mu", 1.0)
        mean = kept(state, "ax", p)
        grad = _decayed(p, grad, group)
        p.mul_(1 - group["lambd"] * eta).add_(grad, alpha=-eta)
        mean.add_(p - mean, alpha=share)
        state["eta"] = group["lr"] / (1 + group["lambd"] * group["lr"] * step) ** group["alpha"]
        state["mu"] = 1 / max(1, step - group["t0"])


class Rprop(ElementwiseOptimizer):
    """Steps by the sign of g: sizes grow while the sign stays, and shrink when it changes, where the step is skipped."""

    def __init__(self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None,
                 maximize=False, differentiable=False):
        check_at_least_zero(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, dict(lr=lr, etas=etas, step_sizes=step_sizes, maximize=maximize,
                                      differentiable=differentiable))

    def _update(self, p, grad, state, group):
        count(state)
        (shrink, grow), (least, most) = group["etas"], group["step_sizes"]
        before, size = kept(state, "prev", p), kept(state, "step_size", p, group["lr"])
        same = grad * before
        size.mul_(_C.ones_like(size).masked_fill_(same > 0, grow).masked_fill_(same < 0, shrink)).clamp_(least, most)
        grad = grad.masked_fill(same < 0, 0)
        p.addcmul_(grad.sign(), size, value=-1)
        before.copy_(grad)


class Ftrl(ElementwiseOptimizer):
    """Follow the regularized leader: parameters whose |z| is at most lambda1 are zero.

    n += g^2; z += g - (sqrt(n) - sqrt(n before)) / lr p; p = (sign(z) lambda1 - z) / ((sqrt(n) + beta) / lr + lambda2).
    """

    def __init__(self, params, lr=1e-3, beta=0.0, lambda1=0.0, lambda2=0.0, *, maximize=False):
        check_at_least_zero(lr=lr, beta=beta, lambda1=lambda1, lambda2=lambda2)
        super().__init__(params, dict(lr=lr, beta=beta, lambda1=lambda1, lambda2=lambda2, maximize=maximize))

    def _update_group(self, group):
        lists = self._with_gradients(group, ("n", "z"), counts=False)
        if lists[0]:
            _C._ftrl_step(*lists, float(group["lr"]), float(group["beta"]), float(group["lambda1"]),
                          float(group["lambda2"]), bool(group["maximize"]))
