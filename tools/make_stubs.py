#!/usr/bin/env python3
"""Writes the type stubs of tercel._C from the signatures of the built module.

    tools/make_stubs.py PACKAGE        PACKAGE/_C*.so -> PACKAGE/_C.pyi
"""

import importlib.util
import keyword
import pathlib
import re
import sys

FUNCTION, METHOD, NN = 1, 2, 8
TYPES = {
    "Tensor": "Tensor", "Scalar": "Number", "Tensor|Scalar": "Union[Tensor, Number]", "int": "_int",
    "float": "_float", "bool": "_bool", "str": "str", "int[]": "Sequence[_int]", "float[]": "Sequence[_float]",
    "Tensor[]": "Sequence[Tensor]", "dtype": "_dtype", "device": "Union[_device, str, _int]", "layout": "_layout",
    "memory_format": "_memory_format", "Generator": "Generator", "Storage": "UntypedStorage", "object": "Any",
}
# Results of operations that are not a tensor.
RESULTS = {
    "item": "Number", "tolist": "Any", "numpy": "Any", "size": "Any", "stride": "Any", "dim": "_int", "numel": "_int",
    "ndimension": "_int", "nelement": "_int", "storage_offset": "_int", "element_size": "_int", "data_ptr": "_int",
    "is_contiguous": "_bool", "is_floating_point": "_bool", "is_complex": "_bool", "is_signed": "_bool",
    "is_nonzero": "_bool", "is_set_to": "_bool", "get_device": "_int", "untyped_storage": "UntypedStorage",
    "split": "Tuple[Tensor, ...]", "chunk": "Tuple[Tensor, ...]", "unbind": "Tuple[Tensor, ...]",
    "split_with_sizes": "Tuple[Tensor, ...]", "sort": "Tuple[Tensor, Tensor]", "_unique": "Tuple[Tensor, ...]",
    "max": "Any", "min": "Any", "retain_grad": "None", "allclose": "_bool", "equal": "_bool",
    "frexp": "Tuple[Tensor, Tensor]",
}
HEADER = '''# Written by tools/make_stubs.py: do not edit.
import datetime
from typing import Any, Iterable, Literal, Mapping, Optional, Sequence, Tuple, TypedDict, Union, overload

_int = int
_float = float
_bool = bool
Number = Union[_int, _float, _bool]
'''
DUNDERS = {
    "__getitem__(self, key: Any) -> Tensor", "__setitem__(self, key: Any, value: Any) -> None", "__len__(self) -> _int",
    "__bool__(self) -> _bool", "__float__(self) -> _float", "__int__(self) -> _int", "__index__(self) -> _int",
    "__neg__(self) -> Tensor", "__pos__(self) -> Tensor", "__abs__(self) -> Tensor", "__invert__(self) -> Tensor",
    "__iter__(self) -> Any", "__array__(self, dtype: Any = ..., copy: Any = ...) -> Any",
    "__init__(self, *args: Any, **kwargs: Any) -> None",
    "__array_namespace__(self, *, api_version: Optional[str] = ...) -> Any",
    "to_device(self, device: Any, /, *, stream: None = ...) -> Tensor",
}
BINARY = ("add sub mul truediv floordiv mod pow and or xor lshift rshift matmul").split()
ATTRIBUTES = {
    "shape": "Size", "dtype": "_dtype", "device": "_device", "layout": "_layout", "ndim": "_int", "itemsize": "_int",
    "nbytes": "_int", "is_leaf": "_bool", "is_cpu": "_bool", "is_cuda": "_bool", "is_sparse": "_bool", "T": "Tensor",
    "mT": "Tensor", "H": "Tensor", "mH": "Tensor", "real": "Tensor", "requires_grad": "_bool",
    "grad": "Optional[Tensor]", "grad_fn": "Any", "data": "Tensor", "names": "Any", "_version": "_int",
    "_base": "Optional[Tensor]", "output_nr": "_int",
}
PYTHON_METHODS = {
    "backward": "gradient: Optional[Tensor] = ..., retain_graph: Optional[_bool] = ..., create_graph: _bool = ..., "
                "inputs: Any = ...", "register_hook": "hook: Any", "storage": "", "type": "dtype: Any = ...",
    "new_tensor": "data: Any, *, dtype: Optional[_dtype] = ..., device: Any = ..., requires_grad: _bool = ...",
    "as_subclass": "cls: Any", "unique": "sorted: _bool = ..., return_inverse: _bool = ..., return_counts: _bool = ..., "
                                         "dim: Any = ...",
}


# Keyword arguments of tercel.data, and their tables; a name with a dot at the end stands for all that begin with it.
OPTION_DICTS = {
    "_ReaderOptions": ("batches",), "_FilesOptions": ("open_files.",), "_GenerateOptions": ("generate", "format."),
    "_CriteoOptions": ("criteo", "format."), "_CsvOptions": ("csv", "format."), "_LikeOptions": ("like",),
    "_LibsvmOptions": ("libsvm", "format."), "_LibffmOptions": ("libffm", "format."),
    "_ConvertDatasetOptions": ("convert_dataset", "format."), "_VerifyOptions": ("verify",),
    "_ArrowOptions": ("arrow",), "_ConvertOptions": ("arrow", "csv", "convert_dataset", "format."),
    "_MovielensOptions": ("movielens", "format."),
}
# Arguments for which Python takes more than the option's own type.
OPTION_TYPES = {
    **dict.fromkeys(("min_count", "hash_buckets", "max_hotness", "hex_modulo"),
                    "Union[_int, str, Mapping[str, _int], Iterable[str]]"),
    **dict.fromkeys(("fill_missing", "clip_min", "clip_max"),
                    "Union[_float, str, Mapping[str, _float], Iterable[str]]"),
    "time_parts": "Union[str, Mapping[str, Union[str, Iterable[str]]], Iterable[str]]",
    **dict.fromkeys(("cross", "shared_keys"), "Union[str, Iterable[str]]"),
    **dict.fromkeys(("test_from", "valid_from"), "Union[_int, _float, str, datetime.date]"),
    **dict.fromkeys(("test", "valid"), "Any"),
}


def option_dicts(tables):
    lines = []
    for name, wanted in OPTION_DICTS.items():
        rows = [row for want in wanted for table in tables if table == want or want[-1] == "." and table.startswith(want)
                for row in tables[table]]
        lines += [f"class {name}(TypedDict, total=False):"]
        # bool, int and float are names of other things here.
        kinds = {row[0]: re.sub(r"\b(bool|int|float)\b", r"_\1", row[3]) for row in rows}
        kinds.update({key: kind for key, kind in OPTION_TYPES.items() if key in kinds})
        lines += [f"    {key}: Optional[{kind}]" for key, kind in kinds.items()] + [""]
    return lines


def load(package):
    path = next(pathlib.Path(package).glob("_C*.so"))
    spec = importlib.util.spec_from_file_location("tercel._C", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def type_of(text, optional):
    text = text.rstrip("?")
    listed = re.sub(r"\[\d\]", "[]", text)
    result = TYPES[listed]
    if listed != text:
        result = f"Union[{result}, {'_int' if listed.startswith('int') else '_float'}]"
    return f"Optional[{result}]" if optional else result


def signature(name, parameters, method):
    parts, variadic = [], None
    positional = [p for p in parameters if not p[3]]
    if len(positional) == (2 if method else 1) and positional[-1][1] == "int[]":
        variadic = positional[-1][0]
    star = False
    for i, (parameter, text, default, keyword_only, optional) in enumerate(parameters):
        if method and i == 0:
            parts.append("self")
            continue
        if keyword.iskeyword(parameter):
            parameter = parameter + "_"
        if keyword_only and not star:
            star = True
            parts.append("*")
        parts.append(f"{parameter}: {type_of(text, optional)}" + (" = ..." if default is not None else ""))
    result = RESULTS.get(name, "Tensor")
    texts = [f"def {name}({', '.join(parts)}) -> {result}: ..."]
    if variadic:
        tail = [p for p in parts if p != "*" and not p.startswith(f"{variadic}:")]
        own = ["self"] if method else []
        rest = [p for p in tail if p != "self"]
        texts.append(f"def {name}({', '.join(own + [f'*{variadic}: _int'] + rest)}) -> {result}: ...")
    return texts


def write_group(ops, flag, indent, method):
    lines = []
    groups = {}
    for flags, name, parameters, _ in ops:
        if flags & flag and not keyword.iskeyword(name):
            groups.setdefault(name, []).extend(signature(name, parameters, method))
    for name, texts in groups.items():
        unique = list(dict.fromkeys(texts))
        for text in unique:
            if len(unique) > 1:
                lines.append(indent + "@overload  # type: ignore[misc]")
            lines.append(indent + text + ("  # type: ignore" if len(unique) > 1 else ""))
    return lines


def main():
    package = pathlib.Path(sys.argv[1])
    module = load(package)
    ops = module._describe_ops()
    lines = [HEADER]
    for name in ("dtype", "device", "layout", "memory_format", "Generator", "UntypedStorage", "finfo", "iinfo"):
        lines += [f"class {name}:", "    def __init__(self, *args: Any, **kwargs: Any) -> None: ...",
                  "    def __getattr__(self, name: str) -> Any: ...", ""]
    lines += ["_dtype = dtype", "_device = device", "_layout = layout", "_memory_format = memory_format", "",
              "class Size(Tuple[_int, ...]):", "    def numel(self) -> _int: ...", "", "class Tensor:"]
    lines += [f"    {name}: {kind}" for name, kind in ATTRIBUTES.items()]
    lines += [f"    def {text}: ..." for text in sorted(DUNDERS)]
    for name in BINARY:
        lines += [f"    def __{prefix}{name}__(self, other: Any) -> Tensor: ..." for prefix in ("", "r", "i")]
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        lines.append(f"    def __{name}__(self, other: Any) -> Tensor: ...  # type: ignore[override]")
    lines += [f"    def {name}(self, {parameters}) -> Any: ...".replace(", )", ")")
              for name, parameters in PYTHON_METHODS.items()]
    lines += write_group(ops, METHOD, "    ", True)
    lines += [""] + write_group(ops, FUNCTION, "", False) + [""]
    for name in ("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer", "get_default_dtype",
                 "set_default_dtype", "promote_types", "can_cast", "get_num_threads", "set_num_threads",
                 "is_grad_enabled"):
        result = "Tensor" if name in ("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer") else "Any"
        lines.append(f"def {name}(*args: Any, **kwargs: Any) -> {result}: ...")
    # Last, since names such as float would hide the types above.
    for name in sorted(vars(module)):
        if isinstance(getattr(module, name), module.dtype):
            lines.append(f"{name}: _dtype  # type: ignore")
    lines += option_dicts(module._dataset_options())
    lines += ["strided: _layout", "contiguous_format: _memory_format", "preserve_format: _memory_format",
              "channels_last: _memory_format", "channels_last_3d: _memory_format", "default_generator: Generator",
              "def __getattr__(name: str) -> Any: ..."]
    (package / "_C.pyi").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
