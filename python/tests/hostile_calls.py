"""Random calls of every public entry with objects that change, shrink, raise, lie or recurse while they are read.

    hostile_calls.py --seed 7 --seconds 60     runs cases until the time is over; shows the case that crashed or hung
    hostile_calls.py --seed 7 --only 1234      runs only that case

A case depends only on the seed and its number. Any error is accepted except SystemError and InternalError.
"""

import argparse
import array
import collections
import contextlib
import copy
import ctypes
import faulthandler
import fcntl
import gc
import mmap
import operator
import os
import pickle
import random
import subprocess
import sys
import tempfile
import time
import warnings
import weakref

import leak_calls
import numpy as np

import tercel as tc

C = tc._C
SMALL = (0, 1, -1, 2, 3, 5, -7, 12)
HUGE = (2**40, 2**62, 2**63 - 1, 2**63, -2**63, 2**64, 2**100, -2**100)
ERRORS = (ValueError, TypeError, IndexError, KeyError, StopIteration, AttributeError, RecursionError, MemoryError, BufferError,
          OverflowError, ZeroDivisionError, RuntimeError, NotImplementedError, UnicodeDecodeError)
DTYPES = (tc.float32, tc.float64, tc.float16, tc.bfloat16, tc.int64, tc.int32, tc.uint8, tc.bool, tc.complex64, tc.uint64)
WATCHDOG_SECONDS = 60
SLOW = ("mvlgamma", "multigammaln", "polynomial", "tril_indices", "triu_indices")  # take as long as their number says


def raised(kind):
    return kind("ascii", b"", 0, 1, "hostile") if kind is UnicodeDecodeError else kind("hostile")


class Attack:
    """The actions of a case's objects on its tensors, lists and storages, with a separate random stream."""

    def __init__(self, rng):
        self.rng, self.targets, self.again, self.depth, self.left = rng, [], None, 0, 0  # no actions left

    def act(self):
        self.left -= 1
        dice = self.rng.random() if self.left > 0 else 0
        if dice < 0.3:
            return
        if dice < 0.4:
            raise raised(self.rng.choice(ERRORS))
        if dice < 0.45:
            gc.collect(0)
        elif dice < 0.5 and self.again and self.depth < 3:
            self.depth += 1
            try:
                self.again()
            finally:
                self.depth -= 1
        else:
            self.change(self.rng.choice(self.targets) if self.targets else None)

    def change(self, target):
        rng = self.rng
        if isinstance(target, list):
            rng.choice([target.clear, lambda: target.append(rng.choice(["text", 1, target, tc.rand(2)])), lambda: target.pop(),
                        lambda: target.__setitem__(slice(None), ["text"] * len(target)),
                        lambda: target.__setitem__(slice(None), [self.number()] * len(target)),
                        lambda: target.extend([1] * 1000)])()
        elif isinstance(target, dict):
            rng.choice([target.clear, lambda: target.update(other=1)])()
        elif isinstance(target, tc.Tensor):
            rng.choice([
                lambda: target.untyped_storage().resize_(rng.choice([0, 1, 8, 4096])), lambda: target.resize_(rng.choice([(0,), (3, 4), ()])),
                lambda: target.set_(tc.zeros(1).to(target.dtype)), lambda: target.t_(), lambda: target.unsqueeze_(0),
                lambda: setattr(target, "data", tc.zeros(rng.choice([0, 2, 9]), dtype=rng.choice(DTYPES))), target.detach_,
                lambda: target.requires_grad_(not target.requires_grad), lambda: setattr(target, "grad", tc.zeros_like(target)),
                lambda: target.add_(1), lambda: setattr(target, "__class__", Sub), lambda: setattr(target, "me", target),
            ])()
        elif isinstance(target, tc.UntypedStorage):
            target.resize_(rng.choice([0, 1, 7, 1 << 16]))
        elif isinstance(target, np.ndarray):
            rng.choice([lambda: target.resize((0,), refcheck=False), lambda: setattr(target, "shape", (target.size,)),
                        lambda: setattr(target, "dtype", np.uint8), lambda: target.setflags(write=False)])()
        elif isinstance(target, bytearray):
            target.clear()

    def integer(self):
        return self.rng.choice(SMALL if self.rng.random() < 0.8 else HUGE)

    def wrong(self):
        return self.rng.choice([None, "text", b"bytes", 1.5, 1j, (), [], {}, object(), tc.rand(2), float("nan"), Ellipsis, int, self])

    def number(self):
        return Hostile(self)


class Hostile:
    """Implements every protocol that any function uses."""

    def __init__(self, attack):
        self.attack = attack

    def answer(self, right):
        self.attack.act()
        return right() if self.attack.rng.random() < 0.8 else self.attack.wrong()

    def __index__(self):
        return self.answer(self.attack.integer)

    __int__ = __index__

    def __float__(self):
        return self.answer(lambda: self.attack.rng.choice([0.5, float("nan"), float("inf"), -1e308]))

    def __complex__(self):
        return self.answer(lambda: 1j)

    def __bool__(self):
        return self.answer(lambda: self.attack.rng.random() < 0.5)

    def __len__(self):
        return self.answer(lambda: self.attack.rng.choice([0, 1, 2, 3, -1, 2**62]))

    def __getitem__(self, key):
        if self.attack.rng.random() < 0.2:
            raise IndexError
        return self.answer(lambda: self.attack.rng.choice([1, self, 0.5, [1]]))

    def __iter__(self):
        return self.answer(lambda: iter([1, self, 2][:self.attack.rng.randint(0, 3)]))

    def __eq__(self, other):
        return self.answer(lambda: True)

    def __hash__(self):
        return self.answer(lambda: 1)

    def __repr__(self):
        return self.answer(lambda: "hostile")

    __str__ = __repr__

    def __fspath__(self):
        return self.answer(lambda: "none")

    def __call__(self, *args, **kwargs):
        return self.answer(lambda: args[0] if args else None)

    def __reduce_ex__(self, protocol):
        return self.answer(lambda: (Hostile, (self.attack,)))

    def __del__(self):
        with contextlib.suppress(Exception):
            self.attack.act()


class Arrayish(Hostile):
    """An array by name."""

    def __array__(self, *args, **kwargs):
        return self.answer(lambda: some_array(self.attack))

    @property
    def __array_interface__(self):
        return self.answer(lambda: some_array(self.attack).__array_interface__)

    def __dlpack__(self, *args, **kwargs):
        return self.answer(lambda: self.attack.rng.choice([tc.rand(3).__dlpack__, np.zeros(3).__dlpack__])())

    def __dlpack_device__(self):
        return self.answer(lambda: self.attack.rng.choice([(1, 0), (2, 0), (99, 99), 1]))

    def __arrow_c_array__(self, *args, **kwargs):
        return self.answer(lambda: C._to_arrow(tc.rand(3), "a"))

    def __buffer__(self, flags):
        return self.answer(lambda: memoryview(bytearray(8)))


class DlpackOnly:
    def __init__(self, attack):
        self.attack = attack

    __dlpack__ = Arrayish.__dlpack__
    __dlpack_device__ = Arrayish.__dlpack_device__
    answer = Hostile.answer


class Int(int):
    attack = None

    def __index__(self):
        self.attack.act()
        return self.attack.integer()

    __int__ = __float__ = __bool__ = __index__


class Float(float):
    def __float__(self):
        self.attack.act()
        return self.attack.wrong()


class Text(str):
    attack = None

    def __eq__(self, other):
        self.attack.act()
        return True

    def __hash__(self):
        self.attack.act()
        return 0

    def encode(self, *args):
        return self.attack.wrong()


def sequence_type(base):
    class Sequence(base):
        attack = None

        def __len__(self):
            self.attack.act()
            return self.attack.rng.choice([0, 1, 5])

        def __iter__(self):
            self.attack.act()
            return iter([1, self.attack.number()])

        def __getitem__(self, key):
            self.attack.act()
            return self.attack.rng.choice([1, self, "text"])
    return Sequence


List, Tuple, Dict = sequence_type(list), sequence_type(tuple), sequence_type(dict)


class Sub(tc.Tensor):

    def __del__(self):
        attack = getattr(self, "attack", None)
        if attack is not None:
            with contextlib.suppress(Exception):
                attack.act()


class NoInit(tc.Tensor):
    """A subclass whose __init_subclass__ does not call the library's."""

    def __init_subclass__(cls):
        pass


class Slots(NoInit):
    __slots__ = ("a", "b")


class Lies(np.ndarray):
    attack = None

    def answer(self, name):
        self.attack.act()
        return self.attack.wrong() if self.attack.rng.random() < 0.5 else getattr(np.ndarray, name).__get__(self)

    dtype = property(lambda self: self.answer("dtype"))
    ndim = property(lambda self: self.answer("ndim"))
    shape = property(lambda self: self.answer("shape"))

    def item(self, *args):
        self.attack.act()
        return self.attack.rng.choice([self, 1, "text"])


def unmade(cls):
    """An object without a call of __init__."""
    return cls.__new__(cls)


def with_attack(value, attack):
    value.attack = attack
    return value


def some_array(attack):
    # No object arrays that contain themselves: NumPy's arithmetic overflows the stack on those.
    rng = attack.rng
    base = np.arange(12.0)
    read_only = np.arange(4.0)
    read_only.setflags(write=False)
    return rng.choice([
        base, base.astype(rng.choice([np.float32, np.int8, np.bool_, np.complex64, np.uint64, np.longdouble])).reshape(3, 4),
        base[::-2], base.reshape(3, 4).T, np.lib.stride_tricks.as_strided(base, (3, 3), (8, 8)), np.float64(1.0), np.array(2), np.bool_(True),
        np.array(["text"]), np.array([None, 1], dtype=object), base.astype(">f8"), np.zeros(0), np.zeros((0, 3)), read_only,
        np.zeros(3, dtype=[("a", "f4"), ("b", "i2")]), np.zeros(3, "M8[s]"), np.frombuffer(bytearray(17), np.float32, 4, 1),
        np.zeros(9, np.uint8)[1:].view(np.float32), np.broadcast_to(np.float32(1), (4, 4)), with_attack(np.zeros(3).view(Lies), attack),
        np.zeros((1,) * 40), np.ma.masked_array([1.0, 2.0], [True, False]), np.matrix([[1.0]]), np.float16(2), np.zeros((2, 2), np.float16),
    ])


def some_buffer(attack):
    released = memoryview(bytearray(8))
    released.release()
    return attack.rng.choice([
        b"12345678", bytearray(16), memoryview(bytearray(24))[::2], memoryview(bytearray(16))[1:9], released, array.array("d", [1, 2]),
        (ctypes.c_float * 4)(), ((ctypes.c_int * 2) * 2)(), memoryview(bytearray(8)).cast("d"), memoryview(bytearray(8)).cast("c"),
        memoryview(bytearray(12)).cast("B", (3, 4)), array.array("u", "text"), mmap.mmap(-1, 64), ctypes.c_double(1), pickle.PickleBuffer(b"12"),
    ])


def some_tensor(attack):
    rng = attack.rng
    x = tc.arange(12, dtype=tc.float32).to(rng.choice(DTYPES))

    def shrunk():
        y = x.clone()
        y.untyped_storage().resize_(rng.choice([0, 5, 8]))
        return y

    def gone():
        leaf, kept = tc.rand(3, requires_grad=True), Sub(tc.rand(3))
        leaf.grad, weak = kept, weakref.ref(kept)
        del kept
        found = weak()
        leaf.grad = None
        return found
    made = rng.choice([
        lambda: x, lambda: x.view(3, 4), lambda: x.view(3, 4).t(), lambda: x[::2], lambda: x[5], lambda: x[:0], lambda: x.view(1, 3, 4).expand(2, 3, 4),
        lambda: tc.rand(3, 3, requires_grad=True), lambda: tc.rand(3, requires_grad=True) * 2, shrunk, gone, lambda: Sub(x.float()),
        lambda: x.as_subclass(Sub), lambda: x.as_subclass(Slots), lambda: tc.nn.Parameter(tc.rand(2, 2)), lambda: tc.tensor(3),
        lambda: tc.tensor(True), lambda: x.as_strided((2, 2), (0, 0)), lambda: tc.empty(0, 3), lambda: x.view((1,) * 20 + (12,)),
        lambda: tc.asarray(np.zeros(16, np.uint8))[::3], lambda: tc.rand(2, 2).conj() if x.is_complex() else x,
    ])()
    if type(made) is Sub:
        made.attack = attack
    return made


def some_list(attack, depth=0):
    rng = attack.rng
    items = [some_object(attack, depth + 1) if rng.random() < 0.5 else rng.choice([1, 0, 2, 0.5, True]) for _ in range(rng.randint(0, 4))]
    if rng.random() < 0.15:
        items.append(items)
    attack.targets.append(items)
    return rng.choice([lambda: items, lambda: items, lambda: tuple(items), lambda: with_attack(List(items), attack),
                       lambda: with_attack(Tuple(items), attack), lambda: (items, items), lambda: collections.deque(items),
                       lambda: range(rng.randint(0, 4)), lambda: iter(items), lambda: (i for i in items)])()


def some_object(attack, depth=0):
    rng = attack.rng
    makers = [
        lambda: Hostile(attack), lambda: Hostile(attack), lambda: Arrayish(attack), lambda: DlpackOnly(attack), lambda: with_attack(Int(1), attack),
        lambda: with_attack(Float(1), attack), lambda: with_attack(Text(rng.choice(["mean", "cpu", "text", ""])), attack),
        lambda: some_array(attack), lambda: some_buffer(attack), lambda: some_tensor(attack), lambda: some_tensor(attack),
        lambda: slice(*[rng.choice([None, 1, Hostile(attack)]) for _ in range(3)]), lambda: rng.choice([None, True, Ellipsis, NotImplemented]),
        lambda: attack.integer(), lambda: rng.choice([float("nan"), -0.0, 1e308, 1j]), lambda: rng.choice(["", "cpu", "cuda:0", "\0", "\ud800", "x" * 5000]),
        lambda: rng.choice([tc.float32, tc.strided, tc.channels_last, tc.device("cpu"), tc.Generator(), tc.Size([2, 2**70]), tc.Size]),
        lambda: unmade(rng.choice([tc.Generator, tc.device, tc.dtype, tc.layout, tc.memory_format])),
        lambda: tc.rand(4).untyped_storage(), lambda: tc.UntypedStorage(17)[1:], lambda: tc.rand(4).storage(), lambda: tc.rand(2).__dlpack__(),
        lambda: weakref.proxy(attack), lambda: attack.wrong(), lambda: with_attack(Dict(a=1), attack),
        lambda: tc.max(tc.rand(2, 2), 0), lambda: (tc.rand(2, requires_grad=True) * 2).grad_fn,
    ]
    if depth < 3:
        makers += [lambda: some_list(attack, depth)] * 5
    made = rng.choice(makers)()
    if isinstance(made, (tc.Tensor, tc.UntypedStorage, np.ndarray, bytearray, dict)):
        attack.targets.append(made)
    return made


# ---- calls


def copied(value, attack):
    """A private copy of an argument, so that a case does not affect others; registered with the attack."""
    if isinstance(value, tc.Tensor):
        made = value.detach().clone()
        if made.is_floating_point() and attack.rng.random() < 0.3:
            made.requires_grad_()
    elif isinstance(value, list):
        made = [copied(v, attack) for v in value]
    elif isinstance(value, tuple):
        return tuple(copied(v, attack) for v in value)
    elif isinstance(value, (tc.UntypedStorage, bytearray)):
        made = copy.copy(value) if isinstance(value, bytearray) else value.clone()
    else:
        return value
    attack.targets.append(made)
    return made


def spoiled(args, kwargs, attack):
    """The arguments with one or two replaced by hostile ones, or with a hostile item."""
    args, kwargs = list(args), dict(kwargs)
    for _ in range(attack.rng.randint(1, 2)):
        places = [(args, k) for k in range(len(args))] + [(kwargs, k) for k in kwargs]
        lists = [(a, k) for a in [*args, *kwargs.values()] if type(a) is list for k in range(len(a))]
        if lists and attack.rng.random() < 0.5:
            places = lists
        if not places:
            break
        where, key = attack.rng.choice(places)
        made = some_object(attack)
        if type(where) is not list or key < len(where):  # it may have lost items by now
            where[key] = made
    return args, kwargs


OPERATORS = [getattr(operator, n) for n in (
    "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift matmul eq ne lt le gt ge iadd isub imul itruediv ifloordiv "
    "imod ipow iand ior ixor ilshift irshift imatmul getitem delitem contains concat").split()]
UNARY = [operator.neg, operator.pos, operator.abs, operator.invert, bool, int, float, complex, operator.index, len, iter, repr, hash,
         str, format, copy.copy, copy.deepcopy, pickle.dumps, list, memoryview, bytes, round, reversed, dir, gc.get_referents]
# Functions of the extension that change global state for later cases, or wait for a file.
SWITCHES = {"set_num_threads", "_set_anomaly_enabled", "_set_inference_mode", "_set_grad_enabled", "_set_fwd_grad_enabled", "_push_checkpoint",
            "_push_saved_tensors_hooks", "_enter_dual_level", "set_default_dtype", "_queue_callback"}


def holders():
    """Objects whose attributes and methods are accessed by name."""
    y = tc.rand(3, requires_grad=True) * 2

    class Twice(tc.autograd.Function):
        forward = staticmethod(lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1])
        backward = staticmethod(lambda ctx, g: g * 2)
    z = Twice.apply(tc.rand(3, requires_grad=True))
    return [tc.rand(2, 3), Sub(tc.rand(2, 3)), tc.nn.Parameter(tc.rand(2)), tc.UntypedStorage(16), tc.rand(4).storage(), tc.Generator(),
            y.grad_fn, z.grad_fn, tc.Size([2, 3]), tc.float32, tc.device("cpu"), tc.finfo(tc.float32), tc.max(tc.rand(2, 2), 0), y]


KEPT_NAMES = {"__init_subclass__", "__subclasshook__", "__class__", "__dir__", *(n for n in dir(tc.Tensor) if n.startswith(SLOW))}
CONSTRUCTORS = [tc.Tensor, tc.Size, tc.UntypedStorage, tc.Generator, tc.device, tc.finfo, tc.iinfo, tc.nn.Parameter, tc.FloatTensor, tc.ByteTensor,
                tc.FloatStorage, tc.TypedStorage, tc.return_types.max, Sub, Slots, tc.Tensor._make_subclass, tc.from_dlpack, tc.from_numpy,
                tc.frombuffer, tc.io.from_arrow, tc.utils.dlpack.to_dlpack, tc.autograd.backward, tc.autograd.grad,
                tc.save, tc.io.save_npy, tc.safetensors.save_file, tc.broadcast_tensors, tc.einsum, tc.stack, tc.testing.assert_close]


class Cases:
    """All callables; valid arguments are searched on first use."""

    def __init__(self):
        self.operations = [o for o in leak_calls.operations() if not any(name in o[1] for name in SLOW)]
        self.known = {}
        self.functions = [f for n in dir(C) if callable(f := getattr(C, n)) and type(f).__name__ == "nb_func" and n not in SWITCHES]

    def right_arguments(self, k):
        if k not in self.known:
            name, _, call, parameters = self.operations[k]
            try:
                self.known[k] = leak_calls.arguments_of(name, call, parameters) or ([], {})
            except Exception:  # noqa: B902: then all of them are hostile
                self.known[k] = ([], {})
        return self.known[k]

    def operation(self, attack):
        rng = attack.rng
        k = rng.randrange(len(self.operations))
        name, where, call, parameters = self.operations[k]
        args, kwargs = self.right_arguments(k)
        if not args and not kwargs or rng.random() < 0.1:
            args, kwargs = [some_object(attack) for _ in range(rng.randint(0, len(parameters)))], {}
        else:
            args, kwargs = copied(list(args), attack), {n: copied(v, attack) for n, v in kwargs.items()}
        for p in parameters:
            if rng.random() < 0.1:
                kwargs.setdefault(p[0], some_object(attack))
        args, kwargs = spoiled(args, kwargs, attack)
        return where, call, args, kwargs

    def operator(self, attack):
        x, y = some_tensor(attack), some_object(attack)
        attack.targets.append(x)
        pair = [x, y] if attack.rng.random() < 0.7 else [y, x]
        if attack.rng.random() < 0.3:
            return "setitem", operator.setitem, [x, y, some_object(attack)], {}
        if attack.rng.random() < 0.3:
            call = attack.rng.choice(UNARY)
            return str(call), call, [attack.rng.choice([x, y])], {}
        call = attack.rng.choice(OPERATORS)
        return str(call), call, pair, {}

    def attribute(self, attack):
        rng = attack.rng
        holder = rng.choice(holders())
        name = rng.choice([n for n in dir(type(holder)) if n not in KEPT_NAMES])
        attack.targets.append(holder)
        where = f"{type(holder).__name__}.{name}"
        if rng.random() < 0.3:
            return f"set {where}", setattr, [holder, name, some_object(attack)], {}
        if rng.random() < 0.1:
            return f"del {where}", delattr, [holder, name], {}

        def call(*args):
            found = getattr(holder, name)
            return found(*args) if callable(found) else found
        if rng.random() < 0.3:
            return f"unbound {where}", getattr(type(holder), name, len), [some_object(attack) for _ in range(rng.randint(0, 3))], {}
        return where, call, [some_object(attack) for _ in range(rng.randint(0, 3))], {}

    def constructor(self, attack):
        call = attack.rng.choice(CONSTRUCTORS + self.functions)
        args = [some_object(attack) for _ in range(attack.rng.choice([0, 1, 1, 1, 2, 2, 3, 6]))]
        kwargs = {attack.rng.choice(["size", "data", "device", "dtype", "index", "out"]): some_object(attack)} if attack.rng.random() < 0.1 else {}
        return str(getattr(call, "__name__", call)), call, args, kwargs

    def windows(self, attack):
        """Convolutions and pooling of random shapes, most of which fit: results of one position, long strides, output_padding."""
        rng, F = attack.rng, tc.nn.functional
        dims, groups, kind = rng.randint(1, 3), rng.choice([1, 1, 2, 9]), rng.choice(["conv", "conv", "conv_transpose", "max_pool", "avg_pool"])
        kernel, dilation = [rng.choice([1, 1, 2, 3]) for _ in range(dims)], [rng.choice([1, 1, 2]) for _ in range(dims)]
        stride, padding = [rng.choice([1, 1, 2, 5, 40]) for _ in range(dims)], [rng.choice([0, 0, 0, 1, 2]) for _ in range(dims)]
        least = [1 + d * (k - 1) for k, d in zip(kernel, dilation)]
        channels, outputs = groups * rng.choice([1, 2, 40]), groups * rng.choice([1, 2, 40])
        dtype = rng.choice([tc.float32, tc.float32, tc.float64, tc.bfloat16, tc.complex64])
        sizes = [rng.randint(1, 3), channels] + [max(1, n - rng.choice([0, p])) + rng.choice([0, 1, 3]) for n, p in zip(least, padding)]
        x = tc.rand(sizes, dtype=dtype if "conv" in kind else tc.float32, requires_grad=True)
        if dims > 1 and rng.random() < 0.5:
            x = x.detach().contiguous(memory_format=tc.channels_last if dims == 2 else tc.channels_last_3d).requires_grad_()
        args = [x, kernel, stride, padding]
        if kind == "max_pool":
            args += [dilation, rng.random() < 0.5]
        elif kind == "avg_pool":
            args += [rng.random() < 0.5]
        elif kind == "conv":
            args[1:] = [tc.rand([outputs, channels // groups, *kernel], dtype=dtype, requires_grad=True), None, stride, padding, dilation, groups]
        else:
            more = [rng.randrange(max(s, d)) for s, d in zip(stride, dilation)]
            args[1:] = [tc.rand([channels, outputs // groups, *kernel], dtype=dtype, requires_grad=True), None, stride, padding, more, groups, dilation]
        name = f"{kind}{dims}d"
        return f"{name} of {sizes} by {args[1:]}" if "pool" in kind else f"{name} of {sizes} by {list(args[1].shape)}, {args[3:]}", \
            getattr(F, name), args, {}

    def case(self, attack):
        kinds = [self.operation] * 10 + [self.operator] * 3 + [self.attribute] * 3 + [self.constructor] * 3 + [self.windows]
        return attack.rng.choice(kinds)(attack)


def as_before():
    tc.set_default_dtype(tc.float32)
    tc.set_grad_enabled(True)
    while True:
        try:
            C._pop_scope()
        except RuntimeError:
            break


def run_case(cases, seed, number, tell):
    attack = Attack(random.Random(f"{seed}/{number}"))
    where, call, args, kwargs = cases.case(attack)
    tell(f"case {number}: {where} with {[type(a).__name__ for a in args]} and {dict((k, type(v).__name__) for k, v in kwargs.items())}")
    attack.again, attack.left = (lambda: call(*args, **kwargs)), 40
    try:
        result = call(*args, **kwargs)
        for part in result if type(result) in (tuple, list) else [result]:
            if isinstance(part, tc.Tensor):
                part.sum().backward() if part.requires_grad else part.sum()
    except SystemError as e:
        if "internal" not in type(e).__name__ and e.__cause__ is None or "error" in str(e):
            raise
    except RuntimeError as e:
        if "InternalError" in str(e) or "internal error" in str(e):
            raise SystemError(f"case {number}: {where}") from e
    except Exception:  # noqa: B902: any other error is right
        pass
    finally:
        attack.left = 0
        as_before()


def child(args):
    # Descriptors above all that a case may close, as saving to the file of number 1 does.
    out, errors, status = (fcntl.fcntl(fd, fcntl.F_DUPFD, 500) for fd in (1, 2, os.open(args.status, os.O_WRONLY | os.O_CREAT)))
    faulthandler.enable(errors)
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda unraisable: None
    os.chdir(os.path.dirname(args.status))
    tc.set_num_threads(1)
    cases = Cases()

    def tell(text):
        os.pwrite(status, text.encode(errors="replace")[:999].ljust(1000), 0)
    if args.only is not None:
        return run_case(cases, args.seed, args.only, tell)
    end, number = time.monotonic() + args.seconds, 0
    while time.monotonic() < end:
        if number % 200 == 0:
            faulthandler.dump_traceback_later(WATCHDOG_SECONDS, exit=True, file=errors)
        run_case(cases, args.seed, number, tell)
        number += 1
    os.write(out, f"{number} cases\n".encode())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", type=int)
    parser.add_argument("--status")
    args = parser.parse_args()
    if args.status:
        return child(args)
    with tempfile.TemporaryDirectory() as folder:
        status = os.path.join(folder, "status")
        result = subprocess.run([sys.executable, *sys.argv, "--status", status], check=False).returncode
        if result != 0:
            print(f"exit status {result} at seed {args.seed}, {open(status, errors='replace').read().strip()}")
    return int(result != 0)


if __name__ == "__main__":
    sys.exit(main())
