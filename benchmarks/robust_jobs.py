"""The simulations of robust estimates, written once."""

from __future__ import annotations

__all__ = [
    "ROBUST_BOUNDS",
    "ROBUST_COEFFICIENTS",
    "ROBUST_LEVERAGE",
    "ROBUST_MUS",
    "ROBUST_OUTLIER",
    "ROBUST_OUTLIERS",
    "ROBUST_OUTLIER_RUNS",
    "ROBUST_RUNS",
    "ROBUST_SIZES",
    "ROBUST_X_BOUND",
]

ROBUST_SIZES = (1000, 5000)
ROBUST_MUS = ("0.25", "1")
ROBUST_RUNS = 2000
ROBUST_BOUNDS = (-50, 50)  # of values, and of what a regression predicts
ROBUST_COEFFICIENTS = (1.0, 1.0, 1.0, 1.0, 1.0)  # the intercept first; columns are standard normal
ROBUST_X_BOUND = 5
ROBUST_LEVERAGE = 2
ROBUST_OUTLIERS = (0.01, 0.05, 0.1)
ROBUST_OUTLIER = 45.0
ROBUST_OUTLIER_RUNS = 200
