#!/usr/bin/env python3
"""Runs two commands alternately and compares the times they print.

Each command prints lines with "NAME median X ms (min Y)" ("med" and ns are also accepted). Runs alternate, so that both
sides run under the same conditions. Prints the median and the minimum of all runs of each side, and their ratio: of the
last line, of each pair of lines that --row selects by a part of their names, or of all pairs that --same-names finds
(capitals before a name, as in "BW   [1T] copy_", are ignored).

example:
  benchmarks/alternate.py --runs 5 \
    --ours "build/release/bin/dlrm_bench threads=1" \
    --peer "env OMP_NUM_THREADS=1 python benchmarks/dlrm_torch.py iters=20"
  benchmarks/alternate.py --ours "build/release/bin/core_ops_bench" --peer "./core_ops_torch" \
    --row "x + y=[grad] add 4x6: x+y" --row "view=[grad] x.view({6,4})"
"""
import argparse
import re
import shlex
import statistics
import subprocess
import sys

TIME = re.compile(r"(.*?)\s+med(?:ian)?\s+([0-9.]+) (ms|ns)(?:\s+\(?min\s+([0-9.]+))?")
MILLISECONDS = {"ms": 1.0, "ns": 1e-6}


def run(command):
    """(name, median, min) of each time that the command printed, in milliseconds."""
    done = subprocess.run(shlex.split(command), capture_output=True, text=True)
    times = []
    for name, median, unit, least in TIME.findall(done.stdout):
        times.append((re.sub(r"^[A-Z]+ +", "", name), float(median) * MILLISECONDS[unit], float(least or median) * MILLISECONDS[unit]))
    if done.returncode != 0 or not times:
        sys.exit(f"{command}\nexit code {done.returncode}, no time found\n{done.stdout}{done.stderr}")
    return times


def pick(times, part, command):
    """(median, min) of the line whose name contains the part; of the last line for None."""
    for name, median, least in reversed(times):
        if part is None or part in name:
            return median, least
    sys.exit(f"{command}: no line with '{part}' in its name")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="command of this project")
    parser.add_argument("--peer", required=True, help="command of the peer")
    parser.add_argument("--runs", type=int, default=5, help="of each command")
    parser.add_argument("--row", action="append", help="OURS=PEER, or OURS==PEER where names hold a \"=\": parts of the names of two lines to compare")
    parser.add_argument("--same-names", action="store_true", help="compare all lines whose name both sides have")
    parser.add_argument("--markdown", action="store_true", help="show a table: medians and their ratio")
    arguments = parser.parse_args()
    sides = {"ours": [], "peer": []}
    for _ in range(arguments.runs):
        for side, times in sides.items():
            times.append(run(getattr(arguments, side)))
    rows = [row.split("==" if "==" in row else "=", 1) for row in arguments.row or []]
    if arguments.same_names:
        theirs = {name for name, _, _ in sides["peer"][0]}
        rows += [(name, name) for name, _, _ in sides["ours"][0] if name in theirs]
    if arguments.markdown:
        print("| | ours | peer | ratio |\n|---|---|---|---|")
    for ours, peer in rows or [("", "")]:
        parts = {"ours": ours, "peer": peer}
        result = {}
        for side, runs in sides.items():
            picked = [pick(times, parts[side] or None, getattr(arguments, side)) for times in runs]
            result[side] = statistics.median(median for median, _ in picked), min(least for _, least in picked)
        ratio = result["peer"][0] / result["ours"][0]
        if arguments.markdown:
            print(f"| {parts['ours']} | {show(result['ours'][0])} | {show(result['peer'][0])} | {ratio:.1f} |")
            continue
        texts = [f"{side} median {median:.6g} ms (min {least:.6g})" for side, (median, least) in result.items()]
        print(f"{parts['ours'] or 'last line'}: {', '.join(texts)}, ratio"
              f" {ratio:.2f} (min {result['peer'][1] / result['ours'][1]:.2f})")


def show(milliseconds):
    return f"{milliseconds * 1e6:.0f} ns" if milliseconds < 0.01 else f"{milliseconds:.3g} ms"


if __name__ == "__main__":
    main()
