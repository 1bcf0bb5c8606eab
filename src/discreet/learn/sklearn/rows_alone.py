"""Arithmetic in which what becomes of a row depends on that row alone, to the last bit.

A product of matrices may round the same row in one way or another by its place in the table. Where rows are counted or
added up afterwards, one person more or less would then move the rows of others, and that is not paid for.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["combined", "keeps_rows_alone"]

Floats: TypeAlias = NDArray[np.float64]


def combined(rows: Floats, weights: Floats) -> Floats:
    """Multiply rows by a matrix with one column a result, one entry of the rows after the other."""
    found = np.zeros((len(rows), weights.shape[1]))
    for column, entries in zip(rows.T, weights, strict=True):
        found += column[:, None] * entries
    return found


def keeps_rows_alone(estimator: Any) -> bool:
    """Tell whether an estimator, or every step of a pipeline, says that it does such arithmetic only."""
    steps = [step for _, step in estimator.steps] if hasattr(estimator, "steps") else [estimator]
    return all(step in (None, "passthrough") or getattr(step, "keeps_rows_alone", False) for step in steps)
