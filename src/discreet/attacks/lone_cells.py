"""What is left of uniqueness if only noisy counts are published: is there somebody in this cell, or nobody?

Whoever is alone in an exact table is seen in it: a cell of one person is not empty. In a private one, cells of one
person and empty cells look alike, as far as the guarantee says.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet.attacks.codes import Encoded, NamedColumns, encoded, written_columns
from discreet.attacks.diaries import Numbers
from discreet.attacks.local import laboratory
from discreet.attacks.results import Success
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, up
from discreet.noise import discrete_laplace
from discreet.privacy import PureDP, Relation, best_tpr
from discreet.privacy.notprivate import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = ["LoneCells", "lone_cells"]

_MOST = 40_000_000  # Cells; each takes a count of 8 bytes and its noise.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LoneCells:
    """How often a cell is said to hold somebody that holds one person, or nobody, and what no attacker exceeds."""

    columns: tuple[str, ...]
    epsilon: float
    alone: Success  # cells of one person in which somebody is seen: the true positives
    empty: Success  # empty cells in which somebody is seen: the false positives
    ceiling: float  # the share of true positives that no attacker exceeds, at as many false ones

    def __str__(self) -> str:
        told = [
            ("seen in cells of one person", self.alone),
            ("seen in empty cells", self.empty),
            ("no attacker exceeds", f"{100 * self.ceiling:.0f} %"),
        ]
        head = f"private counts by {', '.join(self.columns)} at ε = {self.epsilon:g}: somebody is"
        return "\n".join([head, *(f"  {label:<28} {value}" for label, value in told)])

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        return json.dumps(asdict(self), ensure_ascii=False)

    def plot(self, *, title: str | None = None) -> alt.LayerChart:
        """Draw the true and the false positives with their limits, and the ceiling."""
        from discreet.plots import error_bars

        (low, high), (empty_low, empty_high) = self.alone.interval(), self.empty.interval()
        return error_bars(
            ["seen in cells of one person", "seen in empty cells", "no attacker exceeds"],
            [self.alone.share, self.empty.share, self.ceiling],
            [low, empty_low, self.ceiling],
            [high, empty_high, self.ceiling],
            across="share of cells",
            title=title,
        )


def lone_cells(rows: Any, columns: NamedColumns, *, epsilon: Number) -> NotPrivate[LoneCells]:
    """Release counts of every combination of values with Laplace noise, and look for those who are alone.

    Every row is a person, who changes one count by one. Somebody is seen in a cell if its noisy count is 1 or more.
    """
    price = exact(epsilon, name="epsilon")
    if price <= 0:
        raise InvalidParameter("epsilon is above 0")
    with laboratory({"rows": rows}) as lab:
        counts = _counts(encoded(lab, written_columns(lab, columns, None), None))
    alone, empty = (_seen(int((counts == people).sum()), people, price) for people in (1, 0))
    if not alone.of or not empty.of:
        raise InvalidParameter("nobody is alone, or no cell is empty: there is nothing to look for")
    ceiling = best_tpr(PureDP(price), Fraction(empty.interval()[1]), relation=Relation.ADD_REMOVE)
    return NotPrivate(LoneCells(columns=tuple(columns), epsilon=up(price), alone=alone, empty=empty, ceiling=ceiling))


def _counts(table: Encoded) -> Numbers:
    """Count the rows of every combination of values, also of those that nobody has."""
    cells = math.prod(table.sizes)
    if cells > _MOST:
        raise InvalidParameter(
            f"these columns have {cells:,} combinations of values; {_MOST:,} are the most: coarsen one"
        )
    keys = np.zeros(table.rows, dtype=np.int64)
    for codes, size in zip(table.codes, table.sizes, strict=True):
        keys = keys * size + codes
    return np.bincount(keys, minlength=cells)


def _seen(cells: int, people: int, price: Fraction) -> Success:
    """Draw the noise of cells that hold so many people, and count those in which somebody is seen."""
    return Success(int((people + discrete_laplace(1 / price, cells) >= 1).sum()), cells)
