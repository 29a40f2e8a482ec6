"""Modules and names that PyTorch programs query before they compute."""

import copy
import pickle
import subprocess
import sys
from typing import Dict, List, Optional, Tuple, Union

import pytest

import tercel as tc

CALLS = {
    "max": lambda x: x.max(0), "min": lambda x: tc.min(x, 1), "sort": lambda x: tc.sort(x), "topk": lambda x: x.topk(1),
    "median": lambda x: x.median(0), "mode": lambda x: x.mode(), "kthvalue": lambda x: x.kthvalue(1),
    "cummax": lambda x: x.cummax(0), "cummin": lambda x: x.cummin(0), "aminmax": lambda x: x.aminmax(),
    "nanmedian": lambda x: x.nanmedian(0), "linalg_qr": tc.linalg.qr, "linalg_svd": tc.linalg.svd, "svd": tc.svd,
    "linalg_slogdet": tc.linalg.slogdet, "slogdet": tc.slogdet, "qr": tc.qr, "linalg_eigh": tc.linalg.eigh,
    "linalg_eig": tc.linalg.eig,
    "linalg_lu": tc.linalg.lu, "linalg_lu_factor": tc.linalg.lu_factor, "linalg_inv_ex": tc.linalg.inv_ex,
    "linalg_lstsq": lambda x: tc.linalg.lstsq(x, x), "histogram": lambda x: tc.histogram(x, 2),
    "linalg_cholesky_ex": tc.linalg.cholesky_ex, "geqrf": tc.geqrf,
}


@pytest.mark.parametrize("name", CALLS)
def test_return_types(name):
    result = CALLS[name](tc.tensor([[2.0, 0.5], [0.5, 1.0]]))
    assert type(result) is getattr(tc.return_types, name)
    assert isinstance(result, tuple) and len(result) == len(type(result).__match_args__)


def test_named_results():
    result = tc.tensor([[1, 5], [7, 2]]).max(1)
    assert repr(result) == str(result) == (
        "tercel.return_types.max(\nvalues=tensor([5, 7]),\nindices=tensor([1, 0]))")
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is tc.return_types.max and again.values.tolist() == [5, 7]
    assert type(copy.copy(result)) is tc.return_types.max
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tc.return_types.nonsense


def test_variable():
    from tercel.autograd import Variable
    x = tc.ones(2)
    v = Variable(x, requires_grad=True)
    assert type(v) is tc.Tensor and v.requires_grad and v.data_ptr() == x.data_ptr() and not x.requires_grad
    assert isinstance(x, Variable) and isinstance(tc.nn.Parameter(x), tc.autograd.Variable)
    assert not isinstance([1], Variable) and Variable().shape == (0,)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        Variable([1])


def test_there_is_no_gpu():
    assert not tc.cuda.is_available() and tc.cuda.device_count() == 0 and not tc.cuda.is_initialized()
    tc.cuda.manual_seed_all(1)
    tc.cuda.empty_cache()
    for name in ("current_device", "synchronize", "get_device_name", "Stream"):
        with pytest.raises(AssertionError, match=f"tercel.cuda.{name}: Tercel not compiled with CUDA enabled"):
            getattr(tc.cuda, name)()
    assert tc.cpu.is_available() and tc.cpu.device_count() == 1 and tc.cpu.current_device() == "cpu"
    assert tc.cpu.synchronize() is None


def test_backends():
    import tercel.backends.cudnn as cudnn
    for name in ("cudnn", "mkl", "mkldnn", "mps", "openmp"):
        assert not getattr(tc.backends, name).is_available()
    assert cudnn.version() is None and not cudnn.enabled and not tc.backends.cuda.is_built()
    with cudnn.flags(enabled=False), tc.backends.mkldnn.flags(enabled=False):
        assert tc.ones(1).item() == 1
    assert tc.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
    with pytest.raises(AttributeError):
        tc.backends.nonsense


def test_nothing_is_compiled():
    def f(x):
        return x + 1

    assert not tc.jit.is_scripting() and not tc.jit.is_tracing() and tc.jit.annotate(int, 3) == 3
    for decorate in (tc.jit.ignore, tc.jit.ignore(drop=True), tc.jit.unused, tc.jit.export, tc.jit.script_if_tracing):
        assert decorate(f) is f
    assert tc.jit.wait(tc.jit.fork(f, 2)) == 3 and tc.jit.fork(f, 2).done()
    with pytest.raises(NotImplementedError, match="tercel.jit.load: compiled modules cannot be run"):
        tc.jit.load("model.pt")
    with pytest.raises(RuntimeError, match=r"Please call .eval\(\) on your module"):
        tc.jit.freeze(tc.nn.Linear(1, 1))
    assert tc.compile(f) is f and tc.compile(mode="max-autotune")(f) is f and tc.compiler.disable()(f) is f
    net = tc.nn.Linear(1, 1)
    assert net.compile() is None and not tc.compiler.is_compiling()
    with tc.compiler.set_stance("force_eager"):
        assert tc.compiler.list_backends() == []
    with pytest.raises(RuntimeError, match="Either mode or options can be specified"):
        tc.compile(f, mode="default", options={})


def test_compiled_modules_hold_the_module():
    class Net(tc.nn.Sequential):
        def greet(self):
            return self.training

    net = Net(tc.nn.Linear(2, 1), tc.nn.Dropout())
    compiled = tc.compile(net, mode="reduce-overhead")
    x = tc.ones(3, 2)
    assert type(compiled).__name__ == "OptimizedModule" and compiled._orig_mod is net and tc.compile(compiled) is compiled
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"] and not hasattr(net, "_orig_mod")
    assert not compiled.eval().greet() and not net.training and tc.equal(compiled(x), net(x)) and len(compiled) == 2
    compiled.training = True
    assert net.training and not net.eval().training and not compiled.training
    compiled.mark = 3
    assert net.mark == 3 and "mark" in dir(compiled)
    del compiled.mark
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'mark'"):
        compiled.mark
    again = copy.deepcopy(compiled)
    assert again._orig_mod is not net and tc.equal(again(x), net(x))
    with tc.no_grad():
        for p in compiled.parameters():
            p.zero_()
    assert net(x).abs().sum() == 0
    assert isinstance(pickle.loads(pickle.dumps(tc.compile(tc.nn.Linear(2, 1))))._orig_mod, tc.nn.Linear)


def test_dynamo_has_settings_without_effect():
    from tercel import _dynamo
    config = _dynamo.config
    config.suppress_errors, config.some_setting = True, 5
    assert tc._dynamo.config.some_setting == 5 and not config.verbose
    with pytest.raises(AttributeError):
        config.nonsense
    net = tc.nn.Linear(1, 1)
    assert _dynamo.optimize("eager")(net)._orig_mod is net and _dynamo.disable(net) is net and _dynamo.optimize()(len) is len
    assert [_dynamo.reset(), _dynamo.graph_break(), _dynamo.mark_dynamic(tc.ones(1), 0), _dynamo.mark_static(tc.ones(1))] == [None] * 4


@pytest.mark.parametrize("value, kind, expected", [
    ([1, 2], List[int], True), ([1, "a"], List[int], False), ([], List[int], True), (1, List[int], False), ([[1]], List[list[int]], True),
    ({"a": 1}, Dict[str, int], True), ({"a": "b"}, dict[str, int], False), ((1, "a"), Tuple[int, str], True),
    ((1, 2, 3), Tuple[int, str], False), (None, Optional[int], True), (1, Optional[int], True), ("a", Union[int, str], True),
    ("a", Optional[int], False), ([1], (List[str], List[int]), True), (1, (int, str), True), (True, int, True), ([tc.ones(1)], List[tc.Tensor], True),
    (None, None, True),
])
def test_types_of_values(value, kind, expected):  # PyTorch 2.15's
    assert tc.jit.isinstance(value, kind) is expected


def test_names_of_the_compiler_that_cannot_be_used():
    with pytest.raises(RuntimeError, match=r"Attempted to use List without a contained type.*e.g. List\[int\]"):
        tc.jit.isinstance([1], List)
    for make in (tc.jit.CompilationUnit, tc.jit.RecursiveScriptModule):
        with pytest.raises(NotImplementedError, match="nothing is compiled here"):
            make()
    assert tc.jit._script_if_tracing(len) is len and issubclass(tc.jit.TracerWarning, Warning)
    assert issubclass(tc.jit.RecursiveScriptModule, tc.jit.ScriptModule)
    with tc.jit.strict_fusion():
        pass


def test_what_would_be_compiled_is_returned_with_one_warning():
    done = subprocess.run([sys.executable, "-W", "always", "-c", """if True:
        import tercel as tc
        f = lambda x: x
        net = tc.nn.Linear(1, 1)
        for _ in range(3):
            assert tc.jit.script(f) is f
            assert tc.jit.script(net) is net
            assert tc.jit.trace(net, tc.ones(1, 1)) is net
        class Scripted(tc.jit.ScriptModule):
            @tc.jit.script_method
            def forward(self, x):
                return x + 1
        assert Scripted()(tc.ones(1)).item() == 2 and not isinstance(net, tc.jit.ScriptModule)
    """], capture_output=True, text=True, check=True)
    warned = [line for line in done.stderr.splitlines() if "UserWarning" in line]
    assert len(warned) == 2 and "tercel.jit.script: nothing is compiled" in warned[0] and "jit.trace" in warned[1]
    assert warned[0].startswith("<string>:6")


def test_small_answers():
    assert tc.version.__version__ == tc.__version__ and tc.version.cuda is None
    assert not tc.overrides.has_torch_function((tc.ones(1),)) and tc.overrides.is_tensor_like(tc.ones(1))
    assert not tc.overrides.has_torch_function_unary(1) and not tc.overrides.has_torch_function_variadic(1, 2)
    assert tc.overrides.is_tensor_method_or_property(tc.Tensor.add) and not tc.overrides.is_tensor_like(3)
    assert tc.get_default_device() == tc.device("cpu") and tc.set_default_device("cpu") is None
    with pytest.raises(NotImplementedError, match="expected 'cpu'"):
        tc.set_default_device("cuda")
    assert not tc.is_autocast_enabled() and not tc.set_flush_denormal(True) and tc.get_num_interop_threads() == 1
    assert not tc.has_mkl and not tc.has_cuda and tc.compiled_with_cxx11_abi() and not tc.is_vulkan_available()
    assert isinstance(3, tc.types._int) and tc.types.Storage is tc.UntypedStorage
    x = tc.ones(2)
    assert not (x.is_xpu or x.is_mps or x.is_nested or x.is_vulkan)


def test_names_of_types():
    assert tc.typename(tc.ones(1)) == "tercel.FloatTensor" and tc.typename(3) == "int"
    assert tc.typename(tc.Tensor) == "tercel.Tensor" and tc.typename(tc.typename) == "tercel._tensor.typename"
    assert tc.typename(tc.nn.Linear(1, 1)) == tc.typename(tc.nn.Linear) and tc.typename(tc.nn.Linear).endswith("Linear")
    assert tc.FloatTensor in tc._tensor_classes and tc.FloatStorage in tc._storage_classes
    assert not (tc.FloatTensor.is_cuda or tc.FloatTensor.is_sparse) and tc.LongTensor.layout is tc.strided
    for cls in tc._tensor_classes:
        assert cls(2, 3).fill_(1).dtype is cls.dtype and repr(cls(1).fill_(1)).startswith("tensor([")


def test_python_functions_of_elements():
    x = tc.arange(6.0).view(2, 3).t()
    assert x.apply_(lambda v: v * v) is x and x.tolist() == [[0, 9], [1, 16], [4, 25]]
    assert x.map_(tc.ones(1), lambda a, b: a + b).tolist() == [[1, 10], [2, 17], [5, 26]]
    assert tc.zeros(2).map2_(tc.tensor([1.0, 2.0]), tc.tensor([3.0, 5.0]), lambda a, b, c: b * c).tolist() == [3, 10]
    with pytest.raises(RuntimeError, match=r"Can't call apply_\(\) on Variable that requires grad"):
        tc.ones(1, requires_grad=True).apply_(abs)


def test_data_parallel_is_its_module():
    net = tc.nn.Linear(2, 1)
    both = tc.nn.DataParallel(net)
    x = tc.ones(3, 2)
    assert list(both.state_dict()) == ["module.weight", "module.bias"] and both.module is net and both.device_ids == []
    assert tc.equal(both(x), net(x)) and tc.equal(tc.nn.parallel.data_parallel(net, x), net(x))
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        tc.nn.parallel.DistributedDataParallel(net)


def test_modules_on_several_devices():
    from tercel.nn import parallel
    net, x = tc.nn.Linear(2, 1), tc.ones(4, 2)
    for call in (lambda to: parallel.replicate(net, to), lambda to: parallel.scatter((1, x), to),
                 lambda to: parallel.parallel_apply([net], [x], devices=to)):
        with pytest.raises(ValueError, match="Expected a non cpu device, but got: cpu"):
            call([tc.device("cpu")])
        with pytest.raises(RuntimeError, match="there is no cuda device"):
            call([0])
    assert parallel.replicate(net, []) == [] and parallel.scatter({"a": (1, "b")}, ["cpu"] * 2) == [{"a": (1, "b")}] * 2
    with pytest.raises(AssertionError, match="Gather function not implemented for CPU tensors"):
        parallel.gather([x, x], "cpu")
    with pytest.raises(AssertionError, match="The number of modules 1 is not equal to the number of inputs 0"):
        parallel.parallel_apply([net], [])
    assert parallel.gather([None, None], "cpu") is None


def test_ways_of_attention():
    from tercel.nn.attention import SDPBackend, sdpa_kernel
    q = tc.randn(1, 2, 3, 4)
    plain = tc.nn.functional.scaled_dot_product_attention(q, q, q)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]), sdpa_kernel(SDPBackend.MATH):
        assert tc.equal(tc.nn.functional.scaled_dot_product_attention(q, q, q), plain)
    assert SDPBackend.MATH == 0 and len(SDPBackend) == 6 and not hasattr(tc.nn, "SDPBackend")
    for wrong in ("math", ["math"]):
        with pytest.raises(AssertionError, match="must be an instance of SDPBackend.*got str"):
            with sdpa_kernel(wrong):
                pass


def test_states_of_other_devices():
    from tercel.utils import checkpoint
    assert checkpoint.get_device_states(tc.ones(1), 3) == ([], []) and checkpoint.set_device_states([], []) is None
    assert tc._C._log_api_usage_once("event") is None


def test_they_are_imported_when_they_are_used():
    code = ("import sys, tercel; later = ['testing', 'cuda', 'backends', 'jit', 'types', 'return_types', 'nn']; "
            "print([n for n in later if 'tercel.' + n in sys.modules]); tercel.testing.assert_close(1, 1)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
