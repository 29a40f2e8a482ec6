#!/usr/bin/env python3
"""Refuses a layer that calls functions of a higher layer, which it could do through its own declarations.

Each undefined symbol of Tercel in BUILD/lib/libtercel_<layer>.a must be defined in that layer or one that it may use.

    tools/check_links.py BUILD
"""

import os
import pathlib
import subprocess
import sys

from check_layers import may_include, read_order

NM = os.environ.get("NM", "nm")
OURS = ("_ZN6tercel", "_ZNK6tercel", "_ZTIN6tercel", "_ZTVN6tercel")


def symbols_of(archive):
    """The defined symbols, and the undefined ones with the member that needs each."""
    result = subprocess.run(
        [NM, "--extern-only", "--format=posix", archive], capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        sys.exit(f"{archive}: {result.stderr.strip()}")
    defined, undefined, member = set(), {}, ""
    for line in result.stdout.splitlines():
        if line.endswith("]:"):
            member = line.rsplit("[", 1)[1][:-2]
        elif line.strip():
            name, kind = line.split()[:2]
            if kind == "U":
                undefined.setdefault(name, member)
            elif kind not in "wv":
                defined.add(name)
    return defined, undefined


def readable(name):
    result = subprocess.run(["c++filt", name], capture_output=True, text=True, check=False)
    return result.stdout.strip() or name


def check_build(build, ranks, core_only):
    layers = {}
    for archive in sorted((build / "lib").glob("libtercel_*.a")):
        layer = archive.stem.removeprefix("libtercel_")
        if layer in ranks:
            layers[layer] = symbols_of(archive)
    if not layers:
        return [f"{build}: no layer is built"]
    errors = []
    for layer, (_, undefined) in layers.items():
        for name, member in sorted(undefined.items()):
            if not name.startswith(OURS):
                continue
            homes = [other for other, (defined, _) in layers.items() if name in defined]
            if not homes:
                errors.append(f"{layer} ({member}): defined nowhere: {readable(name)}")
            elif not any(may_include(layer, other, ranks, core_only) for other in homes):
                errors.append(f"{layer} ({member}): defined in {', '.join(homes)} only: {readable(name)}")
    return errors


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_links.py BUILD")
    root = pathlib.Path(__file__).resolve().parent.parent
    errors = check_build(pathlib.Path(sys.argv[1]), *read_order(root))
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
