"""Coefficients as a table: each with its ±, its interval, and what that covers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import final

from discreet.mechanisms.text import decimal, decimal_up, places_for, plain

__all__ = ["Summary", "SummaryRow"]

_PROTECTED = (
    "Protected are the rows as they were handed in: what was fitted on them before, such as a plain scaler, "
    "is not covered."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRow:
    """One coefficient; without an interval where none can be told."""

    name: str
    coefficient: Fraction
    interval: tuple[Fraction, Fraction] | None

    @property
    def reach(self) -> Fraction | None:
        """The larger distance to the ends of the interval."""
        if self.interval is None:
            return None
        low, high = self.interval
        return max(high - self.coefficient, self.coefficient - low)

    def cells(self) -> tuple[str, str, str, str]:
        """Write the row with as many digits as its error allows."""
        if self.interval is None or not self.reach:
            return self.name, plain(self.coefficient), "", ""
        places = places_for(self.reach, self.coefficient)
        low, high = (decimal(end, places) for end in self.interval)
        return self.name, decimal(self.coefficient, places), decimal_up(self.reach, places), f"{low} … {high}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a fit found, how sure that is, and what it cost. Everything in it may be published."""

    title: str  # which estimator, found how
    cost: str
    confidence: Fraction
    rows: tuple[SummaryRow, ...]
    covers: str  # what the intervals cover, or why there are none

    @property
    def _heads(self) -> tuple[str, str, str, str]:
        return "", "coefficient", "±", f"{plain(100 * self.confidence)} % interval"

    def __str__(self) -> str:
        table = [self._heads, *(row.cells() for row in self.rows)]
        widths = [max(len(row[column]) for row in table) for column in range(4)]
        lines = [self._line(row, widths) for row in table]
        return "\n".join([f"{self.title}: {self.cost}", *lines, self.covers, _PROTECTED])

    __repr__ = __str__

    @staticmethod
    def _line(row: tuple[str, ...], widths: list[int]) -> str:
        name, *numbers = (
            cell.ljust(w) if place == 0 else cell.rjust(w)
            for place, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join([name, *numbers]).rstrip()

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{escape(head)}</th>" for head in self._heads)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row.cells()) + "</tr>" for row in self.rows
        )
        return (
            f"<p>{escape(self.title)}: {escape(self.cost)}</p><table><tr>{heads}</tr>{rows}</table>"
            f"<small>{escape(self.covers)} {escape(_PROTECTED)}</small>"
        )
