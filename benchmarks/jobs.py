"""The jobs, written once, so that every subject is given the same ones."""

from __future__ import annotations

from fractions import Fraction

__all__ = [
    "DELTA",
    "DPSGD_PROBABILITY",
    "DPSGD_SIGMA",
    "DPSGD_STEPS",
    "LAPLACE_SCALES",
    "MANY_GAUSSIANS",
    "MANY_LAPLACES",
    "REPEATED_SIGMA",
    "REPEATED_TIMES",
    "SCALAR_PARAMETERS",
    "SIGMAS",
    "SPEED_BOUNDS",
    "SPEED_CANDIDATES",
    "SPEED_EPSILON",
    "SPEED_QUANTILES",
    "SPEED_SIZES",
    "TARGET_EPSILON",
    "TASKS",
]

LAPLACE_SCALES = ("0.5", "1", "10", "1000", "1000000")
SIGMAS = ("1", "10", "100", "500", "1000", "1000000")
SCALAR_PARAMETERS = ("1", "1000000")

# Accounting, all under add-remove and at this delta.
DELTA = Fraction(1, 10**5)
TASKS = ("dpsgd", "many", "repeated", "calibrate")
DPSGD_PROBABILITY = Fraction(1, 100)
DPSGD_SIGMA = 1
DPSGD_STEPS = 10_000
MANY_GAUSSIANS = tuple(20 + Fraction(i, 20) for i in range(500))  # noise multipliers
MANY_LAPLACES = tuple(40 + Fraction(i, 10) for i in range(500))
REPEATED_SIGMA = 50
REPEATED_TIMES = 1000
TARGET_EPSILON = 2  # `calibrate` finds the sigma of the DP-SGD run that reaches it.

# Quantiles of many floats, for time.
SPEED_SIZES = (10**6, 10**7)
SPEED_BOUNDS = (0, 10**6)
SPEED_EPSILON = 1
SPEED_QUANTILES = {"median": "0.5", "0.9-quantile": "0.9"}
SPEED_CANDIDATES = 1001  # where they must be listed
