"""Converts tensors to text, formatted as in PyTorch.

Four digits after the decimal point, or scientific notation if magnitudes differ too much; columns of equal width; lines
of eighty characters. Tensors of more than a thousand elements show only the first and last three along each dimension.
"""

import math

from tercel import _C


class _Options:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode = None


_PROFILES = {
    "default": dict(precision=4, threshold=1000, edgeitems=3, linewidth=80),
    "short": dict(precision=2, threshold=1000, edgeitems=2, linewidth=80),
    "full": dict(precision=4, threshold=math.inf, edgeitems=3, linewidth=80),
}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Print options: digits, threshold for summarizing, number of elements shown at each edge, line width."""
    for name, value in _PROFILES.get(profile, {}).items():
        setattr(_Options, name, value)
    given = dict(precision=precision, threshold=threshold, edgeitems=edgeitems, linewidth=linewidth)
    for name, value in given.items():
        if value is not None:
            setattr(_Options, name, value)
    _Options.sci_mode = sci_mode


class _Numbers:
    """The common format of one tensor's numbers, padded to the widest."""

    def __init__(self, values, floating):
        self.floating = floating
        self.whole = True
        self.powers = False
        self.width = 1
        if not floating:
            self.width = max((len(str(v)) for v in values), default=1)
            return
        ordinary = [v for v in values if v != 0 and math.isfinite(v)]
        if not ordinary:
            return
        largest, smallest = max(map(abs, ordinary)), min(map(abs, ordinary))
        self.whole = all(v == math.floor(v) for v in ordinary)
        self.powers = largest / smallest > 1000 or largest > 1e8 or (not self.whole and smallest < 1e-4)
        if _Options.sci_mode is not None:
            self.powers = _Options.sci_mode
        self.width = max(len(self._plain(v)) for v in ordinary)

    def _plain(self, value):
        if not self.floating:
            return str(value)
        if self.powers:
            return f"{value:.{_Options.precision}e}"
        if self.whole:
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return f"{value:.{_Options.precision}f}"

    def text(self, value):
        return self._plain(value).rjust(self.width)


class _ComplexNumbers:
    """Complex numbers, with a separate format for each part: 1.+2.j."""

    def __init__(self, values):
        self.real = _Numbers([v.real for v in values], True)
        self.imag = _Numbers([v.imag for v in values], True)
        self.width = self.real.width + self.imag.width + 1

    def text(self, value):
        imag = self.imag.text(value.imag).lstrip()
        sign = "" if imag.startswith(("-", "+")) else "+"
        return f"{self.real.text(value.real)}{sign}{imag}j"


def _shown(size):
    """The indices of a dimension that are printed when it is summarized; None marks the gap."""
    edge = _Options.edgeitems
    if edge == 0:
        return [None]
    if size <= 2 * edge:
        return list(range(size))
    return [*range(edge), None, *range(size - edge, size)]


def _collect(x, summarize, values):
    """The elements that will be printed, as nested lists; each also goes into `values`."""
    if x.dim() == 0:
        values.append(x.item())
        return values[-1]
    if not summarize:
        if x.dim() == 1:
            row = x.tolist()
            values.extend(row)
            return row
        return [_collect(part, False, values) for part in x]
    return [None if i is None else _collect(x[i], True, values) for i in _shown(x.size(0))]


def _lines(nested, dim, indent, numbers):
    if dim == 0:
        return numbers.text(nested)
    if dim == 1:
        gap = " ..." if len(nested) > 1 else "..."
        items = [gap if v is None else numbers.text(v) for v in nested]
        per_line = max(1, (_Options.linewidth - indent) // (numbers.width + 2))
        rows = [", ".join(items[i:i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"
    parts = ["..." if part is None else _lines(part, dim - 1, indent + 1, numbers) for part in nested]
    return "[" + ("," + "\n" * (dim - 1) + " " * (indent + 1)).join(parts) + "]"


def _contents(x, indent):
    if x.numel() == 0:
        return "[]"
    if x.dtype in (_C.float16, _C.bfloat16):
        x = x.float()
    values = []
    nested = _collect(x, x.numel() > _Options.threshold, values)
    numbers = _ComplexNumbers(values) if x.dtype.is_complex else _Numbers(values, x.dtype.is_floating_point)
    return _lines(nested, x.dim(), indent, numbers)


def _with_suffixes(text, suffixes, indent, on_new_line=False):
    parts = [text]
    length = len(text) - text.rfind("\n") + 1
    for i, suffix in enumerate(suffixes):
        if (on_new_line and i == 0) or length + len(suffix) + 2 > _Options.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            length = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            length += len(suffix) + 2
    return "".join(parts) + ")"


def _part(name, x, indent):
    """A part of a sparse tensor: indices=tensor(...)."""
    prefix = f"{name}=tensor("
    text = _contents(x.detach(), indent + len(prefix))
    return prefix + text + (f", size={tuple(x.shape)})" if x.numel() == 0 else ")")


def _sparse_contents(x, indent):
    if x.layout is _C.sparse_coo:
        parts = [_part("indices", x._indices(), indent), _part("values", x._values(), indent)]
    elif x.layout in (_C.sparse_csr, _C.sparse_bsr):
        parts = [_part("crow_indices", x.crow_indices(), indent), _part("col_indices", x.col_indices(), indent),
                 _part("values", x.detach().values(), indent)]
    else:
        parts = [_part("ccol_indices", x.ccol_indices(), indent), _part("row_indices", x.row_indices(), indent),
                 _part("values", x.detach().values(), indent)]
    return (",\n" + " " * indent).join(parts)


def tensor_str(x, contents=None):
    """The text of repr(x)."""
    is_parameter = type(x) is not _C.Tensor and type(x).__name__ == "Parameter"
    prefix = "tensor(" if type(x) is _C.Tensor or is_parameter else f"{type(x).__name__}("
    indent = len(prefix)
    suffixes = []
    sparse = x.layout in (_C.sparse_coo, _C.sparse_csr, _C.sparse_csc, _C.sparse_bsr, _C.sparse_bsc)
    if sparse:
        suffixes += [f"size={tuple(x.shape)}", f"nnz={x._nnz()}"]
    if x.device.type != "cpu":
        suffixes.append(f"device='{x.device}'")
    if not sparse and x.numel() == 0:
        if x.dim() != 1:
            suffixes.append(f"size={tuple(x.shape)}")
        if x.dtype is not _C.get_default_dtype():
            suffixes.append(f"dtype={x.dtype}")
    elif x.dtype not in (_C.get_default_dtype(), _C.int64, _C.bool) and not _is_default_complex(x.dtype):
        suffixes.append(f"dtype={x.dtype}")
    if not sparse and _Options.edgeitems == 0 and x.numel() > 0:  # a summarized tensor also shows its sizes
        suffixes.insert(0, f"size={tuple(x.shape)}")
    if x.layout is not _C.strided:
        suffixes.append(f"layout={x.layout}")
    if contents is None:
        contents = _sparse_contents(x, indent) if sparse else _contents(x.detach().to_dense(), indent)
    if x.grad_fn is not None:
        suffixes.append(f"grad_fn=<{x.grad_fn.name()}>")
    elif x.requires_grad:
        suffixes.append("requires_grad=True")
    if _C._current_dual_level() >= 0 and (tangent := _C._unpack_dual(x)[1]) is not None:
        suffixes.append(f"tangent={tangent}")
    text = _with_suffixes(prefix + contents, suffixes, indent, x.layout is _C.sparse_coo)
    return "Parameter containing:\n" + text if is_parameter else text


def _is_default_complex(dtype):
    return dtype.is_complex and dtype.itemsize == 2 * _C.get_default_dtype().itemsize
