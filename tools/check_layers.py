#!/usr/bin/env python3
"""Refuses upward includes: a layer includes itself and strictly lower layers; io, data and distributed only util and core.

The order is the build's (cmake/TercelLayer.cmake). Tests include the layer that they test and those below.
Within ops, a family includes the private headers of `common` and its own, and of other families only those in SHARED.

    tools/check_layers.py [ROOT]
"""

import pathlib
import re
import sys

SOURCES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*["<](tercel|cli)/(?:([a-z_]+)/)?')
FAMILY_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]tercel/ops/([a-z_]+)/([a-z0-9_./]+)[">]')
PRIVATE = re.compile(r"_(impl|kernels)\.h$|^(cpu|cuda)/")
EVERY = None
# Private headers that other families include: docs/design/ops.md says why.
SHARED = {
    "linalg/gemm_impl.h": {"nn"},
    "linalg/matmul_impl.h": {"nn"},
    "linalg/packed_weight_impl.h": {"nn"},
    "sort/key_sort_impl.h": {"embedding"},
    "sort/key_sort_kernels.h": {"embedding"},
    "sort/cpu/key_elements.h": {"embedding"},
    "sparse/sparse_ops_impl.h": EVERY,
    "special/special_math_impl.h": {"factories", "random"},
}


def read_order(root):
    text = (root / "cmake" / "TercelLayer.cmake").read_text()
    order = re.search(r"set\(TERCEL_LAYER_ORDER\s+([^)]*)\)", text).group(1)
    ranks = {name: int(rank) for name, rank in (entry.split(":") for entry in order.split())}
    core_only = set(re.search(r"set\(TERCEL_CORE_ONLY_LAYERS\s+([^)]*)\)", text).group(1).split())
    return ranks, core_only


def sources_of(folder):
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCES)


def may_include(layer, other, ranks, core_only):
    if layer == other:
        return True
    if layer in core_only and other not in ("util", "core"):
        return False
    return ranks[other] < ranks[layer]


def check_file(root, path, layer, ranks, core_only):
    errors = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        where = f"{path.relative_to(root)}:{number}"
        other = "cli" if match.group(1) == "cli" else match.group(2)
        if other is None and layer == "cli":
            continue
        if other is None:
            errors.append(f"{where}: {layer} includes the umbrella header, which is above all but cli")
        elif other not in ranks:
            errors.append(f"{where}: unknown layer '{other}'")
        elif not may_include(layer, other, ranks, core_only):
            errors.append(f"{where}: {layer} ({ranks[layer]}) may not include {other} ({ranks[other]})")
    return errors


def check_family(root, path):
    """A file of tercel/ops: private headers of other families."""
    inside = path.relative_to(root / "tercel" / "ops")
    family = inside.parts[0] if len(inside.parts) > 1 else "ops"
    errors = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = FAMILY_INCLUDE.match(line)
        if not match or match.group(1) in ("common", family) or not PRIVATE.search(match.group(2)):
            continue
        header = f"{match.group(1)}/{match.group(2)}"
        users = SHARED.get(header, ())
        if users is not EVERY and family not in users:
            errors.append(f"{path.relative_to(root)}:{number}: {family} may not include {header}, which is private")
    return errors


def check_tree(root):
    ranks, core_only = read_order(root)
    errors = []
    for parent in ("tercel", "tests"):
        folders = sorted(path for path in (root / parent).glob("*") if path.is_dir())
        for folder in folders:
            layer = folder.name
            if layer not in ranks:
                if parent == "tercel":
                    errors.append(f"{folder.relative_to(root)}: not a layer of cmake/TercelLayer.cmake")
                continue
            for path in sources_of(folder):
                errors += check_file(root, path, layer, ranks, core_only)
                if (parent, layer) == ("tercel", "ops"):
                    errors += check_family(root, path)
    return errors


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    errors = check_tree(root)
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
