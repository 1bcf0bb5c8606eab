"""A closer look at rows: public linear coordinates, a public fit to subtract, and lengths cut to public bounds.

The arithmetic is exact or rounds each number by itself, so that what becomes of a row depends on that row alone, not
on where in the table it stands or on who stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, Refused
from discreet.exact import exact
from discreet.formatting import exponent
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.vector_mean import clip_to_ball
from discreet.privacy.relation import Relation
from discreet.robust.regression_design import HALF, Records, RegressionColumns, centred
from discreet.schema.columns import pair_of

__all__ = [
    "EACH_ROW",
    "Lens",
    "SharedWeights",
    "bounded",
    "lengths",
    "refuse_weights",
    "shares_of",
    "weight_grid",
    "weight_shares",
]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_EXACT = 1 << 32  # Times HALF = 2^20: sums of such products stay below 2^53 and are exact in any order.
_FAR = 1 << 26  # Steps; its square, a thousand times, fits 64 bits.
_FINE = 1 << 10  # Steps to the unit in which lengths are told.


@final
@dataclass(frozen=True, slots=True)
class Lens:
    """Coordinates (1, x) turn and residuals y - (1, x) fit of rows (1, x, y)."""

    turn: Floats
    fit: Floats

    @classmethod
    def plain(cls, dimension: int) -> Lens:
        """Look at the rows as they are."""
        return cls(np.eye(dimension), np.zeros(dimension))

    def look(self, rows: Integers) -> tuple[Floats, Floats]:
        """Return coordinates and residuals, exactly for the public map rounded to 32 bits. They are private."""
        size = len(self.fit)
        matrix = np.zeros((size + 1, size + 1))
        matrix[:size, :size], matrix[:size, size], matrix[size, size] = self.turn, -self.fit, 1.0
        # A power of two for each column, so that dividing by it later is exact.
        _, powers = np.frexp(np.abs(matrix).max(axis=0) * (size + 1))
        scales = np.ldexp(float(_EXACT), -powers)
        whole = np.rint(matrix * scales)
        seen = (rows.astype(np.float64) @ whole) / (scales * HALF)
        return seen[:, :size], seen[:, size]


def lengths(coordinates: Floats) -> Floats:
    """Return the l2 norm of each row, from its coordinates rounded to 1/1024."""
    near = np.clip(np.rint(coordinates * _FINE), -_FAR, _FAR).astype(np.int64)
    # Whole numbers add up the same in any order, and a root is rounded correctly.
    norms: Floats = np.sqrt((near * near).sum(axis=1)) / _FINE
    return norms


def bounded(
    coordinates: Floats, residuals: Floats, radius: float, reach: float, steps: int
) -> tuple[Integers, Integers]:
    """Shorten each row to the radius, its residual with it, and clamp that to the reach; both are so many steps.

    A row that is shortened is one that weighs less: its residual shrinks by the same factor.
    """
    near = np.clip(np.rint(coordinates * (steps / radius)), -_FAR, _FAR).astype(np.int64)
    shares = steps / np.sqrt(np.maximum((near * near).sum(axis=1), steps**2))
    kept = np.clip(residuals * shares * (steps / reach), -steps, steps)
    return clip_to_ball(near, steps), np.rint(kept).astype(np.int64)


# --- shares: The rows of one unit share the weight of one row, and a row may weigh less than the heaviest. ---


def weight_grid(weight_bounds: Any) -> Grid:
    """Read the declared bounds (0, high) of weights; a high that no grid has is rounded up to nine digits."""
    if weight_bounds is None:
        raise Refused(
            "weights of rows need weight_bounds=(0, high)",
            reason="a row may weigh as much as it likes, unless its weight is clamped to bounds that are public",
            way_out="declare the largest weight there may be; heavier rows count as much as that",
        )
    low, high = (exact(end, name="weight_bounds") for end in pair_of(weight_bounds, name="weight_bounds"))
    if low != 0 or high <= 0:
        raise InvalidParameter("weight_bounds must be (0, high): a row that weighs nothing must be able to")
    step = Fraction(10) ** (exponent(high) - 9)
    return Grid.between(0, (high / step).__ceil__() * step)


def weight_shares(grid: Grid, column: Any) -> Integers:
    """Return the weight of each row as a share of the heaviest, from 0 to HALF. This is private."""
    found: Integers = (centred(grid, column) + HALF) // 2
    return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class SharedWeights:
    """What each row weighs: a share s of the heaviest weight, and 1 / m of that for each of the m rows of a unit.

    Theorem     A row and its residual are multiplied by sqrt(s / m), toward zero, so that the squares of those of one
                unit add up to at most those of one row: sums of x x' and x r over a unit are no longer than those of
                one row, however many rows it has, and a row stays in its ball. One unit more or less, or a row
                replaced, moves every such sum as rows without weights do. What is counted is counted in the first row
                of each unit, which depends on its own rows alone.
    """

    units: Integers | None = field(default=None, repr=False)
    weights: Integers | None = field(default=None, repr=False)  # from 0 to HALF

    def divided(self, rows: Integers, residuals: Integers) -> tuple[Integers, Integers]:
        """Share out rows and residuals of whole steps. This is private."""
        if self.units is None and self.weights is None:
            return rows, residuals
        many = np.ones(len(rows), np.int64) if self.units is None else np.bincount(self.units)[self.units]
        if self.weights is None:
            return _times_root(rows, many[:, None]), _times_root(residuals, many)
        return (
            _times_root(rows, many[:, None] * HALF, self.weights[:, None]),
            _times_root(residuals, many * HALF, self.weights),
        )

    def count(self, rows: int) -> int:
        """Return how many units there are, of so many rows. This is private."""
        return rows if self.units is None else int(self.units.max(initial=-1)) + 1

    def each(self, values: Integers) -> Integers:
        """Hand the number of each unit to all of its rows. This is private."""
        return values if self.units is None else values[self.units]

    def first(self, values: Floats) -> Floats:
        """Return the values of one row of each unit; those of rows that weigh nothing are zero. This is private."""
        if self.weights is not None:
            values = np.where(self.weights > 0, values, 0.0)
        return values if self.units is None else values[np.unique(self.units, return_index=True)[1]]

    def scores(self, rows: Integers, residuals: Integers) -> Integers | None:
        """Add up r x over the rows of each unit, in whole squared steps; None where rows are units. Private."""
        if self.units is None:
            return None
        scores = np.zeros((self.count(len(rows)), rows.shape[1]), dtype=np.int64)
        np.add.at(scores, self.units, rows * residuals[:, None])
        return scores


EACH_ROW = SharedWeights()


def shares_of(records: Records, relation: Relation) -> SharedWeights:
    """Return who shares a weight, and what rows weigh; refused where that is not proven."""
    if not isinstance(records, RegressionColumns) or (records.units is None and records.weights is None):
        return EACH_ROW
    units, weights = records.units, records.weights
    if units is not None and relation is not Relation.ADD_REMOVE:
        raise Refused("units with several records are protected under add-remove", way_out='say relation="add-remove"')
    if units is not None and (len(units) != len(records) or (len(records) and int(units.min()) < 0)):
        raise InvalidParameter("there must be the number of a unit, from 0 on, for each record")
    if weights is not None and (len(weights) != len(records) or weights.dtype.kind != "i"):
        # A weight that is no number would be clamped to nothing, and its row not be bounded.
        raise InvalidParameter("there must be a weight for each record, a whole number")
    # Whoever made them, none is heavier than the heaviest that noise is for.
    return SharedWeights(units, None if weights is None else np.clip(weights, 0, HALF))


def refuse_weights(records: Records) -> None:
    """Raise where records have weights and the mechanism has no proof for them."""
    if isinstance(records, RegressionColumns) and records.weights is not None:
        raise Refused(
            "this fit takes no weights of records",
            way_out='fit with method="refined" or "noisy_statistics", whose sums are proven with them',
        )


def _times_root(steps: Integers, many: Integers, weights: Integers | int = 1) -> Integers:
    """Multiply by the root of w / m, toward zero: floor(sqrt(a^2 w / m)) = floor(sqrt(floor(a^2 w / m))).

    Steps are at most 2^15 and weights 2^20, so a^2 w is at most 2^50; the root of a whole number below 2^52 is a float
    that is rounded correctly, and so reaches no next whole number.
    """
    size: Integers = np.floor(np.sqrt(steps * steps * weights // many)).astype(np.int64)
    return np.sign(steps) * size
