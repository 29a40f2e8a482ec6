#!/usr/bin/env python3
"""vec_tables.h holds what tools/fit_polynomials.py prints, and the program's functions are right."""

import math
import pathlib
import sys
import unittest
from decimal import Decimal

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import fit_polynomials as fit  # noqa: E402


class FitPolynomials(unittest.TestCase):
    def test_header_agrees(self):
        self.assertEqual(fit.HEADER.read_text(encoding="utf-8"), fit.header())

    def test_functions(self):
        for name in ("sin", "cos", "atan", "tanh", "erf"):
            for x in (0.001, 0.3, 1.25, 3.5):
                exact = getattr(math, name)(x)
                self.assertAlmostEqual(float(getattr(fit, name)(Decimal(x))) / exact, 1, delta=1e-14, msg=f"{name}({x})")
        for x in (0.001, 0.3, 1.25, 3.5):
            self.assertAlmostEqual(float(fit.erfcx(Decimal(x))), math.exp(x * x) * math.erfc(x), delta=1e-13)
            y = x * float(fit.erfinv_of_log(-(1 - Decimal(math.erf(x)) ** 2).ln())) / x * math.erf(x)
            self.assertAlmostEqual(y, x, delta=1e-9, msg=f"erfinv(erf({x}))")

    def test_minimax_of_a_known_function(self):
        """The best line for x^2 on [0, 1] is x - 1/8."""
        points = fit.grid(Decimal(0), Decimal(1), 400)
        constant, slope = fit.minimax(points, [x * x for x in points], [Decimal(1)] * 400, 1)
        self.assertAlmostEqual(float(constant), -0.125, delta=1e-4)
        self.assertAlmostEqual(float(slope), 1, delta=1e-4)

    def test_literals_read_back(self):
        self.assertEqual(fit.literal(Decimal(1), True), "1.0F")
        self.assertEqual(fit.literal(fit.to_float(fit.PI), True), "3.1415927F")
        self.assertEqual(fit.literal(Decimal(math.pi), False), "3.141592653589793")


if __name__ == "__main__":
    unittest.main()
