"""Calls of the whole public API: made from signatures where possible, otherwise from tables."""

import inspect
import math

import test_docs

import tercel as tc

F, nn, C = tc.nn.functional, tc.nn, tc._C

INTEGERS = {"index", "indices", "target", "targets", "offsets", "lengths", "repeats", "batch_sizes", "row_offsets", "keys",
            "input_lengths", "target_lengths", "count", "tensor_indices_or_sections"}
BY_TYPE = {"int": 1, "float": 0.5, "bool": False, "Scalar": 1, "Tensor|Scalar": 2, "str": "mean", "int[]": [1, 1],
           "dtype": tc.float64, "object": [1.0, 2.0], "float[]": [1.0, 2.0],
           "layout": tc.sparse_csr, "Storage": tc.ones(4).untyped_storage()}
# Values of parameters by name, where the type is not enough: {type ("" is any): value}.
BY_NAME = {
    "q": 0.5, "dims": [0], "source": {"int": 0, "int[]": 0}, "destination": {"int": 1, "int[]": 1}, "equation": "ij,jk->ik",
    "split_sizes": [1, 1], "pad": [1, 1], "normalized_shape": [2], "reduce": "sum", "dim0": 0, "size": {"int": 2, "int[]": [2, 2]},
    "n": {"int": 2}, "high": 5, "low": 0, "stride": {"int[]": [2, 1]}, "side": "left", "axis0": 0, "num_classes": 3,
    "output_size": 2, "rounding_mode": "floor", "min": 0,
}


def value(name, kind, make):
    """An argument for a name and a type of signature.h ("" if unknown)."""
    kind = kind.rstrip("?")
    known = BY_NAME.get(name)
    if isinstance(known, dict):
        known = known.get(kind)
    if kind in ("Tensor", "Tensor[]"):
        return make(name) if kind == "Tensor" else [make(name), make(name)]
    if known is not None:
        return known
    return [1] * int(kind[4:-1]) if kind.startswith("int[") and kind != "int[]" else BY_TYPE[kind]


def tensors(shape, kind=tc.float32, index=None, weight=None):
    """Makes tensors by the names of parameters."""
    def make(name):
        if name in INTEGERS:
            return tc.zeros(shape if index is None else index, dtype=tc.int64)
        size = weight if weight and name == "weight" else shape
        return tc.linspace(0.25, 0.75, math.prod(size)).to(kind).view(size)
    return make


ATTEMPTS = [
    tensors((2, 2)), tensors((2, 2), index=(2,)), tensors((3,)), tensors((2, 2), tc.int64), tensors((2, 2), tc.bool),
    tensors((1, 2, 4, 4), weight=(2, 2, 1, 1)), tensors((1, 2, 4), weight=(2, 2, 1)), tensors((3, 2, 2)),
    tensors((1, 2, 4, 4, 4), weight=(2, 2, 1, 1, 1)), tensors((2, 2), tc.complex64), tensors((), index=()), tensors((1,)),
    tensors((1,), tc.int64), tensors((3,), tc.uint8), tensors((2, 2), tc.float64),
]

x = tc.linspace(0.25, 0.75, 4).view(2, 2)
SAMPLES = dict(
    x=x, v=tc.rand(2), three=tc.rand(3, 2, 2), image=tc.rand(1, 2, 4, 4), spd=tc.tensor([[2.0, 0.5], [0.5, 1.0]]),
    ones=tc.ones(2), i=tc.tensor([0, 1]), bytes=bytearray(16), lu=tc.linalg.lu_factor(x), ldl=tc.linalg.ldl_factor(x),
    rnn=[tc.rand(2, 2), tc.rand(2, 2), tc.rand(2), tc.rand(2)], gru=[tc.rand(6, 2), tc.rand(6, 2), tc.rand(6), tc.rand(6)],
    lstm=[tc.rand(8, 2), tc.rand(8, 2), tc.rand(8), tc.rand(8)], leaf=tc.rand(2, 2, requires_grad=True), tc=tc, nn=nn, F=F)

# Arguments of operations, where the attempts above find none: for a method the first is the tensor.
ARGUMENTS = {
    **{name: "x.to_sparse()" for name in ("_indices", "_nnz", "_values", "coalesce", "indices", "is_coalesced", "values")},
    "_coalesced_": "x.to_sparse(), False", "sparse_mask": "x, x.to_sparse()", "sparse_resize_": "x.to_sparse(), [2, 3], 2, 0",
    "resize_as_sparse_": "x.to_sparse(), x.to_sparse()", "_sparse_broadcast_to": "x.to_sparse(), [2, *x.shape]",
    "sparse_resize_and_clear_": "x.to_sparse(), [2, 3], 2, 0", "_sparse_coo_tensor": "tc.tensor([[0, 1]]), v",
    "sparse_sum": "x.to_sparse()", "sparse_softmax": "x.to_sparse(), 0", "sparse_log_softmax": "x.to_sparse(), 0",
    **{name: "tc.tensor([[0, 0], [1, 1]]), v[:2], tc.tensor([2, 2])"
       for name in ("_tensorflow_sparse", "_tensorflow_reorder", "_tensorflow_to_coo")},
    "_tensorflow_to_dense": "tc.tensor([[0, 0], [1, 1]]), v[:2], tc.tensor([2, 2]), 0, True",
    "_tensorflow_sparse_of": "x.to_sparse()", "to_sparse": "x, blocksize=1, layout=tc.sparse_bsr",
    **{name: "x.to_sparse_csr()" for name in ("crow_indices", "col_indices")},
    **{name: "x.to_sparse_csc()" for name in ("ccol_indices", "row_indices")},
    "_sparse_compressed_tensor": "tc.tensor([0, 1, 2]), i, v, [2, 2], tc.sparse_csr", "to_sparse_bsr": "x, [1, 1]",
    "to_sparse_bsc": "x, [1, 1]", "sparse_sampled_addmm": "x.to_sparse_csr(), x, x",
    "sparse_mm": "x.to_sparse(), x", "sparse_addmm": "x, x.to_sparse(), x",
    "_histogramdd": "tc.rand(4, 2), 2, [], None, False", "istft": "tc.ones(3, 5, dtype=tc.complex64), 4", "ormqr": "x, v, x",
    "stft": "tc.rand(16), 4",
    "_tensordot": "x, x, [0], [1]", "detach_": "v.clone()", "linalg_cond": "x, 'fro'", "squeeze": "x, [0]", "squeeze_": "x, [0]",
    "_interpolate": "image, [2, 2], [], 'nearest', None, False, False", "_trunc_normal_": "x, 0.0, 1.0, -2.0, 2.0",
    "addbmm": "x, three, three", "addbmm_": "x, three, three", "addmv": "v, x, v", "addmv_": "v, x, v", "addr_": "x, v, v",
    "affine_grid": "tc.rand(1, 2, 3), [1, 1, 2, 2]", "batch_norm": "image, v, v",
    "batched_embedding_bag": "x, i, tc.tensor([0, 1, 2]), 1", "bernoulli": "x, 0.5", "binomial": "tc.ones(2), v",
    "cholesky": "spd", "clamp": "x, 0.1", "clamp_": "x, 0.1", "clip": "x, 0.1", "clip_": "x, 0.1",
    "ctc_loss": "tc.rand(3, 1, 4).log_softmax(2), tc.tensor([[1, 2]]), [3], [2]", "diagonal_scatter": "x, v",
    "dot_interaction": "x, three[:2]", "embedding": "i, x", "embedding_bag": "i, x, tc.tensor([0])",
    "empty_permuted": "[2, 3], [1, 0]", "float_power_": "x.double(), 2", "from_numpy": "x.numpy()",
    "frombuffer": "bytes, dtype=tc.float32", "geometric_": "x, 0.5", "gradient": "x, spacing=[i + 0.0, i + 0.0]",
    "grid_sample": "image, tc.zeros(1, 2, 2, 2)", "gru": "three, tc.zeros(1, 2, 2), gru, True, 1, 0.0, False, False, False",
    "gru_cell": "x, x, *gru", "index_fill": "x, 0, i, tc.tensor(1.0)", "index_fill_": "x, 0, i, tc.tensor(1.0)",
    "linalg_cholesky": "spd", "linalg_householder_product": "x, v", "linalg_ldl_solve": "*ldl, x",
    "linalg_lu_solve": "*lu, x", "linalg_matrix_norm": "x, 2.0", "linalg_norm": "x, 'nuc'",
    "lstm": "three, (tc.zeros(1, 2, 2), tc.zeros(1, 2, 2)), lstm, True, 1, 0.0, False, False, False",
    "lstm_cell": "x, (x, x), *lstm", "lu_solve": "x, *lu", "lu_unpack": "*lu", "mv": "x, v",
    "narrow": "x, 0, tc.tensor(0), 1", "orgqr": "x, v", "random_": "x, 1, 5", "retain_grad": "leaf * 1",
    "rnn_relu": "three, tc.zeros(1, 2, 2), rnn, True, 1, 0.0, False, False, False",
    "rnn_tanh": "three, tc.zeros(1, 2, 2), rnn, True, 1, 0.0, False, False, False",
    "_rmsprop_step": "[v], [v.clone()], [v.clone()], [], [], [tc.zeros(())], 0.1, 0.9, 1e-8, 0.0, 0.0, False, False",
    "segment_reduce": "v, 'sum', lengths=tc.tensor([1, 1])", "select_scatter": "x, v, 0, 0", "set_": "v, x.untyped_storage(), 0, [2]",
    "unflatten": "x, 0, [1, 2]", "mvlgamma": "x + 1, 1",
}


def fresh():
    """New samples, whose tensors no call has changed."""
    return {k: v.detach().clone().requires_grad_(v.requires_grad) if isinstance(v, tc.Tensor) else v for k, v in SAMPLES.items()}


def evaluated(text):
    """The arguments of a call that a text holds."""
    return eval(f"(lambda *args, **kwargs: (args, kwargs))({text})", fresh())


PLACES = [(1, tc, ""), (2, tc.Tensor, ""), (8, C._nn, ""), (16, tc.linalg, "linalg_"), (32, tc.special, "special_"),
          (64, tc.fft, "fft_")]


def operations():
    """(name, callable, its parameters) of every overload of every operation in every namespace."""
    for flags, name, parameters, _ in C._describe_ops():
        for flag, place, prefix in PLACES:
            if flags & flag:
                own = name[len(prefix):]
                where = "_C" if place is C._nn else place.__name__
                yield name, f"{where}.{own}", getattr(place, own, None) or getattr(C, own), parameters


def arguments_of(name, call, parameters):
    """(args, kwargs) with which an operation succeeds; None if there is none."""
    required = [p for p in parameters if p[2] is None]
    for make in ATTEMPTS:
        args = [value(p[0], p[1], make) for p in required if not p[3]]
        kwargs = {p[0]: value(p[0], p[1], make) for p in required if p[3]}
        try:
            call(*args, **kwargs)
        except (RuntimeError, TypeError, ValueError, IndexError):
            continue
        return args, kwargs
    return evaluated(ARGUMENTS[name]) if name in ARGUMENTS else None


# Global module hooks and a group would affect all later calls, install() renames everything, the others start processes; all
# have tests.
STAYS = ("register_module_", "init_process_group", "install", "spawn", "start_processes")


def functions():
    """(name, thing) of every public function and class that is not an operation."""
    seen = set()
    for module in test_docs.modules():
        for name, thing in test_docs.public_of(module):
            if type(thing).__name__ != "Op" and id(thing) not in seen and not thing.__name__.startswith(STAYS):
                seen.add(id(thing))
                yield name, thing


def guessed(call):
    """(args, kwargs) with which a Python function succeeds, by the names of its parameters; None if there is none."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except ValueError:
        return None
    required = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for make in ATTEMPTS:
        args = [NUMBERS[p.name] if p.name in NUMBERS else make(p.name) for p in required]
        try:
            call(*args)
        except Exception:  # noqa: B902: whatever it is, the next may fit
            continue
        return args, {}
    return None


NUMBERS = {"dim": 0, "axis": 0, "in_features": 2, "out_features": 2, "num_features": 2, "kernel_size": 1, "in_channels": 2, "out_channels": 2}
