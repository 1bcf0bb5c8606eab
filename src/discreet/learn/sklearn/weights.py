"""Declared weights: of rows, private and clamped to public bounds, and of classes, public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import positive
from discreet.learn.sklearn.base import TrainingTable
from discreet.learn.sklearn.validation import showing_no_text
from discreet.mechanisms.grid import Grid
from discreet.robust.regression_design import HALF
from discreet.robust.reweighting import weight_grid

__all__ = ["RowWeights", "class_shares", "read_weights", "shares_of_rows"]

Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowWeights:
    """A column of weights before it is read, and the grid that they are clamped to."""

    grid: Grid
    _column: Any = field(repr=False)

    @property
    def heaviest(self) -> Fraction:
        return self.grid.high

    def shares(self, table: TrainingTable, whole: int = HALF) -> Integers:
        """Return the weight of each row that counts, from 0 to `whole` for the heaviest. This is private."""
        found: Integers = (table.shares_of(self._column, self.grid) + HALF) * whole // (2 * HALF)
        return found


def read_weights(
    sample_weight: Any, weight_bounds: Any, table: TrainingTable, *, has_session: bool
) -> RowWeights | None:
    """Return weights and what is declared of them; as scikit-learn does, look at them if no session pays."""
    if sample_weight is None:
        return None
    if not has_session:
        with showing_no_text():
            sample_weight = np.asarray(sample_weight, dtype=np.float64)
        if not sample_weight.any():
            raise InvalidParameter("sample_weight is zero for all rows")
    grid = weight_grid(weight_bounds)
    if not table.is_beside(sample_weight):
        raise InvalidParameter("sample_weight must be a column with one number for each row of X")
    return RowWeights(grid, sample_weight)


def class_shares(class_weight: Any, classes: NDArray[Any], whole: int = HALF) -> Integers | None:
    """Return the weight of each class next to the heaviest one, of `whole`; None where none are said."""
    if class_weight is None:
        return None
    if not isinstance(class_weight, Mapping) or not class_weight.keys() <= set(classes.tolist()):
        raise InvalidParameter(
            "class_weight must map classes to public weights, such as {0: 1, 1: 5}: balancing them by how many "
            "rows each class has would read the rows"
        )
    weights = [positive(class_weight.get(label, 1), name="class_weight") for label in classes.tolist()]
    return np.array([int(weight * whole / max(weights)) for weight in weights], dtype=np.int64)


def shares_of_rows(
    weights: RowWeights | None, shares: Integers | None, table: TrainingTable, codes: Integers, whole: int = HALF
) -> Integers | None:
    """Return what each row weighs, its own weight times that of its class, from 0 to `whole`. This is private.

    A label that is no class has the weight of the first one, and adds nothing to any sum.
    """
    found = None if weights is None else weights.shares(table, whole)
    if shares is None:
        return found
    return np.asarray((whole if found is None else found) * shares[np.maximum(codes, 0)] // whole, dtype=np.int64)
