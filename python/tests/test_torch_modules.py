"""Modules and names that programs for PyTorch ask before they calculate."""

import copy
import pickle
import subprocess
import sys

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
    assert tc.cpu.synchronize() is None and not tc.distributed.is_available()


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
    for refuse in (tc.jit.script, tc.jit.trace):
        with pytest.raises(NotImplementedError, match="tercel.jit"):
            refuse(f)


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


def test_they_are_imported_when_they_are_used():
    code = ("import sys, tercel; later = ['testing', 'cuda', 'backends', 'jit', 'types', 'return_types', 'nn']; "
            "print([n for n in later if 'tercel.' + n in sys.modules]); tercel.testing.assert_close(1, 1)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
