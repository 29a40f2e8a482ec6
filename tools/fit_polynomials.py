#!/usr/bin/env python3
"""Fits the coefficients of our own mathematical functions and prints the header that holds them.

    tools/fit_polynomials.py > tercel/ops/common/cpu/vec_tables.h
    tools/fit_polynomials.py --check    # only compares; exit code 1 if the header differs

A polynomial is the minimax fit (Remez' exchange on a dense grid) of a function with a weight, which makes errors relative
to the result. Coefficients are rounded to the type: in polynomials one by one from the lowest power on, and the higher
ones are fitted again each time to absorb the rounding; in tables, whose polynomials are short, at once. Computed with 70
digits of Python's decimal module, which needs no package and gives the same result everywhere.
"""

import math
import pathlib
import struct
import sys
from decimal import Decimal as D
from decimal import ROUND_FLOOR, getcontext, localcontext

getcontext().prec = 70
HEADER = pathlib.Path(__file__).resolve().parent.parent / "tercel/ops/common/cpu/vec_tables.h"
WIDTH = 120

# ---- Functions of Decimal, to about 60 digits


def series(first, ratio):
    """first * (1 + ratio(1) + ratio(1) ratio(2) + ...), until terms no longer count."""
    total = term = first
    k = 1
    while term and abs(term) > abs(total) * D("1e-72"):
        term *= ratio(k)
        total += term
        k += 1
    return total


def atan_small(x):
    """x - x^3 / 3 + x^5 / 5 - ..."""
    total, power, k = D(0), x, 1
    while abs(power) > D(10) ** (-getcontext().prec - 2):
        total += power / k
        power *= -x * x
        k += 2
    return total


with localcontext() as long:
    long.prec = 150
    PI_140 = 16 * atan_small(D(1) / 5) - 4 * atan_small(D(1) / 239)
PI = +PI_140
LN2, LN10 = D(2).ln(), D(10).ln()


def sin(x):
    return series(x, lambda k: -x * x / ((2 * k) * (2 * k + 1)))


def cos(x):
    return series(D(1), lambda k: -x * x / ((2 * k - 1) * (2 * k)))


def atan(x):
    """Halves the angle until the series is short."""
    halves = 0
    while abs(x) > D("0.05"):
        x = x / (1 + (1 + x * x).sqrt())
        halves += 1
    return atan_small(x) * 2**halves


def tanh(x):
    return 1 - 2 / ((2 * x).exp() + 1)


def erf(x):
    """exp(-x^2) times a series of positive terms."""
    return 2 / PI.sqrt() * (-x * x).exp() * series(x, lambda k: 2 * x * x / (2 * k + 1))


def erfcx(x):
    """exp(x^2) erfc(x) for 0 <= x < 11: 1 - erf(x) loses 50 of 140 digits."""
    with localcontext() as context:
        context.prec = 140
        total = term = x
        k = 1
        while term > D("1e-100"):
            term *= 2 * x * x / (2 * k + 1)
            total += term
            k += 1
        value = (x * x).exp() - 2 / PI_140.sqrt() * total
    return +value


def erfinv_of_log(w):
    """y / erf(y) for the y with 1 - erf(y)^2 = exp(-w)."""
    x = (1 - (-w).exp()).sqrt()
    y = w.sqrt() * D("0.85")
    for _ in range(40):
        step = (erf(y) - x) / (2 / PI.sqrt() * (-y * y).exp())
        # Halley's correction makes the steps converge from a rough start.
        step /= 1 + y * step
        y -= step
        if abs(step) < D("1e-55"):
            break
    return y / x


# ---- Fits


def to_float(x):
    return D(struct.unpack("f", struct.pack("f", float(x)))[0])


def to_double(x):
    return D(float(x))


def solve(rows):
    """Solution of linear equations, rows with the right side last."""
    n = len(rows)
    for i in range(n):
        best = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[best] = rows[best], rows[i]
        pivot = rows[i]
        for r in range(i + 1, n):
            factor = rows[r][i] / pivot[i]
            if factor:
                row = rows[r]
                for c in range(i + 1, n + 1):
                    row[c] -= factor * pivot[c]
    out = [D(0)] * n
    for i in reversed(range(n)):
        out[i] = (rows[i][n] - sum(rows[i][c] * out[c] for c in range(i + 1, n))) / rows[i][i]
    return out


def horner(coefficients, x):
    total = D(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def minimax(points, values, weights, degree):
    """Coefficients, lowest power first, of the polynomial with the least largest weighted error on the points."""
    count = degree + 2
    last = len(points) - 1
    chosen = [round(last * i / (count - 1)) for i in range(count)]
    best, least = None, None
    for _ in range(60):
        rows = []
        for i, at in enumerate(chosen):
            row = [D(1)]
            for _ in range(degree):
                row.append(row[-1] * points[at])
            rows.append(row + [(-1) ** i / weights[at], values[at]])
        *coefficients, level = solve(rows)
        errors = [w * (v - horner(coefficients, x)) for x, v, w in zip(points, values, weights)]
        worst = max(map(abs, errors))
        if least is None or worst < least:
            best, least = coefficients, worst
        if worst <= abs(level) * D("1.001"):
            break
        peaks = alternating_peaks(errors, count)
        chosen = peaks if len(peaks) == count else exchange(chosen, errors)
    return best


def alternating_peaks(errors, count):
    """The largest error of each stretch of one sign, without the smallest of more than count."""
    peaks = []
    for at, error in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = at
        else:
            peaks.append(at)
    while len(peaks) > count:
        if len(peaks) == count + 1:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        else:
            low = min(range(len(peaks) - 1), key=lambda i: max(abs(errors[peaks[i]]), abs(errors[peaks[i + 1]])))
            del peaks[low : low + 2]
    return peaks


def exchange(chosen, errors):
    """The chosen points with the largest error for a neighbour of the same sign."""
    at = max(range(len(errors)), key=lambda i: abs(errors[i]))
    after = next((i for i, c in enumerate(chosen) if c > at), len(chosen))
    same = [i for i in (after - 1, after) if 0 <= i < len(chosen) and (errors[chosen[i]] > 0) == (errors[at] > 0)]
    if same:
        return chosen[: same[0]] + [at] + chosen[same[0] + 1 :]
    return [at] + chosen[:-1] if after == 0 else chosen[1:] + [at]


def grid(low, high, count):
    """Points that lie like the zeros of a Chebyshev polynomial."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle - half * cos(PI * (2 * i + 1) / (2 * count)) for i in range(count)]


def fit(function, weight, low, high, degree, rounded, fixed=(), again=True):
    """Rounded coefficients, lowest power first, of which the first ones may be given; `again`: see above."""
    points = [x for x in grid(D(low), D(high), 16 * (degree + 2)) if x]
    values = [function(x) for x in points]
    weights = [abs(weight(x)) for x in points]
    out = []
    while len(out) <= degree:
        if len(out) < len(fixed):
            new = [fixed[len(out)]]
        else:
            new = [rounded(c) for c in minimax(points, values, weights, degree - len(out))]
        for c in new[: 1 if again else degree + 1]:
            out.append(c)
            values = [(v - c) / x for v, x in zip(values, points)]
            weights = [abs(w * x) for w, x in zip(weights, points)]
    return out


# ---- What the header holds


def exp_fit(degree, rounded, fixed):
    reach = LN2 / 2 * D("1.001")
    return fit(lambda r: r.exp(), lambda r: (-r).exp(), -reach, reach, degree, rounded, fixed)


def log_fit(degree, rounded, slope, fixed=()):
    """slope * (log(1 + z) - z) / z^2 for z from -1/4 to 1/2."""
    return fit(lambda z: slope * ((1 + z).ln() - z) / (z * z), lambda z: z * z / (slope * (1 + z).ln()), D("-0.25"),
               D("0.5"), degree, rounded, fixed)


def tail_in_squares(function, low, high, degree, rounded):
    """(function(x) / x - 1) / x^2 as a polynomial in x^2, up to x = high."""

    def value(u):
        x = u.sqrt()
        return (function(x) / x - 1) / u

    def weight(u):
        x = u.sqrt()
        return x * u / function(x)

    return fit(value, weight, low, high * high, degree, rounded)


def sine_fit(degree, rounded, bits):
    """Of a sine that is a quarter of a unit in the last place lower at a right angle, as rounding must not exceed 1."""
    return tail_in_squares(lambda x: sin(x) - D(2) ** (-2 - bits) * (2 * x / PI) ** (2 * degree + 3), 0,
                           PI / 2 * D("1.001"), degree, rounded)


def centre_near(function, low, high, rounded, bits):
    """A number in the middle of low to high whose value lies nearest to a number of the type."""
    middle = (low + high) / 2
    unit = D(2) ** (math.frexp(float(high))[1] - bits)
    start = rounded(middle)
    best, least = None, None
    for k in range(1500):
        c = start + (k - 750) * unit
        value = function(c)
        distance = abs(value - rounded(value)) / value
        if least is None or distance < least:
            best, least = c, distance
    return best


def tanh_table(rows, rounded, is_float):
    """Columns: centre, value, coefficients from the first power on."""
    first = D("0.0625") if is_float else D("0.125")
    columns = {}
    for octave in range(8):
        for half in range(2):
            low = first * 2**octave * (D(1) + D(half) / 2)
            high = low * (D("1.5") if half == 0 else D(4) / 3)
            index = (2 * octave + half + (6 if is_float else 8)) % 16
            if octave == 0 and half == 0:
                odd = [D(1)] + tail_in_squares(tanh, 0, high * D("1.001"), rows // 2 - 2, rounded)
                columns[index] = [D(0), D(0)] + spread(odd, rows)
                continue
            c = centre_near(tanh, low, high, rounded, 17)
            value, exact = rounded(tanh(c)), tanh(c)
            slope = fit(lambda d: (tanh(c + d) - exact) / d, lambda d: d, low - c, high - c, rows - 3, rounded,
                        again=False)
            columns[index] = [c, value] + slope
    return [[columns[i][row] for i in range(16)] for row in range(rows)]


def erf_table(rows, rounded, step):
    """Columns: what is left of the value, value, coefficients from the first power on."""
    columns = []
    for i in range(16):
        if i == 0:
            # The slope without its 1, which needs no addition of its own: erf_of() adds x.
            slope = fit(lambda u: erf(u.sqrt()) / u.sqrt() - 1, lambda u: u.sqrt() / erf(u.sqrt()), 0,
                        (step / 2 * D("1.001")) ** 2, (rows - 2 + 1) // 2 - 1, rounded)
            columns.append([D(0), D(0)] + spread(slope, rows))
            continue
        c = step * i
        exact = erf(c)
        value = rounded(exact)
        reach = step / 2 * D("1.001")
        slope = fit(lambda d: (erf(c + d) - exact) / d, lambda d: d, -reach, reach, rows - 3, rounded, again=False)
        columns.append([rounded(exact - value), value] + slope)
    return [[columns[i][row] for i in range(16)] for row in range(rows)]


def spread(odd, rows):
    """Coefficients of an odd polynomial among zeros."""
    out = [D(0)] * (rows - 2)
    out[: 2 * len(odd) : 2] = odd
    return out


def parts(x, rounded, count):
    """x as a sum of numbers of the type, each the nearest to what the ones before leave."""
    out = []
    for _ in range(count):
        out.append(rounded(x))
        x -= out[-1]
    return out


def parts_below(x, rounded, bits):
    """x as a sum of two numbers, both positive, the first of so many bits."""
    unit = D(2) ** (math.frexp(float(x))[1] - bits)
    first = (x / unit).to_integral_value(ROUND_FLOOR) * unit
    return first, rounded(x - first)


def erfcx_table(rows):
    """Columns: middles of 8 intervals, two in each octave of x + 1, and coefficients about them."""
    columns = [[D(0)] * rows] * 8
    for octave in range(4):
        for half in range(2):
            low = 2**octave * (D(1) + D(half) / 2) - 1
            high = low + D(2) ** (octave - 1)
            if high > 12:
                continue
            c = centre_near(erfcx, low, high, to_float, 17)
            value, exact = to_float(erfcx(c)), erfcx(c)
            slope = fit(lambda d: (erfcx(c + d) - exact) / d, lambda d: d / erfcx(c + d), low - c, high - c, rows - 3,
                        to_float, again=False)
            columns[(2 * octave + half + 6) % 8] = [c, value] + slope
    return [[columns[i][row] for i in range(8)] for row in range(rows)]


def erfinv_fit(low, high, argument):
    """erfinv(x) / x as a polynomial in s, where argument(s) is -log(1 - x^2)."""
    value = lambda s: erfinv_of_log(argument(s))
    return fit(value, lambda s: 1 / value(s), low, high, 8, to_float)


# ---- The header

HEAD = """// Coefficients of vec_functions.h, printed by tools/fit_polynomials.py: see Note [Own mathematics]. Do not edit.
//
// Coefficients are those of the highest power first, but for the tables: their columns are 16 or 8 intervals, and their
// rows begin with what the functions say, followed by the coefficients from the lowest power on.
#pragma once

// clang-format off

namespace tercel::TERCEL_ISA {
namespace {

"""
FOOT = """
}  // namespace
}  // namespace tercel::TERCEL_ISA
"""


def literal(x, is_float):
    """The shortest decimal that reads back as x."""
    number = float(x)
    if not is_float:
        return repr(number)
    for digits in range(1, 10):
        text = f"{number:.{digits}g}"
        if struct.pack("f", float(text)) == struct.pack("f", number):
            break
    return text + ("F" if "." in text or "e" in text else ".0F")


def fill(words, start, indent, end):
    """Lines of words, as clang-format fills them."""
    lines, line = [], start
    for i, word in enumerate(words):
        word += "," if i + 1 < len(words) else end
        space = "" if line.endswith("{") or not line.strip() else " "
        if len(line) + len(space) + len(word) > WIDTH:
            lines.append(line)
            line, space = " " * indent, ""
        line += space + word
    return "\n".join(lines + [line]) + "\n"


def array(name, values, is_float):
    kind = "float" if is_float else "double"
    start = f"constexpr {kind} {name}[] = {{"
    words = [literal(v, is_float) for v in values]
    one_line = fill(words, start, 0, "};")
    if one_line.count("\n") == 1:
        return one_line
    return fill(words, start, len(start), "};")


def table(name, rows, is_float):
    kind = "float" if is_float else "double"
    out = f"alignas(64) constexpr {kind} {name}[{len(rows)}][{len(rows[0])}] = {{\n"
    for row in rows:
        out += fill([literal(v, is_float) for v in row], "    {", 5, "},")
    return out + "};\n"


def header():
    out = HEAD

    def line(name, values, is_float=True):
        nonlocal out
        out += array(name, values, is_float)

    def polynomial(name, coefficients, is_float=True):
        line(name, coefficients[::-1], is_float)

    for is_float, suffix in ((True, "F"), (False, "D")):
        rounded = to_float if is_float else to_double
        polynomial("kExp" + suffix, exp_fit(6 if is_float else 11, rounded, (D(1), D(1))), is_float)
        degree = 8 if is_float else 20
        polynomial("kLog" + suffix, log_fit(degree, rounded, D(1), (D("-0.5"),)), is_float)
        polynomial("kLog2" + suffix, log_fit(degree, rounded, 1 / LN2), is_float)
        polynomial("kLog10" + suffix, log_fit(degree, rounded, 1 / LN10), is_float)
        bits = 24 if is_float else 53
        line("kPi" + suffix, parts(PI, rounded, 3), is_float)
        line("kLn2" + suffix, parts(LN2, rounded, 2), is_float)
        line("kLn2Below" + suffix, parts_below(LN2, rounded, bits), is_float)
        line("kLog2e" + suffix, parts(1 / LN2, rounded, 2), is_float)
        line("kLog10e" + suffix, parts(1 / LN10, rounded, 2), is_float)
        # Its multiples by exponents have no more bits than the type.
        line("kLog10of2" + suffix, parts_below(LN2 / LN10, rounded, bits - (8 if is_float else 11)), is_float)
        polynomial("kSine" + suffix, sine_fit(3 if is_float else 8, rounded, bits), is_float)
    polynomial("kExpm1F", fit(lambda r: (r.exp() - 1 - r) / (r * r), lambda r: r * r / (r.exp() - 1),
                              -LN2 / 2 * D("1.001"), LN2 / 2 * D("1.001"), 5, to_float, (D("0.5"),)))
    polynomial("kTanF", tail_in_squares(lambda x: sin(x) / cos(x), 0, PI / 4 * D("1.001"), 5, to_float))
    polynomial("kAtanF", tail_in_squares(atan, 0, D(1), 8, to_float))
    polynomial("kErfinvNearF", erfinv_fit(D("-2.5"), D("2.5"), lambda s: s + D("2.5")))
    polynomial("kErfinvFarF", erfinv_fit(D(5).sqrt() - 3, D(16).sqrt() - 3, lambda s: (s + 3) ** 2))
    out += table("kTanhF", tanh_table(9, to_float, True), True)
    out += table("kErfF", erf_table(8, to_float, D("0.265625")), True)
    out += table("kErfcxF", erfcx_table(10), True)
    out += table("kTanhD", tanh_table(17, to_double, False), False)
    out += table("kErfD", erf_table(16, to_double, D("0.390625")), False)
    return out + FOOT


def main():
    text = header()
    if sys.argv[1:] == ["--check"]:
        if text == HEADER.read_text(encoding="utf-8"):
            return 0
        print(f"{HEADER} differs from what {sys.argv[0]} prints", file=sys.stderr)
        return 1
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
