"""The public API does not leak, whether calls succeed or fail; every public name is tested.

A leak grows in every one of many rounds of the same calls, whereas caches stop growing.
"""

import ctypes
import gc
import inspect
import re
import sys
import warnings
import weakref

import leak_calls
import leak_lines
import pytest
import test_docs

import tercel as tc

CONSTANTS = (None, True, False, Ellipsis, (), tc.float32, tc.int64, tc.strided, tc.Tensor, tc.Size, dict, list, tuple)


class _Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                                                     "uordblks", "fordblks", "keepcost")]


def c_library_bytes():
    """Bytes allocated by malloc(); 0 if the C library does not report it."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return lambda: 0
    mallinfo.restype = _Mallinfo

    def read():
        info = mallinfo()
        return info.uordblks + info.hblkhd
    return read


malloced = c_library_bytes()
KINDS = ["bytes of tensors and nodes", "Python's blocks", "the C library's bytes",
         *(f"references to {constant}" for constant in CONSTANTS)]


def counts():
    return [tc._C._allocated_bytes(), sys.getallocatedblocks(), malloced(), *(sys.getrefcount(c) for c in CONSTANTS)]


def leaks(call, rounds=8, calls=4):
    """The quantities that grow with every round of calls; collects cycles only if something seems to grow."""
    for collects in (False, True):
        for _ in range(3):
            call()
        growing, before = set(range(len(KINDS))), counts()
        for _ in range(rounds * (3 if collects else 1)):
            for _ in range(calls):
                call()
            if collects:
                gc.collect()
            after = counts()
            growing = {k for k in growing if after[k] > before[k]}
            before = after
            if not growing:
                return []
    return [KINDS[k] for k in sorted(growing)]


def quietly(call, *args, **kwargs):
    """Whether the call succeeds; also runs backward on its result if possible."""
    try:
        result = call(*args, **kwargs)
        for part in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(part, tc.Tensor) and part.grad_fn is not None:
                part.sum().backward()
                break
    except Exception:  # noqa: B902: that nothing leaks then is what is tested
        return False
    return True


@pytest.fixture(autouse=True)
def no_noise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    threads = tc.get_num_threads()
    tc.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
        as_before(threads)


def as_before(threads):
    """Restores global state that calls have changed."""
    tc.set_num_threads(threads)
    tc.manual_seed(0)
    tc.set_default_dtype(tc.float32)
    tc.set_grad_enabled(True)
    tc.autograd.set_detect_anomaly(False)
    tc.set_printoptions(profile="default")
    tc.use_deterministic_algorithms(False)


def wrongs(args, kwargs):
    """Calls with one invalid, missing, or extra argument."""
    wrong = ["text", None, [1, "a"], object(), 2**70, -100, tc.rand(7, 5, 3), tc.zeros(5, dtype=tc.bool), [tc.rand(3), 1], (), {}]
    return [
        *(((*args[:k], w, *args[k + 1:]), kwargs) for k in range(len(args)) for w in wrong),
        (args[:-1], kwargs), ((*args, "text", None), kwargs), (args, {**kwargs, "nonsense": 1}), (args, {**kwargs, "out": 1}),
        (args, {**kwargs, "out": tc.rand(0, dtype=tc.float64)}), (args, {**kwargs, "out": tc.zeros(3, 1, 4, dtype=tc.bool)}),
    ]


def recorded(args):
    """The arguments with tensors that require gradients where possible."""
    def leaf(a):
        return a.detach().clone().requires_grad_() if isinstance(a, tc.Tensor) and a.is_floating_point() else a
    return [[leaf(e) for e in a] if isinstance(a, list) else leaf(a) for a in args]


def optional(parameters):
    """Keyword arguments for parameters that a signature omits."""
    said = {"None": None, "False": False, "True": True}
    return {p[0]: said[p[2]] for p in parameters if p[2] in said and p[0] != "out"}


def families():
    """Operations grouped by first letters, for tests of about equal duration."""
    found = {}
    for operation in leak_calls.operations():
        found.setdefault(operation[0].lstrip("_")[0], []).append(operation)
    return found


FAMILIES = families()
@pytest.mark.parametrize("letter", sorted(FAMILIES))
def test_operations(letter):
    found = []
    for name, where, call, parameters in FAMILIES[letter]:
        known = leak_calls.arguments_of(name, call, parameters)
        assert known is not None, f"{where}: leak_calls.ARGUMENTS has no arguments for {parameters}"
        args, kwargs = known
        mistakes = wrongs(tuple(args), kwargs)
        assert quietly(call, *args, **kwargs), where
        for what, run in {
            "a call": lambda: quietly(call, *args, **kwargs),
            "a call with gradients": lambda: quietly(call, *recorded(args), **kwargs),
            "a call with every option": lambda: quietly(call, *args, **{**optional(parameters), **kwargs}),
            "wrong calls": lambda: [quietly(call, *a, **k) for a, k in mistakes],
        }.items():
            found += [f"{where}: {leak} ({what})" for leak in leaks(run)]
    assert found == []


def test_what_leaks_is_seen():
    kept, python = [], ctypes.pythonapi
    library = ctypes.CDLL(None)
    python.Py_IncRef.argtypes = [ctypes.py_object]
    assert KINDS[0] in leaks(lambda: kept.append(tc.rand(3)))
    assert KINDS[1] in leaks(lambda: kept.extend(object() for _ in range(10)))
    assert leaks(lambda: python.Py_IncRef(tc.float32)) == ["references to tercel.float32"]
    assert malloced() == 0 or KINDS[2] in leaks(lambda: [library.malloc(200) for _ in range(20)])
    assert leaks(lambda: tc.rand(3)) == []


def called(call, args, kwargs):
    """Calls a function or creates an object; a module is also printed and called."""
    made = call(*args, **kwargs)
    if isinstance(made, tc.nn.Module):
        quietly(repr, made)
        wanted = [n for n, p in inspect.signature(made.forward).parameters.items() if p.default is p.empty and p.kind < p.VAR_POSITIONAL]
        for make in leak_calls.ATTEMPTS:
            try:
                made(*[make(n) for n in wanted])
                break
            except Exception:  # noqa: B902: the next may fit
                continue
    return made


# Functions that no line calls and whose arguments cannot, or must not, be guessed.
LEFT_OUT = {
    "tercel.Tensor.pin_memory": "needs a GPU", "tercel.nn.utils.spectral_norm.ComputedWeight.compute_weight": "its subclasses have it",
    "tercel.nn.utils.parametrize.ParametrizationList": "register_parametrization() makes it",
    **{f"tercel.multiprocessing.{n}": "of processes" for n in ("ProcessContext", "ProcessContext.join", "ProcessContext.pids")},
    **{f"tercel.autograd.graph.Node.{n}": "abstract" for n in ("name", "next_functions", "metadata", "register_hook",
                                                                "register_prehook")},
}
# Types whose objects are created by other calls.
MADE_ELSEWHERE = ("tercel.return_types.", "tercel.OutOfMemoryError", "tercel.DataError", "tercel.ConfigError", "tercel.IoError",
                  "tercel.NumericError", "tercel.LinAlgError", "tercel.distributed.Dist", "tercel.autograd.gradcheck.GradcheckError", "tercel.layout",
                  "tercel.memory_format", "tercel.utils.checkpoint.CheckpointError", "tercel.autograd.function.BackwardCFunction")


@pytest.mark.parametrize("text, code, fails", leak_lines.lines(), ids=lambda v: None if not isinstance(v, str) else v[:60])
def test_lines(text, code, fails, tmp_path):
    def run():
        exec(code, leak_lines.names(tmp_path))

    if fails:
        with pytest.raises(Exception):  # noqa: B017: which one, other tests say
            run()
    else:
        run()
    assert leaks(lambda: quietly(run), rounds=5, calls=2) == []


@pytest.fixture(scope="module")
def guesses(tmp_path_factory):
    """(name, function, arguments or None) of everything that is not an operation."""
    threads = tc.get_num_threads()
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("guesses"))
        warnings.simplefilter("ignore")
        found = [(name, thing, leak_calls.guessed(thing)) for name, thing in leak_calls.functions()]
    as_before(threads)
    return found


def test_functions(guesses):
    found = []
    for name, thing, guess in guesses:
        runs = {"wrong calls": lambda: [quietly(thing, *a) for a in ((), ("text",), (object(), 1), (tc.rand(3, 1), tc.rand(2), 1))]}
        if guess:
            runs["a call"] = lambda: quietly(called, thing, *guess)
        if not inspect.isclass(thing) or guess:
            found += [f"{name}: {leak} ({what})" for what, run in runs.items() for leak in leaks(run, rounds=4, calls=2)]
    assert found == []


def code_of(function):
    function = getattr(function, "__func__", function)
    function = function.fget if isinstance(function, property) else function
    return getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)


def test_nothing_is_left_out(guesses, tmp_path):
    """Python functions must have been run by a line or a guess; C++ functions must be named."""
    ran = set()
    codes = leak_lines.lines()
    sys.setprofile(lambda frame, event, _: ran.add(frame.f_code) if event == "call" else None)
    try:
        for _, code, _ in codes:
            names = leak_lines.names(tmp_path)
            quietly(exec, code, names)
        for _, thing, guess in guesses:
            quietly(called, thing, *guess) if guess else None
    finally:
        sys.setprofile(None)
    missing = []
    for name, thing, guess in guesses:
        members = [(n, inspect.getattr_static(thing, n.rsplit(".", 1)[1]))
                   for n, _ in test_docs.members_of(name, thing)] if inspect.isclass(thing) else [(name, thing)]
        for where, member in members:
            code = code_of(member)
            seen = code in ran if code else guess or type(member).__name__ == "Op" or named(where, member)
            if not seen and where not in LEFT_OUT and not where.startswith(MADE_ELSEWHERE):
                missing.append(where)
        if inspect.isclass(thing) and not guess and not named(name, thing) and name not in LEFT_OUT and not name.startswith(MADE_ELSEWHERE):
            missing.append(name)
    assert missing == []


def named(where, member):
    """Whether a line has the name, or reads it with all attributes of an object."""
    return inspect.isgetsetdescriptor(member) or isinstance(member, property) or where.rsplit(".", 1)[1] in WORDS


WORDS = set(re.findall(r"\w+", leak_lines.LINES))


class Note:
    """An object whose lifetime shows whether its referrers are freed."""


class Own(tc.autograd.Function):
    """A function whose context refers to its results in the way given by `how`."""

    @staticmethod
    def forward(ctx, x, how):
        y = x.mul_(2) if how == "dirty" else x.exp()
        if how == "dirty":
            ctx.mark_dirty(y)
        elif how == "saved":
            ctx.save_for_backward(y)
        elif how == "not differentiable":
            ctx.mark_non_differentiable(y)
        else:
            ctx.y = y
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


def cycles():
    """Functions that create a cycle through the graph, with a marker attached."""
    def leaf_of(note):
        x = tc.ones(2, requires_grad=True)
        x.note = note
        return x

    def attribute(note):
        x = leaf_of(note)
        x.me = x

    def dictionary(note):
        x = tc.ones(2)
        x.__dict__ = {"me": x, "note": note}

    def own(how):
        def make(note):
            y = Own.apply(leaf_of(None).clone(), how)
            y.note = note
            if how == "attribute":
                y.grad_fn.again = y
        return make

    def hook_on_a_leaf(note):
        x = leaf_of(note)
        x.register_hook(lambda g: (x, g)[1])
        (x * 2).sum().backward()

    def hook_that_raises(note):
        x = leaf_of(note)
        x.register_hook(lambda g: [][x])
        quietly(lambda: (x * 2).sum().backward())

    def hook_after_accumulation(note):
        x = tc.ones(2, requires_grad=True)
        x.register_post_accumulate_grad_hook(lambda t: (x, note, None)[2])
        (x * 2).sum().backward()

    def hook_on_a_node(note):
        y = leaf_of(None) * 2
        node = y.grad_fn
        node.register_hook(lambda *_: (node, note, None)[2])
        node.register_prehook(lambda *_: (node, note, None)[2])
        y.register_hook(lambda *_: (node, note, None)[2])

    def metadata(note):
        node = (leaf_of(None) * 2).grad_fn
        node.metadata.update(node=node, note=note)

    def removed(note):
        x, y = leaf_of(None), leaf_of(None) * 2
        KEPT[:] = [x, y]
        handles = [x.register_hook(lambda g: (note, None)[1]), y.register_hook(lambda g: (note, None)[1]),
                   x.register_post_accumulate_grad_hook(lambda g: (note, None)[1]),
                   y.grad_fn.register_hook(lambda *_: (note, None)[1])]
        y.sum().backward()
        for handle in handles:
            handle.remove()

    def array(note):
        x = tc.ones(2)
        x.array, x.note = x.numpy(), note

    return [attribute, dictionary, hook_on_a_leaf, hook_that_raises, hook_after_accumulation, hook_on_a_node,
            metadata, removed, array, *(pytest.param(own(how), id=how) for how in ("dirty", "saved", "not differentiable", "attribute"))]


KEPT = []


@pytest.mark.parametrize("make", cycles())
def test_cycles_through_the_graph_are_collected(make):
    note = Note()
    seen = weakref.ref(note)
    make(note)
    del note
    gc.collect()
    assert seen() is None
    KEPT.clear()


def test_what_the_graph_holds_is_no_garbage():
    x = tc.ones(2, requires_grad=True)
    seen = []
    y = x * 2
    y.register_hook(lambda g, y=y: seen.append((y.tolist(), g.tolist())))
    x.register_hook(lambda g, x=x: seen.append((x.tolist(), g.tolist())))
    total = y.sum() + Own.apply(y, "attribute").sum()
    node = Own.apply(x, "attribute").grad_fn
    del y, x
    for _ in range(3):
        gc.collect()
    total.backward()
    assert seen == [([2, 2], [3, 3]), ([1, 1], [6, 6])]
    assert node.name() == "OwnBackward" and node.y.tolist() == tc.ones(2).exp().tolist()


def test_types_that_the_library_makes_cannot_be_made_empty():
    for kind in (tc.Node, type(tc.add), type((tc.ones(1, requires_grad=True) * 2).grad_fn)):
        with pytest.raises(TypeError, match="cannot create"):
            kind()
        with pytest.raises(TypeError, match="is not safe|object.__new__"):
            object.__new__(kind)
