"""Selects the installed headers: those of tercel/ except private ones (_impl.h), lists of functors (_ops.h) and kernels
(_kernels.h, cpu/, cuda/).

The same rule is in cmake/TercelInstall.cmake.
"""


def is_public(path):
    """`path` is relative to the repository."""
    return (path.parts[0] == "tercel" and not path.stem.endswith(("_impl", "_kernels", "_ops"))
            and not {"cpu", "cuda"} & set(path.parts[2:-1]))


def op_headers(root):
    """The public headers of tercel/ops."""
    return [path for path in sorted((root / "tercel/ops").rglob("*.h")) if is_public(path.relative_to(root))]
